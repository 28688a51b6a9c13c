"""Stacks of GRU, LSTM or plain layers, which run all steps in one call or one step at a time, with the same weights.

The fast forms of `lstm_step`, `gru_step`, `rnn_step` and their layer-normalised variants in `nmt.models.reference`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from nmt.config.model_sections import RecurrentDecoderSection, RecurrentSection
from nmt.layers.kernels.cells import gru_sequence, gru_step, lstm_step, rnn_step, run_lstm
from nmt.layers.kernels.dropout import Dropout
from nmt.layers.kernels.stepwise import StepWeight

RecurrentState = tuple[Tensor, ...]
"""Hidden states [L, B, H], and for an LSTM the cell states [L, B, H] too."""
LayerOutputs = tuple[tuple[Tensor, ...], RecurrentState]
"""Outputs of the layers, the top one last, and the new state."""

GATES = {"gru": 3, "lstm": 4, "rnn": 1}
MODULES: dict[str, type[nn.GRU] | type[nn.LSTM] | type[nn.RNN]] = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}
UPDATES = {"gru": gru_step, "rnn": rnn_step}
"""From the gates' parts of input and hidden state to the new hidden state."""


class RecurrentStack(nn.Module, ABC):
    """Layers of one kind of cell, run from left to right.

    The LSTM is that of Hochreiter & Schmidhuber (1997) with forget gates and without peepholes. The GRU is torch's:
    the reset gate multiplies U h + d, after the product (Cho et al., 2014, multiply h before it). The plain cell,
    rnn, is Elman's (1990) with tanh; it has no gates, and statements about gates hold for its new state before tanh.

    Args:
        section: The kind of cell and its units.
        input_size: Size of the input; with an extra input, which is known only step by step (context, attentional
            vector), the layers read [input; extra].
        num_layers: Layers.
    """

    def __init__(self, section: RecurrentSection, input_size: int, num_layers: int) -> None:
        super().__init__()
        self.cell = section.cell
        self.hidden_size = section.hidden_size
        self.input_size = input_size
        self.num_layers = num_layers
        self.num_states = 2 if self.cell == "lstm" else 1  # tensors per state

    def zero_state(self, rows: int, like: Tensor) -> RecurrentState:
        """A state of zeros for `rows` sequences, [L, rows, H] each."""
        return tuple(like.new_zeros(self.num_layers, rows, self.hidden_size) for _ in range(self.num_states))

    @abstractmethod
    def forward(self, inputs: Tensor, state: RecurrentState) -> LayerOutputs:
        """Run all steps.

        Args:
            inputs: [B, T, input_size + extra_size].
            state: State before the first step.

        Returns:
            Outputs of the layers, the top one last, [B, T, H] each, and the state after the last step. A stack that
            runs its layers in one call returns only the top one.
        """

    @abstractmethod
    def for_steps(self) -> RecurrentSteps:
        """Prepare these layers for the steps of a loop."""


class RecurrentSteps(ABC):
    """A stack for the steps of a loop: created before it by `RecurrentStack.for_steps`, discarded after it."""

    @abstractmethod
    def project(self, inputs: Tensor) -> Tensor:
        """Contribution of the input to the first layer's gates, outside the loop: [..., input_size] -> [..., gates]."""

    @abstractmethod
    def step(self, projected: Tensor, extra: Tensor | None, state: RecurrentState) -> LayerOutputs:
        """Run one step; equals the stack's `forward` on [input; extra].

        Args:
            projected: Result of `project` for this step, [B, gates].
            extra: The part of the input known only now, [B, extra_size], or None if there is none.
            state: State before the step.

        Returns:
            Outputs of the same layers as `forward`, [B, H] each, and the new state.
        """


