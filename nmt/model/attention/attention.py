"""What every mechanism shares: the memory of a sentence, masking, normalisation, the context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from nmt.model.attention.registry import Score, check_score

AttentionState = dict[str, Tensor]
"""What a mechanism remembers of its own past, each tensor [B, N, ...]; empty for plain scores."""


class Memory(NamedTuple):
    """What the encoder hands to attention, computed once a sentence and shared by all its queries.

    Attributes:
        keys: What the queries are compared with, [B, S, K].
        values: What the context is a mean of, [B, S, V].
        mask: True at real tokens, [B, S].
        lengths: True source lengths in tokens, the end-of-sentence token included, [B].
    """

    keys: Tensor
    values: Tensor
    mask: Tensor
    lengths: Tensor

    def select(self, sentences: Tensor) -> Memory:
        """The memory of some sentences only, in the order of the index `sentences`."""
        return Memory(*(part.index_select(0, sentences) for part in self))


class Attention(nn.Module, ABC):
    """The contract between decoder and attention: `memorize` once a sentence, `attend` once a step.

    N queries of one sentence share its memory: all target positions at once, or the hypotheses of a beam.
    """

    context_size: int
    reads_own_past: ClassVar[bool] = False
    """True where a step needs the alignments before it, so that steps cannot run in parallel."""

    @abstractmethod
    def memorize(self, encoder_states: Tensor, summary: Tensor, mask: Tensor, lengths: Tensor) -> Memory:
        """Compute once a sentence what every step needs.

        Args:
            encoder_states: [B, S, V], zero on padding.
            summary: The encoder's final state, [B, V].
            mask: True at real tokens, [B, S].
            lengths: True source lengths, [B].
        """

    def initial_state(self, memory: Memory) -> AttentionState:
        """What the mechanism remembers before the first target token."""
        return {}

    @abstractmethod
    def attend(self, query: Tensor, memory: Memory, state: AttentionState) -> tuple[Tensor, Tensor, AttentionState]:
        """Read the source.

        Args:
            query: Decoder states, [B, N, query_size].
            memory: What `memorize` returned.
            state: What the last step returned.

        Returns:
            The context [B, N, V]; the alignment [B, N, H, S] (H heads), exactly 0 on padding; the new state.
        """


class ScoreAttention(Attention):
    """Global attention (Bahdanau et al., 2015, eq. 5-6; Luong et al., 2015, eq. 7): softmax of a score."""

    def __init__(self, score: Score, context_size: int) -> None:
        super().__init__()
        self.score = score
        self.context_size = context_size

    def memorize(self, encoder_states: Tensor, summary: Tensor, mask: Tensor, lengths: Tensor) -> Memory:
        """Project the keys; nothing else of the source is projected later."""
        return Memory(self.score.project_keys(encoder_states), encoder_states, mask, lengths)

    def attend(self, query: Tensor, memory: Memory, state: AttentionState) -> tuple[Tensor, Tensor, AttentionState]:
        """Score, mask, normalise, average: c = sum_j softmax_j(score(q, h_j)) h_j."""
        scores = self.score(query, memory.keys)  # [B, N, S]
        scores = scores.masked_fill(~memory.mask.unsqueeze(1), torch.finfo(scores.dtype).min)
        alignment = scores.softmax(dim=-1)
        context = alignment @ memory.values  # [B, N, S] x [B, S, V] -> [B, N, V]
        return context, alignment.unsqueeze(2), state


class FixedContext(Attention):
    """No attention: every step sees the same summary of the source (Cho et al., 2014, section 2.2).

    This is the baseline (RNNencdec) that Bahdanau et al. (2015) compare with. Its alignment is 0 everywhere.
    """

    def __init__(self, context_size: int) -> None:
        super().__init__()
        self.context_size = context_size

    def memorize(self, encoder_states: Tensor, summary: Tensor, mask: Tensor, lengths: Tensor) -> Memory:
        """Keep the summary as the only value, [B, 1, V]."""
        return Memory(summary.unsqueeze(1), summary.unsqueeze(1), mask, lengths)

    def attend(self, query: Tensor, memory: Memory, state: AttentionState) -> tuple[Tensor, Tensor, AttentionState]:
        """Return the summary, whatever the query."""
        context = memory.values.expand(-1, query.size(1), -1)
        return context, context.new_zeros(*query.shape[:2], 1, memory.mask.size(1)), state


def build_attention(name: str, query_size: int, key_size: int, options: Mapping[str, Any] | None = None) -> Attention:
    """Make the attention that a config names.

    Args:
        name: A registered score, `none`, or the dotted path of a `Score` class.
        query_size: Size of a decoder state.
        key_size: Size of an encoder state.
        options: Keyword arguments of the score's own.

    Raises:
        ConfigError: No such score, or it cannot combine the two sizes.
    """
    score = check_score(name, query_size, key_size)
    if score is None:
        return FixedContext(key_size)
    return ScoreAttention(score(query_size, key_size, **(options or {})), key_size)
