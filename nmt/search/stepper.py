"""The interface between a search and a model, implemented by a model and an ensemble."""

import math
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from nmt.layers.kernels.stepwise import for_steps
from nmt.layers.layout import Layout
from nmt.models.base import DecoderMemory, DecoderState
from nmt.models.seq2seq import Seq2Seq
from nmt.text.vocabulary import BOS_ID, PAD_ID

State = TypeVar("State")


class Stepper(Protocol[State]):
    """A model that predicts one target word after another.

    Rows are hypotheses, R in all; a `Layout` says which sentence each belongs to. Parts of a state belong to a
    sentence, whose hypotheses share them, or to a hypothesis; only the latter are ever reordered.
    """

    def start(self, src: Tensor, src_lengths: Tensor) -> State:
        """Read sources.

        Args:
            src: Padded source ids that end in EOS, [B, S].
            src_lengths: Their true lengths, [B].

        Returns:
            The state before the first word, with one row per sentence.
        """

    def step(self, words: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        """Advance every hypothesis by one word.

        Args:
            words: Ids of the last words, [R].
            state: State before the step.

        Returns:
            Log-probabilities of the next word [R, V], in float32 or better, -inf for PAD and BOS; alignment
            [R, heads, S]; new state.
        """

    def select(self, state: State, rows: Tensor, layout: Layout, sentences: Tensor | None = None) -> State:
        """The state of some hypotheses.

        Args:
            state: State of R rows.
            rows: Index of the rows to keep; a row may be kept more than once.
            layout: Which sentence each of them belongs to.
            sentences: Index of the sentences to keep; None for all, in order.
        """

    def join(self, states: Sequence[State], layout: Layout) -> State:
        """Several states after the same number of words as one: the rows and sentences of the first, then the second.

        Args:
            states: They may be padded to different numbers of source positions.
            layout: Which sentence each row of the result belongs to.
        """


Seq2SeqState = tuple[DecoderMemory, DecoderState]
"""The parts of the state of a search with a `Seq2Seq` that belong to sentences and to hypotheses."""


class Seq2SeqStepper:
    """A `Seq2Seq` for searching.

    It holds the model's current weights in a form suited to many products; later updates of the model's parameters do
    not affect it.

    Args:
        model: In evaluation mode.
        num_words: As for `Decoder.prepare`.
        num_models: As for `Decoder.prepare`.
    """

    def __init__(self, model: Seq2Seq, *, num_words: int = 1, num_models: int = 1) -> None:
        self.model = model
        with torch.inference_mode():
            self.encoder = for_steps(model.encoder)
            self.weights = model.decoder.prepare(num_words, num_models)

    def start(self, src: Tensor, src_lengths: Tensor) -> Seq2SeqState:
        """Encode the sources; see `Stepper.start`."""
        return self.model.decoder.start(self.encoder(src, src_lengths))

    def step(self, words: Tensor, state: Seq2SeqState) -> tuple[Tensor, Tensor, Seq2SeqState]:
        """One step of the decoder; see `Stepper.step`."""
        memory, hypotheses = state
        logits, alignment, hypotheses = self.model.decoder.step(words, memory, hypotheses, self.weights)
        exact = torch.promote_types(logits.dtype, torch.float32)
        log_probs = logits.to(exact).log_softmax(dim=-1)
        for impossible in (PAD_ID, BOS_ID):  # neither can be part of a translation
            log_probs[:, impossible] = -torch.inf
        return log_probs, alignment, (memory, hypotheses)

    def select(
        self, state: Seq2SeqState, rows: Tensor, layout: Layout, sentences: Tensor | None = None
    ) -> Seq2SeqState:
        """Rows of the decoder's state; see `Stepper.select`."""
        memory, hypotheses = state
        if sentences is not None:
            memory = memory.select(sentences)
        return memory, hypotheses.select(rows, layout)

    def join(self, states: Sequence[Seq2SeqState], layout: Layout) -> Seq2SeqState:
        """Several of the decoder's states as one; see `Stepper.join`."""
        memories, hypotheses = zip(*states, strict=True)
        return memories[0].join(memories), hypotheses[0].join(hypotheses, layout)


class EnsembleStepper:
    """Several models with the same vocabularies, which predict the mean of their probabilities.

    The alignment is the mean over models, each averaged over its heads.

    Args:
        steppers: The models.
    """

    def __init__(self, steppers: Sequence[Stepper[Any]]) -> None:
        self.steppers = steppers

    def start(self, src: Tensor, src_lengths: Tensor) -> list[Any]:
        """See `Stepper.start`."""
        return [stepper.start(src, src_lengths) for stepper in self.steppers]

    def step(self, words: Tensor, state: list[Any]) -> tuple[Tensor, Tensor, list[Any]]:
        """See `Stepper.step`."""
        steps = [stepper.step(words, part) for stepper, part in zip(self.steppers, state, strict=True)]
        log_probs, alignments, states = zip(*steps, strict=True)
        mean = torch.stack(log_probs).logsumexp(dim=0) - math.log(len(steps))
        alignment = torch.stack([weights.mean(dim=1, keepdim=True) for weights in alignments]).mean(dim=0)
        return mean, alignment, list(states)

    def select(self, state: list[Any], rows: Tensor, layout: Layout, sentences: Tensor | None = None) -> list[Any]:
        """See `Stepper.select`."""
        parts = zip(self.steppers, state, strict=True)
        return [stepper.select(part, rows, layout, sentences) for stepper, part in parts]

    def join(self, states: Sequence[list[Any]], layout: Layout) -> list[Any]:
        """See `Stepper.join`."""
        parts = zip(*states, strict=True)
        return [stepper.join(part, layout) for stepper, part in zip(self.steppers, parts, strict=True)]
