"""Scores that take earlier attention weights into account: coverage and location features."""

from abc import ABC
from typing import ClassVar

import torch
from torch import Tensor, nn

from nmt.layers.attention.source_memory import AttentionState, Memory


class Past(nn.Module, ABC):
    """Keeps a state of the alignments so far, and derives features for the score. The base class keeps nothing."""

    state_name: ClassVar[str] = ""
    """Name of its entry in the attention state; empty if it has none."""
    paper: ClassVar[str] = ""
    feature_size: int = 0
    """Features per source position."""

    def initial_state(self, memory: Memory) -> AttentionState:
        """Zeros, [B, 1, S]: nothing has been attended to."""
        if not self.state_name:
            return {}
        return {self.state_name: memory.values.new_zeros(memory.mask.size(0), 1, memory.mask.size(1))}

    def features(self, state: AttentionState) -> tuple[Tensor, ...]:
        """Additional arguments of the score: none, or [B, N, S, feature_size]."""
        return ()

    def advance(self, state: AttentionState, alignment: Tensor) -> AttentionState:
        """The state after a step with the alignment [B, N, S]."""
        return {}

    def penalty(self, alignments: Tensor) -> Tensor:
        """Term of the loss for each target position: [B, T, S] -> [B, T]."""
        return alignments.new_zeros(alignments.shape[:2])


class NoPast(Past):
    """No memory of the past."""


class Coverage(Past):
    """Coverage: the sum of all alignments so far is a feature of the score (See et al., 2017, eq. 10-11).

    It is the linguistic coverage of Tu et al. (2016, eq. 7) with a fertility of 1. The coverage loss (See et al., eq.
    12-13), weight * sum_j min(a_tj, c_tj), penalises attending to a position repeatedly.

    Args:
        loss_weight: Weight of the coverage loss; 0 disables it, as in Tu et al.
    """

    state_name = "coverage"
    paper = "See et al., 2017, eq. 10-13; Tu et al., 2016, eq. 7"
    feature_size = 1

    def __init__(self, loss_weight: float = 0.0) -> None:
        super().__init__()
        self.loss_weight = loss_weight

    def features(self, state: AttentionState) -> tuple[Tensor, ...]:
        """The coverage of each position, [B, N, S, 1]."""
        return (state[self.state_name].unsqueeze(-1),)

    def advance(self, state: AttentionState, alignment: Tensor) -> AttentionState:
        """c_{t+1} = c_t + a_t."""
        return {self.state_name: state[self.state_name] + alignment}

    def penalty(self, alignments: Tensor) -> Tensor:
        """weight * sum_j min(a_tj, c_tj), where c_t is the sum of the alignments before t."""
        before = alignments.cumsum(dim=1) - alignments
        return self.loss_weight * torch.minimum(alignments, before).sum(dim=-1)


class LocationFeatures(Past):
    """Location features (Chorowski et al., 2015, eq. 8): the last alignment, convolved, is a feature of the score.

    Args:
        filters: Features per position.
        radius: Positions on each side that a filter covers.
    """

    state_name = "last_alignment"
    paper = "Chorowski et al., 2015, eq. 8-9"

    def __init__(self, filters: int, radius: int) -> None:
        super().__init__()
        self.feature_size = filters
        self.convolution = nn.Conv1d(1, filters, 2 * radius + 1, padding=radius, bias=False)

    def features(self, state: AttentionState) -> tuple[Tensor, ...]:
        """f = F * a_{t-1}, [B, N, S, filters]; padding has weight 0, like positions beyond the sentence."""
        last = state[self.state_name]  # [B, N, S]
        convolved: Tensor = self.convolution(last.flatten(0, 1).unsqueeze(1))  # [B * N, filters, S]
        return (convolved.transpose(1, 2).view(*last.shape, -1),)

    def advance(self, state: AttentionState, alignment: Tensor) -> AttentionState:
        """Keep the newest alignment only."""
        return {self.state_name: alignment}
