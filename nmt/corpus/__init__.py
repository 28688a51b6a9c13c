"""Sentences, never tensors: where they come from, how they are cleaned and split."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """A sentence and one translation of it."""

    src: str
    tgt: str
