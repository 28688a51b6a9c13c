"""Cross-entropy of two passes with different dropout, and how far apart they are (R-Drop)."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from nmt.layers.kernels.cross_entropy import sum_in_chunks


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
