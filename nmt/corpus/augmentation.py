"""Data augmentation: adds copies of training pairs in other forms to a corpus."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.config import Config
from nmt.corpus import Pair
from nmt.corpus.forms import make_copies
from nmt.corpus.identity import Fingerprints, take_fingerprints
from nmt.corpus.parallel import map_chunks
from nmt.corpus.splitting import Splits, without_overlap
from nmt.corpus.store import PairStore, PairWriter, Rows, in_chunks
from nmt.system.progress import progress_bar

_Copies = tuple[tuple[list[bytes], list[bytes]], Fingerprints, NDArray[np.uint8]]


def add_copies(config: Config, store: PairStore, splits: Splits, work: Path) -> tuple[PairStore, Rows, dict[str, int]]:
    """Add the copies that `data.augment` asks for to a store.

    Only training pairs are copied, and copies that share a sentence with valid or test are dropped: other numbers or
    names can turn one sentence into another.

    Args:
        config: The whole config.
        store: Clean pairs, which must not be used afterwards.
        splits: Their splits.
        work: Folder of the store.

    Returns:
        The store with the copies, the rows of those to use, and their number by form.
    """
    shares = {name: share for name, share in config.data.augment.model_dump().items() if share}
    if not shares:
        return store, np.empty(0, dtype=np.int64), {}
    blocks = ((store.src.raw(piece), store.tgt.raw(piece)) for piece in in_chunks(splits.train))
    make = partial(_copy_block, shares, config.data.split.seed)
    forms = []
    before = len(store)
    bar = progress_bar(desc="copying", unit=" copies", leave=False)
    with bar, contextlib.closing(store), contextlib.closing(PairWriter(work, store)) as writer:
        for sides, fingerprints, found in map_chunks(make, blocks, config.data.workers):
            writer.write(sides, fingerprints)
            forms.append(found)
            bar.update(len(found))
        extended = writer.finish()
    rows = without_overlap(extended, np.arange(before, len(extended)), [*splits.valid, *splits.test])
    counts = np.bincount(np.concatenate(forms)[rows - before], minlength=len(shares))
    return extended, rows, dict(zip(shares, counts.tolist(), strict=True))


def _copy_block(shares: Mapping[str, float], seed: int, block: tuple[bytes, bytes]) -> _Copies:
    """Copies of a block of pairs, their fingerprints, and the index of the form of each in `shares`."""
    src, tgt = (side.decode().split("\n")[:-1] for side in block)
    copies = make_copies(map(Pair, src, tgt), shares, seed)
    pairs = [pair for _, pair in copies]
    sides = [f"{pair.src}\n".encode() for pair in pairs], [f"{pair.tgt}\n".encode() for pair in pairs]
    indices = {name: index for index, name in enumerate(shares)}
    return sides, take_fingerprints(pairs, seed), np.array([indices[name] for name, _ in copies], dtype=np.uint8)
