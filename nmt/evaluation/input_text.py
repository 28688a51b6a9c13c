"""The sentences that a command is given: one, those of a file, or a split of the data of a model."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt.corpus.dataset import read_examples, read_marker
from nmt.corpus.splitting import Example
from nmt.evaluation.gold_links import GoldLinks, read_alignments
from nmt.evaluation.training_text import is_other_data
from nmt.models.run_records import find_data
from nmt.models.storage import SavedModel
from nmt.system.errors import ConfigError, DataError
from nmt.translation.input import open_input, read_lines

log = logging.getLogger(__name__)


def read_text(path: Path) -> list[str]:
    """Read the lines of a file.

    Raises:
        DataError: It cannot be read, is not UTF-8 or has an overlong line.
    """
    with open_input(path) as stream:
        return [line for lines in read_lines(stream, str(path), None) for line in lines]


def read_files(src: Path, references: Sequence[Path]) -> list[Example]:
    """Read sources, and perhaps references, from line-aligned files.

    Raises:
        DataError: A file cannot be read, is not UTF-8, has an overlong line or only empty lines, or they differ in
            length.
    """
    columns = [read_text(path) for path in (src, *references)]
    for path, column in zip(references, columns[1:], strict=True):
        if len(column) != len(columns[0]):
            raise DataError(f"{path}: has {len(column)} lines, {src} has {len(columns[0])}; they must match")
    for path, column in zip((src, *references), columns, strict=True):
        if not any(line.strip() for line in column):
            what = "has only empty lines" if column else "is empty"
            raise DataError(f"{path}: {what}; give sentences{' to evaluate' if references else ''}")
    return [Example(row[0], tuple(row[1:])) for row in zip(*columns, strict=True)]


def read_split(data: Path, split: str) -> list[Example]:
    """Read the raw sentences of a split of a data directory, and nothing else.

    Raises:
        DataError: There is no such split.
    """
    read_marker(data)
    if not (data / f"{split}.jsonl").is_file():
        raise DataError(f"{data}: has no {split} split; give files with --src and --ref")
    return read_examples(data / f"{split}.jsonl")


def split_of(models: Sequence[SavedModel], data: Path | None, split: str) -> list[Example]:
    """A split of a data directory, by default the one that the first model was trained on; warns if it is another.

    Raises:
        DataError: It cannot be read.
    """
    directory = data or find_data(models[0])
    examples = read_split(directory, split)
    for saved in models:
        if is_other_data(saved, directory):
            log.warning(f"{directory}: differs from the data that the model was trained on")
    return examples


def evenly_spaced(number: int, most: int) -> list[int]:
    """At most so many of the first `number` whole numbers, evenly spaced."""
    if number <= most:
        return list(range(number))
    return [int(position) for position in np.linspace(0, number - 1, most).round()]


@dataclass(frozen=True)
class InputText:
    """Sentences, perhaps with word alignments.

    Attributes:
        examples: The sentences; None is a split of the data of the model.
        split: Name of that split.
        data: Data directory; None is that of the model.
        gold: File with word alignments, and its links; None without them.
    """

    examples: Sequence[Example] | None
    split: str
    data: Path | None
    gold: tuple[Path, Sequence[GoldLinks]] | None

    @classmethod
    def read(
        cls,
        sentence: str | None,
        split: str | None,
        links_of: str,
        *,
        data: Path | None,
        src: Path | None,
        ref: Path | None,
        gold: Path | None,
        target: str | None = None,
    ) -> InputText:
        """Check which text is meant, and read it unless it is a split.

        Raises:
            ConfigError: Arguments conflict.
            DataError: A file cannot be used.
        """
        if sum((sentence is not None, src is not None, bool(split or data))) > 1:
            raise ConfigError("give one of: a sentence, --src, or --split and --data")
        if ref is not None and src is None:
            raise ConfigError("--ref belongs to --src: give both")
        if gold is not None and (sentence is not None or (src is not None and ref is None)):
            raise ConfigError("--gold aligns references: give a split, or --src with --ref")
        if split not in (None, "test", "valid"):
            raise ConfigError(f"--split {split}: must be test or valid")
        if links_of not in ("words", "tokens"):
            raise ConfigError(f"--links-of {links_of}: must be words or tokens")
        examples = None
        if sentence is not None:
            examples = [Example(sentence, () if target is None else (target,))]
        elif src is not None:
            examples = read_files(src, [] if ref is None else [ref])
        return cls(examples, split or "test", data, None if gold is None else (gold, read_alignments(gold)))

    def of(
        self, models: Sequence[SavedModel], sample: int | None
    ) -> tuple[Sequence[Example], Sequence[GoldLinks] | None]:
        """At most `sample` sentences, evenly spaced, and their links.

        Raises:
            DataError: The split cannot be read, or there are not as many links as sentences.
        """
        examples = self.examples if self.examples is not None else split_of(models, self.data, self.split)
        if self.gold is not None and len(self.gold[1]) != len(examples):
            path, links = self.gold
            raise DataError(f"{path}: has {len(links):,} lines, but there are {len(examples):,} sentences")
        chosen = evenly_spaced(len(examples), len(examples) if sample is None else sample)
        return [examples[n] for n in chosen], None if self.gold is None else [self.gold[1][n] for n in chosen]
