"""Hyperbolic tangent computed with the logistic function, which is many times faster on a CPU."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def tanh(inputs: Tensor) -> Tensor:
    """tanh(x) = 2 sigmoid(2 x) - 1, of any shape.

    The error is at most the rounding error of numbers near 1 (float32: 1e-7), more than torch's own near x = 0.
    """
    if inputs.device.type != "cpu" or inputs.dtype == torch.bfloat16:
        return inputs.tanh()  # already fast, and half precision near 1 is too coarse
    outputs: Tensor = _Tanh.apply(inputs)  # type: ignore[no-untyped-call]
    return outputs


def tanh_of(inputs: Tensor) -> Tensor:
    """The same without a gradient, for float32 or better."""
    return (2 * inputs).sigmoid_().mul_(2).sub_(1)


class _Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:
        outputs = tanh_of(inputs)
        ctx.save_for_backward(outputs)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> Tensor:
        (outputs,) = ctx.saved_tensors
        d_inputs: Tensor = d_outputs * (1 - outputs * outputs)
        return d_inputs
