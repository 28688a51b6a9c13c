"""LSTM and GRU cells with explicit gradients, and layers of them over whole sequences; the plain cell.

sigmoid' = s - s^2, and tanh(x) = 2 sigmoid(2 x) - 1 (see `nmt.layers.kernels.activation`). Products are in the
precision of their weights; everything else is in float32 or better. `d_x` is the gradient with respect to x.
"""

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.layers.kernels.activation import tanh, tanh_of
from nmt.layers.kernels.stepwise import StepWeight


def lstm_step(gates: Tensor, inputs: Tensor, cell: Tensor, weight: StepWeight) -> tuple[Tensor, Tensor]:
    """The fast form of `nmt.models.reference.lstm_step`.

    i, f, g, o = gates + W [x; h];  c' = sigmoid(f) c + sigmoid(i) tanh(g);  h' = sigmoid(o) tanh(c').

    Args:
        gates: The part that does not depend on x and h, including the biases, [B, 4 * H].
        inputs: [x; h], [B, K].
        cell: c, [B, H].
        weight: W, [4 * H, K].

    Returns:
        h' and c', [B, H] each.
    """
    new: tuple[Tensor, Tensor] = _LSTMStep.apply(gates, inputs, cell, weight.anchor, weight)  # type: ignore[no-untyped-call]
    return new


class _LSTMStep(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, inputs: Tensor, cell: Tensor, anchor: Tensor, weight: StepWeight
    ) -> tuple[Tensor, Tensor]:
        ctx.weight = weight
        ctx.step = weight.next_step()
        ctx.dtypes = gates.dtype, inputs.dtype, cell.dtype
        inputs = inputs.to(weight.matrix.dtype)
        exact = torch.promote_types(weight.matrix.dtype, torch.float32)
        activations = weight.multiply(inputs).to(exact).add_(gates)  # [B, K] -> [B, 4 * H]
        input_gate, forget_gate, candidate, output_gate = activations.chunk(4, dim=1)
        candidate.mul_(2)
        activations.sigmoid_()  # of i, f, 2 g and o, in place
        # c' = f c + i tanh(g), where tanh(g) = 2 sigmoid(2 g) - 1
        new = torch.mul(forget_gate, cell).addcmul_(input_gate, torch.mul(candidate, 2).sub_(1))
        squashed = tanh_of(new)
        ctx.save_for_backward(inputs, weight.matrix, cell, activations, squashed)
        return (output_gate * squashed).to(inputs.dtype), new

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_hidden: Tensor, d_new: Tensor) -> tuple[Tensor | None, ...]:
        inputs, matrix, cell, activations, squashed = ctx.saved_tensors
        input_gate, forget_gate, candidate, output_gate = activations.chunk(4, dim=1)
        # dc' plus dh' sigmoid(o) (1 - tanh(c')^2)
        d_cell = torch.mul(squashed, squashed).neg_().add_(1).mul_(output_gate).mul_(d_hidden).add_(d_new)
        # First the gradient of each activated gate, into views of [B, 4 * H]; then all times sigmoid' at once.
        d_gates = torch.empty_like(activations)
        d_input, d_forget, d_candidate, d_output = d_gates.chunk(4, dim=1)
        torch.mul(d_cell, torch.mul(candidate, 2).sub_(1), out=d_input)
        torch.mul(d_cell, cell, out=d_forget)
        torch.mul(d_cell, input_gate, out=d_candidate).mul_(4)  # 1 - tanh(g)^2 is 4 times sigmoid' of 2 g
        torch.mul(d_hidden, squashed, out=d_output)
        d_gates.mul_(torch.addcmul(activations, activations, activations, value=-1))
        d_product = d_gates.to(matrix.dtype)
        gates_dtype, inputs_dtype, cell_dtype = ctx.dtypes
        return (
            d_gates.to(gates_dtype),
            (d_product @ matrix).to(inputs_dtype),
            d_cell.mul_(forget_gate).to(cell_dtype),
            ctx.weight.record(ctx.step, inputs, d_product),
            None,
        )


