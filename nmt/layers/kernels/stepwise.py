"""Weights that a loop uses at every step: prepared before it, with their gradients computed in one product after it."""

import copy
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.layers.kernels.packed import PackedWeight, can_pack

Calls = dict[int, tuple[Tensor, Tensor]]
"""Inputs [..., N, K] and output gradients [..., N, M] of the steps, by step number."""


class StepWeight:
    """A weight W for the steps of a loop: x -> x W^T.

    Each step multiplies by `matrix`, which autograd does not track, and has `anchor`, an empty tensor, as a further
    input. In the backward pass each step records its inputs x_t and the gradient d_t of its outputs; autograd reaches
    the anchor after all steps, and its backward computes dW = sum_t d_t^T x_t in one product.

    Args:
        weight: W, [M, K], or one per sentence of a batch, [..., M, K]; under autocast it is cast here, once.
    """

    def __init__(self, weight: Tensor) -> None:
        device = weight.device.type
        if torch.is_autocast_enabled(device):
            weight = weight.to(torch.get_autocast_dtype(device))
        self.calls: Calls = {}
        self.steps = 0
        self.anchor: Tensor = _Anchor.apply(weight, self.calls)  # type: ignore[no-untyped-call]
        self.matrix = weight.detach()
        if weight.dim() == 2:
            self.matrix = self.matrix.contiguous()
        self.packed = PackedWeight(self.matrix) if can_pack(self.matrix) else None

    def __call__(self, inputs: Tensor, bias: Tensor | None = None) -> Tensor:
        """x W^T + b: [..., K] -> [..., M]; [..., N, K] -> [..., N, M] with one W per sentence, then without b."""
        rows = inputs.flatten(0, -2) if self.matrix.dim() == 2 and inputs.dim() != 2 else inputs
        if not self.anchor.requires_grad:
            outputs = self.multiply(rows.to(self.matrix.dtype), bias)
        else:
            outputs = _Product.apply(rows, self.anchor, self)  # type: ignore[no-untyped-call]
            if bias is not None:
                outputs.add_(bias.to(outputs.dtype))  # large tensors, in place
        return outputs if rows is inputs else outputs.view(*inputs.shape[:-1], outputs.size(-1))

    def multiply(self, inputs: Tensor, bias: Tensor | None = None) -> Tensor:
        """The product itself, without a gradient of W, for inputs in the precision of `matrix`."""
        if bias is not None:
            bias = bias.to(inputs.dtype)
        if self.packed is not None:
            return self.packed(inputs, bias)
        right = self.matrix.mT
        return inputs @ right if bias is None else torch.addmm(bias, inputs, right)

    def next_step(self) -> int:
        """Number a new step."""
        self.steps += 1
        return self.steps

    def record(self, step: int, inputs: Tensor, d_outputs: Tensor) -> Tensor | None:
        """Record x_t [..., N, K] and d_t [..., N, M] of a step, and return the gradient of the anchor."""
        if not self.anchor.requires_grad:
            return None
        self.calls[step] = inputs.detach(), d_outputs
        return torch.zeros_like(self.anchor)


class _Anchor(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, calls: Calls) -> Tensor:
        ctx.calls = calls
        return weight.new_empty(0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_anchor: Tensor) -> tuple[Tensor, None]:
        # All steps below one another: T times [..., N, K] -> [..., T * N, K]
        inputs, gradients = (torch.cat(parts, dim=-2) for parts in zip(*ctx.calls.values(), strict=True))
        ctx.calls.clear()
        return gradients.mT @ inputs, None


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, anchor: Tensor, weight: StepWeight) -> Tensor:
        ctx.weight = weight
        ctx.step = weight.next_step()
        ctx.dtype = inputs.dtype
        inputs = inputs.to(weight.matrix.dtype)
        ctx.save_for_backward(inputs, weight.matrix)
        return weight.multiply(inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        inputs, matrix = ctx.saved_tensors
        d_inputs = (d_outputs @ matrix).to(ctx.dtype) if ctx.needs_input_grad[0] else None
        return d_inputs, ctx.weight.record(ctx.step, inputs, d_outputs), None


class StepLinear(nn.Linear):
    """A linear layer for use at every step of a loop, before which `for_steps` replaces it."""

    def for_steps(self) -> nn.Module:
        """The layer in the steps of a loop."""
        return PreparedLinear(StepWeight(self.weight), self.bias)


class PreparedLinear(nn.Module):
    """A `StepLinear` in the steps of a loop.

    Args:
        weight: Its weight.
        bias: Its bias, if it has one.
    """

    def __init__(self, weight: StepWeight, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = weight
        self.bias = bias

    def forward(self, inputs: Tensor) -> Tensor:
        """x W^T + b: [..., K] -> [..., M]."""
        outputs: Tensor = self.weight(inputs, self.bias)
        return outputs


Module = TypeVar("Module", bound=nn.Module)


def for_steps(module: Module) -> Module:
    """Copy a module for the steps of a loop, sharing its parameters.

    Every `StepLinear` is replaced by its own form for steps. Discard the copy after the loop: it does not see updates
    of the parameters.
    """
    if isinstance(module, StepLinear):
        return cast(Module, module.for_steps())
    prepared = copy.copy(module)
    prepared._modules = {
        name: None if child is None else for_steps(child)  # torch allows None in place of a child
        for name, child in module._modules.items()
    }
    return prepared
