"""Scoring a model on a split or on files."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nmt.corpus import Pair
from nmt.corpus.identity import count_seen, load_seen
from nmt.corpus.normalization import Normalizer
from nmt.corpus.splitting import Example
from nmt.dataset import read_checksum, read_examples, read_facts
from nmt.decoding.translator import Translator
from nmt.errors import CheckpointError, DataError
from nmt.evaluation.diagnostics import Diagnosis, diagnose, find_faults
from nmt.evaluation.evaluate import Evaluation, encode_examples, evaluate
from nmt.evaluation.loss import LossMeasures, measure_loss, own_words
from nmt.evaluation.metrics import (
    METRICS,
    RESAMPLES,
    Comparison,
    PairedTestName,
    ScoringRules,
    as_json,
    compare_systems,
    reference_streams,
)
from nmt.evaluation.short_inputs import ShortInputResult, measure_short_inputs, read_training_pairs
from nmt.files import as_json_text, naming, open_text
from nmt.model.storage import SavedModel
from nmt.progress import progress_bar
from nmt.table import Table
from nmt.text.processor import SEEN
from nmt.workflow.breakdown import Breakdown, break_down, count_training_words
from nmt.workflow.runs import find_data
from nmt.workflow.translate import open_input, open_translator, read_lines, within_memory

log = logging.getLogger(__name__)

MAX_TESTED = 10_000
"""Sentences of the largest test set with confidence intervals, for which sacreBLEU needs about 1 GB."""
LOSS_BATCH = 64
"""Maximum number of pairs whose loss is measured at once."""
SEEN_LIMIT = 0.01
"""Share of test sources in training above which scores are marked."""


def read_files(src: Path, references: Sequence[Path]) -> list[Example]:
    """Read sources and references from line-aligned files.

    Raises:
        DataError: A file cannot be read, is not UTF-8, has an overlong line or only empty lines, or they differ in
            length.
    """
    columns = [_read(path) for path in (src, *references)]
    for path, column in zip(references, columns[1:], strict=True):
        if len(column) != len(columns[0]):
            raise DataError(f"{path}: has {len(column)} lines, {src} has {len(columns[0])}; they must match")
    for path, column in zip((src, *references), columns, strict=True):
        if not any(line.strip() for line in column):
            what = "has only empty lines" if column else "is empty"
            raise DataError(f"{path}: {what}; give sentences to evaluate")
    return [Example(row[0], tuple(row[1:])) for row in zip(*columns, strict=True)]


def _read(path: Path) -> list[str]:
    with open_input(path) as stream:
        return [line for lines in read_lines(stream, str(path), None) for line in lines]


def read_split(data: Path, split: str) -> list[Example]:
    """Read the raw sentences of a split of a data directory, and nothing else.

    Raises:
        DataError: There is no such split.
    """
    read_facts(data)
    if not (data / f"{split}.jsonl").is_file():
        raise DataError(f"{data}: has no {split} split; give files with --src and --ref")
    return read_examples(data / f"{split}.jsonl")


@dataclass(frozen=True)
class Seen:
    """How much of a test set a model has seen in training.

    Attributes:
        sentences: Number of sources that are training sources; None if unknown.
        examples: Number of all sources.
    """

    sentences: int | None
    examples: int

    @property
    def marked(self) -> bool:
        """Whether it is so much that the scores do not measure unseen text."""
        return self.sentences is not None and self.sentences > SEEN_LIMIT * self.examples

    def __str__(self) -> str:
        if self.sentences is None:
            return "overlap: unknown, as the model has no fingerprints of its training sources"
        share = self.sentences / self.examples
        return (
            f"overlap: {self.sentences:,} of {self.examples:,} sources ({share:.1%}) are in the model's training data"
        )


def count_training_sources(models: Sequence[SavedModel], normalizer: Normalizer, examples: Sequence[Example]) -> Seen:
    """Compare a test set with the training sources of models, by letters and digits, ignoring case.

    Args:
        models: The models; the one that has seen most counts.
        normalizer: Normalizer of the training text.
        examples: The test set.
    """
    sources = [normalizer(example.src) for example in examples]
    known = [load_seen(saved.text / SEEN) for saved in models]
    counts = [None if seen is None else count_seen(sources, seen) for seen in known]
    return Seen(None if None in counts else max(count for count in counts if count is not None), len(examples))


def warn_of_other_data(saved: SavedModel, data: Path) -> None:
    """Warn if a data directory is not the one that a model was trained on."""
    if _is_other(saved, data):
        log.warning(f"{data}: differs from the data that the model was trained on")


def _is_other(saved: SavedModel, data: Path) -> bool:
    trained_on = saved.facts.get("data")
    identity = trained_on.get("identity") if isinstance(trained_on, dict) else None
    return identity is not None and identity != read_checksum(data)


def read_model_pairs(saved: SavedModel, translator: Translator, data: Path | None) -> list[Pair]:
    """Training pairs of a model to make short inputs from; none, with the reason as a message, if they are not there.

    Args:
        saved: The model.
        translator: The same model.
        data: Data directory; None is the one that the model was trained on.
    """
    try:
        return read_training_pairs(_training_data(saved, data), translator.processor)
    except DataError as error:
        log.info(f"short inputs: left out ({error})")
        return []


def _training_data(saved: SavedModel, data: Path | None) -> Path:
    """The data directory that a model was trained on.

    Raises:
        DataError: It is not there, or `data` is another one.
    """
    try:
        directory = data or find_data(saved)
    except CheckpointError:
        raise DataError("the data that the model was trained on is no longer there") from None
    if _is_other(saved, directory):
        raise DataError(f"{directory} is not the data that the model was trained on")
    return directory


@dataclass(frozen=True)
class ModelEvaluation(Evaluation):
    """Translations and scores of a test set.

    Attributes:
        hypotheses: One translation per source, in order.
        scores: `bleu` and `chrf`, each with its signature.
        model: The model directory, the first of several.
        what: Name of the test set.
        beam_size: Hypotheses kept at each step.
        seen: How much of the test set the model has seen in training.
        diagnosis: Visible faults of the translations.
        teacher_forced: How well the model predicts each word of the references from those before it; None for several
            models.
        free_running: The same from its own words instead; None for several models.
        comparisons: For each metric, this model and what it was compared with.
        breakdown: Where it is good and bad; None if that was not asked for.
        short_inputs: What became of short inputs; None if they were left out.
    """

    model: Path
    what: str
    beam_size: int
    seen: Seen
    diagnosis: Diagnosis
    teacher_forced: LossMeasures | None = None
    free_running: LossMeasures | None = None
    comparisons: dict[str, list[Comparison]] = field(default_factory=dict)
    breakdown: Breakdown | None = None
    short_inputs: ShortInputResult | None = None

    @property
    def comparison_table(self) -> Table:
        """Each system's scores with 95% intervals, and the probability that a difference from the model is chance."""
        header, rows = ["system"], [[each.name] for each in next(iter(self.comparisons.values()), [])]
        for key, compared in self.comparisons.items():
            header += [self.scores[key].name, "p"]
            for row, each in zip(rows, compared, strict=True):
                row += [f"{each.score:.2f} ± {each.confidence:.2f}"]
                row += ["" if each.p_value is None else f"{each.p_value:.4f}"]
        return Table(header, rows, "l" + "r" * (len(header) - 1), "significance of differences")

    @property
    def bleu(self) -> float:
        """BLEU, from 0 to 100."""
        return self.scores["bleu"].value

    @property
    def chrf(self) -> float:
        """chrF, from 0 to 100."""
        return self.scores["chrf"].value


