"""Losses of the output layer, which never store the logits of more than `CHUNK_ROWS` target positions.

Cross-entropy, and R-Drop: that of two passes with different dropout, and how far apart they are.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.layers.kernels.products import pad_rows

CHUNK_ROWS = 1024
"""Rows of logits in memory at once."""

ChunkLoss = Callable[[Tensor, Tensor, bool], tuple[Tensor, Tensor]]
"""The loss of some positions, and its gradient with respect to their logits.

Given the logits [rows, V], which it may overwrite, in float32 or better: those of all passes, one after the other, then
those of padding; the words to predict [positions, 1]; and whether the gradient is needed, which is 0 on padding.
"""


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
    return sum_in_chunks(partial(_cross_entropy, label_smoothing), readouts, weight, bias, targets)


def _cross_entropy(smoothing: float, logits: Tensor, words: Tensor, needed: bool) -> tuple[Tensor, Tensor]:
    """A `ChunkLoss`."""
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


def consistent_cross_entropy(
    readouts: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    label_smoothing: float = 0.0,
    consistency: float = 1.0,
) -> Tensor:
    """Summed loss in nats of R-Drop (Liang et al., 2021, eq. 4), divided by 2.

    With p and q, the distributions of the two passes at one position, it is the mean of their cross-entropies, see
    `output_cross_entropy`, plus a / 4 (KL(p || q) + KL(q || p)). With d = log p - log q, its gradient with respect to
    the logits of p is half of that of the cross-entropy plus a / 4 (p (d - KL(p || q)) + p - q).

    Args:
        readouts: Those of the first pass, then those of the second, [2 * P, K].
        weight: Output layer, [V, K].
        bias: [V].
        targets: Word ids, twice the same, [2 * P].
        label_smoothing: Share of the probability that is spread evenly over all words.
        consistency: a.

    Returns:
        A scalar, in float32 or better.
    """
    loss = partial(_consistent_cross_entropy, label_smoothing, consistency / 4)
    return sum_in_chunks(loss, readouts, weight, bias, targets, passes=2)


def _consistent_cross_entropy(
    smoothing: float, share: float, logits: Tensor, words: Tensor, needed: bool
) -> tuple[Tensor, Tensor]:
    """A `ChunkLoss`; `share` is a / 4."""
    rows = len(words)
    # Both passes side by side, without padding: [rows of both, V] -> [2, rows, V]
    log_probs = torch.log_softmax(logits, dim=1, out=logits)[: 2 * rows].view(2, rows, -1)
    probs = log_probs.exp()
    difference = log_probs[0] - log_probs[1]
    # KL(p || q) and KL(q || p), [2, rows, 1]
    divergences = torch.einsum("krv,rv->kr", probs, difference).unsqueeze(2)
    divergences[1].neg_()
    # The mean of both cross-entropies, with label smoothing, and the weighted divergences.
    right = log_probs.gather(2, words.expand(2, -1, -1))
    entropy = ((1 - smoothing) * right.sum() + smoothing * log_probs.mean(dim=2).sum()) / 2
    d_logits = torch.zeros_like(logits)  # 0 in the rows of padding
    if needed:
        d_passes = d_logits[: 2 * rows].view(2, rows, -1)
        for this, distance in enumerate((difference, -difference)):
            d_this = distance.sub_(divergences[this] - 1).mul_(share).add_(0.5).mul_(probs[this])
            d_this.sub_(probs[1 - this], alpha=share).sub_(smoothing / 2 / logits.size(1))
            d_passes[this] = d_this.scatter_add_(1, words, d_this.new_full((rows, 1), (smoothing - 1) / 2))
    return share * divergences.sum() - entropy, d_logits


def sum_in_chunks(
    loss: ChunkLoss, readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, passes: int = 1
) -> Tensor:
    """A loss of the output layer, summed over positions; the products are in the type of autocast if that is on.

    Args:
        loss: Of some positions.
        readouts: Those of all passes, one after the other, [passes * P, K].
        weight: Output layer, [V, K].
        bias: [V].
        targets: Word ids, the same for each pass, [passes * P].
        passes: Passes of the same pairs.

    Returns:
        A scalar, in float32 or better.
    """
    device, parts = readouts.device.type, (readouts, weight, bias)
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else readouts.dtype
    needed = torch.is_grad_enabled() and any(part.requires_grad for part in parts)
    with torch.autocast(device, enabled=False):
        total: Tensor = _OutputLoss.apply(*parts, targets, loss, passes, dtype, needed)  # type: ignore[no-untyped-call]
    return total


class _OutputLoss(torch.autograd.Function):
    """A loss whose forward pass already saves the gradients of readouts, weight and bias, its first three inputs."""

    @staticmethod
    def forward(ctx: Any, readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, *options: Any) -> Tensor:
        loss_of_chunk, passes, dtype, needed = options
        exact = torch.promote_types(dtype, torch.float32)
        kernel = weight.to(dtype)
        total = torch.zeros((), dtype=exact, device=readouts.device)
        make = torch.empty_like if len(targets) else torch.zeros_like
        gradients = [make(part, dtype=exact) for part in (readouts, weight, bias)] if needed else []
        targets = targets[: len(targets) // passes]
        readouts = readouts.view(passes, len(targets), readouts.size(1))
        positions = CHUNK_ROWS // passes
        for first in range(0, len(targets), positions):
            words = targets[first : first + positions].unsqueeze(1)
            part = slice(first, first + len(words))
            rows = pad_rows(readouts[:, part].flatten(0, 1).to(dtype))  # [passes, positions, K] -> [rows, K]
            logits = (rows @ kernel.t()).to(exact).add_(bias)  # [rows, V]; addmm is slower
            loss, d_logits = loss_of_chunk(logits, words, needed)
            total += loss
            if not needed:
                continue
            difference = d_logits.to(dtype)  # [rows, V], times W for readouts, times readouts for W
            d_rows = (difference @ kernel)[: passes * len(words)]
            gradients[0].view_as(readouts)[:, part] = d_rows.unflatten(0, (passes, -1))
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
