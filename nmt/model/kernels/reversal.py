"""Rows in another order, where the order is its own inverse."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def reorder(rows: Tensor, order: Tensor) -> Tensor:
    """Row `order[n]` in place n, for an order that gives the old one when applied twice: [N, D], [N] -> [N, D].

    Its gradient is the same reordering; torch's own would add up what comes from a row taken more than once.
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
    def backward(ctx: Any, of_reordered: Tensor) -> tuple[Tensor, None]:
        (order,) = ctx.saved_tensors
        return of_reordered.index_select(0, order), None
