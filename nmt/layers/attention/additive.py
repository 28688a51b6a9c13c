"""Additive score."""

from typing import ClassVar

from torch import Tensor, nn

from nmt.config import Count
from nmt.layers.attention.score import Score
from nmt.layers.kernels.additive_scores import additive_scores
from nmt.layers.kernels.stepwise import StepLinear


class AdditiveScore(Score):
    """Additive score (Bahdanau et al., 2015, appendix A.1.2): v^T tanh(W q + U k).

    Luong's `concat` (Luong et al., 2015, section 3.1), v^T tanh(W [q; k]), is the same function with W split in two.

    Args:
        query_size: Size of a decoder state.
        key_size: Size of an encoder state.
        size: Size of the hidden layer; None is the decoder's size.
    """

    multi_head: ClassVar[bool] = True
    takes_features: ClassVar[bool] = True
    paper: ClassVar[str] = "Bahdanau et al., 2015, A.1.2; Luong et al., 2015, section 3.1"

    def __init__(self, query_size: int, key_size: int, *, size: Count | None = None) -> None:
        super().__init__()
        size = query_size if size is None else size
        self.query = StepLinear(query_size, size, bias=False)
        self.key = nn.Linear(key_size, size, bias=False)
        self.energy = nn.Linear(size, 1, bias=False)

    def project_keys(self, encoder_states: Tensor) -> Tensor:
        """U k, [B, S, key_size] -> [B, S, size]."""
        projected: Tensor = self.key(encoder_states)
        return projected

    def add_features(self, size: int) -> None:
        """Add a term V f to the tanh for features f of each position."""
        self.feature = StepLinear(size, self.query.out_features, bias=False)

    def forward(self, query: Tensor, keys: Tensor, *features: Tensor) -> Tensor:
        """[B, N, query_size], [B, S, size] and at most one tensor of features [B, N, S, F] -> [B, N, S]."""
        if features:
            (of_past,) = features
            keys = keys.unsqueeze(1) + self.feature(of_past)  # [B, N, S, size]
        return additive_scores(self.query(query), keys, self.energy.weight.squeeze(0))