def run_lstm(layers: nn.LSTM, inputs: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """All steps of all layers; under autocast in float32 if the CPU has no LSTM in its number format.

    Args:
        layers: The layers, with `batch_first`.
        inputs: [B, T, K].
        state: h and c, [L, B, H] each.

    Returns:
        Outputs of the last layer, [B, T, H], and the new state.
    """
    h, c = state
    autocast = inputs.device.type == "cpu" and torch.is_autocast_enabled("cpu")
    has_kernel = torch.get_autocast_dtype("cpu") == torch.bfloat16 and cpu_has_bfloat16_lstm()
    if autocast and not has_kernel:
        exact = layers.all_weights[0][0].dtype
        with torch.autocast("cpu", enabled=False):
            outputs, last = layers(inputs.to(exact), (h.to(exact), c.to(exact)))
    else:
        outputs, last = layers(inputs, (h, c))
    return outputs, last


@functools.cache
def cpu_has_bfloat16_lstm() -> bool:
    """True if the CPU has the instructions that oneDNN needs for an LSTM in bfloat16 (x86: AVX-512)."""
    layers = nn.LSTM(1, 1, device="meta").to_empty(device="cpu")  # draws no random numbers
    try:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            layers(torch.zeros(1, 1, 1))
    except RuntimeError:
        return False
    return True


def _gru_update(gates: Tensor, from_hidden: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """h' = n + z (h - n), n = tanh(g_n + r u_n); g is the contribution of the input, u that of h, [B, 3 * H] each.

    Returns:
        h', and for the gradient: reset and update gate [B, 2 * H], n, and the part u_n of its input [B, H].
    """
    size = hidden.size(1)
    gates_of_both = (gates[:, : 2 * size] + from_hidden[:, : 2 * size]).sigmoid_()  # [B, 2 * H]
    reset, update = gates_of_both.chunk(2, dim=1)
    inner = from_hidden[:, 2 * size :]
    candidate = tanh_of(torch.addcmul(gates[:, 2 * size :], reset, inner))
    new = torch.sub(hidden, candidate).mul_(update).add_(candidate)
    return new, gates_of_both, candidate, inner


def _gru_gradients(
    d_new: Tensor, hidden: Tensor, activations: Sequence[Tensor], d_gates: Tensor, d_from_hidden: Tensor
) -> Tensor:
    """Fill the gradients [B, 3 * H] of g and u, and return the gradient of h, without the part that flows through u."""
    size = hidden.size(1)
    gates, candidate, inner = activations
    reset, update = gates.chunk(2, dim=1)
    d_reset, d_update, d_candidate = d_gates.chunk(3, dim=1)
    # h' = z h + (1 - z) n: what z lets through goes to h, the rest to n, and through tanh' to r and u_n.
    d_hidden = d_new * update
    torch.sub(d_new, d_hidden, out=d_candidate)
    d_candidate.mul_(torch.mul(candidate, candidate).neg_().add_(1))
    torch.mul(d_candidate, inner, out=d_reset)
    torch.mul(torch.sub(hidden, candidate), d_new, out=d_update)
    d_gates[:, : 2 * size].mul_(torch.addcmul(gates, gates, gates, value=-1))
    d_from_hidden[:, : 2 * size] = d_gates[:, : 2 * size]
    torch.mul(d_candidate, reset, out=d_from_hidden[:, 2 * size :])
    return d_hidden


def gru_step(gates: Tensor, from_hidden: Tensor, hidden: Tensor) -> Tensor:
    """The fast form of `nmt.models.reference.gru_step`, without its products.

    h' = n + z (h - n), with r, z = sigmoid(g + u) and n = tanh(g_n + r u_n).

    Args:
        gates: g = W x + b, for r, z and n, [B, 3 * H].
        from_hidden: u = U h + d, [B, 3 * H].
        hidden: h, [B, H].

    Returns:
        h', [B, H].
    """
    new: Tensor = _GRUStep.apply(gates, from_hidden, hidden)  # type: ignore[no-untyped-call]
    return new


class _GRUStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, from_hidden: Tensor, hidden: Tensor) -> Tensor:
        ctx.dtypes = gates.dtype, from_hidden.dtype, hidden.dtype
        exact = torch.promote_types(hidden.dtype, torch.float32)
        new, *activations = _gru_update(gates.to(exact), from_hidden.to(exact), hidden.to(exact))
        ctx.save_for_backward(hidden, *activations)
        return new.to(hidden.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_new: Tensor) -> tuple[Tensor, ...]:
        hidden, *activations = ctx.saved_tensors
        d_gates, d_from_hidden = (activations[0].new_empty(len(hidden), 3 * hidden.size(1)) for _ in range(2))
        d_hidden = _gru_gradients(d_new, hidden, activations, d_gates, d_from_hidden)
        gradients = d_gates, d_from_hidden, d_hidden
        return tuple(gradient.to(dtype) for gradient, dtype in zip(gradients, ctx.dtypes, strict=True))


def rnn_step(gates: Tensor, from_hidden: Tensor, hidden: Tensor) -> Tensor:
    """The fast form of `nmt.models.reference.rnn_step`, without its products: tanh(g + u); arguments as for a GRU."""
    return tanh(gates + from_hidden)


def gru_sequence(
    inputs: Tensor, hidden: Tensor, input_weight: Tensor, hidden_weight: Tensor, input_bias: Tensor, hidden_bias: Tensor
) -> tuple[Tensor, Tensor]:
    """All steps of one layer on the CPU, where torch has no fast GRU: the fast form of repeated `gru_step`s.

    Args:
        inputs: [B, T, K].
        hidden: The first state, [B, H].
        input_weight: W, [3 * H, K].
        hidden_weight: U, [3 * H, H].
        input_bias: [3 * H].
        hidden_bias: [3 * H].

    Returns:
        The states after each step [B, T, H], and the last one [B, H].
    """
    parts = [inputs.transpose(0, 1), hidden, input_weight, hidden_weight]
    device = inputs.device.type
    if torch.is_autocast_enabled(device):
        parts = [part.to(torch.get_autocast_dtype(device)) for part in parts]
    states: Tensor = _GRUSequence.apply(parts[0].contiguous(), *parts[1:], input_bias, hidden_bias)  # type: ignore[no-untyped-call]
    return states.transpose(0, 1), states[-1]


class _GRUSequence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, hidden: Tensor, *weights: Tensor) -> Tensor:
        input_weight, hidden_weight, input_bias, hidden_bias = weights
        exact = torch.promote_types(hidden_weight.dtype, torch.float32)
        # The input's part of the gates in one product for all steps: [T, B, K] -> [T, B, 3 * H]
        gates = (inputs.flatten(0, 1) @ input_weight.t()).to(exact).add_(input_bias).view(*inputs.shape[:2], -1)
        states = inputs.new_empty(len(inputs) + 1, *hidden.shape)
        states[0] = hidden
        activations: list[Tensor] = []  # three for each step
        for step, known in enumerate(gates):
            from_hidden = (states[step] @ hidden_weight.t()).to(exact).add_(hidden_bias)
            states[step + 1], *parts = _gru_update(known, from_hidden, states[step].to(exact))
            activations += parts
        ctx.save_for_backward(inputs, states, input_weight, hidden_weight, *activations)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_states: Tensor) -> tuple[Tensor | None, ...]:
        inputs, states, input_weight, hidden_weight, *activations = ctx.saved_tensors
        length, rows, size = d_states.shape
        exact = torch.promote_types(states.dtype, torch.float32)
        d_gates, d_from_hidden = (states.new_empty(length, rows, 3 * size, dtype=exact) for _ in range(2))
        d_hidden = states.new_zeros(rows, size, dtype=exact)  # of the state after a step, from the last step back
        for step in reversed(range(length)):
            parts = activations[3 * step : 3 * step + 3]
            d_hidden += d_states[step]
            d_hidden = _gru_gradients(d_hidden, states[step], parts, d_gates[step], d_from_hidden[step])
            d_hidden += d_from_hidden[step].to(hidden_weight.dtype) @ hidden_weight
        # Gradients of the weights in one product for all steps: [T, B, 3 * H] -> [T * B, 3 * H]
        d_gates = d_gates.flatten(0, 1)
        d_from_hidden = d_from_hidden.flatten(0, 1)
        d_product = d_gates.to(input_weight.dtype)
        d_recurrent = d_from_hidden.to(hidden_weight.dtype)
        return (
            (d_product @ input_weight).view_as(inputs) if ctx.needs_input_grad[0] else None,
            d_hidden.to(states.dtype),
            d_product.t() @ inputs.flatten(0, 1),
            d_recurrent.t() @ states[:-1].flatten(0, 1),
            d_gates.sum(dim=0),
            d_from_hidden.sum(dim=0),
        )
