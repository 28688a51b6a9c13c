"""Scoring a model on a split or on files."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nmt.config import Overrides
from nmt.corpus import Pair
from nmt.corpus.dataset import encode_examples, read_checksum, read_examples, read_facts
from nmt.corpus.identity import count_seen, load_seen
from nmt.corpus.splitting import Example
from nmt.evaluation.diagnostics import diagnose, find_faults
from nmt.evaluation.differences import break_down, count_training_words
from nmt.evaluation.loss import LossMeasures, measure_loss, own_words
from nmt.evaluation.metrics import (
    METRICS,
    RESAMPLES,
    PairedTestName,
    ScoringRules,
    compare_systems,
)
from nmt.evaluation.result import ModelEvaluation, OutputFiles, Seen, name_of
from nmt.evaluation.short_inputs import ShortInputResult, measure_short_inputs, read_training_pairs
from nmt.evaluation.translated import evaluate
from nmt.models.runs import find_data
from nmt.models.storage import SavedModel
from nmt.system.errors import CheckpointError, ConfigError, DataError
from nmt.system.progress import progress_bar
from nmt.text.normalization import Normalizer
from nmt.text.processor import SEEN
from nmt.translation.translate import open_input, open_translator, read_lines, within_memory
from nmt.translation.translator import MAX_SOURCE_LENGTH, Translator

log = logging.getLogger(__name__)

MAX_TESTED = 10_000
"""Sentences of the largest test set with confidence intervals, for which sacreBLEU needs about 1 GB."""
LOSS_BATCH = 64
"""Maximum number of pairs whose loss is measured at once."""


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


def read_sources(path: Path) -> list[Example]:
    """Read sources without references, one per line.

    Raises:
        DataError: The file cannot be read, is not UTF-8, has an overlong line or only empty lines.
    """
    lines = _read(path)
    if not any(line.strip() for line in lines):
        raise DataError(f"{path}: {'has only empty lines' if lines else 'is empty'}; give sentences")
    return [Example(line, ()) for line in lines]


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
class Extras:
    """What an evaluation measures besides scores and faults.

    Attributes:
        name: Name of the model in comparisons; its directory if empty.
        against: Other systems by name to compare with: a translator, or translations of the same sources.
        test: How significance is tested.
        breakdown: Break the scores down.
        attention: Measure the attention of the translations.
        data: Data directory of the model; None is the one that it was trained on.
        training_pairs: What short inputs are made from; without any, they are left out.
    """

    name: str = ""
    against: Mapping[str, Translator | Sequence[str]] = field(default_factory=dict)
    test: PairedTestName = "bootstrap"
    breakdown: bool = False
    attention: bool = False
    data: Path | None = None
    training_pairs: Sequence[Pair] = ()


def evaluate_model(
    models: Sequence[SavedModel],
    translator: Translator,
    examples: Sequence[Example],
    *,
    what: str,
    outputs: OutputFiles = OutputFiles(),
    extras: Extras = Extras(),
) -> ModelEvaluation:
    """Translate and score, with a progress bar, and write the results to files.

    The files are opened first, so that errors show before the work.

    Args:
        models: The model, or several that translate together.
        translator: Their translator.
        examples: Sources with references.
        what: Name of the test set.
        outputs: Files to write.
        extras: What to measure besides.

    Raises:
        ConfigError: The model is compared with itself.
    """
    extras = replace(extras, name=extras.name or name_of(models))
    if extras.name in extras.against:
        raise ConfigError(f"--against {extras.name}: is the model that is evaluated; give another system")
    with outputs.opened() as write:
        found = _measure(models, translator, examples, what, extras)
        write(found, [example.references for example in examples])
    log.info(f"{found.name} on {what}: {len(examples):,} sentences, beam {found.beam_size}")
    log.info(str(found.seen))
    for warning in found.warnings:
        log.warning(warning)
    return found


def _measure(
    models: Sequence[SavedModel], translator: Translator, examples: Sequence[Example], what: str, extras: Extras
) -> ModelEvaluation:
    saved, *others = models
    rules = ScoringRules.for_text(saved.config.text, saved.config.data.languages[1])
    seen = count_training_sources(models, translator.processor.normalizer, examples)
    resamples = RESAMPLES if len(examples) <= MAX_TESTED else 1
    with (
        progress_bar(total=len(examples), unit=" sentences", desc=f"translating {what}", leave=False) as bar,
        within_memory(translator.options, len(examples)),
    ):
        found = evaluate(translator, examples, rules, bar.update, METRICS, resamples, extras.attention)
    references = [example.references for example in examples]
    systems = [(extras.name, found.hypotheses), *_translations(extras.against, examples)]
    comparisons, breakdown = {}, None
    if extras.against:
        comparisons = compare_systems(systems, references, rules, metrics=METRICS, test=extras.test)
    if extras.breakdown:
        frequency = _count_words(saved, translator, extras.data, rules)
        breakdown = break_down(examples, systems, rules, frequency)
    teacher_forced, free_running = (None, None) if others else _measure_loss(translator, examples)
    return ModelEvaluation(
        **vars(found),
        model=saved.path,
        other_models=[other.path for other in others],
        what=what,
        sentences=len(examples),
        references=sum(map(len, references)),
        beam_size=translator.options.beam_size,
        length_penalty=translator.options.length_penalty,
        seen=seen,
        diagnosis=diagnose(examples, found.hypotheses, found.unknown_tokens, rules),
        warnings=list(find_faults(examples, found.hypotheses, rules)),
        teacher_forced=teacher_forced,
        free_running=free_running,
        comparisons=comparisons,
        breakdown=breakdown,
        short_inputs=_measure_short_inputs(translator, extras.training_pairs) if extras.training_pairs else None,
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
    paths: Sequence[Path],
    device: str,
    options: Mapping[str, Any],
    allowed_classes: Collection[str],
    lines: int,
    overrides: Overrides = (),
) -> dict[str, Translator | list[str]]:
    """Open the systems to compare a model with.

    Args:
        paths: Run or model directories, or text files with one translation per line.
        device: As in a config.
        options: Search options for models; None keeps their config.
        allowed_classes: As for `load_model`.
        lines: Number of lines that a file must have.
        overrides: Other search settings for models.

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
            systems[str(path)] = open_translator([path], device, options, allowed_classes, overrides=overrides)[1]
            continue
        translations = _read(path)
        if len(translations) != lines:
            raise DataError(f"{path}: has {len(translations):,} lines, but the test set has {lines:,} sentences")
        systems[str(path)] = translations
    return systems


def _measure_loss(translator: Translator, examples: Sequence[Example]) -> tuple[LossMeasures, LossMeasures]:
    """Teacher-forced and free-running; see `ModelEvaluation`."""
    pairs = encode_examples(translator.processor, examples, longest_source=MAX_SOURCE_LENGTH)
    size = min(LOSS_BATCH, translator.options.batch_size)
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
