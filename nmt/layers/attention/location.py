"""Location-based score."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nmt.config import Count
from nmt.layers.attention.score import Score
from nmt.layers.kernels.stepwise import StepLinear


class LocationScore(Score):
    """Location-based score (Luong et al., 2015, eq. 8, "location"): a = softmax(W h); does not depend on the source.

    Args:
        query_size: Size of a decoder state.
        key_size: Size of an encoder state.
        max_length: Rows of W: number of source positions, in tokens, to attend to; later ones get weight 0.
    """

    local: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {"max_length": 4}
    paper: ClassVar[str] = "Luong et al., 2015, eq. 8"

    def __init__(self, query_size: int, key_size: int, *, max_length: Count) -> None:
        super().__init__()
        self.position = StepLinear(query_size, max_length, bias=False)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, N, query_size] and [B, S, ...] -> [B, N, S]."""
        scores: Tensor = self.position(query)  # [B, N, max_length]
        beyond = keys.size(1) - scores.size(2)
        lowest = torch.finfo(scores.dtype).min
        return nn.functional.pad(scores[..., : keys.size(1)], (0, max(0, beyond)), value=lowest)