def evaluate_model(
    models: Sequence[SavedModel],
    translator: Translator,
    examples: Sequence[Example],
    *,
    what: str,
    json_path: Path | None = None,
    hypotheses_path: Path | None = None,
    references_path: Path | None = None,
    against: Mapping[str, Translator | Sequence[str]] = MappingProxyType({}),
    test: PairedTestName = "bootstrap",
    with_breakdown: bool = False,
    with_attention: bool = False,
    data: Path | None = None,
    training_pairs: Sequence[Pair] = (),
) -> ModelEvaluation:
    """Translate and score, with a progress bar, and write the results to files.

    The files are opened first, so that errors show before the work.

    Args:
        models: The model, or several that translate together.
        translator: Their translator.
        examples: Sources with references.
        what: Name of the test set.
        json_path: File for the scores.
        hypotheses_path: File for the translations, one per line.
        references_path: File for the references: those of a sentence in a line, with tabs between them; where a
            sentence has fewer than another one, its first is repeated.
        against: Other systems by name to compare with: a translator, or translations of the same sources.
        test: How significance is tested.
        with_breakdown: Break the scores down.
        with_attention: Measure the attention of the translations.
        data: Data directory of the model; None is the one that it was trained on.
        training_pairs: What short inputs are made from; without any, they are left out.
    """
    saved, *others = models
    seen = count_training_sources(models, translator.processor.normalizer, examples)
    rules = ScoringRules.for_text(saved.config.text, saved.config.data.languages[1])
    options = translator.options
    with contextlib.ExitStack() as outputs:
        paths = (json_path, hypotheses_path, references_path)
        scores_file, hypotheses_file, references_file = files = [
            outputs.enter_context(open_text(path)) if path else None for path in paths
        ]
        with (
            progress_bar(total=len(examples), unit=" sentences", desc=f"translating {what}", leave=False) as bar,
            within_memory(options, len(examples)),
        ):
            resamples = RESAMPLES if len(examples) <= MAX_TESTED else 1
            found = evaluate(translator, examples, rules, bar.update, METRICS, resamples, with_attention)
        diagnosis = diagnose(examples, found.hypotheses, found.unknown_tokens, rules)
        faults = list(find_faults(examples, found.hypotheses, rules))
        systems = [(_names(models), found.hypotheses), *_translations(against, examples)]
        references = [example.references for example in examples]
        comparisons = compare_systems(systems, references, rules, metrics=METRICS, test=test) if against else {}
        breakdown = None
        if with_breakdown:
            frequency = _count_words(saved, translator, data, rules)
            breakdown = break_down(examples, systems, rules, frequency)
        teacher_forced, free_running = (None, None) if others else _measure_loss(translator, examples)
        short_inputs = _measure_short_inputs(translator, training_pairs) if training_pairs else None
        if hypotheses_file:
            hypotheses_file.writelines(f"{line}\n" for line in found.hypotheses)
        if references_file:
            rows = zip(*reference_streams(references), strict=True)
            references_file.writelines("\t".join(" ".join(text.split()) for text in row) + "\n" for row in rows)
        if scores_file:
            result: dict[str, Any] = {
                "model": str(saved.path),
                **({"other_models": [str(other.path) for other in others]} if others else {}),
                "what": what,
                "sentences": len(examples),
                "references": sum(len(example.references) for example in examples),
                "beam_size": options.beam_size,
                "length_penalty": options.length_penalty,
                "in_training": {"sources": seen.sentences, "of": seen.examples, "marked": seen.marked},
                "scores": as_json(found.scores),
                "diagnosis": diagnosis.as_json(),
                "warnings": faults,
                "teacher_forced": teacher_forced and teacher_forced.as_json(),
                "free_running": free_running and free_running.as_json(),
                "comparisons": {key: [asdict(each) for each in compared] for key, compared in comparisons.items()},
                "attention": [head.as_json() for head in found.attention],
                "breakdown": breakdown and breakdown.as_json(),
                "short_inputs": short_inputs and short_inputs.as_json(),
            }
            scores_file.write(as_json_text(result))
        for path, file in zip(paths, files, strict=True):
            if path and file:  # all are stored or none, even if the disk is full
                with naming(path):
                    file.flush()
    log.info(f"{_names(models)} on {what}: {len(examples):,} sentences, beam {options.beam_size}")
    log.info(str(seen))
    for fault in faults:
        log.warning(fault)
    return ModelEvaluation(
        **vars(found),
        model=saved.path,
        what=what,
        beam_size=options.beam_size,
        seen=seen,
        diagnosis=diagnosis,
        teacher_forced=teacher_forced,
        free_running=free_running,
        comparisons=comparisons,
        breakdown=breakdown,
        short_inputs=short_inputs,
    )


