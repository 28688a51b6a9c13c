"""Training text as numbers of tokens, before there is a vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.corpus.lines import decode_lines
from nmt.corpus.store import in_chunks
from nmt.text.tokenizers import Tokenizer, load_tokenizer
from nmt.text.vocabulary import Vocabulary


class TokenizedLines(NamedTuple):
    """Tokens of some lines, in the compact form in which processes exchange them.

    Attributes:
        tokens: The distinct tokens, in order of first appearance.
        numbers: All tokens of all lines, concatenated, as places in `tokens`.
        lengths: Number of tokens of each line.
    """

    tokens: list[str]
    numbers: NDArray[np.int32]
    lengths: NDArray[np.int64]


def tokenize_block(directory: Path, side: str, block: bytes) -> TokenizedLines:
    """Tokenise a block of lines with a saved tokenizer, which each process reads once: the work of one process.

    Args:
        directory: Folder that `Tokenizer.save` wrote to.
        side: `src` or `tgt`.
        block: UTF-8 lines, each ending in a line feed.
    """
    written = (directory / f"{side}.tokenizer.json").stat().st_mtime_ns  # another run may use the same folder
    places: dict[str, int] = {}
    numbers: list[int] = []
    lengths: list[int] = []
    for tokens in _saved_tokenizer(directory, side, written).tokenize(decode_lines(block)):
        numbers += [places.setdefault(token, len(places)) for token in tokens]
        lengths.append(len(tokens))
    return TokenizedLines(list(places), np.array(numbers, dtype=np.int32), np.array(lengths, dtype=np.int64))


@lru_cache(maxsize=2)
def _saved_tokenizer(directory: Path, side: str, written: int) -> Tokenizer:
    return load_tokenizer(directory, side)


class NumberedText:
    """Tokens of one side of the training pairs, numbered by first appearance and counted, on disk.

    Args:
        path: A file for the numbers.

    Attributes:
        counts: Occurrences of each token, by number.
    """

    def __init__(self, path: Path) -> None:
        self.counts = np.zeros(0, dtype=np.int64)
        self._numbers: dict[str, int] = {}
        self._lengths: list[NDArray[np.int64]] = []
        self._path = path

    def append(self, lines: TokenizedLines) -> None:
        """Number and count the tokens of further lines."""
        numbers = self._numbers
        table = np.array([numbers.setdefault(token, len(numbers)) for token in lines.tokens], dtype=np.int32)
        numbered = table[lines.numbers]
        counts = np.bincount(numbered, minlength=len(numbers))
        counts[: len(self.counts)] += self.counts
        self.counts = counts
        self._lengths.append(lines.lengths)
        with self._path.open("ab") as file:
            file.write(numbered.tobytes())

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each line."""
        return np.concatenate(self._lengths)

    def coverage(self, sizes: Sequence[int]) -> dict[int, float]:
        """Share of all tokens that the N most frequent ones make up, for each N in `sizes` and for all."""
        covered = np.cumsum(np.sort(self.counts)[::-1]) / max(1, self.counts.sum())
        total = len(covered)
        return {size: round(float(covered[size - 1]), 6) for size in (*(s for s in sizes if s < total), total)}

    def counter(self) -> Counter[str]:
        """Number of occurrences of each token."""
        return Counter(dict(zip(self._numbers, self.counts.tolist(), strict=True)))

    def encode(self, vocabulary: Vocabulary, keep: NDArray[np.bool_]) -> Iterator[NDArray[np.int32]]:
        """Vocabulary ids of the lines to keep, piece by piece."""
        table = np.array(vocabulary.encode(list(self._numbers)), dtype=np.int32)
        every = self.lengths
        with self._path.open("rb") as file:
            for piece in in_chunks(np.arange(len(every))):
                lengths = every[piece]
                numbers = np.fromfile(file, dtype=np.int32, count=int(lengths.sum()))
                yield table[numbers[np.repeat(keep[piece], lengths)]]
