"""Cross-entropy of two passes with different dropout, and how far apart they are (R-Drop)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nmt.layers.kernels.cross_entropy import CHUNK_ROWS, OutputLoss, pad_rows


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
    return _ConsistentCrossEntropy.compute(readouts, weight, bias, targets, label_smoothing, consistency)


class _ConsistentCrossEntropy(OutputLoss):
    @staticmethod
    def forward(
        ctx: Any,
        readouts: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        smoothing: float,
        consistency: float,
        dtype: torch.dtype,
        needed: bool,
    ) -> Tensor:
        exact = torch.promote_types(dtype, torch.float32)
        kernel = weight.to(dtype)
        share = consistency / 4
        total = torch.zeros((), dtype=exact, device=readouts.device)
        gradients = [torch.zeros_like(part, dtype=exact) for part in (readouts, weight, bias)] if needed else []
        positions, units = len(targets) // 2, readouts.size(1)
        passes = readouts.view(2, positions, units)
        for first in range(0, positions, CHUNK_ROWS // 2):
            part = slice(first, first + CHUNK_ROWS // 2)
            words = targets[:positions][part].unsqueeze(1)
            rows = len(words)
            chunk = pad_rows(passes[:, part].reshape(2 * rows, units).to(dtype))
            logits = (chunk @ kernel.t()).to(exact).add_(bias)
            # [2 * rows, K] -> [2 * rows, V] -> both passes side by side, [2, rows, V]
            log_probs = torch.log_softmax(logits, dim=1, out=logits)[: 2 * rows].view(2, rows, -1)
            probs = log_probs.exp()
            difference = log_probs[0] - log_probs[1]
            # KL(p || q) and KL(q || p), [2, rows, 1]
            divergences = torch.einsum("krv,rv->kr", probs, difference).unsqueeze(2)
            divergences[1].neg_()
            # The mean of both cross-entropies, with label smoothing, and the weighted divergences.
            right = log_probs.gather(2, words.expand(2, -1, -1))
            total -= ((1 - smoothing) * right.sum() + smoothing * log_probs.mean(dim=2).sum()) / 2
            total += share * divergences.sum()
            if not gradients:
                continue
            d_logits = torch.zeros_like(logits)  # 0 in the rows of padding
            d_passes = d_logits[: 2 * rows].view(2, rows, -1)
            for this, distance in enumerate((difference, -difference)):
                d_this = distance.sub_(divergences[this] - 1).mul_(share).add_(0.5).mul_(probs[this])
                d_this.sub_(probs[1 - this], alpha=share).sub_(smoothing / 2 / len(weight))
                d_passes[this] = d_this.scatter_add_(1, words, d_this.new_full((rows, 1), (smoothing - 1) / 2))
            d_chunk = d_logits.to(dtype)
            gradients[0].view_as(passes)[:, part] = (d_chunk @ kernel)[: 2 * rows].view(2, rows, units).to(exact)
            gradients[1] += (d_chunk.t() @ chunk).to(exact)
            gradients[2] += d_logits.sum(dim=0)
        ctx.save_for_backward(*gradients)
        ctx.dtypes = [part.dtype for part in (readouts, weight, bias)]
        return total
