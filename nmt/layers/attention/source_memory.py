"""The source as attention sees it, and the state of a mechanism between steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from nmt.layers.kernels.products import multiply_small
from nmt.layers.kernels.stepwise import StepWeight
from nmt.layers.layout import join_padded

AttentionState = dict[str, Tensor]
"""State that a mechanism keeps between steps, each tensor [B, N, ...]; empty for plain scores."""


class AttentionDetails(NamedTuple):
    """Values inside attention for the target positions of one sentence; None where the mechanism has no such thing.

    Attributes:
        queries: Vectors that are compared with the source, [T, heads, Q].
        scores: Scores that the normaliser turned into weights, before its masks, [T, heads, S].
        centres: Centre of the local window, p_t in Luong et al. (2015, section 3.2), a source position from 0, [T].
        radius: Source positions of the local window on each side; D in the paper.
        chances: The weights that hard attention draws from, [T, heads, S].
    """

    queries: Tensor | None = None
    scores: Tensor | None = None
    centres: Tensor | None = None
    radius: int | None = None
    chances: Tensor | None = None


class Memory(NamedTuple):
    """The source as attention sees it, computed once per sentence and shared by all its queries.

    Attributes:
        keys: Compared with the queries, [B, heads, S, K].
        values: Their weighted sum is the context, [B, heads, S, D], or [B, heads, S, head_size] with several heads.
            `FixedContext` has one key and value, [B, 1, 1, D].
        mask: True at real tokens, [B, S].
        lengths: True source lengths in tokens, including EOS, [B].
        step_values: Set only inside a loop: the values in the form its steps use.
    """

    keys: Tensor
    values: Tensor
    mask: Tensor
    lengths: Tensor
    step_values: StepWeight | None = None

    def select(self, sentences: Tensor) -> Memory:
        """The memory of the sentences at the indices `sentences`, in that order."""
        keys, values, mask, lengths = (part.index_select(0, sentences) for part in self[:4])
        return Memory(keys, values, mask, lengths)

    @classmethod
    def join(cls, memories: Sequence[Memory]) -> Memory:
        """The memory of the sentences of several, one after another, padded to the longest."""
        keys, values, mask, lengths = (
            join_padded(parts) for parts in zip(*(memory[:4] for memory in memories), strict=True)
        )
        return Memory(keys, values, mask, lengths)

    def for_steps(self) -> Memory:
        """This memory for the steps of a loop: the gradient of the values is computed in one product after it."""
        return self._replace(step_values=StepWeight(self.values.mT))

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """sum_j a_j v_j of the weights a and values v: [B, heads, N, S] -> [B, heads, N, ...]."""
        return multiply_small(weights, self.values) if self.step_values is None else self.step_values(weights)
