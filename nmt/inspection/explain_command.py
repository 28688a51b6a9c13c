"""One decoding step with its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from nmt.system import options
from nmt.system.errors import ConfigError, DataError, as_nmt_errors
from nmt.system.files import as_paths
from nmt.system.options import Argument
from nmt.translation.loading import open_translator
from nmt.translation.stream import within_memory

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.inspection.record import Forced
    from nmt.models.base import Decoder
    from nmt.models.storage import SavedModel

BAR = 24
"""Width of a bar for a share of 1, in columns."""
NUMBERS = 8
"""Shown numbers of a vector."""


@as_nmt_errors()
def explain(
    sentence: Annotated[str, Argument(metavar="SENTENCE")],
    *,
    model: options.Model = None,
    step: options.Positive = 1,
    target: options.Text | None = None,
    device: options.Device = "auto",
    allowed_classes: options.AllowedClasses = (),
) -> str:
    """Explain one decoding step: scores, weights, context, words.

    Example: nmt explain "She kissed him." --step 3

    Args:
        sentence: Sentence to translate.
        model: Run or model directory; None is the newest finished run under `runs`.
        step: Which word of the translation; its end counts as one.
        target: What the model is made to say instead.
        device: auto, cpu, cuda, cuda:N or mps.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Returns:
        Lines of text.

    Raises:
        NmtError: The model cannot be used, the sentence has no words, or there is no such step.
    """
    from nmt.corpus.splitting import Example
    from nmt.inspection.record import record
    from nmt.layers.attention.catalog import describe_mechanism

    (saved,), translator = open_translator(as_paths(model), device, {}, allowed_classes)
    if not translator.tokenize([sentence])[0]:
        raise DataError("the sentence has no words; give a sentence")
    with within_memory(translator.options, 1):
        recorded = record(translator, Example(sentence, () if target is None else (target,)), None)
    forced = recorded.reference or recorded.best
    if not 1 <= step <= len(forced.tokens):
        raise ConfigError(f"--step {step}: the translation has {len(forced.tokens)} steps: {' '.join(forced.tokens)}")
    mechanism = ". ".join(filter(None, describe_mechanism(saved.config.model)))
    lines = [f"{sentence} -> {forced.text}", f"model: {saved.path}", mechanism, ""]
    decoder = translator.model.decoder
    return "\n".join([*lines, *_lines(saved, decoder, forced, recorded.src_tokens, step - 1)]) + "\n"


def _lines(
    saved: SavedModel, decoder: Decoder[Any, Any, Any], forced: Forced, sources: Sequence[str], step: int
) -> Iterator[str]:
    before = " ".join(forced.tokens[:step]) or "nothing"
    yield f"Step {step + 1} of {len(forced.tokens)}: {forced.tokens[step]}, after {before}"
    several = forced.alignment.size(1) > 1
    chosen, layers = decoder.heads[decoder.chosen_heads], 1 + max((head.layer for head in decoder.heads), default=0)
    if layers > 1:
        heads = f"all {len(chosen)} heads" if several else "one head"
        yield f"  Attention of layer {chosen[0].layer + 1} of {layers} ({heads}), which stands for the whole"
    if forced.details.queries is not None:
        when = saved.config.model.decoder.query_time
        projected = ", as the head projects it," if several else ""
        last = forced.tokens[step - 1] if step else "the beginning"
        yield f"  1. Query: the decoder's state{projected} {when} reading {last}"
        for head, query in enumerate(forced.details.queries[step], 1):
            yield f"     {f'head {head}: ' if several else ''}{_vector(query)}"
    if forced.alignment[step].any():
        yield from _attention_lines(forced, sources, step)
    else:
        yield "  2. No attention: every step sees the same summary of the source"
    yield "  4. The most probable next words"
    width = max(len(word) for word, _ in forced.top[step])
    for word, share in forced.top[step]:
        mark = "  <- chosen" if word == forced.tokens[step] else ""
        yield f"     {word:<{width}}  {share:.3f}  {_bar(share):<{BAR}}{mark}".rstrip()


def _attention_lines(forced: Forced, sources: Sequence[str], step: int) -> Iterator[str]:
    """For each head a line for each source position: its score, its chance, its weight and a bar; then the context."""
    scores, chances = forced.details.scores, forced.details.chances
    weighted = "and weights: the normalised scores"
    if chances is not None:
        weighted = "the chances they give, and weights: 1 at the largest"
    yield f"  2. Scores of all source positions, {weighted}"
    columns = [(values[step], style) for values, style in ((scores, "z8.2f"), (chances, ".3f")) if values is not None]
    width = max(map(len, sources))
    for head, weights in enumerate(forced.alignment[step].tolist()):
        if forced.alignment.size(1) > 1:
            yield f"     head {head + 1}"
        for position, (source, weight) in enumerate(zip(sources, weights, strict=True)):
            numbers = "".join(f"  {values[head, position].item():{style}}" for values, style in columns)
            yield f"     {source:<{width}}{numbers}  {weight:.3f}  {_bar(weight)}".rstrip()
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
