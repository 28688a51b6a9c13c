"""The states of a decoder's layers: vectors, keys and values of the words so far, and whose words they are."""

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


class Prefixes(NamedTuple):
    """Which of the words of a `Cache` belong to which hypothesis, the same in every layer.

    Attributes:
        marks: True at the words of each hypothesis's prefix, of all n words of its sentence, [R, n].
        layout: Which of the R rows belong to which sentence.
    """

    marks: Tensor
    layout: Layout

    @classmethod
    def start(cls, rows: int, device: torch.device) -> Prefixes:
        """Those of as many sentences, with one hypothesis without words each."""
        return cls(torch.empty(rows, 0, dtype=torch.bool, device=device), Layout(rows))

    def select(self, rows: Tensor, layout: Layout) -> Prefixes:
        """See `nmt.models.base.DecoderState`."""
        return Prefixes(self.marks.index_select(0, rows), layout)

    @classmethod
    def join(cls, states: Sequence[Prefixes], layout: Layout) -> Prefixes:
        """See `nmt.models.base.DecoderState`; a word that a sentence does not have is in no prefix."""
        return Prefixes(join_padded([state.marks for state in states]), layout)

    def append(self) -> Prefixes:
        """The prefixes with another word for each hypothesis: the sentence has one more word for each slot."""
        device = self.marks.device
        rows = len(self.marks)
        width = self.layout.width
        slots = torch.arange(rows, device=device) if self.layout.slots is None else self.layout.slots
        is_own = (slots % width).unsqueeze(1) == torch.arange(width, device=device)  # [R, N]
        return self._replace(marks=torch.cat([self.marks, is_own], dim=1))

    @property
    def allowed(self) -> Tensor:
        """True where a hypothesis may read a word, [B, N, n]; everywhere in empty slots, which must read something."""
        return self.layout.to_grid(self.marks, fill=True)


class Cache(NamedTuple):
    """Keys and values of the words so far, of all hypotheses of a sentence together.

    Each step appends a word for each of a sentence's N hypotheses. A hypothesis reads those of its own prefix: a beam
    that reorders, repeats or drops hypotheses moves the marks of `Prefixes`, never keys and values.

    Attributes:
        keys: [B, heads, n, d], for n words.
        values: [B, heads, n, d].
        layout: Which of the R rows belong to which sentence.
    """

    keys: Tensor
    values: Tensor
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
        return Cache(keys, values, layout)

    @classmethod
    def join(cls, states: Sequence[Cache], layout: Layout) -> Cache:
        """See `nmt.models.base.DecoderState`."""
        keys = join_padded([state.keys for state in states])
        values = join_padded([state.values for state in states])
        return Cache(keys, values, layout)

    def append(self, keys: Tensor, values: Tensor) -> Cache:
        """The cache with another word for each hypothesis, [B, heads, N, d]."""
        return Cache(_join(self.keys, keys), _join(self.values, values), self.layout)


def _join(words: Tensor, new: Tensor) -> Tensor:
    return torch.cat([words.to(new.dtype), new], dim=2)
