"""Stacks of GRU or LSTM layers: all steps in one call, or one step at a time, with the same weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from nmt.model.kernels.cells import gru_sequence, gru_step, lstm_step
from nmt.model.kernels.dropout import Dropout
from nmt.model.kernels.stepwise import loop, once, product, step_weight

CellName = Literal["gru", "lstm"]
LayerNormPlace = Literal["none", "layers", "cell"]
RecurrentState = tuple[Tensor, ...]
"""Hidden states [L, B, H], and for an LSTM the cell states [L, B, H] too."""

GATES = {"gru": 3, "lstm": 4}


class RecurrentStack(nn.Module, ABC):
    """Layers of one cell, run from left to right.

    The LSTM is that of Hochreiter & Schmidhuber (1997) with forget gates and without peepholes. The GRU is torch's:
    the reset gate multiplies U h after the product (Cho et al., 2014, multiply h before it).

    Args:
        cell: `gru` or `lstm`.
        input_size: Size of the input; with `extra_size` the input is [input; extra].
        hidden_size: Units a layer.
        num_layers: Layers.
    """

    def __init__(self, cell: CellName, input_size: int, hidden_size: int, num_layers: int) -> None:
        super().__init__()
        self.cell = cell
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers

    @property
    def num_states(self) -> int:
        """Tensors that make up a state: 2 for an LSTM, 1 for a GRU."""
        return 2 if self.cell == "lstm" else 1

    def zero_state(self, rows: int, like: Tensor) -> RecurrentState:
        """A state of zeros for `rows` sequences, [L, rows, H] each."""
        return tuple(like.new_zeros(self.num_layers, rows, self.hidden_size) for _ in range(self.num_states))

    def _split_input(self, weight: Tensor) -> tuple[Tensor, ...]:
        """The first layer's input weight [gates, K] for what is known before the loop, and for the extra input.

        One split a loop: each slice of its own would fill a gradient of full size with zeros.
        """
        sizes = [self.input_size, weight.size(1) - self.input_size]
        return once((self, "input weights"), lambda: weight.split_with_sizes(sizes, dim=1))

    @abstractmethod
    def forward(self, inputs: Tensor, state: RecurrentState) -> tuple[tuple[Tensor, ...], RecurrentState]:
        """All steps.

        Args:
            inputs: [B, T, input_size + extra_size].
            state: State before the first step.

        Returns:
            Outputs of the layers, the top one last, [B, T, H] each, and the state after the last step. A stack that
            runs its layers in one call gives the top one alone.
        """

    @abstractmethod
    def project(self, inputs: Tensor) -> Tensor:
        """The input's share of the first layer's gates, which needs no loop: [..., input_size] -> [..., gates]."""

    @abstractmethod
    def step(
        self, projected: Tensor, extra: Tensor | None, state: RecurrentState
    ) -> tuple[tuple[Tensor, ...], RecurrentState]:
        """One step; equal to `forward` on [input; extra].

        Args:
            projected: What `project` returned for this step, [B, gates].
            extra: The part of the input known only now, [B, extra_size], or None where there is none.
            state: State before the step.

        Returns:
            Outputs of the same layers as `forward`, [B, H] each, and the new state.
        """


class PlainStack(RecurrentStack):
    """torch's own layers, all of them in one call.

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
        super().__init__(cell, input_size, hidden_size, num_layers)
        self.dropout = Dropout(dropout)
        module: type[nn.LSTM] | type[nn.GRU] = nn.LSTM if cell == "lstm" else nn.GRU
        self.rnn = module(
            input_size + extra_size,
            hidden_size,
            num_layers,
            batch_first=True,
            dropout=dropout if num_layers > 1 else 0.0,
        )

    def forward(self, inputs: Tensor, state: RecurrentState) -> tuple[tuple[Tensor, ...], RecurrentState]:
        """All steps of all layers in one call, or of one layer after another where that is faster."""
        if self.cell == "lstm":
            outputs, last = self.rnn(inputs, state)
            return (outputs,), last
        if inputs.device.type != "cpu":
            outputs, hidden = self.rnn(inputs, state[0])
            return (outputs,), (hidden,)
        outputs, lasts = inputs, []
        for layer in range(self.num_layers):
            if layer:
                outputs = self.dropout(outputs)
            outputs, hidden = gru_sequence(outputs, state[0][layer], *self._weights(layer))
            lasts.append(hidden)
        return (outputs,), (torch.stack(lasts),)

    def _weights(self, layer: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        names = (f"weight_ih_l{layer}", f"weight_hh_l{layer}", f"bias_ih_l{layer}", f"bias_hh_l{layer}")
        w_input, w_hidden, b_input, b_hidden = (getattr(self.rnn, name) for name in names)
        return w_input, w_hidden, b_input, b_hidden

    def project(self, inputs: Tensor) -> Tensor:
        """W x + b, where b is the sum of an LSTM's two biases, and the first of a GRU's."""
        return product(inputs, (self, "input"), lambda: self._split_input(self._weights(0)[0])[0]) + self._bias(0)

    def _bias(self, layer: int) -> Tensor:
        _, _, of_input, of_hidden = self._weights(layer)
        return of_input + of_hidden if self.cell == "lstm" else of_input

    def step(
        self, projected: Tensor, extra: Tensor | None, state: RecurrentState
    ) -> tuple[tuple[Tensor, ...], RecurrentState]:
        """One step of all layers."""
        befores = list(zip(*(part.unbind() for part in state), strict=True))
        layers = [self._layer_step(0, projected, extra, befores[0])]
        for layer, before in enumerate(befores[1:], 1):
            known = self._bias(layer).expand_as(projected)
            below = self.dropout(layers[-1][0])
            layers.append(self._layer_step(layer, known, below, before))
        return (layers[-1][0],), tuple(torch.stack(parts) for parts in zip(*layers, strict=True))

    def _layer_step(self, layer: int, known: Tensor, read: Tensor | None, state: RecurrentState) -> RecurrentState:
        """One step of a layer.

        Args:
            layer: Its number.
            known: Shares of the gates that were known before, [B, gates].
            read: What else enters the gates, [B, K].
            state: Parts [B, H].
        """
        w_input, w_hidden, _, b_hidden = self._weights(layer)
        if not layer:
            w_input = self._split_input(w_input)[1]
        if self.cell == "lstm":
            weight = step_weight((self, layer), lambda: torch.cat([w_input, w_hidden], dim=1))
            if weight is not None:
                inputs = state[0] if read is None else torch.cat([read, state[0]], dim=1)
                return lstm_step(known, inputs, state[1], weight)
        gates = known if read is None else known + product(read, (self, layer, "read"), lambda: w_input)
        from_hidden = product(state[0], (self, layer, "hidden"), lambda: w_hidden)
        if self.cell == "lstm":
            return _lstm(gates, from_hidden, state)
        return (gru_step(gates, from_hidden + b_hidden, state[0]),)


class NormalizedLayer(RecurrentStack):
    """One layer with layer normalisation inside its cell (Ba et al., 2016, supplementary material).

    LSTM (eq. 20-22): gates LN(W_h h) + LN(W_x x), c = f c_{t-1} + i tanh(g), h = o tanh(LN(c)); eq. 20's b is the
    bias of the norms. GRU: reset and update gate share LN(W_h h) + LN(W_x x), and the candidate is
    tanh(LN(W x) + r LN(U h)); update gate and its complement change places, as in torch's GRU.

    Slower than `PlainStack`, as torch has no such layer: it runs step by step.

    Args:
        cell: `gru` or `lstm`.
        input_size: Size of the input; with `extra_size` the input is [input; extra].
        hidden_size: Units.
        extra_size: Size of the part of the input that is known only step by step.
    """

    def __init__(self, cell: CellName, input_size: int, hidden_size: int, *, extra_size: int = 0) -> None:
        super().__init__(cell, input_size, hidden_size, 1)
        gates = GATES[cell] * hidden_size
        self.weight_input = nn.Parameter(torch.empty(gates, input_size + extra_size))
        self.weight_hidden = nn.Parameter(torch.empty(gates, hidden_size))
        for weight in (self.weight_input, self.weight_hidden):
            nn.init.xavier_uniform_(weight)
        # What is normalised together: all gates of an LSTM; reset and update gate, then the candidate of a GRU.
        self.groups = [gates] if cell == "lstm" else [2 * hidden_size, hidden_size]
        self.input_norms = _norms(self.groups)
        self.hidden_norms = _norms(self.groups)
        self.cell_norm = _norms([hidden_size] if cell == "lstm" else [])

    def _normalize(self, gates: Tensor, norms: Sequence[nn.LayerNorm]) -> Tensor:
        parts = gates.split_with_sizes(self.groups, dim=-1)
        return torch.cat([norm(part) for norm, part in zip(norms, parts, strict=True)], dim=-1)

    def _update(self, gates: Tensor, state: RecurrentState) -> RecurrentState:
        """[B, gates] and parts [B, H] -> parts [B, H]."""
        from_hidden = product(state[0], (self, "hidden"), lambda: self.weight_hidden)
        from_hidden = self._normalize(from_hidden, self.hidden_norms)
        return _CELLS[self.cell](gates, from_hidden, state, *self.cell_norm)

    def forward(self, inputs: Tensor, state: RecurrentState) -> tuple[tuple[Tensor, ...], RecurrentState]:
        """One step after another; only W x is made for all of them at once."""
        gates = self._normalize(nn.functional.linear(inputs, self.weight_input), self.input_norms)
        parts = tuple(part.squeeze(0) for part in state)
        outputs: list[Tensor] = []
        with loop():
            for now in gates.unbind(1):
                parts = self._update(now, parts)
                outputs.append(parts[0])
        return (torch.stack(outputs, dim=1),), tuple(part.unsqueeze(0) for part in parts)

    def project(self, inputs: Tensor) -> Tensor:
        """W x, which is normalised when the extra input has been added."""
        return product(inputs, (self, "input"), lambda: self._split_input(self.weight_input)[0])

    def step(
        self, projected: Tensor, extra: Tensor | None, state: RecurrentState
    ) -> tuple[tuple[Tensor, ...], RecurrentState]:
        """One step."""
        gates = projected
        if extra is not None:
            gates = gates + product(extra, (self, "extra"), lambda: self._split_input(self.weight_input)[1])
        parts = self._update(self._normalize(gates, self.input_norms), tuple(part.squeeze(0) for part in state))
        return (parts[0],), tuple(part.unsqueeze(0) for part in parts)


class Connection(nn.Module):
    """What lies between a layer f and the one below: x -> x + f(dropout(norm(x))), or f(dropout(norm(x))) alone.

    The sum x + f(..) is the residual connection of He et al. (2016), between recurrent layers that of Wu et al. (2016,
    section 3.1). The sum itself is not normalised, so that x reaches the top unchanged.

    Args:
        size: Size of x.
        residual: Add x.
        layer_norm: Normalise what f reads (Ba et al., 2016).
        dropout: Applied to what f reads.
    """

    def __init__(self, size: int, *, residual: bool, layer_norm: bool, dropout: float) -> None:
        super().__init__()
        self.residual = residual
        self.norm = nn.LayerNorm(size) if layer_norm else nn.Identity()
        self.dropout = Dropout(dropout)

    def enter(self, below: Tensor) -> Tensor:
        """What the layer reads of what the one below gave, [..., size]."""
        read: Tensor = self.dropout(self.norm(below))
        return read

    def leave(self, below: Tensor, output: Tensor) -> Tensor:
        """What the layer gives, [..., size]."""
        return below + output if self.residual else output


class LayeredStack(RecurrentStack):
    """Layers that are joined in ways of which torch's own stacks know nothing.

    Args:
        cell: `gru` or `lstm`.
        input_size: Size of the input; with `extra_size` the input is [input; extra].
        hidden_size: Units a layer.
        num_layers: Layers.
        extra_size: Size of the part of the input that is known only step by step (context, fed-back vector).
        dropout: Applied to what one layer hands to the next.
        residual: Add to the output of each layer above the first what the layer below gave.
        layer_norm: Normalise what each layer above the first reads of the one below (`layers`), or inside the cells
            (`cell`).
        extra_to_all: Every layer reads the extra input, not the first alone.
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
        residual: bool = False,
        layer_norm: LayerNormPlace = "none",
        extra_to_all: bool = False,
    ) -> None:
        super().__init__(cell, input_size, hidden_size, num_layers)
        self.extra_to_all = extra_to_all
        sizes = [(input_size, extra_size)] + [(hidden_size, extra_size if extra_to_all else 0)] * (num_layers - 1)
        self.layers: Sequence[RecurrentStack] = nn.ModuleList(  # type: ignore[assignment]
            single_layer(cell, size, hidden_size, layer_norm, extra_size=extra) for size, extra in sizes
        )
        self.connections: Sequence[Connection] = nn.ModuleList(  # type: ignore[assignment]
            Connection(hidden_size, residual=residual, layer_norm=layer_norm == "layers", dropout=dropout)
            for _ in sizes[1:]
        )

    def forward(self, inputs: Tensor, state: RecurrentState) -> tuple[tuple[Tensor, ...], RecurrentState]:
        """All steps of one layer, then of the next."""
        extra = inputs[..., self.input_size :]
        befores = _by_layer(state)
        outputs, last = self.layers[0](inputs, befores[0])
        states = [last]
        for number, connection in enumerate(self.connections, 1):
            below = outputs[-1]
            read = connection.enter(below)
            if self.extra_to_all:
                read = torch.cat([read, extra], dim=-1)
            (output,), last = self.layers[number](read, befores[number])
            outputs += (connection.leave(below, output),)
            states.append(last)
        return outputs, tuple(torch.cat(parts) for parts in zip(*states, strict=True))

    def project(self, inputs: Tensor) -> Tensor:
        """That of the first layer."""
        return self.layers[0].project(inputs)

    def step(
        self, projected: Tensor, extra: Tensor | None, state: RecurrentState
    ) -> tuple[tuple[Tensor, ...], RecurrentState]:
        """One step of one layer, then of the next."""
        befores = _by_layer(state)
        outputs, last = self.layers[0].step(projected, extra, befores[0])
        states = [last]
        extra_above = extra if self.extra_to_all else None
        for number, connection in enumerate(self.connections, 1):
            below, layer = outputs[-1], self.layers[number]
            (output,), last = layer.step(layer.project(connection.enter(below)), extra_above, befores[number])
            outputs += (connection.leave(below, output),)
            states.append(last)
        return outputs, tuple(torch.cat(parts) for parts in zip(*states, strict=True))


def single_layer(
    cell: CellName, input_size: int, hidden_size: int, layer_norm: LayerNormPlace, *, extra_size: int = 0
) -> RecurrentStack:
    """One layer, with layer normalisation inside its cell where `layer_norm` says so."""
    layer = NormalizedLayer if layer_norm == "cell" else PlainStack
    return layer(cell, input_size, hidden_size, extra_size=extra_size)


def build_stack(
    cell: CellName,
    input_size: int,
    hidden_size: int,
    num_layers: int = 1,
    *,
    extra_size: int = 0,
    dropout: float = 0.0,
    residual: bool = False,
    layer_norm: LayerNormPlace = "none",
    extra_to_all: bool = False,
    every_output: bool = False,
) -> RecurrentStack:
    """The fastest stack that can do what is asked; see `LayeredStack`.

    Args:
        cell: `gru` or `lstm`.
        input_size: Size of the input.
        hidden_size: Units a layer.
        num_layers: Layers.
        extra_size: Size of the extra input.
        dropout: Between layers.
        residual: Residual connections.
        layer_norm: Where to normalise.
        extra_to_all: Feed the extra input to every layer.
        every_output: Give the outputs of every layer, not of the top one alone.
    """
    if residual or layer_norm != "none" or extra_to_all or every_output:
        return LayeredStack(
            cell,
            input_size,
            hidden_size,
            num_layers,
            extra_size=extra_size,
            dropout=dropout,
            residual=residual,
            layer_norm=layer_norm,
            extra_to_all=extra_to_all,
        )
    return PlainStack(cell, input_size, hidden_size, num_layers, extra_size=extra_size, dropout=dropout)


def _norms(sizes: list[int]) -> Sequence[nn.LayerNorm]:
    return nn.ModuleList(nn.LayerNorm(size) for size in sizes)  # type: ignore[return-value]


def _by_layer(state: RecurrentState) -> list[RecurrentState]:
    """Parts [L, B, H] -> the state of each layer, parts [1, B, H]."""
    return list(zip(*(part.split_with_sizes([1] * len(part)) for part in state), strict=True))


def _lstm(
    gates: Tensor,
    from_hidden: Tensor,
    state: RecurrentState,
    cell_norm: Callable[[Tensor], Tensor] | None = None,
) -> RecurrentState:
    input_gate, forget_gate, candidate, output_gate = (gates + from_hidden).chunk(4, dim=-1)
    cell = forget_gate.sigmoid() * state[1] + input_gate.sigmoid() * candidate.tanh()
    shown = cell if cell_norm is None else cell_norm(cell)
    return output_gate.sigmoid() * shown.tanh(), cell


def _gru(gates: Tensor, from_hidden: Tensor, state: RecurrentState) -> RecurrentState:
    return (gru_step(gates, from_hidden, state[0]),)


_CELLS: dict[str, Callable[..., RecurrentState]] = {"lstm": _lstm, "gru": _gru}
