"""Cross-entropy of the output layer, made without ever holding the logits of a large batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK_ROWS = 1024
"""Rows of logits in memory at once."""
ROW_STEP = 32
"""Rows are filled up to a multiple of this: the CPU's product library keeps something for every shape it has met."""


def output_cross_entropy(
    readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, label_smoothing: float = 0.0
) -> Tensor:
    """Summed cross-entropy in nats of an output layer, with label smoothing e (Szegedy et al., 2016, section 7).

    sum_n logsumexp(z_n) - (1 - e) z_n[y_n] - e mean(z_n), where z = x W^T + b. Its gradient with regard to z_n,
    softmax(z_n) - (1 - e) onehot(y_n) - e / V, takes the place of a chunk of z as soon as that has been made, and
    gives those of x, W and b at once. Under autocast the products are in its precision; the rest is in float32.

    Args:
        readouts: x, [N, R].
        weight: W, [V, R].
        bias: b, [V].
        targets: y, words [N].
        label_smoothing: e.

    Returns:
        A scalar, in float32 or better.
    """
    device = readouts.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else readouts.dtype
    needed = torch.is_grad_enabled() and any(part.requires_grad for part in (readouts, weight, bias))
    with torch.autocast(device, enabled=False):
        total: Tensor = _OutputCrossEntropy.apply(readouts, weight, bias, targets, label_smoothing, dtype, needed)  # type: ignore[no-untyped-call]
    return total


class _OutputCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        readouts: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        smoothing: float,
        dtype: torch.dtype,
        needed: bool,
    ) -> Tensor:
        exact = torch.promote_types(dtype, torch.float32)
        kernel = weight.to(dtype)
        total = torch.zeros((), dtype=exact, device=readouts.device)
        of_readouts = torch.empty_like(readouts) if needed else None
        of_weight = torch.zeros_like(weight, dtype=exact) if needed else None
        of_bias = torch.zeros_like(bias, dtype=exact) if needed else None
        for first in range(0, len(targets), CHUNK_ROWS):
            words = targets[first : first + CHUNK_ROWS].unsqueeze(1)
            rows = len(words)
            chunk = readouts.new_zeros(-(-rows // ROW_STEP) * ROW_STEP, readouts.size(1), dtype=dtype)
            chunk[:rows] = readouts[first : first + rows]
            logits = (chunk @ kernel.t()).to(exact).add_(bias)  # a product that adds the bias itself is slower
            wanted = (1 - smoothing) * logits[:rows].gather(1, words)
            if smoothing:
                wanted += smoothing * logits[:rows].mean(dim=1, keepdim=True)
            highest = logits[:rows].amax(dim=1, keepdim=True)
            shares = torch.softmax(logits, dim=1, out=logits)
            # The largest share is exp(highest - logsumexp), and at least 1 / V.
            total += (highest - shares[:rows].amax(dim=1, keepdim=True).log() - wanted).sum()
            if of_readouts is None or of_weight is None or of_bias is None:
                continue
            shares[rows:] = 0
            shares[:rows].scatter_add_(1, words, shares.new_full((rows, 1), smoothing - 1))
            if smoothing:
                shares[:rows] -= smoothing / len(weight)
            difference = shares.to(dtype)
            of_readouts[first : first + rows] = (difference @ kernel)[:rows]
            of_bias += shares.sum(dim=0)
            if dtype == exact:
                of_weight.addmm_(difference.t(), chunk, beta=min(first, 1))
            else:
                of_weight += difference.t() @ chunk
        ctx.save_for_backward(of_readouts, of_weight, of_bias)
        ctx.dtypes = weight.dtype, bias.dtype
        return total

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, of_total: Tensor) -> tuple[Tensor | None, ...]:
        of_readouts, of_weight, of_bias = ctx.saved_tensors
        of_readouts = of_readouts * of_total.to(of_readouts.dtype)
        return of_readouts, (of_weight * of_total).to(ctx.dtypes[0]), (of_bias * of_total).to(ctx.dtypes[1]), *[None] * 4
