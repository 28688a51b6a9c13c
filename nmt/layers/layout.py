"""The rows of a batch and the sentences they belong to."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Layout(NamedTuple):
    """The rows of a decoder and their sentences.

    Rows are hypotheses, R in all, in the order of the B sentences. A sentence has at most N rows, and may have none.
    Recurrent layers work on rows, [R, ...]; attention works on the grid, [B, N, ...].

    Attributes:
        num_sentences: B.
        width: N.
        places: Index of each row in the flattened grid, [R], below B * N; None if every sentence has N rows.
    """

    num_sentences: int
    width: int = 1
    places: Tensor | None = None

    def spread(self, rows: Tensor, fill: float = 0.0) -> Tensor:
        """From rows to the grid, with `fill` in empty places: [R, ...] -> [B, N, ...]."""
        shape = self.num_sentences, self.width, *rows.shape[1:]
        if self.places is None:
            return rows.view(shape)
        grid = rows.new_full((self.num_sentences * self.width, *rows.shape[1:]), fill)
        return grid.index_copy_(0, self.places, rows).view(shape)

    def gather(self, grid: Tensor) -> Tensor:
        """From the grid to rows: [B, N, ...] -> [R, ...]."""
        rows = grid.flatten(0, 1)
        return rows if self.places is None else rows.index_select(0, self.places)

    def sentences(self, device: torch.device) -> Tensor:
        """The sentence of each row, [R]."""
        if self.places is None:
            return torch.arange(self.num_sentences, device=device).repeat_interleave(self.width)
        return self.places // self.width
