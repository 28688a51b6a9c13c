"""The rows of a batch and the sentences they belong to."""

from __future__ import annotations

from collections.abc import Sequence
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

    @classmethod
    def join(cls, layouts: Sequence[Layout], device: torch.device) -> Layout:
        """The rows of several layouts one after another, with the sentences of the first layout first."""
        number = sum(layout.num_sentences for layout in layouts)
        width = max(layout.width for layout in layouts)
        if all(layout.slots is None and layout.width == width for layout in layouts):
            return cls(number, width)
        slots = []
        first = 0  # number of a layout's first sentence
        for layout in layouts:
            used = layout.slots
            if used is None:
                used = torch.arange(layout.num_sentences * layout.width, device=device)
            sentences = used // layout.width
            slots.append(width * (first + sentences) + used % layout.width)
            first += layout.num_sentences
        return cls(number, width, torch.cat(slots))


def join_padded(parts: Sequence[Tensor], fill: float = 0.0) -> Tensor:
    """The rows of tensors one after another.

    Args:
        parts: Of one type, with the same number of dimensions.
        fill: The elements that make them equally long in all dimensions but the first.
    """
    sizes = [max(lengths) for lengths in zip(*(part.shape[1:] for part in parts), strict=True)]
    joined = parts[0].new_full([sum(map(len, parts)), *sizes], fill)
    start = 0
    for part in parts:
        place = joined[start : start + len(part)]
        place[tuple(map(slice, part.shape))] = part
        start += len(part)
    return joined
