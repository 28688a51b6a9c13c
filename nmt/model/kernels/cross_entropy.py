"""Cross-entropy of the output layer, which never holds the logits of a whole batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK_ROWS = 1024
"""Rows of logits in memory at once."""
ROW_STEP = 32
"""Numbers of rows are rounded up to multiples of this, as the CPU's product library keeps something for each shape."""


def output_cross_entropy(
    readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, label_smoothing: float = 0.0
) -> Tensor:
    """Summed cross-entropy in nats of an output layer, with label smoothing e (Szegedy et al., 2016, section 7).

    sum_n logsumexp(z_n) - (1 - e) z_n[y_n] - e mean(z_n), where z = x W^T + b. The gradient with regard to z_n is
    softmax(z_n) - (1 - e) onehot(y_n) - e / V: it takes the place of z as soon as a chunk of rows has been made, and
    the gradients of x, W and b come from it at once.

    Args:
        readouts: x, [N, R].
        weight: W, [V, R].
        bias: b, [V].
        targets: y, words [N].
        label_smoothing: e.

    Returns:
        A scalar, in float32 or more.
    """
    device = readouts.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else readouts.dtype
    with torch.autocast(device, enabled=False):
        total: Tensor = _OutputCrossEntropy.apply(
            readouts, weight, bias, targets, label_smoothing, dtype, torch.is_grad_enabled()
        )
    return total


class _OutputCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        readouts: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        label_smoothing: float,
        dtype: torch.dtype,
        with_gradient: bool,
    ) -> Tensor:
        number = len(readouts)
        exact = torch.promote_types(dtype, torch.float32)
        kernel = weight.to(dtype)
        offset = bias.to(exact)
        total = readouts.new_zeros((), dtype=exact)
        gradients: tuple[Tensor, ...] = ()
        if with_gradient:
            gradients = tuple(torch.zeros_like(part, dtype=exact) for part in (readouts, weight, bias))
        for begin in range(0, number, CHUNK_ROWS):
            words = targets[begin : begin + CHUNK_ROWS].unsqueeze(1)
            rows = len(words)
            chunk = readouts.new_zeros(-(-rows // ROW_STEP) * ROW_STEP, readouts.size(1), dtype=dtype)
            chunk[:rows] = readouts[begin : begin + rows]
            logits = (chunk @ kernel.t())[:rows].to(exact).add_(offset)
            highest = logits.amax(dim=1, keepdim=True)
            wanted = (1 - label_smoothing) * logits.gather(1, words)
            if label_smoothing:
                wanted += label_smoothing * logits.mean(dim=1, keepdim=True)
            shares = logits.softmax(dim=1)
            # The highest logit's share is exp(highest - logsumexp), and at least 1 / V.
            total += (highest - shares.amax(dim=1, keepdim=True).log() - wanted).sum()
        ctx.save_for_backward(*gradients)
        return total
