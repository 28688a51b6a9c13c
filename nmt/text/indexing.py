"""Numbering tokens while a corpus is being tokenised, before there is a vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.text.tokenizers import Tokenizer, load_tokenizer
from nmt.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class IndexedLines:
    """Tokens of some lines, with a numbering of their own.

    Attributes:
        tokens: Each distinct token; its index is its number.
        numbers: All tokens of all lines, concatenated.
        lengths: Number of tokens of each line.
    """

    tokens: list[str]
    numbers: NDArray[np.int32]
    lengths: NDArray[np.int32]


def index_lines(tokenizer: Tokenizer, lines: Sequence[str]) -> IndexedLines:
    """Tokenise lines and number their tokens in order of first appearance."""
    index: dict[str, int] = {}
    numbers: list[int] = []
    lengths: list[int] = []
    for tokens in tokenizer.tokenize(lines):
        numbers += [index.setdefault(token, len(index)) for token in tokens]
        lengths.append(len(tokens))
    return IndexedLines(list(index), np.array(numbers, dtype=np.int32), np.array(lengths, dtype=np.int32))


def index_block(directory: Path, side: str, block: bytes) -> IndexedLines:
    """Tokenise a block of lines with a saved tokenizer, which each process reads once.

    Args:
        directory: Folder that `Tokenizer.save` wrote to.
        side: `src` or `tgt`.
        block: UTF-8 lines, each ending in a line feed.
    """
    written = (directory / f"{side}.tokenizer.json").stat().st_mtime_ns  # another run may use the same folder
    return index_lines(_saved_tokenizer(directory, side, written), block.decode().split("\n")[:-1])


@lru_cache(maxsize=2)
def _saved_tokenizer(directory: Path, side: str, written: int) -> Tokenizer:
    return load_tokenizer(directory, side)


class TokenIndex:
    """Distinct tokens of a whole corpus, numbered by first appearance, with their counts."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._counts = np.zeros(1024, dtype=np.int64)

    def renumber(self, lines: IndexedLines) -> NDArray[np.int32]:
        """Count the tokens of lines; return their numbers in the whole corpus."""
        numbers = self._numbers
        table = np.array([numbers.setdefault(token, len(numbers)) for token in lines.tokens], dtype=np.int32)
        if len(numbers) > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(len(numbers), dtype=np.int64)])
        self._counts[table] += np.bincount(lines.numbers, minlength=len(table))
        return table[lines.numbers] if len(table) else lines.numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def coverage(self, sizes: Sequence[int]) -> dict[int, float]:
        """Share of all tokens that the N most frequent ones make up, for each N in `sizes` and for all."""
        counts = np.sort(self._counts[: len(self)])[::-1]
        covered = np.cumsum(counts) / max(1, counts.sum())
        return {size: round(float(covered[size - 1]), 6) for size in (*(s for s in sizes if s < len(self)), len(self))}

    def counter(self) -> Counter[str]:
        """Number of occurrences of each token."""
        return Counter(dict(zip(self._numbers, self._counts.tolist(), strict=False)))

    def ids(self, vocabulary: Vocabulary) -> NDArray[np.int32]:
        """Vocabulary ids by number."""
        return np.array(vocabulary.encode(list(self._numbers)), dtype=np.int32)
