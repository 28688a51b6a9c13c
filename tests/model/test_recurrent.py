from typing import Any

import numpy as np
import pytest
import torch

from nmt.model.recurrent import LayeredStack, NormalizedLayer, PlainStack, RecurrentStack, RecurrentState, build_stack

INPUT, EXTRA, HIDDEN, ROWS, STEPS = 3, 2, 4, 3, 5


PLAIN: dict[str, Any] = {}
LAYERED: list[dict[str, Any]] = [
    {"every_output": True},
    {"residual": True},
    {"layer_norm": "layers"},
    {"layer_norm": "cell"},
    {"extra_to_all": True},
    {"residual": True, "layer_norm": "layers", "extra_to_all": True},
    {"residual": True, "layer_norm": "cell", "extra_to_all": True},
]


def named(options: dict[str, Any]) -> str:
    return "-".join(f"{name}={value}" for name, value in options.items()) or "plain"


def random_stack(cell: str, num_layers: int, extra_size: int = 0, **options: Any) -> RecurrentStack:
    torch.manual_seed(0)
    stack = build_stack(cell, INPUT, HIDDEN, num_layers, extra_size=extra_size, **options).double()
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.uniform_(-1, 1)
    return stack


def random_state(stack: RecurrentStack) -> RecurrentState:
    torch.manual_seed(1)
    return tuple(
        torch.randn(stack.num_layers, ROWS, HIDDEN, dtype=torch.float64).tanh() for _ in range(stack.num_states)
    )


def random_inputs(size: int) -> torch.Tensor:
    torch.manual_seed(2)
    return torch.randn(ROWS, STEPS, size, dtype=torch.float64)


