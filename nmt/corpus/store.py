"""Clean pairs on disk while a corpus is being prepared; in memory there are only numbers."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.corpus import Pair
from nmt.corpus.identity import FINGERPRINTS, Fingerprints

Rows = NDArray[np.int64]


class TextColumn:
    """Lines of UTF-8 text in a file, read by number.

    Args:
        path: A file of lines that end in a line feed.
        lengths: Bytes of each line with its end.
    """

    def __init__(self, path: Path, lengths: NDArray[np.int64]) -> None:
        self._ends = np.cumsum(lengths)
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if len(lengths) else b""

    def __len__(self) -> int:
        return len(self._ends)

    def raw(self, rows: Rows) -> bytes:
        """The lines at `rows`, with their ends."""
        ends = self._ends[rows]
        starts = np.where(rows > 0, self._ends[rows - 1], 0)
        view = self._bytes
        return b"".join([view[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])

    def texts(self, rows: Rows) -> list[str]:
        """The texts at `rows`."""
        return self.raw(rows).decode().split("\n")[:-1]

    def close(self) -> None:
        """Let go of the file."""
        if isinstance(self._bytes, mmap.mmap):
            self._bytes.close()


class PairStore:
    """Pairs on disk and their fingerprints in memory.

    Attributes:
        src: Source texts.
        tgt: Target texts.
        fingerprints: One of each pair.
    """

    def __init__(self, src: TextColumn, tgt: TextColumn, fingerprints: Fingerprints) -> None:
        self.src = src
        self.tgt = tgt
        self.fingerprints = fingerprints

    def __len__(self) -> int:
        return len(self.fingerprints)

    def pairs(self, rows: Sequence[int] | Rows) -> list[Pair]:
        """The pairs at `rows`."""
        numbers = np.asarray(rows, dtype=np.int64)
        return list(map(Pair, self.src.texts(numbers), self.tgt.texts(numbers)))

    def close(self) -> None:
        """Let go of the files."""
        self.src.close()
        self.tgt.close()


def most_frequent(column: TextColumn, texts: NDArray[np.uint64], rows: Rows, number: int) -> list[tuple[str, int]]:
    """The texts that occur most often, with their counts.

    Args:
        column: Texts of one side.
        texts: What tells these texts apart, one for each line of the column.
        rows: Lines to look at.
        number: How many texts are wanted.
    """
    _, first, counts = np.unique(texts[rows].astype(np.uint64), return_index=True, return_counts=True)
    top = np.lexsort((rows[first], -counts))[:number]
    return list(zip(column.texts(rows[first[top]]), counts[top].tolist(), strict=True))


class PairWriter:
    """Writes the files of a `PairStore`, chunk by chunk.

    Args:
        directory: An existing folder for three files.
    """

    def __init__(self, directory: Path) -> None:
        self._paths = [directory / name for name in ("src.txt", "tgt.txt", "fingerprints.bin")]
        self._files = [path.open("wb") for path in self._paths]
        self._lengths: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = ([], [])

    def write(self, sides: tuple[Sequence[bytes], Sequence[bytes]], fingerprints: Fingerprints) -> None:
        """Append pairs: lines with their ends of both sides, and a fingerprint a pair."""
        for file, lengths, lines in zip(self._files, self._lengths, sides, strict=False):
            file.writelines(lines)
            lengths.append(np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)))
        self._files[2].write(fingerprints.tobytes())

    def finish(self) -> PairStore:
        """Close the files and open them for reading."""
        self.close()
        none = [np.empty(0, dtype=np.int64)]
        src, tgt = (
            TextColumn(path, np.concatenate(lengths or none))
            for path, lengths in zip(self._paths, self._lengths, strict=False)
        )
        return PairStore(src, tgt, np.fromfile(self._paths[2], dtype=FINGERPRINTS))

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()


def in_chunks(rows: Rows, size: int = 20_000) -> Iterator[Rows]:
    """Cut row numbers into pieces of `size`."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
