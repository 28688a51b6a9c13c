"""Scaled dot product."""

import math
from typing import ClassVar

from torch import Tensor

from nmt.layers.attention.score import Score
from nmt.layers.kernels.products import multiply_small


class ScaledDotScore(Score):
    """Scaled dot product (Vaswani et al., 2017, eq. 1): q^T k / sqrt(d); no weights."""

    needs_equal_sizes: ClassVar[bool] = True
    multi_head: ClassVar[bool] = True
    paper: ClassVar[str] = "Vaswani et al., 2017, eq. 1"

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.scale = 1 / math.sqrt(key_size)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, N, K] and [B, S, K] -> [B, N, S]."""
        return multiply_small(query * self.scale, keys.transpose(1, 2))