@pytest.mark.parametrize("options", [PLAIN, *LAYERED], ids=named)
@pytest.mark.parametrize("extra_size", [0, EXTRA])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_repeated_steps_are_the_whole_sequence(
    cell: str, num_layers: int, extra_size: int, options: dict[str, Any]
) -> None:
    stack = random_stack(cell, num_layers, extra_size, **options)
    inputs = random_inputs(INPUT + extra_size)
    expected, last = stack(inputs, random_state(stack))
    state = random_state(stack)
    projected = stack.project(inputs[..., :INPUT])
    for step in range(STEPS):
        extra = inputs[:, step, INPUT:] if extra_size else None
        outputs, state = stack.step(projected[:, step], extra, state)
        torch.testing.assert_close(outputs, tuple(layer[:, step] for layer in expected), rtol=0, atol=1e-12)
    assert len(state) == len(last) == stack.num_states == {"gru": 1, "lstm": 2}[cell]
    for found, part in zip(state, last, strict=True):
        torch.testing.assert_close(found, part, rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [PLAIN, *LAYERED], ids=named)
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_steps_and_sequence_have_the_same_gradients(cell: str, num_layers: int, options: dict[str, Any]) -> None:
    stack = random_stack(cell, num_layers, EXTRA, **options)
    inputs = random_inputs(INPUT + EXTRA)
    stack(inputs, random_state(stack))[0][-1].sin().sum().backward()
    expected = [parameter.grad.clone() for parameter in stack.parameters()]
    assert all((gradient != 0).any() for gradient in expected)
    stack.zero_grad()
    state, outputs = random_state(stack), []
    projected = stack.project(inputs[..., :INPUT])
    for step in range(STEPS):
        output, state = stack.step(projected[:, step], inputs[:, step, INPUT:], state)
        outputs.append(output[-1])
    torch.stack(outputs).sin().sum().backward()
    for parameter, gradient in zip(stack.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-9, atol=1e-12)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def numpy_layer(cell: str, weights: list[np.ndarray], inputs: np.ndarray, state: list[np.ndarray]) -> np.ndarray:
    """One layer over [T, input] from one sequence's state; gate names as in the papers."""
    w, u, b, d = weights
    h = state[0]
    outputs = []
    for x in inputs:
        if cell == "lstm":  # Hochreiter & Schmidhuber, 1997, with forget gates
            w_i, w_f, w_g, w_o = np.split(w, 4)
            u_i, u_f, u_g, u_o = np.split(u, 4)
            b_i, b_f, b_g, b_o = np.split(b + d, 4)
            i, f, o = (
                sigmoid(wx @ x + uh @ h + bias) for wx, uh, bias in ((w_i, u_i, b_i), (w_f, u_f, b_f), (w_o, u_o, b_o))
            )
            state[1] = f * state[1] + i * np.tanh(w_g @ x + u_g @ h + b_g)
            h = o * np.tanh(state[1])
        else:  # Cho et al., 2014, with the reset gate after the product U h
            w_r, w_z, w_n = np.split(w, 3)
            u_r, u_z, u_n = np.split(u, 3)
            b_r, b_z, b_n = np.split(b, 3)
            d_r, d_z, d_n = np.split(d, 3)
            r = sigmoid(w_r @ x + b_r + u_r @ h + d_r)
            z = sigmoid(w_z @ x + b_z + u_z @ h + d_z)
            n = np.tanh(w_n @ x + b_n + r * (u_n @ h + d_n))
            h = (1 - z) * n + z * h
        outputs.append(h)
    state[0] = h
    return np.stack(outputs)


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_equations_of_the_papers(cell: str, num_layers: int) -> None:
    stack = random_stack(cell, num_layers)
    inputs, state = random_inputs(INPUT), random_state(stack)
    (outputs,), last = stack(inputs, state)
    for row in range(ROWS):
        layer_inputs = inputs[row].numpy()
        for layer in range(num_layers):
            weights = [
                getattr(stack.rnn, f"{name}_l{layer}").detach().numpy()
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            ]
            own = [part[layer, row].numpy() for part in state]
            layer_inputs = numpy_layer(cell, weights, layer_inputs, own)
            for found, expected in zip(last, own, strict=True):
                np.testing.assert_allclose(found[layer, row].detach().numpy(), expected, atol=1e-12)
        np.testing.assert_allclose(outputs[row].detach().numpy(), layer_inputs, atol=1e-12)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_zero_state(cell: str) -> None:
    stack = random_stack(cell, 2)
    state = stack.zero_state(7, torch.empty(0, dtype=torch.float64))
    assert len(state) == stack.num_states
    for part in state:
        assert part.shape == (2, 7, HIDDEN)
        assert part.dtype == torch.float64
        assert (part == 0).all()


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_dropout_between_layers_is_off_in_evaluation(cell: str) -> None:
    stack = random_stack(cell, 2, EXTRA, dropout=0.5).eval()
    plain = random_stack(cell, 2, EXTRA)
    inputs = random_inputs(INPUT + EXTRA)
    for first, second in ((stack, plain), (plain, stack)):
        (output,), _ = first.step(first.project(inputs[:, 0, :INPUT]), inputs[:, 0, INPUT:], random_state(first))
        (expected,), _ = second(inputs[:, :1], random_state(second))
        torch.testing.assert_close(output, expected[:, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [PLAIN, *LAYERED], ids=named)
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_dropout_changes_what_one_layer_hands_to_the_next_alone(cell: str, options: dict[str, Any]) -> None:
    stack = random_stack(cell, 2, dropout=0.5, **options)
    projected, state = stack.project(random_inputs(INPUT)[:, 0]), random_state(stack)
    _, first = stack.step(projected, None, state)
    _, second = stack.step(projected, None, state)
    assert torch.equal(first[0][0], second[0][0])
    assert not torch.equal(first[0][1], second[0][1])


def normalized(z: np.ndarray, norm: torch.nn.Module) -> np.ndarray:
    """LN(z; alpha, beta) of Ba et al. (2016, supplementary material), with the small number that torch adds."""
    gain, bias = norm.weight.detach().numpy(), norm.bias.detach().numpy()
    deviation = np.sqrt(((z - z.mean()) ** 2).mean() + 1e-5)
    return (z - z.mean()) / deviation * gain + bias


def numpy_normalized_lstm(layer: NormalizedLayer, x: np.ndarray, state: list[np.ndarray]) -> list[np.ndarray]:
    """Ba et al., 2016, eq. 20-22; torch's order of gates."""
    w_h, w_x = layer.weight_hidden.detach().numpy(), layer.weight_input.detach().numpy()
    h, c = state
    gates = normalized(w_h @ h, layer.hidden_norms[0]) + normalized(w_x @ x, layer.input_norms[0])
    i, f, g, o = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(normalized(c, layer.cell_norm[0])), c]


