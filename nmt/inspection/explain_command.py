"""One decoding step with its numbers."""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from nmt.system.errors import ConfigError, DataError, as_nmt_errors
from nmt.system.files import AnyPath, AnyPaths
from nmt.system.messages import Parameter
from nmt.system.surroundings import plain_torch
from nmt.translation.stream import within_memory

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.inspection.record import Forced
    from nmt.models.storage import ModelFolder
    from nmt.translation.translator import Translator

BAR = 24
"""Width of a bar for a share of 1, in columns."""
NUMBERS = 8
"""Shown numbers of a vector."""


class Explanation(str):
    """Lines of text, which a notebook and a session of Python show as lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="overflow-x: auto">{html.escape(self)}</pre>'


@as_nmt_errors()
@plain_torch()
def explain(
    sentence: str,
    *,
    model: AnyPath | None = None,
    against: AnyPaths = (),
    step: int = 1,
    target: str | None = None,
    device: str = "auto",
    allowed_classes: Collection[str] = (),
) -> str:
    """Explain one decoding step: scores, weights, context, words.

    Example: nmt explain "She kissed him." --step 3; nmt explain "She kissed him." --against runs/bahdanau

    Args:
        sentence: Sentence to translate.
        model: Run or model directory; None is the newest finished run under `runs`.
        against: Another model, which reads the same words; its weights stand beside.
        step: Which word of the translation; its end counts as one.
        target: The translation that the model is made to say instead.
        device: auto, cpu, cuda, cuda:N or mps.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Returns:
        Lines of text.

    Raises:
        NmtError: A model cannot be used or has other tokens, the sentence has no words, or there is no such step.
    """
    from nmt.inspection.explore_command import open_all
    from nmt.inspection.explorer_data import name_models
    from nmt.layers.attention.catalog import describe_mechanism
    from nmt.text.vocabulary import UNK_ID

    models = name_models(open_all(model, against, device, allowed_classes))
    name = next(iter(models))
    saved, translator = models[name]
    if not translator.reader.tokenize([sentence])[0]:
        raise DataError("the sentence has no words; give a sentence")
    sources, forced = _read(translator, sentence, target)
    if not 1 <= step <= len(forced.tokens):
        raise ConfigError(
            "{step}: the translation has {count} steps: {tokens}",
            step=Parameter("step", step),
            count=len(forced.tokens),
            tokens=" ".join(forced.tokens),
        )
    # Other models read the same sentence and the same translation, and must have the same tokens for both.
    readings = {name: forced}
    for other_name, (other_saved, other_translator) in models.items():
        if other_name == name:
            continue
        tokens, reading = _read(other_translator, sentence, forced.text)
        if tokens != sources or reading.tokens != forced.tokens:
            text = " ".join([*tokens, "->", *reading.tokens])
            system = Parameter("against", other_saved.path)
            raise ConfigError("{system}: has other tokens for the same text: {text}", system=system, text=text)
        readings[other_name] = reading

    lines = [f"{sentence} -> {forced.text}"]
    known = translator.processor.src_vocabulary
    unknown = [token for token in sources[:-1] if known.encode([token]) == [UNK_ID]]  # without the end
    if unknown:
        lines.append(f"read as unknown words: {' '.join(unknown)}")
    for loaded, _ in models.values():
        lines.append(f"model: {loaded.path}")
        lines.append(". ".join(filter(None, describe_mechanism(loaded.config.model))))
    lines.append("")
    lines += _step_lines(saved, translator, readings, sources, step - 1)
    return Explanation("\n".join(lines) + "\n")


def _read(translator: Translator, sentence: str, target: str | None) -> tuple[list[str], Forced]:
    """The tokens of a sentence, and the model's reading of a target; without a target, of its own translation."""
    from nmt.corpus.example import Example
    from nmt.inspection.record import record

    references = () if target is None else (target,)
    with within_memory(translator.options, 1):
        recorded = record(translator, Example(sentence, references), None)
    return recorded.src_tokens, recorded.reference or recorded.best


