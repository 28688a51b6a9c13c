"""The additive score of projected queries and keys."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def additive_scores(queries: Tensor, keys: Tensor, energy: Tensor) -> Tensor:
    """v^T tanh(q_n + k_s) for all n and s.

    Computed as 2 v^T sigmoid(2 x) - sum(v), since tanh(x) = 2 sigmoid(2 x) - 1 is many times faster on a CPU (see
    `nmt.layers.kernels.activation`), in float32 or better. The hidden layer, which would take memory for every pair of
    positions, is recomputed for the gradient.

    Args:
        queries: q, [B, N, A].
        keys: k, [B, S, A] or, if they depend on the query, [B, N, S, A].
        energy: v, [A].

    Returns:
        [B, N, S].
    """
    keys = keys if keys.dim() == 4 else keys.unsqueeze(1)
    scores: Tensor = _AdditiveScores.apply(queries, keys, energy)  # type: ignore[no-untyped-call]
    return scores


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, energy: Tensor) -> Tensor:
        ctx.save_for_backward(queries, keys, energy)
        halves = _halves(queries, keys)
        energy = energy.to(halves.dtype)
        return (halves @ energy).mul_(2).sub_(energy.sum())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, energy = ctx.saved_tensors
        halves = _halves(queries, keys)  # again, as [B, N, S, A] was not saved
        flat = d_scores.flatten().to(halves.dtype)
        d_energy = (flat.unsqueeze(0) @ halves.flatten(0, 2)).squeeze(0).mul_(2).sub_(flat.sum())
        # tanh'(x) = 4 (s - s^2) for s = sigmoid(2 x)
        d_hidden = torch.addcmul(halves, halves, halves, value=-1).mul_(d_scores.unsqueeze(3))
        d_hidden *= 4 * energy.to(halves.dtype)
        # All positions share a query, and all queries perhaps a key: shared vectors get the sum of the gradients.
        d_queries = d_hidden.sum(dim=2)
        d_keys = d_hidden.sum(dim=1, keepdim=True) if d_hidden.size(1) > keys.size(1) else d_hidden
        return d_queries.to(queries.dtype), d_keys.to(keys.dtype), d_energy.to(energy.dtype)


def _halves(queries: Tensor, keys: Tensor) -> Tensor:
    """(tanh(q_n + k_s) + 1) / 2: [B, N, A] and [B, N or 1, S, A] -> [B, N, S, A]."""
    exact = torch.promote_types(queries.dtype, torch.float32)
    return torch.add(queries.to(exact).unsqueeze(2), keys).mul_(2).sigmoid_()
