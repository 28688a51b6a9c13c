"""Cross-entropy of the output layer, which never stores the logits of more than `CHUNK_ROWS` target positions."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.layers.kernels.products import pad_rows

CHUNK_ROWS = 1024
"""Rows of logits in memory at once."""


def output_cross_entropy(
    readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, label_smoothing: float = 0.0
) -> Tensor:
    """Summed cross-entropy in nats of an output layer, with label smoothing e (Szegedy et al., 2016, section 7).

    sum_p logsumexp(z_p) - (1 - e) z_p[y_p] - e mean(z_p), where z = x W^T + b. Its gradient with respect to z_p,
    softmax(z_p) - (1 - e) onehot(y_p) - e / V, replaces each chunk of z in place, and those of x, W and b follow at
    once. Under autocast the products are in its precision; the rest is in float32.

    Args:
        readouts: x, [P, K].
        weight: W, [V, K].
        bias: b, [V].
        targets: y, word ids [P].
        label_smoothing: e.

    Returns:
        A scalar, in float32 or better.
    """
    device, parts = readouts.device.type, (readouts, weight, bias)
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else readouts.dtype
    needed = torch.is_grad_enabled() and any(part.requires_grad for part in parts)
    with torch.autocast(device, enabled=False):
        total: Tensor = _OutputLoss.apply(*parts, targets, label_smoothing, dtype, needed)  # type: ignore[no-untyped-call]
    return total


def _cross_entropy(smoothing: float, logits: Tensor, words: Tensor, needed: bool) -> tuple[Tensor, Tensor]:
    """The loss of some positions and, if needed, its gradient with respect to their logits, which is 0 on padding.

    Args:
        smoothing: e of `output_cross_entropy`.
        logits: In float32 or better, those of padding last, [rows, V]; overwritten.
        words: The words to predict, [positions, 1].
        needed: Whether the gradient is needed.
    """
    rows = len(words)
    # The logits that count as right, [rows, 1]: that of the word and, smoothed, the mean of all.
    target = (1 - smoothing) * logits[:rows].gather(1, words)
    if smoothing:
        target += smoothing * logits[:rows].mean(dim=1, keepdim=True)
    highest = logits[:rows].amax(dim=1, keepdim=True)
    probabilities = torch.softmax(logits, dim=1, out=logits)
    # The largest probability is exp(highest - logsumexp), and at least 1 / V.
    loss = (highest - probabilities[:rows].amax(dim=1, keepdim=True).log() - target).sum()
    d_logits = probabilities
    if needed:  # in place
        d_logits[rows:] = 0
        d_logits[:rows].scatter_add_(1, words, d_logits.new_full((rows, 1), smoothing - 1))
        if smoothing:
            d_logits[:rows] -= smoothing / logits.size(1)
    return loss, d_logits


class _OutputLoss(torch.autograd.Function):
    """A loss whose forward pass already saves the gradients of readouts, weight and bias, its first three inputs."""

    @staticmethod
    def forward(ctx: Any, readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, *options: Any) -> Tensor:
        smoothing, dtype, needed = options
        exact = torch.promote_types(dtype, torch.float32)
        kernel = weight.to(dtype)
        total = torch.zeros((), dtype=exact, device=readouts.device)
        make = torch.empty_like if len(targets) else torch.zeros_like
        gradients = [make(part, dtype=exact) for part in (readouts, weight, bias)] if needed else []
        for first in range(0, len(targets), CHUNK_ROWS):
            part = slice(first, first + CHUNK_ROWS)
            words = targets[part].unsqueeze(1)
            rows = pad_rows(readouts[part].to(dtype))  # [positions, K] -> [rows, K]
            logits = (rows @ kernel.t()).to(exact).add_(bias)  # [rows, V]; addmm is slower
            loss, d_logits = _cross_entropy(smoothing, logits, words, needed)
            total += loss
            if not needed:
                continue
            difference = d_logits.to(dtype)  # [rows, V], times W for readouts, times readouts for W
            gradients[0][part] = (difference @ kernel)[: len(words)]
            sums = [(difference.t() @ rows).to(exact), d_logits.sum(dim=0)]
            gradients[1:] = [one.add_(other) for one, other in zip(gradients[1:], sums, strict=True)] if first else sums
        ctx.save_for_backward(*gradients)
        ctx.dtypes = readouts.dtype, weight.dtype, bias.dtype
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_total: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the saved gradients."""
        gradients = ctx.saved_tensors
        if d_total.device.type != "cpu" or d_total != 1:  # on another device the comparison would wait for it
            gradients = tuple(gradient * d_total for gradient in gradients)
        others = len(ctx.needs_input_grad) - len(gradients)
        return *(gradient.to(dtype) for gradient, dtype in zip(gradients, ctx.dtypes, strict=True)), *[None] * others
