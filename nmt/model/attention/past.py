"""Memories of the past: what attention knows of where it has looked before."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from nmt.model.attention.attention import AttentionState, Memory


class Past(nn.Module, ABC):
    """What is kept of the alignments so far, and what the score sees of it. This one keeps nothing."""

    kept: ClassVar[str] = ""
    """Name of its part of the attention state; empty for nothing."""
    paper: ClassVar[str] = ""
    feature_size: int = 0
    """Features of a source position that the score takes in."""

    def initial_state(self, memory: Memory) -> AttentionState:
        """Nothing attended to yet, [B, 1, S]."""
        return {self.kept: memory.values.new_zeros(memory.mask.size(0), 1, memory.mask.size(1))} if self.kept else {}

    def features(self, state: AttentionState) -> tuple[Tensor, ...]:
        """What the score takes as a further argument: nothing, or [B, N, S, feature_size]."""
        return ()

    def advance(self, state: AttentionState, alignment: Tensor) -> AttentionState:
        """The state after a step with the alignment [B, N, S]."""
        return {}

    def penalty(self, alignments: Tensor) -> Tensor:
        """What is added to the loss for each target position: [B, T, S] -> [B, T]."""
        return alignments.new_zeros(alignments.shape[:2])


class NoPast(Past):
    """No memory of the past."""


class Coverage(Past):
    """Coverage: the sum of all alignments so far enters the score (See et al., 2017, eq. 10-11).

    It is the linguistic coverage of Tu et al. (2016, eq. 7) with a fertility of 1. The coverage loss (See et al., eq.
    12-13), weight * sum_j min(a_tj, c_tj), punishes looking twice at one place.

    Args:
        loss_weight: Weight of the coverage loss; 0 leaves it out, as Tu et al. do.
    """

    kept = "coverage"
    paper = "See et al., 2017, eq. 10-13; Tu et al., 2016, eq. 7"
    feature_size = 1

    def __init__(self, loss_weight: float = 0.0) -> None:
        super().__init__()
        self.loss_weight = loss_weight

    def features(self, state: AttentionState) -> tuple[Tensor, ...]:
        """The coverage of each position, [B, N, S, 1]."""
        return (state[self.kept].unsqueeze(-1),)

    def advance(self, state: AttentionState, alignment: Tensor) -> AttentionState:
        """c_{t+1} = c_t + a_t."""
        return {self.kept: state[self.kept] + alignment}

    def penalty(self, alignments: Tensor) -> Tensor:
        """weight * sum_j min(a_tj, c_tj), where c_t is the sum of the alignments before t."""
        before = alignments.cumsum(dim=1) - alignments
        return self.loss_weight * torch.minimum(alignments, before).sum(dim=-1)


class LocationFeatures(Past):
    """Location features (Chorowski et al., 2015, eq. 8): the last alignment, convolved, enters the score.

    Args:
        filters: Features of a position.
        radius: Positions on each side that a filter sees.
    """

    kept = "last_alignment"
    paper = "Chorowski et al., 2015, eq. 8-9"

    def __init__(self, filters: int, radius: int) -> None:
        super().__init__()
        self.feature_size = filters
        self.convolution = nn.Conv1d(1, filters, 2 * radius + 1, padding=radius, bias=False)

    def features(self, state: AttentionState) -> tuple[Tensor, ...]:
        """f = F * a_{t-1}, [B, N, S, filters]; padding has weight 0, like what lies beyond the sentence."""
        last = state[self.kept]  # [B, N, S]
        convolved: Tensor = self.convolution(last.flatten(0, 1).unsqueeze(1))  # [B * N, filters, S]
        return (convolved.transpose(1, 2).view(*last.shape, -1),)

    def advance(self, state: AttentionState, alignment: Tensor) -> AttentionState:
        """Keep the newest alignment only."""
        return {self.kept: alignment}