class PlainStack(RecurrentStack):
    """torch's own layers, all in one call.

    Args:
        section: The kind of cell and its units.
        input_size: Size of the input.
        extra_size: Size of the extra input.
        num_layers: Layers.
        dropout: Applied between layers.
    """

    def __init__(
        self, section: RecurrentSection, input_size: int, extra_size: int = 0, num_layers: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__(section, input_size, num_layers)
        self.dropout = Dropout(dropout)
        sizes = (input_size + extra_size, self.hidden_size)
        between = dropout if num_layers > 1 else 0.0
        self.rnn = MODULES[self.cell](*sizes, num_layers, batch_first=True, dropout=between)

    def forward(self, inputs: Tensor, state: RecurrentState) -> LayerOutputs:
        """Run all steps of all layers in one call, or layer by layer if that is faster."""
        if isinstance(self.rnn, nn.LSTM):
            outputs, last = run_lstm(self.rnn, inputs, state)
            return (outputs,), last
        if inputs.device.type != "cpu" or not isinstance(self.rnn, nn.GRU):
            outputs, hidden = self.rnn(inputs, state[0])
            return (outputs,), (hidden,)
        outputs = inputs
        lasts = []
        for layer in range(self.num_layers):
            if layer:
                outputs = self.dropout(outputs)
            outputs, hidden = gru_sequence(outputs, state[0][layer], *self.weights(layer))
            lasts.append(hidden)
        return (outputs,), (torch.stack(lasts),)

    def weights(self, layer: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Weights of a layer for its input [gates, K] and its hidden state [gates, H], and their biases."""
        names = (f"weight_ih_l{layer}", f"weight_hh_l{layer}", f"bias_ih_l{layer}", f"bias_hh_l{layer}")
        w_input, w_hidden, b_input, b_hidden = (getattr(self.rnn, name) for name in names)
        return w_input, w_hidden, b_input, b_hidden

    def for_steps(self) -> PlainSteps:
        """Prepare the weights of each layer for its steps."""
        return PlainSteps(self)


class PlainSteps(RecurrentSteps):
    """The steps of a `PlainStack`.

    Has the first layer's input weight, split into the parts for `project` and for the steps, and the weights of each
    layer as its cell needs them.

    Args:
        stack: The layers.
    """

    def __init__(self, stack: PlainStack) -> None:
        weights = [stack.weights(layer) for layer in range(stack.num_layers)]
        # The first layer's input is known before the loop; inside the loop that layer reads only the extra input.
        w_input, w_hidden, b_input, b_hidden = weights[0]
        known, extra = _split_input(w_input, stack.input_size)
        self.input_weight = StepWeight(known)
        weights[0] = (extra, w_hidden, b_input, b_hidden)
        self.layers: list[_LSTMSteps | _OneStateSteps] = []
        for layer_weights in weights:
            if stack.cell == "lstm":
                self.layers.append(_LSTMSteps(layer_weights))
            else:
                self.layers.append(_OneStateSteps(UPDATES[stack.cell], layer_weights))
        self.dropout = stack.dropout

    def project(self, inputs: Tensor) -> Tensor:
        """W x + b, where b is the sum of an LSTM's two biases, or the first of another cell's."""
        return self.input_weight(inputs) + self.layers[0].bias

    def step(self, projected: Tensor, extra: Tensor | None, state: RecurrentState) -> LayerOutputs:
        """Run one step of all layers."""
        # [L, B, H] for each part of the state -> for each layer its parts, [B, H]
        unbound = [part.unbind() for part in state]
        last_states = list(zip(*unbound, strict=True))
        states = [self.layers[0].step(projected, extra, last_states[0])]
        for layer, last_state in zip(self.layers[1:], last_states[1:], strict=True):
            below = self.dropout(states[-1][0])
            states.append(layer.step(layer.bias.expand_as(projected), below, last_state))
        output = states[-1][0]
        # The parts of each layer's state -> [L, B, H] for each part
        new_state = tuple(torch.stack(parts) for parts in zip(*states, strict=True))
        return (output,), new_state


class _LSTMSteps:
    """The steps of one LSTM layer, with input and hidden weight concatenated and both biases added.

    Args:
        weights: Weights for the input of `step` [4 * H, K] and for the hidden state [4 * H, H], and their biases.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        w_input, w_hidden, b_input, b_hidden = weights
        self.weight = StepWeight(torch.cat([w_input, w_hidden], dim=1) if w_input.size(1) else w_hidden)
        self.bias = b_input + b_hidden

    def step(self, gates: Tensor, inputs: Tensor | None, state: RecurrentState) -> RecurrentState:
        """Run one step.

        Args:
            gates: The part of the gates known before the step, including the bias, [B, 4 * H].
            inputs: Further input, [B, K], or None.
            state: h and c, [B, H].
        """
        hidden, cell = state
        joint = hidden if inputs is None else torch.cat([inputs, hidden], dim=1)
        return lstm_step(gates, joint, cell, self.weight)


class _OneStateSteps:
    """The steps of one GRU or plain layer; the arguments are the cell's update and those of `_LSTMSteps`."""

    def __init__(self, update: Callable[[Tensor, Tensor, Tensor], Tensor], weights: Sequence[Tensor]) -> None:
        self.update = update
        w_input, w_hidden, self.bias, self.hidden_bias = weights
        self.input_weight = StepWeight(w_input)
        self.hidden_weight = StepWeight(w_hidden)

    def step(self, gates: Tensor, inputs: Tensor | None, state: RecurrentState) -> RecurrentState:
        """Run one step; see `_LSTMSteps.step`."""
        (hidden,) = state
        if inputs is not None:
            gates = gates + self.input_weight(inputs)
        from_hidden = self.hidden_weight(hidden) + self.hidden_bias
        return (self.update(gates, from_hidden, hidden),)


class NormalizedLayer(RecurrentStack):
    """One layer with layer normalisation inside its cell (Ba et al., 2016, supplementary material).

    LSTM (eq. 20-22): gates LN(W_h h) + LN(W_x x), c = f c_{t-1} + i tanh(g), h = o tanh(LN(c)); eq. 20's b is the
    bias of the norms. GRU: reset and update gate share LN(W_h h) + LN(W_x x), and the candidate is
    tanh(LN(W x) + r LN(U h)); the update gate and its complement are swapped, as in torch's GRU. The plain cell is
    tanh(LN(W_h h) + LN(W_x x)), where eq. 4 normalises the sum.

    Slower than `PlainStack`: torch has no such layer, so it runs step by step.

    Args:
        section: The kind of cell and its units.
        input_size: Size of the input.
        extra_size: Size of the extra input.
    """

    def __init__(self, section: RecurrentSection, input_size: int, extra_size: int = 0) -> None:
        super().__init__(section, input_size, 1)
        cell = self.cell
        hidden_size = self.hidden_size
        gates = GATES[cell] * hidden_size
        self.weight_input = nn.Parameter(torch.empty(gates, input_size + extra_size))
        self.weight_hidden = nn.Parameter(torch.empty(gates, hidden_size))
        for weight in (self.weight_input, self.weight_hidden):
            nn.init.xavier_uniform_(weight)
        # Normalised together: all gates of an LSTM; reset and update gate, then the candidate of a GRU.
        self.groups = [2 * hidden_size, hidden_size] if cell == "gru" else [gates]
        self.input_norms = _norms(self.groups)
        self.hidden_norms = _norms(self.groups)
        self.cell_norm = _norms([hidden_size] if cell == "lstm" else [])

    def normalize(self, gates: Tensor, norms: Sequence[nn.LayerNorm]) -> Tensor:
        """Normalise each group of gates, [..., gates]."""
        parts = gates.split_with_sizes(self.groups, dim=-1)
        return torch.cat([norm(part) for norm, part in zip(norms, parts, strict=True)], dim=-1)

    def update(self, gates: Tensor, from_hidden: Tensor, state: RecurrentState) -> RecurrentState:
        """Run one step of the cell.

        Args:
            gates: The normalised part of the gates from the input, [B, gates].
            from_hidden: The normalised part of the gates from the hidden state, [B, gates].
            state: h, and of an LSTM c, [B, H] each.
        """
        if self.cell in UPDATES:
            hidden = UPDATES[self.cell](gates, from_hidden, state[0])
            return (hidden,)
        input_gate, forget_gate, candidate, output_gate = (gates + from_hidden).chunk(4, dim=-1)
        cell = forget_gate.sigmoid() * state[1] + input_gate.sigmoid() * candidate.tanh()
        (cell_norm,) = self.cell_norm
        hidden = output_gate.sigmoid() * cell_norm(cell).tanh()
        return hidden, cell

    def forward(self, inputs: Tensor, state: RecurrentState) -> LayerOutputs:
        """Run step by step; only W x is computed for all steps at once."""
        gates = self.normalize(nn.functional.linear(inputs, self.weight_input), self.input_norms)
        hidden_weight = StepWeight(self.weight_hidden)
        parts = tuple(part.squeeze(0) for part in state)
        outputs: list[Tensor] = []
        for step_gates in gates.unbind(1):
            from_hidden = self.normalize(hidden_weight(parts[0]), self.hidden_norms)
            parts = self.update(step_gates, from_hidden, parts)
            outputs.append(parts[0])
        return (torch.stack(outputs, dim=1),), tuple(part.unsqueeze(0) for part in parts)

    def for_steps(self) -> NormalizedSteps:
        """Prepare the weights for the steps."""
        return NormalizedSteps(self)


class NormalizedSteps(RecurrentSteps):
    """The steps of a `NormalizedLayer`: its input weight, split as in `PlainSteps`, and its hidden weight.

    Args:
        layer: The layer.
    """

    def __init__(self, layer: NormalizedLayer) -> None:
        self.layer = layer
        known, extra = _split_input(layer.weight_input, layer.input_size)
        self.input_weight = StepWeight(known)
        self.extra_weight = StepWeight(extra)
        self.hidden_weight = StepWeight(layer.weight_hidden)

    def project(self, inputs: Tensor) -> Tensor:
        """W x, which is normalised after the extra input is added."""
        return self.input_weight(inputs)

    def step(self, projected: Tensor, extra: Tensor | None, state: RecurrentState) -> LayerOutputs:
        """Run one step."""
        layer = self.layer
        last = tuple(part.squeeze(0) for part in state)
        gates = projected if extra is None else projected + self.extra_weight(extra)
        from_hidden = layer.normalize(self.hidden_weight(last[0]), layer.hidden_norms)
        parts = layer.update(layer.normalize(gates, layer.input_norms), from_hidden, last)
        return (parts[0],), tuple(part.unsqueeze(0) for part in parts)


class Connection(nn.Module):
    """The connection of a layer f to the one below: x + f(dropout(norm(x))), or only f(dropout(norm(x))).

    x + f(..) is the residual connection of He et al. (2016), for recurrent layers that of Wu et al. (2016, section
    3.1). The sum itself is not normalised, so x reaches the top unchanged.

    Args:
        section: True if x is added, and whether the input of f is normalised (Ba et al., 2016).
        size: Size of x.
        dropout: Applied to the input of f.
        first: True if x is the input of a stack, to which only dropout is applied.
    """

    def __init__(self, section: RecurrentSection, size: int, dropout: float, *, first: bool = False) -> None:
        super().__init__()
        self.residual = section.residual and not first
        self.norm = nn.LayerNorm(size) if section.layer_norm == "layers" and not first else nn.Identity()
        self.dropout = Dropout(dropout)

    def enter(self, below: Tensor) -> Tensor:
        """The input of the layer, given the output of the one below, [..., size]."""
        inputs: Tensor = self.dropout(self.norm(below))
        return inputs

    def leave(self, below: Tensor, output: Tensor) -> Tensor:
        """The output of the connection, given that of the layer, [..., size]."""
        return below + output if self.residual else output


class LayeredStack(RecurrentStack):
    """Layers with connections that torch's own stacks do not support.

    Args:
        section: The layers, their connections, and which of them read the extra input.
        input_size: Size of the input.
        extra_size: Size of the extra input.
        dropout: Applied between layers.
    """

    def __init__(
        self, section: RecurrentDecoderSection, input_size: int, extra_size: int = 0, dropout: float = 0.0
    ) -> None:
        super().__init__(section, input_size, section.num_layers)
        self.extra_to_all = section.context_to == "all"
        # Layers above the first read the layer below, and the extra input only if it goes to all of them.
        extra_size_above = extra_size if self.extra_to_all else 0
        layers = [single_layer(section, input_size, extra_size)]
        for _ in range(section.num_layers - 1):
            layers.append(single_layer(section, section.hidden_size, extra_size_above))
        connections = [Connection(section, section.hidden_size, dropout) for _ in layers[1:]]
        self.layers: Sequence[RecurrentStack] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.connections: Sequence[Connection] = nn.ModuleList(connections)  # type: ignore[assignment]

    def forward(self, inputs: Tensor, state: RecurrentState) -> LayerOutputs:
        """Run all steps layer by layer."""
        extra = inputs[..., self.input_size :]
        first_states = _by_layer(state)
        outputs, last = self.layers[0](inputs, first_states[0])
        states = [last]
        for number, connection in enumerate(self.connections, 1):
            below = outputs[-1]
            layer_inputs = connection.enter(below)
            if self.extra_to_all:
                layer_inputs = torch.cat([layer_inputs, extra], dim=-1)
            (output,), last = self.layers[number](layer_inputs, first_states[number])
            outputs += (connection.leave(below, output),)
            states.append(last)
        return outputs, tuple(torch.cat(parts) for parts in zip(*states, strict=True))

    def for_steps(self) -> LayeredSteps:
        """Prepare the weights of each layer for its steps."""
        return LayeredSteps(self)


class LayeredSteps(RecurrentSteps):
    """The steps of a `LayeredStack`, made of those of its layers.

    Args:
        stack: The layers.
    """

    def __init__(self, stack: LayeredStack) -> None:
        self.layers = [layer.for_steps() for layer in stack.layers]
        self.connections = stack.connections
        self.extra_to_all = stack.extra_to_all

    def project(self, inputs: Tensor) -> Tensor:
        """The projection of the first layer."""
        return self.layers[0].project(inputs)

    def step(self, projected: Tensor, extra: Tensor | None, state: RecurrentState) -> LayerOutputs:
        """Run one step of each layer in turn."""
        last_states = _by_layer(state)
        outputs, new = self.layers[0].step(projected, extra, last_states[0])
        states = [new]
        extra_above = extra if self.extra_to_all else None
        for layer, connection, last in zip(self.layers[1:], self.connections, last_states[1:], strict=True):
            below = outputs[-1]
            (output,), new = layer.step(layer.project(connection.enter(below)), extra_above, last)
            outputs += (connection.leave(below, output),)
            states.append(new)
        return outputs, tuple(torch.cat(parts) for parts in zip(*states, strict=True))


def single_layer(section: RecurrentSection, input_size: int, extra_size: int = 0) -> RecurrentStack:
    """One layer, with layer normalisation inside its cell if the section says so."""
    if section.layer_norm == "cell":
        return NormalizedLayer(section, input_size, extra_size)
    return PlainStack(section, input_size, extra_size)


def build_stack(
    section: RecurrentDecoderSection, input_size: int, extra_size: int = 0, dropout: float = 0.0
) -> RecurrentStack:
    """Build the fastest stack with all the properties that the section sets; see `LayeredStack`."""
    # torch's own stacks give the extra input to the first layer, and return the outputs of the top one.
    is_plain = not section.residual and section.layer_norm == "none"
    if is_plain and section.context_to == "first" and section.attend_from == "top":
        return PlainStack(section, input_size, extra_size, section.num_layers, dropout)
    return LayeredStack(section, input_size, extra_size, dropout)


def _norms(sizes: list[int]) -> Sequence[nn.LayerNorm]:
    return nn.ModuleList(nn.LayerNorm(size) for size in sizes)  # type: ignore[return-value]


def _by_layer(state: RecurrentState) -> list[RecurrentState]:
    """The state of each layer: parts [L, B, H] -> L states with parts [1, B, H]."""
    split = [part.split_with_sizes([1] * len(part)) for part in state]  # for each part its layers
    return list(zip(*split, strict=True))


def _split_input(weight: Tensor, input_size: int) -> tuple[Tensor, Tensor]:
    """Split an input weight [gates, K] into that of the input known before the loop and that of the extra input.

    In one split, as the gradient of each separate slice would be a full-size tensor filled with zeros.
    """
    known, extra = weight.split_with_sizes([input_size, weight.size(1) - input_size], dim=1)
    return known, extra
