"""Cells of LSTM and GRU with their gradients written out, and a GRU over whole sequences.

sigmoid' = s - s^2, and tanh(x) = 2 sigmoid(2 x) - 1 (see `nmt.model.kernels.activation`). Products are in the
precision of their weights; all else is in float32 or better. d.. is the gradient with regard to what follows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.model.kernels.activation import tanh_of
from nmt.model.kernels.stepwise import StepWeight


def lstm_step(gates: Tensor, inputs: Tensor, cell: Tensor, weight: StepWeight) -> tuple[Tensor, Tensor]:
    """One step of an LSTM (Hochreiter & Schmidhuber, 1997, with forget gates).

    i, f, g, o = gates + W [x; h];  c' = sigmoid(f) c + sigmoid(i) tanh(g);  h' = sigmoid(o) tanh(c').

    Args:
        gates: What is known without x and h, the biases included, [B, 4 * H].
        inputs: x and h side by side, [B, K].
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
        ctx.weight, ctx.step = weight, weight.count()
        ctx.dtypes = gates.dtype, inputs.dtype, cell.dtype
        inputs = inputs.to(weight.matrix.dtype)
        exact = torch.promote_types(weight.matrix.dtype, torch.float32)
        shares = (inputs @ weight.matrix.t()).to(exact).add_(gates)
        _, _, candidate, _ = shares.chunk(4, dim=1)
        candidate.mul_(2)
        shares.sigmoid_()  # of i, f, 2 g and o
        let_in, keep, candidate, show = shares.chunk(4, dim=1)
        new = torch.mul(keep, cell).addcmul_(let_in, torch.mul(candidate, 2).sub_(1))
        shown = tanh_of(new)
        ctx.save_for_backward(inputs, weight.matrix, cell, shares, shown)
        return (show * shown).to(inputs.dtype), new

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_hidden: Tensor, d_new: Tensor) -> tuple[Tensor | None, ...]:
        inputs, matrix, cell, shares, shown = ctx.saved_tensors
        let_in, keep, candidate, show = shares.chunk(4, dim=1)
        # dc' = what comes from c' itself and dh' sigmoid(o) (1 - tanh(c')^2)
        d_cell = torch.mul(shown, shown).neg_().add_(1).mul_(show).mul_(d_hidden).add_(d_new)
        d_gates = torch.empty_like(shares)
        d_let_in, d_keep, d_candidate, d_show = d_gates.chunk(4, dim=1)
        torch.mul(d_cell, torch.mul(candidate, 2).sub_(1), out=d_let_in)
        torch.mul(d_cell, cell, out=d_keep)
        torch.mul(d_cell, let_in, out=d_candidate).mul_(4)  # 1 - tanh(g)^2 is 4 times sigmoid' of 2 g
        torch.mul(d_hidden, shown, out=d_show)
        d_gates.mul_(torch.addcmul(shares, shares, shares, value=-1))
        d_product = d_gates.to(matrix.dtype)
        of_gates, of_inputs, of_cell = ctx.dtypes
        return (
            d_gates.to(of_gates),
            (d_product @ matrix).to(of_inputs),
            d_cell.mul_(keep).to(of_cell),
            ctx.weight.record(ctx.step, inputs, d_product),
            None,
        )


class _GRUShares(NamedTuple):
    """What a step of a GRU keeps for its gradient.

    Attributes:
        gates: sigmoid(r) and sigmoid(z), [B, 2 * H].
        candidate: n, [B, H].
        inner: The hidden state's share of n before it is multiplied, [B, H].
    """

    gates: Tensor
    candidate: Tensor
    inner: Tensor


def _gru_update(gates: Tensor, from_hidden: Tensor, hidden: Tensor) -> tuple[Tensor, _GRUShares]:
    """h' = n + sigmoid(z) (h - n), n = tanh(g_n + sigmoid(r) u_n): gates g and u of r, z and n, [B, 3 * H] each."""
    size = hidden.size(1)
    shares = (gates[:, : 2 * size] + from_hidden[:, : 2 * size]).sigmoid_()
    inner = from_hidden[:, 2 * size :]
    candidate = tanh_of(torch.addcmul(gates[:, 2 * size :], shares[:, :size], inner))
    new = torch.sub(hidden, candidate).mul_(shares[:, size:]).add_(candidate)
    return new, _GRUShares(shares, candidate, inner)


def _gru_gradients(d_new: Tensor, hidden: Tensor, shares: _GRUShares, d_gates: Tensor, d_from_hidden: Tensor) -> Tensor:
    """Fill the gradients [B, 3 * H] of both arguments of `_gru_update`, and return that of h but for its product."""
    size = hidden.size(1)
    gates, candidate, inner = shares
    reset, keep = gates.chunk(2, dim=1)
    d_reset, d_keep, d_candidate = d_gates.chunk(3, dim=1)
    d_hidden = d_new * keep
    torch.sub(d_new, d_hidden, out=d_candidate)
    d_candidate.mul_(torch.mul(candidate, candidate).neg_().add_(1))
    torch.mul(d_candidate, inner, out=d_reset)
    torch.mul(torch.sub(hidden, candidate), d_new, out=d_keep)
    d_gates[:, : 2 * size].mul_(torch.addcmul(gates, gates, gates, value=-1))
    d_from_hidden[:, : 2 * size] = d_gates[:, : 2 * size]
    torch.mul(d_candidate, reset, out=d_from_hidden[:, 2 * size :])
    return d_hidden


