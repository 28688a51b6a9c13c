"""The rows of a batch and the sentences they belong to."""

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
        slots: Index of each row in the flattened grid, [R], below B * N; None if every sentence has N rows.
    """

    num_sentences: int
    width: int = 1
    slots: Tensor | None = None

    def to_grid(self, rows: Tensor, fill: float = 0.0) -> Tensor:
        """From rows to the grid, with `fill` in empty slots: [R, ...] -> [B, N, ...]."""
        shape = self.num_sentences, self.width, *rows.shape[1:]
        if self.slots is None:
            return rows.view(shape)
        grid = rows.new_full((self.num_sentences * self.width, *rows.shape[1:]), fill)
        return grid.index_copy_(0, self.slots, rows).view(shape)

    def to_rows(self, grid: Tensor) -> Tensor:
        """From the grid to rows: [B, N, ...] -> [R, ...]."""
        rows = grid.flatten(0, 1)
        return rows if self.slots is None else rows.index_select(0, self.slots)

    def sentences(self, device: torch.device) -> Tensor:
        """The sentence of each row, [R]."""
        if self.slots is None:
            return torch.arange(self.num_sentences, device=device).repeat_interleave(self.width)
        return self.slots // self.width
