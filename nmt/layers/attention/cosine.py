"""Cosine score."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from nmt.layers.attention.score import Score

SHARPNESS = 10.0


class CosineScore(Score):
    """Cosine of query and key times a learnt sharpness b: b q^T k / (|q| |k|).

    The content-based addressing of Graves et al. (2014, eq. 5-6), where the sharpness is the key strength beta, one for
    each step; here it is one number for all steps, 10 exp(p), which is positive for every p.
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
        """[B, N, K] and [B, S, K] -> [B, N, S]."""
        sharpness = SHARPNESS * self.log_sharpness.exp()
        return sharpness * (nn.functional.normalize(query, dim=-1) @ keys.transpose(1, 2))
