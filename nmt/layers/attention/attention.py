"""The common part of every mechanism: the memory of a sentence, masking, normalisation, the context; building it."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from nmt.config import AttentionSection
from nmt.config.attention_checks import check_sizes
from nmt.config.attention_scores import names_class, properties_of
from nmt.layers.attention.heads import MultiHead, SingleHead
from nmt.layers.attention.normalizer import HardChoice, Normalizer, make_normalizer
from nmt.layers.attention.past import Coverage, LocationFeatures, NoPast, Past
from nmt.layers.attention.scaled_dot import ScaledDotScore
from nmt.layers.attention.score import Score, check_shape, find_score
from nmt.layers.attention.source_memory import AttentionDetails, AttentionState, Memory
from nmt.layers.attention.window import GlobalWindow, MonotonicWindow, PredictiveWindow, Window
from nmt.layers.kernels.dropout import Dropout
from nmt.layers.kernels.stepwise import for_steps

ScoreCall = tuple[Tensor, Tensor]
"""Queries [B * heads, N, Q] that a score was given, and the scores [B * heads, N, S] that it returned."""


class Attention(nn.Module, ABC):
    """The contract between decoder and attention: `memorize` once per sentence, `attend` once per step.

    N queries of a sentence share its memory: all target positions at once, or the hypotheses of a beam.
    """

    context_size: int
    num_heads: int = 1
    reads_own_past: bool = False
    """True if a step needs the alignments before it, so that steps cannot run in parallel."""

    @abstractmethod
    def memorize(self, encoder_states: Tensor, summary: Tensor | None, mask: Tensor, lengths: Tensor) -> Memory:
        """Compute the memory that every step needs, once per sentence.

        Args:
            encoder_states: [B, S, D], zero on padding.
            summary: The encoder's final state, [B, D], if it has one.
            mask: True at real tokens, [B, S].
            lengths: True source lengths, [B].
        """

    def initial_state(self, memory: Memory) -> AttentionState:
        """The state before the first target token."""
        return {}

    def unroll(self, state: AttentionState, number: int) -> AttentionState:
        """The states of `number` steps from this one on, [B, number, ...] each; not if steps depend on alignments."""
        return {}

    @abstractmethod
    def attend(self, query: Tensor, memory: Memory, state: AttentionState) -> tuple[Tensor, Tensor, AttentionState]:
        """Attend to the source.

        Args:
            query: Decoder states, [B, N, query_size].
            memory: Result of `memorize`.
            state: State after the last step.

        Returns:
            The context [B, N, D]; the alignment [B, N, heads, S], exactly 0 on padding; the new state.
        """

    def attend_all(self, queries: Tensor, memory: Memory, state: AttentionState) -> tuple[Tensor, Tensor]:
        """Attend to the source from consecutive target positions: all at once if possible.

        Args:
            queries: Decoder states of all positions, [B, T, query_size].
            memory: Result of `memorize`.
            state: State before the first.

        Returns:
            Contexts [B, T, D] and alignments [B, T, heads, S].
        """
        if not self.reads_own_past:
            return self.attend(queries, memory, self.unroll(state, queries.size(1)))[:2]
        mechanism = for_steps(self)
        memory = memory.for_steps()
        contexts = []
        alignments = []
        for query in queries.unbind(1):
            context, alignment, state = mechanism.attend(query.unsqueeze(1), memory, state)
            contexts.append(context)
            alignments.append(alignment)
        return torch.cat(contexts, dim=1), torch.cat(alignments, dim=1)

    @contextlib.contextmanager
    def recording(self) -> Iterator[list[ScoreCall]]:
        """Keep the calls of the score in the block."""
        yield []

    def explain(self, calls: Sequence[ScoreCall], memory: Memory) -> AttentionDetails:
        """The details of attention for the first of several sources, whose memory is given."""
        return AttentionDetails()

    def penalty(self, alignments: Tensor) -> Tensor:
        """Term of the loss for each target position: [B, T, heads, S] -> [B, T]."""
        return alignments.new_zeros(alignments.shape[:2])


class ScoreAttention(Attention):
    """Softmax of a score (Bahdanau et al., 2015, eq. 5-6; Luong et al., 2015, eq. 7), and its classic variants.

    Args:
        score: Compares queries and keys.
        heads: Projections before and after.
        window: Positions to attend to.
        normalize: Maps scores to weights.
        past: Memory of earlier alignments.
        dropout: Probability of dropping a weight from the context, in training.
    """

    def __init__(
        self, score: Score, heads: SingleHead, window: Window, normalize: Normalizer, past: Past, dropout: float
    ) -> None:
        super().__init__()
        self.score = score
        self.heads = heads
        self.window = window
        self.normalize = normalize
        self.past = past
        self.context_size = heads.context_size
        self.num_heads = heads.number
        self.dropout = Dropout(dropout)
        self.reads_own_past = bool(past.state_name)
        if past.feature_size:
            score.add_features(past.feature_size)

    def memorize(self, encoder_states: Tensor, summary: Tensor | None, mask: Tensor, lengths: Tensor) -> Memory:
        """Project the keys; nothing else of the source is projected later."""
        keys = self.heads.split_keys(encoder_states)
        projected = self.score.project_keys(keys.flatten(0, 1))
        projected = projected.view(*keys.shape[:2], *projected.shape[1:])
        values = self.heads.split_values(encoder_states).contiguous()  # or each product copies them
        return Memory(projected, values, mask, lengths)

    def initial_state(self, memory: Memory) -> AttentionState:
        """The states of the window and of the memory of the past."""
        return self.window.initial_state(memory) | self.past.initial_state(memory)

    def unroll(self, state: AttentionState, number: int) -> AttentionState:
        """The window's states of `number` steps."""
        return self.window.unroll(state, number)

    def attend(self, query: Tensor, memory: Memory, state: AttentionState) -> tuple[Tensor, Tensor, AttentionState]:
        """Score, mask, normalise, sum: c = sum_j a_j h_j."""
        queries = self.heads.split_query(query)  # [B, N, Q] -> [B, heads, N, ...]
        folded = queries.flatten(0, 1), memory.keys.flatten(0, 1)
        scores = self.score(*folded, *self.past.features(state))  # [B * heads, N, S]
        scores = scores.view(*queries.shape[:3], -1)
        centres, allowed = self.window.locate(query, memory, state)
        weights = self.window.reweigh(self.normalize(_mask(scores, allowed.unsqueeze(1))), centres)
        contexts = memory.weighted_sum(self.dropout(weights))  # [B, heads, N, S] -> [B, heads, N, ...]
        # A memory of the past has one head: [B, 1, N, S] -> [B, N, S].
        state = self.window.advance(state) | self.past.advance(state, weights[:, 0])
        return self.heads.merge(contexts), weights.transpose(1, 2), state  # [B, N, D], [B, N, heads, S]

    @contextlib.contextmanager
    def recording(self) -> Iterator[list[ScoreCall]]:
        """See `Attention.recording`."""
        calls: list[ScoreCall] = []
        handle = self.score.register_forward_hook(
            lambda module, inputs, output: calls.append((inputs[0].detach().cpu(), output.detach().cpu()))
        )
        try:
            yield calls
        finally:
            handle.remove()

    def explain(self, calls: Sequence[ScoreCall], memory: Memory) -> AttentionDetails:
        """See `Attention.explain`."""
        # T calls [B * heads, 1, ...], or one [B * heads, T, ...] -> [T, heads, ...]
        queries, scores = (
            torch.cat(part, dim=1)[: self.num_heads].transpose(0, 1).float() for part in zip(*calls, strict=True)
        )
        if self.num_heads > 1:
            return AttentionDetails(queries, scores)
        state = self.window.unroll(self.window.initial_state(memory), len(queries))
        centres, allowed = self.window.locate(queries.transpose(0, 1).to(memory.values), memory, state)
        details = AttentionDetails(queries, scores)
        if isinstance(self.normalize, HardChoice):
            masked = _mask(scores.to(memory.values.device), allowed.transpose(0, 1))
            return details._replace(chances=self.normalize.normalize(masked).float().cpu())
        if isinstance(self.window, MonotonicWindow | PredictiveWindow):
            return details._replace(centres=centres.flatten().float().cpu(), radius=self.window.radius)
        return details

    def penalty(self, alignments: Tensor) -> Tensor:
        """The penalty of the memory of the past."""
        return self.past.penalty(alignments[:, :, 0])


