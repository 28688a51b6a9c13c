"""Data augmentation: adds copies of training pairs in other forms to a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nmt.config import DataSection
from nmt.corpus import Pair
from nmt.corpus.forms import make_copies
from nmt.corpus.lines import Rows, decode_lines
from nmt.corpus.processes import map_chunks
from nmt.corpus.splitting import Splits, without_overlap
from nmt.corpus.store import Block, PairStore, in_chunks
from nmt.system.progress import progress_bar


def add_copies(data: DataSection, store: PairStore, splits: Splits) -> tuple[Rows, dict[str, int]]:
    """Add the copies that `data.augment` asks for to a store.

    Only training pairs are copied, and copies that share a sentence with valid or test are dropped: other numbers or
    names can turn one sentence into another.

    Args:
        data: The forms, the share of the pairs to copy in each, and the seed.
        store: Clean pairs.
        splits: Their splits.

    Returns:
        The rows of the copies to use, and their number by form.
    """
    shares = {name: share for name, share in data.augment.model_dump().items() if share}
    if not shares:
        return np.empty(0, dtype=np.int64), {}
    before, forms = len(store), []
    src, tgt = store.lines("src"), store.lines("tgt")
    blocks = ((src.raw(piece), tgt.raw(piece)) for piece in in_chunks(splits.train))
    with progress_bar(desc="copying", unit=" copies", leave=False) as bar:
        for block, numbers in map_chunks(partial(_copy_block, shares, data.split.seed), blocks, data.workers):
            store.append(block)
            forms.append(numbers)
            bar.update(len(numbers))
    rows = without_overlap(store, np.arange(before, len(store)), splits.evaluation["valid"] + splits.evaluation["test"])
    counts = np.bincount(np.concatenate(forms)[rows - before], minlength=len(shares))
    return rows, dict(zip(shares, counts.tolist(), strict=True))


def _copy_block(shares: Mapping[str, float], seed: int, texts: tuple[bytes, bytes]) -> tuple[Block, NDArray[np.uint8]]:
    """Copies of a block of pairs, and for each copy the place of its form in `shares`: the work of one process."""
    copies = make_copies(map(Pair, *map(decode_lines, texts)), shares, seed)
    forms = [list(shares).index(form) for form, _ in copies]
    return Block.encode([pair for _, pair in copies], seed), np.array(forms, dtype=np.uint8)
