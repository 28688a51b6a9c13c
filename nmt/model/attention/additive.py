"""Additive score."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.config import Count
from nmt.model.attention.registry import Score, register_score


@register_score("additive", "concat")
class AdditiveScore(Score):
    """Additive score (Bahdanau et al., 2015, appendix A.1.2): v^T tanh(W q + U k).

    Luong's `concat` (Luong et al., 2015, eq. 8), v^T tanh(W [q; k]), is the same function with W split in two.

    Args:
        query_size: Size of a decoder state.
        key_size: Size of an encoder state.
        size: Size of the hidden layer; the decoder's size unless given.
    """

    def __init__(self, query_size: int, key_size: int, *, size: Count | None = None) -> None:
        super().__init__()
        size = query_size if size is None else size
        self.query = nn.Linear(query_size, size, bias=False)
        self.key = nn.Linear(key_size, size, bias=False)
        self.energy = nn.Linear(size, 1, bias=False)

    def project_keys(self, encoder_states: Tensor) -> Tensor:
        """U k, [B, S, key_size] -> [B, S, size]."""
        projected: Tensor = self.key(encoder_states)
        return projected

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, N, query_size] and [B, S, size] -> [B, N, S]."""
        hidden = torch.tanh(self.query(query).unsqueeze(2) + keys.unsqueeze(1))  # [B, N, S, size]
        scores: Tensor = self.energy(hidden).squeeze(-1)
        return scores
