"""Decoder cells: the two orders of attending and updating, and what a step carries and uses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from nmt.layers.attention.attention import Attention
from nmt.layers.attention.memory import AttentionState, Memory
from nmt.layers.kernels.activation import Tanh, tanh
from nmt.layers.kernels.stepwise import StepLinear
from nmt.layers.layout import Layout
from nmt.layers.recurrent import RecurrentStack, RecurrentState, RecurrentSteps

QueryLayer = Literal["top", "first"]
ReadoutName = Literal["plain", "maxout"]

QUERY_LAYERS = {"top": -1, "first": 0}
"""Index of a layer."""


class RecurrentDecoderState(NamedTuple):
    """Everything a recurrent decoder carries from one target token to the next.

    Attributes:
        recurrent: State of the recurrent layers, [L, R, H] each.
        feedback: The last attentional vector for input feeding, [R, readout size]; [R, 0] without input feeding.
        attention: State of the attention mechanism, [R, ...] each.
        layout: Which of the R rows belong to which sentence.
    """

    recurrent: RecurrentState
    feedback: Tensor
    attention: AttentionState
    layout: Layout

    @property
    def history(self) -> AttentionState:
        """State of the attention mechanism by sentence, [B, N, ...] each."""
        return {name: self.layout.to_grid(part) for name, part in self.attention.items()}

    def select(self, rows: Tensor, layout: Layout) -> RecurrentDecoderState:
        """See `nmt.models.base.DecoderState`."""
        return RecurrentDecoderState(
            tuple(part.index_select(1, rows) for part in self.recurrent),
            self.feedback.index_select(0, rows),
            {name: part.index_select(0, rows) for name, part in self.attention.items()},
            layout,
        )


class RecurrentDecoderWeights(NamedTuple):
    """The weights of a recurrent decoder for the steps of a loop.

    Attributes:
        table: What each word of the vocabulary adds to the gates of the first layer, [V, gates] (Devlin, 2017, section
            3.2); None if words are projected as they come.
        recurrent: The recurrent layers.
        attention: The attention mechanism.
        readout: The readout layer.
        output: The output layer.
    """

    table: Tensor | None
    recurrent: RecurrentSteps
    attention: Attention
    readout: nn.Module
    output: nn.Module


class StepOutput(NamedTuple):
    """Result of one step.

    Attributes:
        features: Input of the readout, [R, F].
        alignment: [R, heads, S].
        state: State after the step.
    """

    features: Tensor
    alignment: Tensor
    state: RecurrentDecoderState


class DecoderCell(nn.Module, ABC):
    """One decoding step without embedding and output layer; subclasses define the order of attending and updating."""

    recurrent: RecurrentStack
    attention: Attention
    output: nn.Module
    """The readout layer."""
    feedback_size: int = 0

    @property
    def parallel(self) -> bool:
        """Whether all target positions can be computed in one call once their inputs are known."""
        return False

    @abstractmethod
    def step(
        self, projected: Tensor, memory: Memory, state: RecurrentDecoderState, weights: RecurrentDecoderWeights
    ) -> StepOutput:
        """Advance by one token.

        Args:
            projected: Contribution of the last word to the gates of the first layer, [R, gates].
            memory: Memory of the sentences.
            state: State before the step.
            weights: Result of `RecurrentDecoder.prepare`.
        """

    def sequence(self, embedded: Tensor, memory: Memory, state: RecurrentDecoderState) -> tuple[Tensor, Tensor]:
        """Run all steps at once; only if `parallel`.

        Args:
            embedded: Embedded target words, [B, T, E].
            memory: Memory of B sentences.
            state: State before the first step.

        Returns:
            Features [B, T, F] and alignments [B, T, heads, S].
        """
        raise TypeError(f"{type(self).__name__} needs a loop over target positions")

    @abstractmethod
    def readout(self, features: Tensor, embedded: Tensor, weights: RecurrentDecoderWeights | None = None) -> Tensor:
        """The vector before the output layer, for any number of positions at once.

        Args:
            features: [..., F].
            embedded: Embedded input words of the steps, [..., E].
            weights: Weights of the loop, if called inside one.

        Returns:
            [..., readout size].
        """


def attend_by_row(
    attention: Attention, query: Tensor, memory: Memory, state: RecurrentDecoderState
) -> tuple[Tensor, Tensor, AttentionState]:
    """Attend from each row to its sentence: [R, H] -> context [R, D], alignment [R, heads, S], attention state."""
    layout = state.layout
    context, alignment, after = attention.attend(layout.to_grid(query), memory, state.history)  # [B, N, ...] each
    return layout.to_rows(context), layout.to_rows(alignment), {name: layout.to_rows(after[name]) for name in after}


class Maxout(nn.Module):
    """The maximum of each pair of adjacent units (Goodfellow et al., 2013; Bahdanau et al., 2015, A.2.2)."""

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., 2 * size] -> [..., size]."""
        return inputs.view(*inputs.shape[:-1], inputs.size(-1) // 2, 2).amax(dim=-1)


class BahdanauCell(DecoderCell):
    """Attend with the last state, then update (Bahdanau et al., 2015, section 3.1).

    c_i = attend(s_{i-1});  s_i = f(s_{i-1}, [y_{i-1}; c_i]);  readout tanh(W [s_i; c_i; y_{i-1}] + b), or the maxout
    of t~ = U s_i + C c_i + V y_{i-1} + b, where W = [U C V] (appendix A.2.2 has s_{i-1}, eq. 4 has s_i).

    Args:
        recurrent: Layers whose extra input is the context.
        attention: Attention whose query is the state of one layer, without its residual connection.
        embedding_size: Size of a target embedding.
        readout_size: Size of the vector before the output layer.
        readout: `plain` (tanh) or `maxout`.
        attend_from: Layer whose state is the query; `first` as in Wu et al. (2016, section 3).
    """

    def __init__(
        self,
        recurrent: RecurrentStack,
        attention: Attention,
        *,
        embedding_size: int,
        readout_size: int,
        readout: ReadoutName = "plain",
        attend_from: QueryLayer = "top",
    ) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.attention = attention
        self.query_layer = QUERY_LAYERS[attend_from]
        size = recurrent.hidden_size + attention.context_size + embedding_size
        self.output = StepLinear(size, 2 * readout_size if readout == "maxout" else readout_size)
        self.activation = Maxout() if readout == "maxout" else Tanh()

    def step(
        self, projected: Tensor, memory: Memory, state: RecurrentDecoderState, weights: RecurrentDecoderWeights
    ) -> StepOutput:
        """Attend, then update."""
        query = state.recurrent[0].unbind()[self.query_layer]  # s_{i-1}
        context, alignment, attention_state = attend_by_row(weights.attention, query, memory, state)
        outputs, recurrent = weights.recurrent.step(projected, context, state.recurrent)
        features = torch.cat([outputs[-1], context], dim=-1)
        return StepOutput(
            features, alignment, RecurrentDecoderState(recurrent, state.feedback, attention_state, state.layout)
        )

    def readout(self, features: Tensor, embedded: Tensor, weights: RecurrentDecoderWeights | None = None) -> Tensor:
        """tanh(W [s; c; y] + b), or maxout(W [s; c; y] + b)."""
        layer = self.output if weights is None else weights.readout
        readout: Tensor = self.activation(layer(torch.cat([features, embedded], dim=-1)))
        return readout


class LuongCell(DecoderCell):
    """Update, then attend with the new state (Luong et al., 2015, section 3).

    h_t = f(h_{t-1}, y_{t-1});  c_t = attend(h_t);  attentional vector tanh(W_c [c_t; h_t]) (eq. 5), which is the
    readout and, with input feeding (section 3.3), part of the next step's input.

    Args:
        recurrent: Layers; with input feeding their extra input is the attentional vector.
        attention: Attention whose query is the output of one layer.
        readout_size: Size of the attentional vector.
        input_feeding: Feed the attentional vector back.
        attend_from: Layer whose output is the query; `first` needs a stack that returns the outputs of every layer. The
            attentional vector always uses the output of the top layer.
    """

    def __init__(
        self,
        recurrent: RecurrentStack,
        attention: Attention,
        *,
        readout_size: int,
        input_feeding: bool,
        attend_from: QueryLayer = "top",
    ) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.attention = attention
        self.query_layer = QUERY_LAYERS[attend_from]
        self.input_feeding = input_feeding
        self.feedback_size = readout_size if input_feeding else 0
        self.output = StepLinear(recurrent.hidden_size + attention.context_size, readout_size, bias=False)

    @property
    def parallel(self) -> bool:
        """True without input feeding: recurrence and readout are then one call each."""
        return not self.input_feeding

    def step(
        self, projected: Tensor, memory: Memory, state: RecurrentDecoderState, weights: RecurrentDecoderWeights
    ) -> StepOutput:
        """Update, then attend."""
        feedback = state.feedback if self.input_feeding else None
        outputs, recurrent = weights.recurrent.step(projected, feedback, state.recurrent)
        query = outputs[self.query_layer]
        context, alignment, attention_state = attend_by_row(weights.attention, query, memory, state)
        features = torch.cat([context, outputs[-1]], dim=-1)
        if self.input_feeding:
            features = tanh(weights.readout(features))
        feedback = features if self.input_feeding else state.feedback
        return StepOutput(
            features, alignment, RecurrentDecoderState(recurrent, feedback, attention_state, state.layout)
        )

    def sequence(self, embedded: Tensor, memory: Memory, state: RecurrentDecoderState) -> tuple[Tensor, Tensor]:
        """Run the recurrence over all positions, then attention for all of them."""
        outputs, _ = self.recurrent(embedded, state.recurrent)
        context, alignment = self.attention.attend_all(outputs[self.query_layer], memory, state.history)
        return torch.cat([context, outputs[-1]], dim=-1), alignment

    def readout(self, features: Tensor, embedded: Tensor, weights: RecurrentDecoderWeights | None = None) -> Tensor:
        """tanh(W_c [c; h]); with input feeding the step has already computed it."""
        if self.input_feeding:
            return features
        layer = self.output if weights is None else weights.readout
        return tanh(layer(features))
