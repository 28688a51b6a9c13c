"""The states of a decoder's layers: vectors, keys and values of the words so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.layers.layout import Layout, join_padded


class RowState(NamedTuple):
    """A vector for each hypothesis.

    Attributes:
        vectors: [R, D].
    """

    vectors: Tensor

    def select(self, rows: Tensor, layout: Layout) -> RowState:
        """See `nmt.models.base.DecoderState`."""
        return RowState(self.vectors.index_select(0, rows))

    @classmethod
    def join(cls, states: Sequence[RowState], layout: Layout) -> RowState:
        """See `nmt.models.base.DecoderState`."""
        return RowState(torch.cat([state.vectors for state in states]))


class Cache(NamedTuple):
    """Keys and values of the words so far, of all hypotheses of a sentence together.

    Each step appends a word for each of a sentence's N hypotheses. A hypothesis reads those of its own prefix: a beam
    that reorders, repeats or drops hypotheses moves the marks of prefixes, never keys and values.

    Attributes:
        keys: [B, heads, n, d], for n words.
        values: [B, heads, n, d].
        prefixes: True at the words of each hypothesis's prefix, [R, n].
        layout: Which of the R rows belong to which sentence.
    """

    keys: Tensor
    values: Tensor
    prefixes: Tensor
    layout: Layout

    def select(self, rows: Tensor, layout: Layout) -> Cache:
        """See `nmt.models.base.DecoderState`."""
        keys = self.keys
        values = self.values
        if layout.num_sentences < self.layout.num_sentences:
            # The sentence that each of the remaining ones was, [B']; any if it has no row left.
            before = self.layout.sentences(rows.device).index_select(0, rows)
            remaining = before.new_zeros(layout.num_sentences)
            remaining[layout.sentences(rows.device)] = before
            keys = keys.index_select(0, remaining)
            values = values.index_select(0, remaining)
        return Cache(keys, values, self.prefixes.index_select(0, rows), layout)

    @classmethod
    def join(cls, states: Sequence[Cache], layout: Layout) -> Cache:
        """See `nmt.models.base.DecoderState`; a word that a sentence does not have is in no prefix."""
        keys = join_padded([state.keys for state in states])
        values = join_padded([state.values for state in states])
        return Cache(keys, values, join_padded([state.prefixes for state in states]), layout)

    def append(self, keys: Tensor, values: Tensor) -> Cache:
        """The cache with another word for each hypothesis, [B, heads, N, d]."""
        layout = self.layout
        rows = len(self.prefixes)
        width = layout.width
        slots = torch.arange(rows, device=keys.device) if layout.slots is None else layout.slots
        is_own = (slots % width).unsqueeze(1) == torch.arange(width, device=keys.device)  # [R, N]
        prefixes = torch.cat([self.prefixes, is_own], dim=1)
        return Cache(_join(self.keys, keys), _join(self.values, values), prefixes, layout)

    @property
    def allowed(self) -> Tensor:
        """True where a hypothesis may read a word, [B, N, n]; everywhere in empty slots, which must read something."""
        return self.layout.to_grid(self.prefixes, fill=True)


def _join(words: Tensor, new: Tensor) -> Tensor:
    return torch.cat([words.to(new.dtype), new], dim=2)
