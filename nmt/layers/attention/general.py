"""General (bilinear) score."""

from typing import ClassVar

from torch import Tensor, nn

from nmt.layers.attention.score import Score


class GeneralScore(Score):
    """General score (Luong et al., 2015, section 3.1): q^T W k; W k is computed once per sentence."""

    multi_head: ClassVar[bool] = True
    paper: ClassVar[str] = "Luong et al., 2015, section 3.1"

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.key = nn.Linear(key_size, query_size, bias=False)

    def project_keys(self, encoder_states: Tensor) -> Tensor:
        """W k, [B, S, key_size] -> [B, S, query_size]."""
        projected: Tensor = self.key(encoder_states)
        return projected

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, N, query_size] and [B, S, query_size] -> [B, N, S]."""
        return query @ keys.transpose(1, 2)
