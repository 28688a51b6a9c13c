"""Batches of pairs that are written down as ids."""

from collections.abc import Sequence

import numpy as np
from torch import nn

from nmt.corpus.batching import Batch, make_batch, real_positions
from nmt.corpus.dataset import EncodedPairs, Sequences
from nmt.text.vocabulary import PAD_ID


def pairs_of(src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]]) -> EncodedPairs:
    """Pairs of ids without special tokens."""
    return EncodedPairs(Sequences.pack(src), Sequences.pack(tgt))


def batch_of(
    src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]], src_padding: int = 0, tgt_padding: int = 0
) -> Batch:
    """All pairs in order, with so much more padding than they need."""
    batch = make_batch(pairs_of(src, tgt), np.arange(len(src)))
    words, tgt_in = (nn.functional.pad(ids, (0, tgt_padding), value=PAD_ID) for ids in (batch.tgt_out, batch.tgt_in))
    padded = nn.functional.pad(batch.src, (0, src_padding), value=PAD_ID)
    return batch._replace(src=padded, tgt_in=tgt_in, tgt_out=words, positions=real_positions(words))
