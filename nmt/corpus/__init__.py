"""Sentences and their batches: where sentences come from, how they are cleaned and split, and how they become ids."""

from typing import NamedTuple


class Pair(NamedTuple):
    """A sentence and one translation of it."""

    src: str
    tgt: str
