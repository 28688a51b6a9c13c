"""The sentences that a command is given: one, those of a file, or a split of the data of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.corpus.splitting import Example
from nmt.evaluation.evaluate import read_files, read_sources, read_split, warn_of_other_data
from nmt.evaluation.translated import evenly_spaced
from nmt.models.runs import find_data
from nmt.models.storage import SavedModel
from nmt.system.errors import ConfigError, DataError
from nmt.translation.alignment import GoldLinks, read_alignments


@dataclass(frozen=True)
class GivenText:
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
    ) -> GivenText:
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
            examples = read_sources(src) if ref is None else read_files(src, [ref])
        links = None if gold is None else (gold, read_alignments(gold))
        return cls(examples, split or "test", data, links)

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


def split_of(models: Sequence[SavedModel], data: Path | None, split: str) -> list[Example]:
    """A split of a data directory, by default the one that the first model was trained on.

    Raises:
        DataError: It cannot be read.
    """
    directory = data or find_data(models[0])
    examples = read_split(directory, split)
    for saved in models:
        warn_of_other_data(saved, directory)
    return examples
