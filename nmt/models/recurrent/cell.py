"""Decoder cells: the two orders of attending and updating, with the state and the weights of a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.config import RecurrentDecoderSection
from nmt.layers.attention.attention import Attention
from nmt.layers.attention.source_memory import AttentionState, Memory
from nmt.layers.kernels.activation import tanh
from nmt.layers.kernels.stepwise import StepLinear
from nmt.layers.layout import Layout, join_padded
from nmt.layers.recurrent import RecurrentStack, RecurrentState, RecurrentSteps


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
        recurrent = tuple(part.index_select(1, rows) for part in self.recurrent)
        attention = {name: part.index_select(0, rows) for name, part in self.attention.items()}
        return RecurrentDecoderState(recurrent, self.feedback.index_select(0, rows), attention, layout)

    @classmethod
    def join(cls, states: Sequence[RecurrentDecoderState], layout: Layout) -> RecurrentDecoderState:
        """See `nmt.models.base.DecoderState`; attention has given the padding nothing."""
        recurrent = tuple(torch.cat(parts, dim=1) for parts in zip(*(state.recurrent for state in states), strict=True))
        feedback = torch.cat([state.feedback for state in states])
        names = states[0].attention
        attention = {name: join_padded([state.attention[name] for state in states]) for name in names}
        return RecurrentDecoderState(recurrent, feedback, attention, layout)


class RecurrentDecoderWeights(NamedTuple):
    """The weights of a recurrent decoder for the steps of a loop.

    Attributes:
        table: Contribution of each word of the vocabulary to the gates of the first layer, [V, gates] (Devlin, 2017,
            section 3.2); None if words are projected as they come.
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


StepOutput = tuple[Tensor, Tensor, RecurrentDecoderState]
"""Result of one step: input of the readout [R, F], alignment [R, heads, S], state after the step."""


class DecoderCell(nn.Module, ABC):
    """One decoding step without embedding and output layer; subclasses define the order of attending and updating.

    Args:
        section: Its choices.
        recurrent: Layers whose extra input is the context (Bahdanau) or the attentional vector (Luong, if it is fed
            back); with `attend_from: first` they return the outputs of every layer.
        attention: Attention whose query is the state (Bahdanau) or the output (Luong) of one layer; the first layer's
            as in Wu et al. (2016, section 3).
    """

    output: nn.Module
    """The readout layer, before its activation."""
    activation: Callable[[Tensor], Tensor]
    """The function from the result of that layer to the readout."""
    feedback_size: int = 0
    """Size of the vector that is fed back; 0 without one."""
    parallel: bool = False
    """True if all target positions can be computed in one call once their inputs are known."""

    def __init__(self, section: RecurrentDecoderSection, recurrent: RecurrentStack, attention: Attention) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.attention = attention
        self.query_layer = {"top": -1, "first": 0}[section.attend_from]

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
    def readout(self, features: Tensor, embedded: Tensor, layer: nn.Module) -> Tensor:
        """The vector before the output layer, for any number of positions at once.

        Args:
            features: [..., F].
            embedded: Embedded input words of the steps, [..., E].
            layer: `output`, or its form in a loop.

        Returns:
            [..., readout size].
        """


def attend_by_row(
    attention: Attention, query: Tensor, memory: Memory, state: RecurrentDecoderState
) -> tuple[Tensor, Tensor, AttentionState]:
    """Attend from each row to its sentence: [R, H] -> context [R, D], alignment [R, heads, S], attention state."""
    layout = state.layout
    queries = layout.to_grid(query)  # [R, H] -> [B, N, H]
    contexts, alignments, history = attention.attend(queries, memory, state.history)  # [B, N, ...] each
    attention_state = {name: layout.to_rows(part) for name, part in history.items()}
    return layout.to_rows(contexts), layout.to_rows(alignments), attention_state


