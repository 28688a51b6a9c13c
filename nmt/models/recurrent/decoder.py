"""The recurrent attention decoder: embedding, a cell, output layer."""

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from nmt.layers.attention.attention import Attention
from nmt.layers.attention.source_memory import Memory
from nmt.layers.embedding import embed
from nmt.layers.kernels.activation import tanh
from nmt.layers.kernels.dropout import Dropout
from nmt.layers.kernels.stepwise import for_steps
from nmt.layers.layout import Layout
from nmt.layers.output import OutputLayer
from nmt.layers.recurrent import RecurrentStack, RecurrentState
from nmt.models.base import Decoder, DecoderOutput, EncoderOutput, Head, WordChooser
from nmt.models.recurrent.cell import DecoderCell, RecurrentDecoderState, RecurrentDecoderWeights

MAX_GATES = 4
"""Gates of an LSTM, which has more than other cells."""
MAX_TABLE = 1 << 24
"""Maximum number of entries in the tables of all models that search together: 64 MiB."""


class InitialState(nn.Module):
    """First decoder state from the encoder: s_0 = tanh(W x + b) (Bahdanau et al., 2015, A.2.2).

    In the paper x is the backward state at the first word; `final` uses the last states of both directions. Each layer,
    and each of an LSTM's two states, has its own W and b. `copy` takes the encoder's last states as they are, layer by
    layer (Sutskever et al., 2014).

    Args:
        source: `backward`, `final`, `copy` or `zeros`.
        source_size: Size of x; 0 without one.
        recurrent: The decoder's layers.
    """

    def __init__(self, source: str, source_size: int, recurrent: RecurrentStack) -> None:
        super().__init__()
        self.shape = (recurrent.num_states, recurrent.num_layers, recurrent.hidden_size)
        self.source = source
        self.projection = nn.Linear(source_size, math.prod(self.shape)) if source_size else None

    def forward(self, encoded: EncoderOutput) -> RecurrentState:
        """States [L, B, H]."""
        if self.source == "copy":
            return encoded.last_states
        if self.projection is None:
            states = encoded.states.new_zeros(encoded.states.size(0), math.prod(self.shape))
        else:
            inputs = encoded.backward_state if self.source == "backward" else encoded.final_state
            states = tanh(self.projection(inputs))
        split = states.view(-1, *self.shape).permute(1, 2, 0, 3).contiguous()  # LSTM: [B, 2 * L * H] -> [2, L, B, H]
        return tuple(split)


class RecurrentDecoder(Decoder[Memory, RecurrentDecoderState, RecurrentDecoderWeights]):
    """Embedding, cell and output layer.

    Args:
        embedding: Target embedding.
        cell: Order of attending and updating.
        initial: Computes the first state.
        output: Output layer from readout to logits.
        dropout: On embeddings.
    """

    parts: ClassVar[Mapping[str, str]] = {"cell.attention": "attention", "cell.output": "output", "output": "output"}

    def __init__(
        self, embedding: nn.Embedding, cell: DecoderCell, initial: InitialState, output: OutputLayer, dropout: float
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.cell = cell
        self.initial_state = initial
        self.output = output
        self.embedding_dropout = Dropout(dropout)

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads of its one attention mechanism."""
        return tuple(Head(0, number) for number in range(self.cell.attention.num_heads))

    @property
    def attention(self) -> Attention:
        """Its one attention mechanism."""
        return self.cell.attention

    def start(self, encoded: EncoderOutput) -> tuple[Memory, RecurrentDecoderState]:
        """See `Decoder.start`."""
        memory = self.cell.attention.memorize(encoded.states, encoded.final_state, encoded.mask, encoded.lengths)
        recurrent = self.initial_state(encoded)
        feedback = encoded.states.new_zeros(encoded.states.size(0), self.cell.feedback_size)
        # [B, 1, ...] -> [B, ...]: one row for each sentence
        attention = {name: part.flatten(0, 1) for name, part in self.cell.attention.initial_state(memory).items()}
        return memory, RecurrentDecoderState(recurrent, feedback, attention, Layout(encoded.states.size(0)))

    def prepare(self, num_words: int = 1, num_models: int = 1) -> RecurrentDecoderWeights:
        """See `Decoder.prepare`. A long loop has a table of each word's contribution to the gates, if it is small."""
        recurrent = self.cell.recurrent.for_steps()
        vocabulary_size = self.embedding.num_embeddings
        table_size = vocabulary_size * MAX_GATES * self.cell.recurrent.hidden_size
        is_long = num_words >= vocabulary_size
        is_small = num_models * table_size <= MAX_TABLE
        table = recurrent.project(self.embedding.weight) if is_long and is_small else None
        return RecurrentDecoderWeights(
            table,
            recurrent,
            for_steps(self.cell.attention),
            for_steps(self.cell.output),
            for_steps(self.output),
        )

    def advance(
        self, words: Tensor, memory: Memory, state: RecurrentDecoderState, weights: RecurrentDecoderWeights
    ) -> tuple[Tensor, Tensor, RecurrentDecoderState]:
        """See `Decoder.advance`."""
        embedded = self.embedding_dropout(self.embedding(words))
        if weights.table is None:
            projected = weights.recurrent.project(embedded)
        else:
            projected = weights.table.index_select(0, words)
        features, alignment, state = self.cell.step(projected, memory, state, weights)
        return self.cell.readout(features, embedded, weights.readout), alignment, state

    def forward(
        self,
        tgt_in: Tensor,
        encoded: EncoderOutput,
        choose: WordChooser | None = None,
        cut: Tensor | None = None,
    ) -> DecoderOutput:
        """See `Decoder.forward`. With full teacher forcing, only sequential parts are a loop (see `DecoderCell`)."""
        memory, state = self.start(encoded)
        if choose is not None:
            readouts, alignments, _ = self.unroll(tgt_in, memory.for_steps(), state, choose)
        else:
            embedded = self.embedding_dropout(embed(self.embedding, tgt_in, cut))
            run = self.cell.sequence if self.cell.parallel else self._run_steps
            features, alignments = run(embedded, memory, state)
            readouts = self.cell.readout(features, embedded, self.cell.output)
        return DecoderOutput(readouts, alignments, self.cell.attention.penalty(alignments))

    def _run_steps(self, embedded: Tensor, memory: Memory, state: RecurrentDecoderState) -> tuple[Tensor, Tensor]:
        """`DecoderCell.sequence` as a loop; the embeddings [B, T, E] are projected before it, in one product."""
        weights = self.prepare()
        memory = memory.for_steps()
        features = list[Tensor]()
        alignments = list[Tensor]()
        for projected in weights.recurrent.project(embedded).unbind(1):
            feature, alignment, state = self.cell.step(projected, memory, state, weights)
            features.append(feature)
            alignments.append(alignment)
        return torch.stack(features, dim=1), torch.stack(alignments, dim=1)  # T times [B, ...] -> [B, T, ...]