class FixedContext(Attention):
    """No attention: every step sees the same summary of the source (Cho et al., 2014, section 2.2).

    This is the baseline (RNNencdec) of Bahdanau et al. (2015). Its alignment is 0 everywhere.
    """

    paper: ClassVar[str] = "Cho et al., 2014, section 2.2"

    def __init__(self, context_size: int) -> None:
        super().__init__()
        self.context_size = context_size

    def memorize(self, encoder_states: Tensor, summary: Tensor | None, mask: Tensor, lengths: Tensor) -> Memory:
        """Keep the summary as the only value, [B, 1, 1, D]."""
        assert summary is not None  # checked when the model is built
        value = summary[:, None, None]
        return Memory(value, value, mask, lengths)

    def attend(self, query: Tensor, memory: Memory, state: AttentionState) -> tuple[Tensor, Tensor, AttentionState]:
        """Return the summary, whatever the query."""
        context = memory.values[:, 0].expand(-1, query.size(1), -1)
        return context, context.new_zeros(*query.shape[:2], 1, memory.mask.size(1)), state


def _mask(scores: Tensor, allowed: Tensor) -> Tensor:
    """The lowest finite score where attention is not allowed, so that its weight is exactly 0."""
    return scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)


WINDOWS: dict[str, type[Window] | type[HardChoice]] = {
    "global": GlobalWindow,
    "local_m": MonotonicWindow,
    "local_p": PredictiveWindow,
    "hard": HardChoice,
}
PASTS: dict[str, type[Past]] = {"none": NoPast, "coverage": Coverage, "location": LocationFeatures}


