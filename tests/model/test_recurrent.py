import numpy as np
import pytest
import torch

from nmt.model.recurrent import RecurrentStack, RecurrentState

INPUT, EXTRA, HIDDEN, ROWS, STEPS = 3, 2, 4, 3, 5


def random_stack(cell: str, num_layers: int, extra_size: int = 0, dropout: float = 0.0) -> RecurrentStack:
    torch.manual_seed(0)
    stack = RecurrentStack(cell, INPUT, HIDDEN, num_layers, extra_size=extra_size, dropout=dropout).double()
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


@pytest.mark.parametrize("extra_size", [0, EXTRA])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_repeated_steps_are_the_whole_sequence(cell: str, num_layers: int, extra_size: int) -> None:
    stack = random_stack(cell, num_layers, extra_size)
    inputs = random_inputs(INPUT + extra_size)
    expected, last = stack(inputs, random_state(stack))
    state = random_state(stack)
    projected = stack.project(inputs[..., :INPUT])
    for step in range(STEPS):
        extra = inputs[:, step, INPUT:] if extra_size else None
        output, state = stack.step(projected[:, step], extra, state)
        torch.testing.assert_close(output, expected[:, step], rtol=0, atol=1e-12)
    assert len(state) == len(last) == stack.num_states == {"gru": 1, "lstm": 2}[cell]
    for found, part in zip(state, last, strict=True):
        torch.testing.assert_close(found, part, rtol=0, atol=1e-12)


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_steps_and_sequence_have_the_same_gradients(cell: str, num_layers: int) -> None:
    stack = random_stack(cell, num_layers, EXTRA)
    inputs = random_inputs(INPUT + EXTRA)
    stack(inputs, random_state(stack))[0].sin().sum().backward()
    expected = [parameter.grad.clone() for parameter in stack.parameters()]
    stack.zero_grad()
    state, outputs = random_state(stack), []
    projected = stack.project(inputs[..., :INPUT])
    for step in range(STEPS):
        output, state = stack.step(projected[:, step], inputs[:, step, INPUT:], state)
        outputs.append(output)
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
    outputs, last = stack(inputs, state)
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
        output, _ = first.step(first.project(inputs[:, 0, :INPUT]), inputs[:, 0, INPUT:], random_state(first))
        expected, _ = second(inputs[:, :1], random_state(second))
        torch.testing.assert_close(output, expected[:, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_dropout_changes_what_one_layer_hands_to_the_next_alone(cell: str) -> None:
    stack = random_stack(cell, 2, dropout=0.5)
    projected, state = stack.project(random_inputs(INPUT)[:, 0]), random_state(stack)
    _, first = stack.step(projected, None, state)
    _, second = stack.step(projected, None, state)
    assert torch.equal(first[0][0], second[0][0])
    assert not torch.equal(first[0][1], second[0][1])