def _step_lines(
    saved: ModelFolder, translator: Translator, readings: Mapping[str, Forced], sources: Sequence[str], step: int
) -> Iterator[str]:
    """A step of a model in numbers: its query, attention and next words.

    Args:
        saved: The model.
        translator: Its translator.
        readings: Its reading of the translation, and those of other models, by their names.
        sources: Tokens of the sentence.
        step: Number of the step, from 0.
    """
    forced = next(iter(readings.values()))
    decoder = translator.model.decoder
    word = forced.tokens[step]
    before = " ".join(forced.tokens[:step]) or "nothing"
    yield f"Step {step + 1} of {len(forced.tokens)}: {word}, after {before}"
    several = forced.alignment.size(1) > 1
    chosen = decoder.heads[decoder.chosen_heads]
    layers = 1 + max((head.layer for head in decoder.heads), default=0)
    if layers > 1:
        heads = f"all {len(chosen)} heads" if several else "one head"
        yield f"  Attention of layer {chosen[0].layer + 1} of {layers} ({heads}), which stands for the whole"
    if forced.details.queries is not None:
        when = saved.config.model.decoder.query_time
        projected = ", as the head projects it," if several else ""
        last = forced.tokens[step - 1] if step else "the beginning"
        yield f"  1. Query: the decoder's state{projected} {when} reading {last}"
        for head, query in enumerate(forced.details.queries[step], 1):
            label = f"head {head}: " if several else ""
            yield f"     {label}{_vector(query)}"
    if any(reading.alignment[step].any() for reading in readings.values()):
        yield from _attention_lines(readings, sources, step)
    else:
        yield "  2. No attention: every step sees the same summary of the source"
    yield "  4. The most probable next words"
    width = max(len(candidate) for candidate, _ in forced.top[step])
    for candidate, share in forced.top[step]:
        mark = "  <- chosen" if candidate == word else ""
        yield f"     {candidate:<{width}}  {share:.3f}  {_bar(share):<{BAR}}{mark}".rstrip()
    for name, reading in readings.items():
        if reading is not forced:
            yield f"     {word} has {math.exp(reading.log_probs[step]):.3f} with {name}"


def _attention_lines(readings: Mapping[str, Forced], sources: Sequence[str], step: int) -> Iterator[str]:
    """For each head a line for each source position: its score, its chance, its weight and a bar; then the context.

    Beside them stand the weights of the other models, in the mean over their heads.
    """
    forced, *others = readings.values()
    scores = forced.details.scores
    chances = forced.details.chances
    weighted = "and weights: the normalised scores"
    if chances is not None:
        weighted = "the chances they give, and weights: 1 at the largest"
    yield f"  2. Scores of all source positions, {weighted}"
    if others:
        yield f"     Columns of weights: {', '.join(readings)}"
    width = max(map(len, sources))
    weights_of_others = [reading.alignment[step].mean(dim=0).tolist() for reading in others]
    for head, weights in enumerate(forced.alignment[step].tolist()):
        if forced.alignment.size(1) > 1:
            yield f"     head {head + 1}"
        for position, source in enumerate(sources):
            line = f"     {source:<{width}}"
            if scores is not None:
                line += f"  {scores[step, head, position].item():z8.2f}"
            if chances is not None:
                line += f"  {chances[step, head, position].item():.3f}"
            for row in (weights, *weights_of_others):
                share = row[position]
                line += f"  {share:.3f}  {_bar(share):<{BAR}}"
            yield line.rstrip()
    if forced.contexts is not None:
        yield "  3. Context: the sum of the encoder states, each times its weight"
        yield f"     {_vector(forced.contexts[step])}"


def _bar(share: float) -> str:
    return "█" * round(BAR * share)


def _vector(values: Tensor) -> str:
    """The first numbers of a vector, how many there are, and its Euclidean norm."""
    shown = " ".join(f"{value:z.2f}" for value in values[:NUMBERS].tolist())
    more = " ..." if len(values) > NUMBERS else ""
    return f"{shown}{more} ({len(values):,} numbers, norm {values.norm():.2f})"
