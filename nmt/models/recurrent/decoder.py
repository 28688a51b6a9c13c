"""The attention decoder: embedding, a cell, output layer."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from nmt.layers.attention import Memory
from nmt.layers.kernels.activation import tanh
from nmt.layers.kernels.dropout import Dropout
from nmt.layers.kernels.stepwise import StepWeight, WeightFormat, prepare
from nmt.layers.layout import Layout
from nmt.layers.losses import CROSS_ENTROPY, Loss
from nmt.layers.output import OutputLayer
from nmt.layers.recurrent import RecurrentStack, RecurrentState
from nmt.models.base import Encoder, EncoderOutput
from nmt.models.recurrent.cell import (
    DecoderCell,
    DecoderState,
    DecoderWeights,
    EmbeddingReader,
    FoldedReader,
    StepOutput,
)
from nmt.text.vocabulary import BOS_ID

InitialStateName = Literal["backward", "final", "zeros"]


class InitialState(nn.Module):
    """First decoder state from the encoder: s_0 = tanh(W x + b) (Bahdanau et al., 2015, A.2.2).

    In the paper x is the backward state at the first word; `final` uses the last states of both directions. Each layer,
    and each of an LSTM's two states, has its own W and b.

    Args:
        source: `backward`, `final` or `zeros`.
        encoder: The encoder.
        recurrent: The decoder's layers.
    """

    def __init__(self, source: InitialStateName, encoder: Encoder, recurrent: RecurrentStack) -> None:
        super().__init__()
        self.parts = recurrent.num_states * recurrent.num_layers
        self.shape = (recurrent.num_states, recurrent.num_layers, recurrent.hidden_size)
        self.source = source
        size = encoder.backward_size if source == "backward" else encoder.output_size
        self.projection = None if source == "zeros" else nn.Linear(size, recurrent.hidden_size * self.parts)

    def forward(self, encoded: EncoderOutput) -> RecurrentState:
        """States [L, B, H]."""
        if self.projection is None:
            states = encoded.states.new_zeros(encoded.states.size(0), self.parts * self.shape[2])
        else:
            inputs = encoded.backward_state if self.source == "backward" else encoded.final_state
            states = tanh(self.projection(inputs))
        split = states.view(-1, *self.shape).permute(1, 2, 0, 3).contiguous()  # LSTM: [B, 2 * L * H] -> [2, L, B, H]
        return tuple(split)


class WordChooser(Protocol):
    """Chooses the input word of each step in training."""

    def __call__(self, position: int, logits: Tensor) -> Tensor:
        """Ids [B] for `position` (1 or later), given the logits [B, V] of the previous position."""
        ...


class DecoderOutput(NamedTuple):
    """All positions of teacher-forced decoding.

    Attributes:
        readouts: Vectors before the output layer, [B, T, readout size].
        alignments: [B, T, heads, S].
    """

    readouts: Tensor
    alignments: Tensor


class Decoder(nn.Module):
    """Embedding, cell and output layer.

    Args:
        embedding: Target embedding.
        cell: Order of attending and updating.
        initial_state: Computes the first state.
        output: Output layer from readout to logits.
        embedding_dropout: On embeddings.
        output_dropout: Before the output layer.
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        cell: DecoderCell,
        initial_state: InitialState,
        output: OutputLayer,
        *,
        embedding_dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.cell = cell
        self.initial_state = initial_state
        self.output = output
        self.embedding_dropout = Dropout(embedding_dropout)
        self.output_dropout = Dropout(output_dropout)

    def start(self, encoded: EncoderOutput) -> tuple[Memory, DecoderState]:
        """Memory of the sources and the state before the first word, one row per sentence."""
        memory = self.cell.attention.memorize(encoded.states, encoded.final_state, encoded.mask, encoded.lengths)
        recurrent = self.initial_state(encoded)
        feedback = encoded.states.new_zeros(encoded.states.size(0), self.cell.feedback_size)
        past = {name: part.flatten(0, 1) for name, part in self.cell.attention.initial_state(memory).items()}
        return memory, DecoderState(recurrent, feedback, past, Layout(encoded.states.size(0)))

    def prepare(self, weight_format: WeightFormat = StepWeight, *, folded: bool = False) -> DecoderWeights:
        """The weights for the steps of one loop.

        Args:
            weight_format: Makes the form in which the loop uses a weight.
            folded: Compute what each word of the vocabulary adds to the gates beforehand; only in evaluation.
        """
        cell, recurrent = self.cell, self.cell.recurrent.prepare(weight_format)
        plain = EmbeddingReader(self.embedding, self.embedding_dropout, recurrent)
        return DecoderWeights(
            FoldedReader(self.embedding, recurrent) if folded else plain,
            recurrent,
            prepare(cell.attention, weight_format),
            prepare(cell.output, weight_format),
            prepare(self.output, weight_format),
        )

    def step(
        self, words: Tensor, memory: Memory, state: DecoderState, weights: DecoderWeights
    ) -> tuple[Tensor, Tensor, DecoderState]:
        """Advance every row by one word.

        Args:
            words: Ids of the last words, [R].
            memory: Memory of the sentences.
            state: State before the step.
            weights: Result of `prepare`.

        Returns:
            Logits [R, V], alignment [R, heads, S], new state.
        """
        readout, alignment, state = self._readout_step(words, memory, state, weights)
        return self.logits(readout, weights), alignment, state

    def _readout_step(
        self, words: Tensor, memory: Memory, state: DecoderState, weights: DecoderWeights
    ) -> tuple[Tensor, Tensor, DecoderState]:
        """`step` without the output layer: readouts [R, readout size], alignment and new state."""
        embedded, projected = weights.read(words)
        features, alignment, state = self.cell.step(projected, memory, state, weights)
        return self.cell.readout(features, embedded, weights), alignment, state

    def forward(self, tgt_in: Tensor, encoded: EncoderOutput, choose: WordChooser | None = None) -> DecoderOutput:
        """Decode all positions of known targets.

        With full teacher forcing, only what must be sequential is (see `DecoderCell`).

        Args:
            tgt_in: Target ids that start with BOS, [B, T].
            encoded: The encoded sources.
            choose: Chooses the input word of each step; None uses `tgt_in`.
        """
        memory, state = self.start(encoded)
        if choose is not None:
            return self._forward_choosing(tgt_in, memory.for_loop(), state, choose)
        embedded = self.embedding_dropout(self.embedding(tgt_in))
        if self.cell.parallel:
            features, alignments = self.cell.sequence(embedded, memory, state)
            return DecoderOutput(self.cell.readout(features, embedded), alignments)
        weights, memory = self.prepare(), memory.for_loop()
        steps: list[StepOutput] = []
        for projected in weights.recurrent.project(embedded).unbind(1):
            steps.append(self.cell.step(projected, memory, state, weights))
            state = steps[-1].state
        features = torch.stack([step.features for step in steps], dim=1)
        alignments = torch.stack([step.alignment for step in steps], dim=1)
        return DecoderOutput(self.cell.readout(features, embedded), alignments)

    def _forward_choosing(
        self, tgt_in: Tensor, memory: Memory, state: DecoderState, choose: WordChooser
    ) -> DecoderOutput:
        words = torch.full_like(tgt_in[:, 0], BOS_ID)
        weights = self.prepare()
        readouts: list[Tensor] = []
        alignments: list[Tensor] = []
        for position in range(tgt_in.size(1)):
            if position:
                with torch.no_grad():
                    words = choose(position, self.logits(readouts[-1], weights))
            readout, alignment, state = self._readout_step(words, memory, state, weights)
            readouts.append(readout)
            alignments.append(alignment)
        return DecoderOutput(torch.stack(readouts, dim=1), torch.stack(alignments, dim=1))

    def logits(self, readouts: Tensor, weights: DecoderWeights | None = None) -> Tensor:
        """Output layer: [..., readout size] -> [..., V]; with the weights of the loop if called inside one."""
        layer = self.output if weights is None else weights.output
        logits: Tensor = layer(self.output_dropout(readouts))
        return logits

    def loss(self, readouts: Tensor, targets: Tensor, loss: Loss = CROSS_ENTROPY) -> Tensor:
        """A loss of the output layer, summed, in nats: [P, readout size] and words [P] -> scalar."""
        return loss(*self.output.operands(self.output_dropout(readouts)), targets)
