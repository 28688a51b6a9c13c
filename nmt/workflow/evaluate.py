"""Score a model on a split or on files."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.corpus.identity import count_seen, load_seen
from nmt.corpus.normalization import Normalizer
from nmt.corpus.splitting import Example
from nmt.dataset import read_examples, read_facts, read_name
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.evaluation.evaluate import Evaluation, evaluate
from nmt.evaluation.metrics import ScoringRules, as_json
from nmt.files import as_json_text, open_text
from nmt.model.storage import SavedModel
from nmt.progress import progress_bar
from nmt.text.processor import SEEN
from nmt.workflow.translate import open_input, read_lines, within_memory

log = logging.getLogger(__name__)

SEEN_LIMIT = 0.01
"""Share of test sources in training from which on a score is marked."""


def read_files(src: Path, references: Sequence[Path]) -> list[Example]:
    """Sources and references from line-aligned files.

    Raises:
        DataError: A file cannot be read, is not UTF-8, has a line that is too long or none that is not empty, or they
            differ in length.
    """
    columns = [_read(path) for path in (src, *references)]
    for path, column in zip(references, columns[1:], strict=True):
        if len(column) != len(columns[0]):
            raise DataError(f"{path}: has {len(column)} lines, {src} has {len(columns[0])}; they must match")
    for path, column in zip((src, *references), columns, strict=True):
        if not any(line.strip() for line in column):
            what = "holds only empty lines" if column else "is empty"
            raise DataError(f"{path}: {what}; there is nothing to evaluate")
    return [Example(row[0], tuple(row[1:])) for row in zip(*columns, strict=True)]


def _read(path: Path) -> list[str]:
    with open_input(path) as stream:
        return [line for lines in read_lines(stream, str(path), None) for line in lines]


def read_split(data: Path, split: str) -> list[Example]:
    """The raw sentences of a split of a data directory, of which nothing else is read.

    Raises:
        DataError: There is no such split.
    """
    read_facts(data)
    if not (data / f"{split}.jsonl").is_file():
        raise DataError(f"{data}: has no {split} split; give files with --src and --ref")
    return read_examples(data / f"{split}.jsonl")


@dataclass(frozen=True)
class Seen:
    """How much of a test set a model was trained on.

    Attributes:
        sentences: Sources that are among its training sources; None where those are not known.
        examples: All sources.
    """

    sentences: int | None
    examples: int

    @property
    def marked(self) -> bool:
        """Whether it is so much that scores say nothing of unseen text."""
        return self.sentences is not None and self.sentences > SEEN_LIMIT * self.examples

    def __str__(self) -> str:
        if self.sentences is None:
            return "overlap: not known, as the model does not hold fingerprints of its training sources"
        share = self.sentences / self.examples
        return (
            f"overlap: {self.sentences:,} of {self.examples:,} sources ({share:.1%}) are in the model's training data"
        )


def count_training_sources(saved: SavedModel, normalizer: Normalizer, examples: Sequence[Example]) -> Seen:
    """Compare a test set with what a model was trained on, by letters and digits, whatever their case.

    Args:
        saved: The model.
        normalizer: What training text went through.
        examples: The test set.
    """
    seen = load_seen(saved.text / SEEN)
    found = None if seen is None else count_seen([normalizer(example.src) for example in examples], seen)
    return Seen(found, len(examples))


def warn_of_other_data(saved: SavedModel, data: Path) -> None:
    """Warn where a data directory is not the one that a model was trained on."""
    trained_on = saved.facts.get("data")
    identity = trained_on.get("identity") if isinstance(trained_on, dict) else None
    if identity is not None and identity != read_name(data):
        log.warning(f"{data}: is other data than the model was trained on")


@dataclass(frozen=True)
class ModelEvaluation(Evaluation):
    """What a model makes of a test set.

    Attributes:
        hypotheses: One translation a source, in order.
        scores: `bleu` and `chrf`, each with its signature.
        model: The model directory.
        what: Name of the test set.
        beam_size: Hypotheses kept at each step.
        seen: How much of the test set the model was trained on.
    """

    model: Path
    what: str
    beam_size: int
    seen: Seen

    @property
    def bleu(self) -> float:
        """BLEU, from 0 to 100."""
        return self.scores["bleu"].value

    @property
    def chrf(self) -> float:
        """chrF, from 0 to 100."""
        return self.scores["chrf"].value


def evaluate_model(
    saved: SavedModel,
    translator: Translator,
    examples: Sequence[Example],
    *,
    what: str,
    json_path: Path | None = None,
    hypotheses_path: Path | None = None,
) -> ModelEvaluation:
    """Translate and score, with a progress bar, and write the results where asked to.

    Whether they can be written is known before the work begins.

    Args:
        saved: The model.
        translator: Search settings.
        examples: Sources with references.
        what: Name of the test set.
        json_path: Where scores go.
        hypotheses_path: Where translations go, one a line.
    """
    seen = count_training_sources(saved, translator.processor.normalizer, examples)
    rules = ScoringRules.for_text(saved.config.text, saved.config.data.languages[1])
    options = translator.options
    with contextlib.ExitStack() as outputs:
        scores_file, hypotheses_file = (
            outputs.enter_context(open_text(path)) if path else None for path in (json_path, hypotheses_path)
        )
        with (
            progress_bar(total=len(examples), unit=" sentences", desc=f"translating {what}", leave=False) as bar,
            within_memory(options, len(examples)),
        ):
            found = evaluate(translator, examples, rules, bar.update)
        if hypotheses_file:
            hypotheses_file.writelines(f"{line}\n" for line in found.hypotheses)
        if scores_file:
            result: dict[str, Any] = {
                "model": str(saved.path),
                "what": what,
                "sentences": len(examples),
                "references": sum(len(example.references) for example in examples),
                "beam_size": options.beam_size,
                "length_penalty": options.length_penalty,
                "in_training": {"sources": seen.sentences, "of": seen.examples, "marked": seen.marked},
                "scores": as_json(found.scores),
            }
            scores_file.write(as_json_text(result))
    log.info(f"{saved.path} on {what}: {len(examples):,} sentences, beam {options.beam_size}")
    log.info(str(seen))
    return ModelEvaluation(found.hypotheses, found.scores, saved.path, what, options.beam_size, seen)
