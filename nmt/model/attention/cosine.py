"""Cosine score."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from nmt.model.attention.registry import Score, register_score

SHARPNESS = 10.0


@register_score("cosine")
class CosineScore(Score):
    """Cosine of query and key over a learnt temperature: q^T k / (|q| |k| tau).

    The content-based addressing of Graves et al. (2014, eq. 5-6), whose key strength is 1 / tau; here one number for
    all steps, 1 / tau = 10 exp(p), which is positive for every p.
    """

    needs_equal_sizes: ClassVar[bool] = True
    paper: ClassVar[str] = "Graves et al., 2014, eq. 5-6"

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.log_sharpness = nn.Parameter(torch.zeros(1))

    def project_keys(self, encoder_states: Tensor) -> Tensor:
        """Normalise keys to length 1; those of padding stay 0."""
        return nn.functional.normalize(encoder_states, dim=-1)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, N, D] and [B, S, D] -> [B, N, S]."""
        sharpness = SHARPNESS * self.log_sharpness.exp()
        return sharpness * (nn.functional.normalize(query, dim=-1) @ keys.transpose(1, 2))
