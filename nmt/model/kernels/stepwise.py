"""Matrices that a loop uses at every step: one product for their gradient after the loop, not one a step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

Made = TypeVar("Made")
Calls = dict[int, tuple[Tensor, Tensor]]
"""Inputs [..., N, K] and gradients of outputs [..., N, M] of the steps, by the number of the step."""


class StepWeight:
    """A weight W as the steps of one loop see it.

    Each step multiplies by `matrix`, which autograd knows nothing of, and takes `anchor`, an empty tensor, as another
    input. Backward, a step records its inputs x_t and the gradient d_t of its outputs; the anchor's turn comes when
    all steps have had theirs, and makes dW = sum_t d_t^T x_t in one product.

    Args:
        weight: W, [M, K], or one for each of a batch, [..., M, K]: a parameter, or whatever else stays the same from
            step to step; under autocast it is cast here, once.
    """

    def __init__(self, weight: Tensor) -> None:
        device = weight.device.type
        if torch.is_autocast_enabled(device):
            weight = weight.to(torch.get_autocast_dtype(device))
        self.calls: Calls = {}
        self.steps = 0
        self.matrix = weight.detach()
        if weight.dim() == 2:
            self.matrix = self.matrix.contiguous()
        self.anchor: Tensor = _Anchor.apply(weight, self.calls)  # type: ignore[no-untyped-call]

    def count(self) -> int:
        """The number of a new step."""
        self.steps += 1
        return self.steps

    def record(self, step: int, inputs: Tensor, of_outputs: Tensor) -> Tensor | None:
        """Keep x_t [..., N, K] and d_t [..., N, M] of a step, and return the gradient that the anchor is due."""
        if not self.anchor.requires_grad:
            return None
        self.calls[step] = inputs.detach(), of_outputs
        return torch.zeros_like(self.anchor)


class _Anchor(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, calls: Calls) -> Tensor:
        ctx.calls = calls
        return weight.new_empty(0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_anchor: Tensor) -> tuple[Tensor, None]:
        inputs, gradients = (torch.cat(parts, dim=-2) for parts in zip(*ctx.calls.values(), strict=True))
        ctx.calls.clear()
        return gradients.mT @ inputs, None


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, anchor: Tensor, weight: StepWeight) -> Tensor:
        ctx.weight, ctx.step, ctx.dtype = weight, weight.count(), inputs.dtype
        inputs = inputs.to(weight.matrix.dtype)
        ctx.save_for_backward(inputs, weight.matrix)
        return inputs @ weight.matrix.mT

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_outputs: Tensor) -> tuple[Tensor | None, ...]:
        inputs, matrix = ctx.saved_tensors
        of_inputs = (of_outputs @ matrix).to(ctx.dtype) if ctx.needs_input_grad[0] else None
        return of_inputs, ctx.weight.record(ctx.step, inputs, of_outputs), None


_shared: ContextVar[dict[object, Any] | None] = ContextVar("what the steps of the loop share", default=None)


@contextlib.contextmanager
def loop() -> Iterator[None]:
    """Within it, steps share what `once` and `step_weight` make; nothing outlives it but what autograd needs."""
    outer = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(outer)


def in_loop() -> bool:
    """Whether there is a current loop."""
    return _shared.get() is not None


def once(key: object, make: Callable[[], Made]) -> Made:
    """What `make` returns, made once in the current loop, and each time outside of loops.

    Args:
        key: Says which thing this is.
        make: Makes it.
    """
    shared = _shared.get()
    if shared is None:
        return make()
    if key not in shared:
        shared[key] = make()
    made: Made = shared[key]
    return made


def step_weight(key: object, make: Callable[[], Tensor]) -> StepWeight | None:
    """What a step of the current loop multiplies by; None outside of loops.

    Args:
        key: Says which weight this is.
        make: Makes the weight, [..., M, K], when the first step asks for it; later steps get the same.
    """
    return once((StepWeight, key), lambda: StepWeight(make())) if in_loop() else None


def product(inputs: Tensor, key: object, make: Callable[[], Tensor]) -> Tensor:
    """x W^T, in the current loop or outside of any; see `step_weight`.

    Args:
        inputs: x, [..., K]; [..., N, K] where there is one W for each of a batch.
        key: Says which weight this is.
        make: Makes W, [M, K] or [..., M, K].

    Returns:
        [..., M].
    """
    weight = step_weight(key, make)
    if weight is None:
        matrix = make()
        return nn.functional.linear(inputs, matrix) if matrix.dim() == 2 else inputs @ matrix.mT
    rows = inputs.flatten(0, -2) if weight.matrix.dim() == 2 else inputs
    outputs: Tensor = _Product.apply(rows, weight.anchor, weight)  # type: ignore[no-untyped-call]
    return outputs.view(*inputs.shape[:-1], outputs.size(-1))


class Linear(nn.Linear):
    """torch's own layer, whose weight gets its gradient in one product where a loop uses it."""

    def forward(self, inputs: Tensor) -> Tensor:
        """x W^T + b: [..., K] -> [..., M]."""
        if not in_loop():
            return super().forward(inputs)
        outputs = product(inputs, self, lambda: self.weight)
        return outputs if self.bias is None else outputs + self.bias.to(outputs.dtype)