def gru_step(gates: Tensor, from_hidden: Tensor, hidden: Tensor) -> Tensor:
    """One step of torch's GRU: h' = n + z (h - n), with r, z = sigmoid(g + u) and n = tanh(g_n + r u_n).

    Args:
        gates: g, the input's shares of r, z and n with their bias, [B, 3 * H].
        from_hidden: u, those of h, [B, 3 * H].
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
        new, shares = _gru_update(gates.to(exact), from_hidden.to(exact), hidden.to(exact))
        ctx.save_for_backward(hidden, *shares)
        return new.to(hidden.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_new: Tensor) -> tuple[Tensor, ...]:
        hidden, *parts = ctx.saved_tensors
        shares = _GRUShares(*parts)
        d_gates, d_from_hidden = (shares.gates.new_empty(len(hidden), 3 * hidden.size(1)) for _ in range(2))
        d_hidden = _gru_gradients(d_new, hidden, shares, d_gates, d_from_hidden)
        found = d_gates, d_from_hidden, d_hidden
        return tuple(gradient.to(dtype) for gradient, dtype in zip(found, ctx.dtypes, strict=True))


def gru_sequence(
    inputs: Tensor, hidden: Tensor, of_input: Tensor, of_hidden: Tensor, input_bias: Tensor, hidden_bias: Tensor
) -> tuple[Tensor, Tensor]:
    """All steps of one layer of torch's GRU on the CPU, where torch itself has no fast one; see `gru_step`.

    Args:
        inputs: [B, T, K].
        hidden: The first state, [B, H].
        of_input: Weight, [3 * H, K].
        of_hidden: Weight, [3 * H, H].
        input_bias: [3 * H].
        hidden_bias: [3 * H].

    Returns:
        The states after each step [B, T, H], and after the last [B, H].
    """
    device = inputs.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        inputs, hidden, of_input, of_hidden = (part.to(dtype) for part in (inputs, hidden, of_input, of_hidden))
    steps = inputs.transpose(0, 1).contiguous()
    states: Tensor = _GRUSequence.apply(steps, hidden, of_input, of_hidden, input_bias, hidden_bias)  # type: ignore[no-untyped-call]
    return states.transpose(0, 1), states[-1]


class _GRUSequence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        hidden: Tensor,
        of_input: Tensor,
        of_hidden: Tensor,
        input_bias: Tensor,
        hidden_bias: Tensor,
    ) -> Tensor:
        dtype = of_hidden.dtype
        exact = torch.promote_types(dtype, torch.float32)
        gates = (inputs.flatten(0, 1) @ of_input.t()).to(exact).add_(input_bias).view(*inputs.shape[:2], -1)
        states = inputs.new_empty(len(inputs) + 1, *hidden.shape)
        states[0] = hidden
        kept: list[Tensor] = []
        for step, known in enumerate(gates):
            from_hidden = (states[step] @ of_hidden.t()).to(exact).add_(hidden_bias)
            new, shares = _gru_update(known, from_hidden, states[step].to(exact))
            states[step + 1] = new
            kept += shares
        ctx.save_for_backward(inputs, states, of_input, of_hidden, *kept)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_states: Tensor) -> tuple[Tensor | None, ...]:
        inputs, states, of_input, of_hidden, *kept = ctx.saved_tensors
        length, rows, size = d_states.shape
        exact = torch.promote_types(states.dtype, torch.float32)
        d_gates, d_from_hidden = (states.new_empty(length, rows, 3 * size, dtype=exact) for _ in range(2))
        d_hidden = states.new_zeros(rows, size, dtype=exact)
        for step in reversed(range(length)):
            shares = _GRUShares(*kept[3 * step : 3 * step + 3])
            d_hidden += d_states[step]
            d_hidden = _gru_gradients(d_hidden, states[step], shares, d_gates[step], d_from_hidden[step])
            d_hidden += d_from_hidden[step].to(of_hidden.dtype) @ of_hidden
        d_gates, d_from_hidden = d_gates.flatten(0, 1), d_from_hidden.flatten(0, 1)
        d_product, d_recurrent = d_gates.to(of_input.dtype), d_from_hidden.to(of_hidden.dtype)
        return (
            (d_product @ of_input).view_as(inputs) if ctx.needs_input_grad[0] else None,
            d_hidden.to(states.dtype),
            d_product.t() @ inputs.flatten(0, 1),
            d_recurrent.t() @ states[:-1].flatten(0, 1),
            d_gates.sum(dim=0),
            d_from_hidden.sum(dim=0),
        )
