"""Stacks of GRU or LSTM layers: all steps in one call, or one step at a time, with the same weights."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

CellName = Literal["gru", "lstm"]
RecurrentState = tuple[Tensor, ...]
"""Hidden states [L, B, H], and for an LSTM the cell states [L, B, H] too."""

GATES = {"gru": 3, "lstm": 4}


class RecurrentStack(nn.Module):
    """Layers of one cell, run from left to right.

    The LSTM is that of Hochreiter & Schmidhuber (1997) with forget gates and without peepholes. The GRU is torch's:
    the reset gate multiplies U h after the product (Cho et al., 2014, multiply h before it).

    Args:
        cell: `gru` or `lstm`.
        input_size: Size of the input; with `extra_size` the input is [input; extra].
        extra_size: Size of the part of the input that is known only step by step (context, fed-back vector).
        hidden_size: Units a layer.
        num_layers: Layers.
        dropout: Applied to what one layer hands to the next.
    """

    def __init__(
        self,
        cell: CellName,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        extra_size: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.cell = cell
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.dropout = nn.Dropout(dropout)
        module: type[nn.LSTM] | type[nn.GRU] = nn.LSTM if cell == "lstm" else nn.GRU
        self.rnn = module(
            input_size + extra_size,
            hidden_size,
            num_layers,
            batch_first=True,
            dropout=dropout if num_layers > 1 else 0.0,
        )

    @property
    def num_states(self) -> int:
        """Tensors that make up a state: 2 for an LSTM, 1 for a GRU."""
        return 2 if self.cell == "lstm" else 1

    def zero_state(self, rows: int, like: Tensor) -> RecurrentState:
        """A state of zeros for `rows` sequences, [L, rows, H] each."""
        return tuple(like.new_zeros(self.num_layers, rows, self.hidden_size) for _ in range(self.num_states))

    def forward(self, inputs: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """All steps in one call.

        Args:
            inputs: [B, T, input_size].
            state: State before the first step.

        Returns:
            Outputs of the top layer [B, T, H] and the state after the last step.
        """
        outputs, last = self.rnn(inputs, state if self.cell == "lstm" else state[0])
        return outputs, last if self.cell == "lstm" else (last,)

    def _weights(self, layer: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        names = (f"weight_ih_l{layer}", f"weight_hh_l{layer}", f"bias_ih_l{layer}", f"bias_hh_l{layer}")
        w_input, w_hidden, b_input, b_hidden = (getattr(self.rnn, name) for name in names)
        return w_input, w_hidden, b_input, b_hidden

    def project(self, inputs: Tensor) -> Tensor:
        """The input's share of the first layer's gates, which needs no loop: [B, T, input_size] -> [B, T, gates]."""
        weight, _, bias, _ = self._weights(0)
        return nn.functional.linear(inputs, weight[:, : self.input_size], bias)

    def step(self, projected: Tensor, extra: Tensor | None, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """One step; equal to `forward` on [input; extra].

        Args:
            projected: What `project` returned for this step, [B, gates].
            extra: The part of the input known only now, [B, extra_size], or None where there is none.
            state: State before the step.

        Returns:
            Output of the top layer [B, H] and the new state.
        """
        gates = projected
        if extra is not None:
            gates = gates + nn.functional.linear(extra, self._weights(0)[0][:, self.input_size :])
        layers: list[RecurrentState] = []
        for layer in range(self.num_layers):
            w_input, w_hidden, b_input, b_hidden = self._weights(layer)
            if layer:
                gates = nn.functional.linear(self.dropout(layers[-1][0]), w_input, b_input)
            from_hidden = nn.functional.linear(state[0][layer], w_hidden, b_hidden)
            before = tuple(part[layer] for part in state)
            layers.append(_CELLS[self.cell](gates, from_hidden, before))
        return layers[-1][0], tuple(torch.stack(parts) for parts in zip(*layers, strict=True))


def _lstm(gates: Tensor, from_hidden: Tensor, state: RecurrentState) -> RecurrentState:
    input_gate, forget_gate, candidate, output_gate = (gates + from_hidden).chunk(4, dim=-1)
    cell = forget_gate.sigmoid() * state[1] + input_gate.sigmoid() * candidate.tanh()
    return output_gate.sigmoid() * cell.tanh(), cell


def _gru(gates: Tensor, from_hidden: Tensor, state: RecurrentState) -> RecurrentState:
    reset, update, candidate = gates.chunk(3, dim=-1)
    hidden_reset, hidden_update, hidden_candidate = from_hidden.chunk(3, dim=-1)
    new = torch.tanh(candidate + (reset + hidden_reset).sigmoid() * hidden_candidate)
    keep = (update + hidden_update).sigmoid()
    return (new + keep * (state[0] - new),)


_CELLS = {"lstm": _lstm, "gru": _gru}
