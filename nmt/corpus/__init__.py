"""Sentences, never tensors: where they come from, how they are cleaned and split."""

from typing import NamedTuple


class Pair(NamedTuple):
    """A sentence and one translation of it."""

    src: str
    tgt: str
