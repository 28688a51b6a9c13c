"""Pairs that models make: sentences to translate, their translations, and the pairs of both that are worth learning."""

import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.config import DataSection
from nmt.corpus import Pair
from nmt.corpus.dataset import open_data
from nmt.corpus.example import Example, read_examples
from nmt.corpus.identity import identities
from nmt.corpus.sources import LineReport, read_sentences
from nmt.corpus.training_pairs import read_training_pairs
from nmt.system.errors import DataError
from nmt.system.files import check_file, open_text, read_text
from nmt.system.limits import MAX_EXAMPLES

log = logging.getLogger(__name__)

Translate = Callable[[Path, Path], None]
"""Translates a file line by line into another one."""
Similarity = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""How similar each sentence is to the one beside it, from 0 to 100."""


@dataclass(frozen=True)
class RoundTrip:
    """Keeps only pairs whose translation, translated once more, is close to the original.

    Attributes:
        translate: Translates the translations into the language of the originals.
        similarity: Compares the originals with the sentences that came back.
        least: The least similarity of a pair that is kept.
    """

    translate: Translate
    similarity: Similarity
    least: float


@dataclass(frozen=True)
class SyntheticPairs:
    """The steps that make synthetic pairs in a folder; each leaves a file, and is skipped if the file is there.

    Attributes:
        folder: Folder of their files.
        options: Config of the real pairs.
        data: Data directory of the real pairs, whose valid and test sentences are left out.
        text: Files with a sentence a line to translate; none are the training sources.
        from_source: True if the sentences are of the source language, as for teachers; else of the target language.
    """

    folder: Path
    options: DataSection
    data: Path
    text: Sequence[str]
    from_source: bool

    @property
    def original(self) -> Path:
        """The file of the sentences to translate, once they are collected."""
        return self.folder / "original.txt"

    def files(self, name: str) -> list[Path]:
        """Two parallel files, in the order of the config's languages."""
        return [self.folder / f"{name}.{code}" for code in self.options.file_languages]

    def check_text(self) -> None:
        """Read the sentences to translate once, unless they are collected, so that faults show before any work.

        Raises:
            DataError: A file cannot be read, or has no sentences.
        """
        if self.original.exists():
            return
        for text in map(Path, self.text):
            report = LineReport(0)
            lines = read_sentences(check_file(text, None), report)
            sentences = sum(1 for line in lines if line.strip())
            if not sentences and not report.malformed:
                raise DataError(f"{text}: is empty; give a file with sentences, one per line")
            report.check(self.options.max_malformed if sentences else None)

    def collect(self) -> None:
        """Write the sentences to translate: each once, without those of valid and test.

        Raises:
            DataError: None is left.
        """
        if self.original.exists():
            return
        report = LineReport(0)
        lines: Iterable[str]
        if self.text:
            lines = (line for file in self.text for line in read_sentences(Path(file), report))
        else:
            lines = (pair.src for pair in self.training_text())
        unseen = set(identities(self._texts_of_tests()).tolist())
        written = set[int]()
        leaks = 0
        with open_text(self.original) as file:
            for line in filter(None, map(str.strip, lines)):
                (identity,) = identities([line]).tolist()
                if identity in unseen:
                    leaks += 1
                elif identity not in written:
                    written.add(identity)
                    file.write(f"{line}\n")
            if not written:
                where = ", ".join(self.text) or "training sources"
                raise DataError(f"{where}: no sentence that is not in valid or test; give more text")
        for number, places in report.locate():
            log.warning(f"{self.original}: left out are {number} ({places})")
        distinct = f"{len(written):,} distinct sentences"
        log.info(f"{self.original}: {distinct}; {leaks:,} left out because valid or test have them")

    def translate(self, translate: Translate, round_trip: RoundTrip | None) -> list[Path]:
        """Translate the collected sentences, and write the pairs.

        Args:
            translate: Translates the sentences.
            round_trip: Decides which pairs are kept; None keeps all.

        Returns:
            Two parallel files, in the order of the config's languages.
        """
        translated = self.folder / "translated.txt"
        again = self.folder / "round_trip.txt"
        files = self.files("synthetic")
        _translate_once(translate, self.original, translated)
        if round_trip is not None:
            _translate_once(round_trip.translate, translated, again)
        if all(map(Path.exists, files)):
            return files
        originals = _read_lines(self.original)
        translations = _read_lines(translated)
        pairs = []
        for original, translation in zip(originals, translations, strict=True):
            pairs.append(Pair(original, translation) if self.from_source else Pair(translation, original))
        if round_trip is not None:
            scores = round_trip.similarity(originals, _read_lines(again))
            pairs = [pair for pair, score in zip(pairs, scores, strict=True) if score >= round_trip.least]
            close = f"a chrF of {round_trip.least:g} or more"
            log.info(f"{again}: {len(pairs):,} of {len(originals):,} sentences come back with {close}")
        self.write(files, pairs)
        return files

    def write(self, files: Sequence[Path], pairs: Iterable[Pair]) -> None:
        """Write pairs into two files, in the order of the config's languages; only both of them are a finished step."""
        with open_text(files[0]) as first, open_text(files[1]) as second:
            for pair in pairs:
                texts = (pair.tgt, pair.src) if self.options.reverse else (pair.src, pair.tgt)
                first.write(f"{texts[0]}\n")
                second.write(f"{texts[1]}\n")

    def examples(self, split: str) -> list[Example]:
        """Examples of the real pairs; none without such a split."""
        path = self.data / f"{split}.jsonl"
        return read_examples(path) if path.exists() else []

    def training_text(self) -> list[Pair]:
        """Training pairs of the real pairs, without the tags of further corpora, which are no text."""
        pairs = read_training_pairs(self.data, open_data(self.data).load_processor(), sys.maxsize)
        for tag in self.options.tags:
            pairs = [Pair(src.removeprefix(f"{tag} "), tgt) for src, tgt in pairs]
        return pairs

    def _texts_of_tests(self) -> list[str]:
        """Sentences of valid and test in the language of the sentences to translate."""
        tests = self.examples("valid") + self.examples("test")
        if self.from_source:
            return [example.src for example in tests]
        return [reference for example in tests for reference in example.references]


def _translate_once(translate: Translate, source: Path, target: Path) -> None:
    if not target.exists():
        log.info(f"{target}: translating")
        translate(source, target)


def _read_lines(path: Path) -> list[str]:
    """The lines of a file that an earlier step wrote."""
    return read_text(path, MAX_EXAMPLES, path.parent).split("\n")[:-1]
