"""The model interface of search, and its implementation for the recurrent model."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from nmt.model.attention import Memory
from nmt.model.decoder import DecoderState, DecoderWeights
from nmt.model.kernels.stepwise import StepWeight, WeightFormat
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import BOS_ID, PAD_ID

State = TypeVar("State")


class Stepper(Protocol[State]):
    """A model that predicts one target word after another.

    Rows are hypotheses: N for each of B sentences, R = B * N in total, those of one sentence adjacent. Each part of a
    state belongs to a sentence, whose hypotheses share it, or to a hypothesis; only the latter is ever reordered.
    """

    def start(self, src: Tensor, src_lengths: Tensor, num_hypotheses: int) -> State:
        """Encode sources.

        Args:
            src: Padded source ids that end in EOS, [B, S].
            src_lengths: Their true lengths, [B].
            num_hypotheses: N.

        Returns:
            The state before the first word.
        """
        ...

    def step(self, words: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        """Advance every hypothesis by one word.

        Args:
            words: Ids of the last words, [R].
            state: State before the step.

        Returns:
            Log-probabilities of the next word [R, V], in float32 or better, -inf for PAD and BOS; alignment
            [R, heads, S]; new state.
        """
        ...

    def select(self, state: State, rows: Tensor, sentences: Tensor | None = None) -> State:
        """The state of some hypotheses.

        Args:
            state: State of R rows.
            rows: Indices of the rows to keep, those of one sentence adjacent, the same number for each.
            sentences: Indices of the sentences that they belong to; None is all, in order.
        """
        ...


class Seq2SeqState(NamedTuple):
    """State of a search with a `Seq2Seq`.

    Attributes:
        weights: Shared by all steps.
        memory: Per sentence.
        hypotheses: Per hypothesis.
    """

    weights: DecoderWeights
    memory: Memory
    hypotheses: DecoderState


class Seq2SeqStepper:
    """A `Seq2Seq` as a `Stepper`.

    Args:
        model: In evaluation mode.
        weight_format: Wraps the decoder's weights.
    """

    def __init__(self, model: Seq2Seq, weight_format: WeightFormat = StepWeight) -> None:
        self.model = model
        self.weight_format = weight_format

    def start(self, src: Tensor, src_lengths: Tensor, num_hypotheses: int) -> Seq2SeqState:
        """Encode the sources; see `Stepper.start`."""
        decoder = self.model.decoder
        memory, first = decoder.start(self.model.encode(src, src_lengths))
        rows = torch.arange(len(src), device=src.device).repeat_interleave(num_hypotheses)
        return Seq2SeqState(decoder.prepare(self.weight_format), memory, first.select(rows, len(src)))

    def step(self, words: Tensor, state: Seq2SeqState) -> tuple[Tensor, Tensor, Seq2SeqState]:
        """One step of the decoder; see `Stepper.step`."""
        logits, alignment, new = self.model.decoder.step(words, state.memory, state.hypotheses, state.weights)
        log_probs = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=-1)
        log_probs[:, [PAD_ID, BOS_ID]] = -torch.inf  # neither can be part of a translation
        return log_probs, alignment, state._replace(hypotheses=new)

    def select(self, state: Seq2SeqState, rows: Tensor, sentences: Tensor | None = None) -> Seq2SeqState:
        """Rows of the decoder's state; see `Stepper.select`."""
        memory = state.memory if sentences is None else state.memory.select(sentences)
        return Seq2SeqState(state.weights, memory, state.hypotheses.select(rows, memory.mask.size(0)))
