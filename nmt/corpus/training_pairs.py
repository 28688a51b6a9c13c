"""The training pairs of a data directory as text."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from nmt.corpus import Pair
from nmt.corpus.dataset import EncodedPairs, Sequences
from nmt.corpus.marker_schema import read_marker
from nmt.system.errors import DataError
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import Vocabulary

SAMPLE = 20_000
"""Training pairs that are read as text."""


def evenly_spaced(number: int, most: int) -> list[int]:
    """At most so many of the first `number` whole numbers, evenly spaced."""
    return [round(position) for position in np.linspace(0, number - 1, min(number, most))]


def read_training_pairs(data: Path, processor: TextProcessor, most: int = SAMPLE) -> list[Pair]:
    """Read training pairs as text, without augmented copies.

    Args:
        data: The data directory.
        processor: Its tokenizers and vocabularies.
        most: Maximum number of pairs, evenly spaced.

    Raises:
        DataError: The directory is missing, incomplete or damaged.
    """
    encoded, originals = load_originals(data)
    rows = evenly_spaced(originals, most)
    src = decode(encoded.src, rows, processor.src_vocabulary, processor.src_tokenizer, data)
    tgt = decode(encoded.tgt, rows, processor.tgt_vocabulary, processor.tgt_tokenizer, data)
    return list(map(Pair, src, tgt))


def load_originals(data: Path) -> tuple[EncodedPairs, int]:
    """The training pairs of a data directory, and how many come before the copies that `data.augment` made.

    Raises:
        DataError: The directory is missing, incomplete or damaged.
    """
    encoded = EncodedPairs.load(data, "train")
    originals = len(encoded) - read_marker(data).copies
    if originals < 0:
        raise DataError(f"{data}: has fewer training pairs than copies of them; preprocess again")
    return encoded, originals


def decode(
    sequences: Sequences, rows: Sequence[int], vocabulary: Vocabulary, tokenizer: Tokenizer, data: Path
) -> Iterator[str]:
    """The text of some sentences of one side.

    Raises:
        DataError: An id is not in the vocabulary.
    """
    for ids in (sequences[row].tolist() for row in rows):
        if not all(0 <= index < len(vocabulary) for index in ids):
            raise DataError(f"{data}: has ids beyond its vocabulary; preprocess again")
        yield tokenizer.detokenize(vocabulary.decode(ids))