def _count_words(
    saved: SavedModel, translator: Translator, data: Path | None, rules: ScoringRules
) -> Counter[str] | None:
    """How often each target word occurs in a model's training data; None, with the reason as a message, if unknown."""
    try:
        return count_training_words(_training_data(saved, data), translator.processor, rules)
    except DataError as error:
        log.info(f"words by frequency: left out ({error})")
        return None


def _names(models: Sequence[SavedModel]) -> str:
    return ", ".join(str(each.path) for each in models)


def _translations(
    against: Mapping[str, Translator | Sequence[str]], examples: Sequence[Example]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Name and translations of each system."""
    for name, system in against.items():
        if not isinstance(system, Translator):
            yield name, system
            continue
        with (
            progress_bar(total=len(examples), unit=" sentences", desc=f"translating with {name}", leave=False) as bar,
            within_memory(system.options, len(examples)),
        ):
            found = system.translate([example.src for example in examples], advance=bar.update)
        yield name, [translation.text for translation in found]


def open_systems(
    paths: Sequence[Path], device: str, options: Mapping[str, Any], allowed_classes: Collection[str], lines: int
) -> dict[str, Translator | list[str]]:
    """Open the systems to compare a model with.

    Args:
        paths: Run or model directories, or text files with one translation per line.
        device: As in a config.
        options: Search options for models; None keeps their config.
        allowed_classes: As for `load_model`.
        lines: Number of lines that a file must have.

    Raises:
        CheckpointError: There is no such model, or it is damaged.
        DataError: A file cannot be read or has another number of lines, or the test set is too large.
    """
    if paths and lines > MAX_TESTED:
        raise DataError(
            f"--against: the test set has {lines:,} sentences; compare systems on at most {MAX_TESTED:,} of them"
        )
    systems: dict[str, Translator | list[str]] = {}
    for path in paths:
        if path.is_dir():
            systems[str(path)] = open_translator([path], device, options, allowed_classes)[1]
            continue
        translations = _read(path)
        if len(translations) != lines:
            raise DataError(f"{path}: has {len(translations):,} lines, but the test set has {lines:,} sentences")
        systems[str(path)] = translations
    return systems


def _measure_loss(translator: Translator, examples: Sequence[Example]) -> tuple[LossMeasures, LossMeasures]:
    """Teacher-forced and free-running; see `ModelEvaluation`."""
    pairs, size = encode_examples(translator.processor, examples), min(LOSS_BATCH, translator.options.batch_size)
    with within_memory(translator.options, len(pairs)):
        return (
            measure_loss(translator.model, pairs, size),
            measure_loss(translator.model, pairs, size, own_words),
        )


def _measure_short_inputs(translator: Translator, pairs: Sequence[Pair]) -> ShortInputResult:
    with (
        progress_bar(unit=" sentences", desc="translating short inputs", leave=False) as bar,
        within_memory(translator.options, 100),
    ):
        return measure_short_inputs(translator, pairs, bar.update)
