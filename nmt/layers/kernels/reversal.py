"""Reordering rows by a permutation that is its own inverse."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def reorder(rows: Tensor, order: Tensor) -> Tensor:
    """Row `order[n]` in place n, for a permutation that is its own inverse: [N, D], [N] -> [N, D].

    The gradient is the same reordering; torch's own is slower, as it allows for rows that occur repeatedly.
    """
    reordered: Tensor = _Reordering.apply(rows, order)  # type: ignore[no-untyped-call]
    return reordered


class _Reordering(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor) -> Tensor:
        ctx.save_for_backward(order)
        return rows.index_select(0, order)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_reordered: Tensor) -> tuple[Tensor, None]:
        (order,) = ctx.saved_tensors
        return d_reordered.index_select(0, order), None
