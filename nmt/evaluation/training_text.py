"""The text of encoded training pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nmt.corpus.dataset import EncodedPairs, Sequences, read_copies
from nmt.system.errors import DataError
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import Vocabulary


def load_training_pairs(data: Path) -> tuple[EncodedPairs, int]:
    """The training pairs of a data directory, and how many come before the copies that `data.augment` made.

    Raises:
        DataError: The directory is missing, incomplete or damaged.
    """
    encoded = EncodedPairs.load(data, "train")
    originals = len(encoded) - read_copies(data)
    if originals < 0:
        raise DataError(f"{data}: has fewer training pairs than copies of them; preprocess again")
    return encoded, originals


def decode_lines(
    sequences: Sequences, rows: Sequence[int], vocabulary: Vocabulary, tokenizer: Tokenizer, data: Path
) -> list[str]:
    """The text of some sentences.

    Args:
        sequences: One side of the pairs.
        rows: Indices of the sentences.
        vocabulary: Vocabulary of that side.
        tokenizer: Its tokenizer.
        data: Their data directory, for messages.

    Raises:
        DataError: An id is not in the vocabulary.
    """
    ids = [sequences[row].tolist() for row in rows]
    if not all(0 <= index < len(vocabulary) for line in ids for index in line):
        raise DataError(f"{data}: has ids beyond its vocabulary; preprocess again")
    return [tokenizer.detokenize(vocabulary.decode(line)) for line in ids]
