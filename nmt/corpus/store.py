"""Clean pairs on disk while a corpus is being prepared; only numbers are in memory."""

from __future__ import annotations

import contextlib
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
        lengths: Bytes of each line, including its line feed.

    Attributes:
        lengths: The same.
    """

    def __init__(self, path: Path, lengths: NDArray[np.int64]) -> None:
        self.lengths = lengths
        self._ends = np.cumsum(lengths)
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if len(lengths) else b""

    def __len__(self) -> int:
        return len(self._ends)

    def raw(self, rows: Rows) -> bytes:
        """The lines at `rows`, with their line feeds."""
        ends = self._ends[rows]
        starts = np.where(rows > 0, self._ends[rows - 1], 0)
        view = self._bytes
        return b"".join([view[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])

    def texts(self, rows: Rows) -> list[str]:
        """The texts at `rows`."""
        return self.raw(rows).decode().split("\n")[:-1]

    def close(self) -> None:
        """Close the file."""
        if isinstance(self._bytes, mmap.mmap):
            self._bytes.close()


class PairStore:
    """Pairs and their fingerprints on disk.

    Attributes:
        src: Source texts.
        tgt: Target texts.
    """

    def __init__(self, src: TextColumn, tgt: TextColumn, directory: Path) -> None:
        self.src = src
        self.tgt = tgt
        self._directory = directory

    def __len__(self) -> int:
        return len(self.src)

    def prints(self, name: str) -> NDArray[np.uint64]:
        """One fingerprint of every pair, read from disk; `FINGERPRINTS` has the names."""
        return np.fromfile(_prints_path(self._directory, name), dtype=np.uint64)

    def pairs(self, rows: Sequence[int] | Rows) -> list[Pair]:
        """The pairs at `rows`."""
        numbers = np.asarray(rows, dtype=np.int64)
        return list(map(Pair, self.src.texts(numbers), self.tgt.texts(numbers)))

    def close(self) -> None:
        """Close the files."""
        self.src.close()
        self.tgt.close()


def _prints_path(directory: Path, name: str) -> Path:
    return directory / f"{name}.prints"


def most_frequent(column: TextColumn, texts: NDArray[np.uint64], rows: Rows, number: int) -> list[tuple[str, int]]:
    """The texts that occur most often, with their counts.

    Args:
        column: Texts of one side.
        texts: Fingerprints of the texts, one per line of the column.
        rows: Lines to count.
        number: How many texts to return.
    """
    _, first, counts = np.unique(texts[rows], return_index=True, return_counts=True)
    top = np.lexsort((rows[first], -counts))[:number]
    return list(zip(column.texts(rows[first[top]]), counts[top].tolist(), strict=True))


class PairWriter:
    """Writes the files of a `PairStore`, chunk by chunk.

    Args:
        directory: An existing folder for the files.
        store: The store in this folder to add pairs to; its fingerprints must not be read afterwards. None starts one.
    """

    def __init__(self, directory: Path, store: PairStore | None = None) -> None:
        self._directory = directory
        mode = "wb" if store is None else "ab"
        self._open = contextlib.ExitStack()  # closes all files, even if closing one fails
        self._paths = [directory / name for name in ("src.txt", "tgt.txt")]
        self._texts = [self._open.enter_context(path.open(mode)) for path in self._paths]
        self._prints = {
            name: self._open.enter_context(_prints_path(directory, name).open(mode))
            for name in FINGERPRINTS.names or ()
        }
        columns = [] if store is None else [store.src, store.tgt]
        self._lengths: list[list[NDArray[np.int64]]] = [[column.lengths] for column in columns] or [[], []]

    def write(self, sides: tuple[Sequence[bytes], Sequence[bytes]], fingerprints: Fingerprints) -> None:
        """Append pairs: lines with their line feeds of both sides, and the fingerprints of each pair."""
        for file, lengths, lines in zip(self._texts, self._lengths, sides, strict=True):
            file.writelines(lines)
            lengths.append(np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)))
        for name, prints in self._prints.items():
            prints.write(fingerprints[name].astype(np.uint64).tobytes())

    def finish(self) -> PairStore:
        """Close the files and open them for reading."""
        self.close()
        none = [np.empty(0, dtype=np.int64)]
        src, tgt = (
            TextColumn(path, np.concatenate(lengths or none))
            for path, lengths in zip(self._paths, self._lengths, strict=True)
        )
        return PairStore(src, tgt, self._directory)

    def close(self) -> None:
        """Close the files."""
        self._open.close()


def in_chunks(rows: Rows, size: int = 20_000) -> Iterator[Rows]:
    """Cut row numbers into pieces of `size`."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