def build_multi_head(query_size: int, key_size: int, number: int, dropout: float) -> Attention:
    """Multi-head attention as in a Transformer, whose context has the size of the query (Vaswani et al., 2017, 3.2).

    Args:
        query_size: Size of a decoder state.
        key_size: Size of an encoder state.
        number: Heads.
        dropout: Probability of dropping a weight, in training.
    """
    size = query_size // number
    heads = MultiHead(query_size, key_size, number, size, query_size)
    score = ScaledDotScore(size, size)
    normalize = make_normalizer("softmax")
    return ScoreAttention(score, heads, GlobalWindow(), normalize, NoPast(), dropout)


def build_attention(
    section: AttentionSection, query_size: int, key_size: int, score: type[Score] | None = None
) -> Attention:
    """Build the attention that a config describes.

    Args:
        section: The choices.
        query_size: Size of a decoder state.
        key_size: Size of an encoder state.
        score: A class to use instead of the one that the section names.

    Raises:
        ConfigError: The score does not exist or cannot combine the sizes, or a library is missing.
    """
    if score is None and section.score == "none":
        return FixedContext(key_size)
    heads = SingleHead(query_size, key_size)
    if section.heads > 1:
        heads = MultiHead(query_size, key_size, section.heads, section.head_size)
    score = score or find_score(section.score)
    check_sizes(properties_of(score, section.score), heads.query_size, heads.key_size)
    if names_class(section.score):
        check_shape(score, section.score, heads.query_size, heads.key_size, section.options)
    scoring = score(heads.query_size, heads.key_size, **section.options)
    normalize = make_normalizer(section.normalizer.name, section.normalizer.temperature)
    window: Window = GlobalWindow()
    if issubclass(kind := WINDOWS[section.window.name], Window):
        sizes = {"query_size": query_size} if kind is PredictiveWindow else {}
        window = kind(**sizes, **section.window.model_dump(exclude={"name"}))
    else:  # one of all positions
        normalize = kind(normalize)
    past = PASTS[section.past.name](**section.past.model_dump(exclude={"name"}))
    return ScoreAttention(scoring, heads, window, normalize, past, section.dropout)
