"""Clean pairs on disk while a corpus is being prepared; only numbers are in memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.corpus import Pair
from nmt.corpus.identity import FINGERPRINT_NAMES, Fingerprints, take_fingerprints
from nmt.corpus.lines import Lines, Rows, encode_pairs, line_lengths
from nmt.text.processor import SIDES


class Block(NamedTuple):
    """Consecutive pairs in the form in which they are stored.

    Attributes:
        src: Lines of source text.
        tgt: Lines of target text.
        fingerprints: Fingerprints of each pair.
    """

    src: bytes
    tgt: bytes
    fingerprints: Fingerprints

    @classmethod
    def encode(cls, pairs: Sequence[Pair], seed: int) -> Block:
        """Encode and fingerprint clean pairs, which have no line feeds."""
        return cls(*encode_pairs(pairs), take_fingerprints(pairs, seed))


class PairStore:
    """Pairs on disk, by number, and their fingerprints.

    Args:
        directory: Folder for its files, which is created.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        for name in (*SIDES, *FINGERPRINT_NAMES):
            (directory / name).touch()
        self._directory = directory
        self._lengths: dict[str, list[NDArray[np.int64]]] = {side: [np.empty(0, dtype=np.int64)] for side in SIDES}
        self._lines: dict[str, Lines] = {}

    def append(self, block: Block) -> None:
        """Add pairs after all others; `lines` must then be called again."""
        texts = {"src": block.src, "tgt": block.tgt}
        numbers = {name: block.fingerprints[name].astype(np.uint64).tobytes() for name in FINGERPRINT_NAMES}
        for name, content in (texts | numbers).items():
            with (self._directory / name).open("ab") as file:
                file.write(content)
        for side, text in texts.items():
            self._lengths[side].append(line_lengths(text))
        self._lines = {}

    def __len__(self) -> int:
        return sum(map(len, self._lengths["src"]))

    def lines(self, side: str) -> Lines:
        """The texts of a side, `src` or `tgt`."""
        if side not in self._lines:
            with (self._directory / side).open("rb") as file:
                buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if len(self) else b""
            self._lengths[side] = [np.concatenate(self._lengths[side])]
            self._lines[side] = Lines(buffer, self._lengths[side][0])
        return self._lines[side]

    def fingerprints(self, name: str) -> NDArray[np.uint64]:
        """One fingerprint of every pair, read from disk; `FINGERPRINT_NAMES` has the names."""
        return np.fromfile(self._directory / name, dtype=np.uint64)

    def pairs(self, rows: Rows) -> list[Pair]:
        """The pairs at `rows`."""
        return list(map(Pair, self.lines("src").texts(rows), self.lines("tgt").texts(rows)))


def most_frequent(lines: Lines, texts: NDArray[np.uint64], rows: Rows, number: int) -> list[tuple[str, int]]:
    """The texts that occur most often, with their counts.

    Args:
        lines: Texts of one side.
        texts: Fingerprints of all of them.
        rows: Lines to count.
        number: How many texts to return.
    """
    _, first, counts = np.unique(texts[rows], return_index=True, return_counts=True)
    top = np.lexsort((rows[first], -counts))[:number]
    return list(zip(lines.texts(rows[first[top]]), counts[top].tolist(), strict=True))


def in_chunks(rows: Rows, size: int = 20_000) -> Iterator[Rows]:
    """Cut row numbers into pieces of `size`."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