def numpy_normalized_gru(layer: NormalizedLayer, x: np.ndarray, state: list[np.ndarray]) -> list[np.ndarray]:
    """The layer-normalised GRU of Ba et al. (2016): h = (1 - z) h_{t-1} + z candidate, where torch's z is 1 - z."""
    w_h, w_x = layer.weight_hidden.detach().numpy(), layer.weight_input.detach().numpy()
    gates, candidate = slice(2 * HIDDEN), slice(2 * HIDDEN, None)
    [h] = state
    both = normalized(w_h[gates] @ h, layer.hidden_norms[0]) + normalized(w_x[gates] @ x, layer.input_norms[0])
    r, z = sigmoid(both[:HIDDEN]), sigmoid(-both[HIDDEN:])
    from_input = normalized(w_x[candidate] @ x, layer.input_norms[1])
    new = np.tanh(from_input + r * normalized(w_h[candidate] @ h, layer.hidden_norms[1]))
    return [(1 - z) * h + z * new]


@pytest.mark.parametrize("extra_size", [0, EXTRA])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_equations_of_layer_normalised_cells(cell: str, extra_size: int) -> None:
    stack = random_stack(cell, 1, extra_size, layer_norm="cell")
    assert isinstance(stack, LayeredStack)
    [layer] = stack.layers
    assert isinstance(layer, NormalizedLayer)
    inputs, state = random_inputs(INPUT + extra_size), random_state(stack)
    (outputs,), last = stack(inputs, state)
    step = {"lstm": numpy_normalized_lstm, "gru": numpy_normalized_gru}[cell]
    for row in range(ROWS):
        own = [part[0, row].numpy() for part in state]
        for position in range(STEPS):
            own = step(layer, inputs[row, position].numpy(), own)
            np.testing.assert_allclose(outputs[row, position].detach().numpy(), own[0], atol=1e-12)
        for found, expected in zip(last, own, strict=True):
            np.testing.assert_allclose(found[0, row].detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("extra_to_all", [False, True])
@pytest.mark.parametrize("layer_norm", ["none", "layers"])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_how_layers_are_joined(cell: str, residual: bool, layer_norm: str, extra_to_all: bool) -> None:
    """Wu et al., 2016, section 3.1: x^{i+1} = m^i + x^i, where m^i is what layer i makes of x^i."""
    stack = random_stack(
        cell, 3, EXTRA, every_output=True, residual=residual, layer_norm=layer_norm, extra_to_all=extra_to_all
    )
    inputs, state = random_inputs(INPUT + EXTRA), random_state(stack)
    outputs, last = stack(inputs, state)
    assert len(outputs) == 3
    for row in range(ROWS):
        below, read = np.zeros(0), inputs[row].numpy()
        for number, layer in enumerate(stack.layers):
            if number:
                read = below
                if layer_norm == "layers":
                    read = np.stack([normalized(x, stack.connections[number - 1].norm) for x in read])
                if extra_to_all:
                    read = np.concatenate([read, inputs[row, :, INPUT:].numpy()], axis=1)
            weights = [
                getattr(layer.rnn, f"{name}_l0").detach().numpy()
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            ]
            own = [part[number, row].numpy() for part in state]
            made = numpy_layer(cell, weights, read, own)
            below = below + made if residual and number else made
            np.testing.assert_allclose(outputs[number][row].detach().numpy(), below, atol=1e-12)
            np.testing.assert_allclose(last[0][number, row].detach().numpy(), own[0], atol=1e-12)


@pytest.mark.parametrize("options", LAYERED, ids=named)
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_gradients_are_the_slopes(cell: str, options: dict[str, Any]) -> None:
    stack = random_stack(cell, 2, EXTRA, **options)
    inputs, names = random_inputs(INPUT + EXTRA)[:1, :2], [name for name, _ in stack.named_parameters()]
    state = tuple(part[:, :1] for part in random_state(stack))

    def run(inputs: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        outputs, _ = torch.func.functional_call(stack, dict(zip(names, parameters, strict=True)), (inputs, state))
        return outputs[-1]

    assert torch.autograd.gradcheck(run, (inputs.requires_grad_(), *stack.parameters()), fast_mode=True)


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_layers_one_by_one_are_torchs_layers_in_one_call(cell: str, num_layers: int) -> None:
    plain, layered = random_stack(cell, num_layers), random_stack(cell, num_layers, every_output=True)
    assert isinstance(plain, PlainStack)
    with torch.no_grad():
        for number, layer in enumerate(layered.layers):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(layer.rnn, f"{name}_l0").copy_(getattr(plain.rnn, f"{name}_l{number}"))
    inputs, state = random_inputs(INPUT), random_state(plain)
    (expected,), expected_last = plain(inputs, state)
    outputs, last = layered(inputs, state)
    assert len(outputs) == num_layers
    torch.testing.assert_close(outputs[-1], expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(last, expected_last, rtol=0, atol=1e-12)
