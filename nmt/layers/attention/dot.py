"""Dot-product score."""

from typing import ClassVar

from torch import Tensor

from nmt.layers.attention.score import Score


class DotScore(Score):
    """Dot product (Luong et al., 2015, section 3.1): q^T k. Has no parameters; both sizes must be equal."""

    needs_equal_sizes: ClassVar[bool] = True
    multi_head: ClassVar[bool] = True
    paper: ClassVar[str] = "Luong et al., 2015, section 3.1"

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, N, K] and [B, S, K] -> [B, N, S]."""
        return query @ keys.transpose(1, 2)
