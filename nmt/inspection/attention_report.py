"""Where a model looks: the attention of a sentence or a test set in numbers, and its alignment error rate."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from nmt.corpus.example import Example
from nmt.drawing.heatmap import EOS_LABEL
from nmt.evaluation.attention_statistics import (
    SHARP,
    HeadStatistics,
    LengthAttention,
    attention_by_length,
    coverage,
    diagonality,
    summarize,
)
from nmt.evaluation.breakdown import bin_by_length
from nmt.evaluation.gold_links import GoldLinks, Unit, measure_error_rate
from nmt.inspection.all_heads import AllHeads
from nmt.system.errors import ConfigError, DataError
from nmt.system.files import naming
from nmt.system.progress import progress_bar
from nmt.system.tables import Table
from nmt.translation.alignment import draw_alignment
from nmt.translation.sharpness import CLEAR, STEP_LABELS, step_statistics
from nmt.translation.stream import translate_texts, warn_of_cut, within_memory
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator


@dataclass(frozen=True)
class AttentionReport:
    """Attention of a model on some sentences.

    Attributes:
        model: Model directories.
        forced: True if the targets were given rather than translated.
        sources: Raw sources.
        sentences: A target of each, with its alignment.
        heads: Statistics of each head over all sentences.
        by_length: Statistics by source length.
        error_rate: Alignment error rate; None without gold links.
        all_heads: Every head of every layer; None if not asked for.
    """

    model: str
    forced: bool
    sources: Sequence[str]
    sentences: Sequence[Translation]
    heads: Sequence[HeadStatistics]
    by_length: Sequence[LengthAttention]
    error_rate: float | None
    all_heads: AllHeads | None = None

    def __repr__(self) -> str:
        return f"<AttentionReport of {self.model}: sentences {len(self.sentences):,}, heads {len(self.heads)}>"

    @property
    def step_table(self) -> Table:
        """The steps and heads of the first sentence: the token of a step, how sharp attention is, where it looks."""
        first = self.sentences[0]
        sources = [*first.src_tokens, EOS_LABEL]
        rows = []
        for step in _steps(first):
            for number, head in enumerate(step["heads"], 1):
                token = step["token"] if number == 1 else ""
                largest = f"{sources[head['position']]} {head['maximum']:.2f}" if head["maximum"] else "-"
                rows.append([token, str(number), f"{head['entropy']:.3f}", largest, str(head["clear"])])
        header = ["token", "head", "entropy", "largest weight on", f"weights above {CLEAR}"]
        alignment = "llrlr"
        if len(self.heads) > 1:
            return Table(header, rows, alignment)
        # A single head needs no number.
        rows = [[row[0], *row[2:]] for row in rows]
        return Table([header[0], *header[2:]], rows, alignment[0] + alignment[2:])

    def as_json(self) -> dict[str, Any]:
        """As plain values, with every step of every sentence."""
        values: dict[str, Any] = {
            "model": self.model,
            "forced": self.forced,
            "heads": [asdict(head) for head in self.heads],
            "by_length": [asdict(group) for group in self.by_length],
            "alignment_error_rate": self.error_rate,
        }
        if self.all_heads is not None:
            values["all_heads"] = self.all_heads.as_json()
        values["sentences"] = []
        for source, translation in zip(self.sources, self.sentences, strict=True):
            sentence = {
                "source": source,
                "target": translation.text,
                "src_tokens": [*translation.src_tokens, EOS_LABEL],
                "steps": list(_steps(translation)),
                "coverage": _per_head(coverage, translation.alignment),
                "diagonality": _per_head(diagonality, translation.alignment),
            }
            values["sentences"].append(sentence)
        return values


def _steps(translation: Translation) -> Iterator[dict[str, Any]]:
    """Every step of a sentence: its token, and for each head entropy, largest weight and so on."""
    weights = translation.alignment
    if weights is None:
        return
    statistics = {**vars(step_statistics(weights)), "position": weights.argmax(dim=-1)}  # [T, heads] each
    tokens = [*translation.tokens, EOS_LABEL][: len(weights)]  # the end has weights only if it was reached
    for number, token in enumerate(tokens):
        of_step = {name: values[number].tolist() for name, values in statistics.items()}
        heads = []
        for head in range(weights.size(1)):
            heads.append({name: round(values[head], 6) for name, values in of_step.items()})
        yield {"token": token, "heads": heads}


def _per_head(measure: Callable[[Tensor], Tensor], weights: Tensor | None) -> list[float]:
    """A measure of a sentence for each head; none without weights."""
    return [] if weights is None else [round(value, 6) for value in measure(weights).tolist()]


def make_attention_report(
    name: str,
    translator: Translator,
    examples: Sequence[Example],
    *,
    forced: bool = False,
    gold: Sequence[GoldLinks] | None = None,
    unit: Unit = "words",
) -> AttentionReport:
    """Measure attention, with a progress bar.

    Args:
        name: Name of the model.
        translator: A translator that does not split its input.
        examples: Sources, with a reference each if `forced`.
        forced: True if the first reference is read (forced decoding) instead of translating.
        gold: Links of people between each source and its first reference.
        unit: The unit of gold links: words, separated by spaces, or tokens of the model.

    Raises:
        ConfigError: The model has no attention.
        DataError: A gold link points past the end of a sentence, or no sentence has words.
    """
    sources = [example.src for example in examples]
    if forced:
        sentences = _read_references(translator, examples)
    else:
        sentences = translate_texts(translator, sources, "measuring attention", with_alignment=True)
    for number, sentence in enumerate(sentences, 1):
        warn_of_cut(number, sentence)
    alignments = [sentence.alignment for sentence in sentences]
    heads = summarize(alignments)
    if not heads:
        if any(weights is not None for weights in alignments):
            raise ConfigError("this model has no attention (model.attention.score: none); use another model")
        raise DataError("no sentence has words, so there is no attention; give a sentence")
    error_rate = None if gold is None else measure_error_rate(translator, examples, sentences, gold, unit)
    by_length = attention_by_length(bin_by_length(examples), alignments)
    return AttentionReport(name, forced, sources, sentences, heads, by_length, error_rate)


def _read_references(translator: Translator, examples: Sequence[Example]) -> list[Translation]:
    sentences: list[Translation] = []
    size = translator.options.batch_size
    bar = progress_bar(total=len(examples), unit=" sentences", desc="measuring attention", leave=False)
    with bar, within_memory(translator.options, len(examples)):
        for first in range(0, len(examples), size):
            chunk = examples[first : first + size]
            references = [example.references[0] for example in chunk]
            sentences += translator.score([example.src for example in chunk], references, with_alignment=True)
            bar.update(len(chunk))
    return sentences


def draw_attention_statistics(report: AttentionReport, picture: Path) -> None:
    """Draw the heat map of one sentence, or how sharp attention is over the steps of many."""
    from nmt.drawing.heatmap import draw_sharpness

    if len(report.sentences) == 1:
        draw_alignment(report.sentences[0], picture)
        return
    steps = [step for sentence in report.sentences for step in _steps(sentence)]
    values: dict[str, list[list[float]]] = {}
    for key, name in STEP_LABELS.items():
        values[name] = []
        for head in range(len(report.heads)):
            values[name].append([step["heads"][head][key] for step in steps])
    with naming(picture, picture.parent):
        draw_sharpness(values, SHARP, picture)