def maxout(inputs: Tensor) -> Tensor:
    """The maximum of pairs of units (Goodfellow et al., 2013; Bahdanau et al., 2015, A.2.2): [..., 2 N] -> [..., N]."""
    return inputs.view(*inputs.shape[:-1], inputs.size(-1) // 2, 2).amax(dim=-1)


def make_readout(
    section: RecurrentDecoderSection, in_size: int, out_size: int, *, bias: bool
) -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    """The layer of the readout, and the function that is applied to its result; the layer may be the identity.

    Args:
        section: The choice of the readout, and the size of the state.
        in_size: Size of the features: state, context and perhaps word.
        out_size: Size of the readout.
        bias: True if a layer has a bias.
    """
    match section.readout:
        case "plain":
            return StepLinear(in_size, out_size, bias), tanh
        case "maxout":
            return StepLinear(in_size, 2 * out_size, bias), maxout
        case "state":  # which comes first in the features
            return nn.Identity(), partial(torch.narrow, dim=-1, start=0, length=section.hidden_size)
        case _:  # linear: the features as they are
            return nn.Identity(), nn.Identity()


class BahdanauCell(DecoderCell):
    """Attend with the last state, then update (Bahdanau et al., 2015, section 3.1).

    c_i = attend(s_{i-1});  s_i = f(s_{i-1}, [y_{i-1}; c_i]);  readout tanh(W [s_i; c_i; y_{i-1}] + b), or the maxout
    of t~ = U s_i + C c_i + V y_{i-1} + b, where W = [U C V] (appendix A.2.2 has s_{i-1}, eq. 4 has s_i), or s_i or
    [s_i; c_i; y_{i-1}] as they are. The query is s_{i-1} without the residual connection.

    Args:
        section: See `DecoderCell`.
        recurrent: See `DecoderCell`.
        attention: See `DecoderCell`.
        readout_size: Size of the vector before the output layer.
    """

    def __init__(
        self, section: RecurrentDecoderSection, recurrent: RecurrentStack, attention: Attention, readout_size: int
    ) -> None:
        super().__init__(section, recurrent, attention)
        size = recurrent.hidden_size + attention.context_size + recurrent.input_size  # of [s; c; y]
        self.output, self.activation = make_readout(section, size, readout_size, bias=True)

    def step(
        self, projected: Tensor, memory: Memory, state: RecurrentDecoderState, weights: RecurrentDecoderWeights
    ) -> StepOutput:
        """Attend, then update."""
        query = state.recurrent[0].unbind()[self.query_layer]  # s_{i-1}
        context, alignment, attention = attend_by_row(weights.attention, query, memory, state)
        outputs, recurrent = weights.recurrent.step(projected, context, state.recurrent)
        features = torch.cat([outputs[-1], context], dim=-1)
        return features, alignment, state._replace(recurrent=recurrent, attention=attention)

    def readout(self, features: Tensor, embedded: Tensor, layer: nn.Module) -> Tensor:
        """From [s; c; y]; see `make_readout`."""
        return self.activation(layer(torch.cat([features, embedded], dim=-1)))


class LuongCell(DecoderCell):
    """Update, then attend with the new state (Luong et al., 2015, section 3).

    h_t = f(h_{t-1}, y_{t-1});  c_t = attend(h_t);  attentional vector tanh(W_c [c_t; h_t]) (eq. 5), or [c_t; h_t] as
    it is, which is the readout and, with input feeding (section 3.3), part of the next step's input. It always has the
    top layer's h_t. Without input feeding, recurrence and readout of all positions are one call each.

    Args:
        section: See `DecoderCell`.
        recurrent: See `DecoderCell`.
        attention: See `DecoderCell`.
        readout_size: Size of the attentional vector.
    """

    def __init__(
        self, section: RecurrentDecoderSection, recurrent: RecurrentStack, attention: Attention, readout_size: int
    ) -> None:
        super().__init__(section, recurrent, attention)
        self.parallel = not section.input_feeding
        self.feedback_size = readout_size if section.input_feeding else 0
        size = recurrent.hidden_size + attention.context_size  # of [c; h]
        self.output, self.activation = make_readout(section, size, readout_size, bias=False)

    def step(
        self, projected: Tensor, memory: Memory, state: RecurrentDecoderState, weights: RecurrentDecoderWeights
    ) -> StepOutput:
        """Update, then attend."""
        feedback = None if self.parallel else state.feedback
        outputs, recurrent = weights.recurrent.step(projected, feedback, state.recurrent)
        query = outputs[self.query_layer]
        context, alignment, attention = attend_by_row(weights.attention, query, memory, state)
        features = torch.cat([context, outputs[-1]], dim=-1)
        state = state._replace(recurrent=recurrent, attention=attention)
        if self.parallel:
            return features, alignment, state
        readout = self.activation(weights.readout(features))
        return readout, alignment, state._replace(feedback=readout)

    def sequence(self, embedded: Tensor, memory: Memory, state: RecurrentDecoderState) -> tuple[Tensor, Tensor]:
        """Run the recurrence over all positions, then attention for all of them."""
        outputs, _ = self.recurrent(embedded, state.recurrent)
        context, alignment = self.attention.attend_all(outputs[self.query_layer], memory, state.history)
        return torch.cat([context, outputs[-1]], dim=-1), alignment

    def readout(self, features: Tensor, embedded: Tensor, layer: nn.Module) -> Tensor:
        """From [c; h], see `make_readout`; with input feeding the step has already computed it."""
        return self.activation(layer(features)) if self.parallel else features
