from typing import Any

import pytest
import torch
from covering import covering
from gradients import assert_same_gradients
from oracle import step_layers
from small_models import randomize

from nmt.config import RecurrentDecoderSection
from nmt.layers.recurrent import RecurrentStack, RecurrentState, build_stack

INPUT, EXTRA, HIDDEN, ROWS, STEPS = 3, 2, 4, 3, 5


PLAIN: dict[str, Any] = {}
LAYERED: list[dict[str, Any]] = [
    {"attend_from": "first"},
    {"residual": True},
    {"layer_norm": "layers"},
    {"layer_norm": "cell"},
    {"context_to": "all"},
    {"residual": True, "layer_norm": "layers", "context_to": "all"},
    {"residual": True, "layer_norm": "cell", "context_to": "all"},
]


def named(options: dict[str, Any]) -> str:
    return "-".join(f"{name}={value}" for name, value in options.items()) or "plain"


def random_stack(
    cell: str, num_layers: int, extra_size: int = 0, dropout: float = 0.0, **options: Any
) -> RecurrentStack:
    section = RecurrentDecoderSection(cell=cell, hidden_size=HIDDEN, num_layers=num_layers, **options)
    return randomize(build_stack(section, INPUT, extra_size, dropout))


def random_state(stack: RecurrentStack) -> RecurrentState:
    torch.manual_seed(1)
    return tuple(
        torch.randn(stack.num_layers, ROWS, HIDDEN, dtype=torch.float64).tanh() for _ in range(stack.num_states)
    )


def random_inputs(size: int) -> torch.Tensor:
    torch.manual_seed(2)
    return torch.randn(ROWS, STEPS, size, dtype=torch.float64)


@covering("cell, num_layers, extra_size, options", ("gru", "lstm", "rnn"), (1, 2, 3), (0, EXTRA), [PLAIN, *LAYERED])
def test_repeated_steps_equal_the_whole_sequence_gradients_included(
    cell: str, num_layers: int, extra_size: int, options: dict[str, Any]
) -> None:
    stack = random_stack(cell, num_layers, extra_size, **options)
    inputs = random_inputs(INPUT + extra_size)
    expected, last = stack(inputs, random_state(stack))
    state, found = random_state(stack), []
    steps = stack.for_steps()
    projected = steps.project(inputs[..., :INPUT])
    for step in range(STEPS):
        extra = inputs[:, step, INPUT:] if extra_size else None
        outputs, state = steps.step(projected[:, step], extra, state)
        found.append(torch.stack(outputs))
    assert len(state) == len(last) == stack.num_states == {"gru": 1, "lstm": 2, "rnn": 1}[cell]
    assert_same_gradients(torch.stack(found, dim=2), torch.stack(expected), list(stack.parameters()), atol=1e-9)
    torch.testing.assert_close(torch.stack(found, dim=2), torch.stack(expected), rtol=0, atol=1e-12)
    torch.testing.assert_close(state, tuple(last), rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [PLAIN, *LAYERED], ids=named)
@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_the_equations_of_the_papers(cell: str, num_layers: int, options: dict[str, Any]) -> None:
    stack = random_stack(cell, num_layers, EXTRA, **options)
    inputs, state = random_inputs(INPUT + EXTRA), random_state(stack)
    outputs, last = stack(inputs, state)
    for row in range(ROWS):
        states = list(zip(*(part[:, row] for part in state), strict=True))
        for position in range(STEPS):
            expected, states = step_layers(stack, inputs[row, position], states)
            for found, one in zip(outputs, expected[-len(outputs) :], strict=True):
                torch.testing.assert_close(found[row, position], one, rtol=0, atol=1e-12)
        for found, parts in zip(last, zip(*states, strict=True), strict=True):
            torch.testing.assert_close(found[:, row], torch.stack(parts), rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_dropout_between_layers_is_off_in_evaluation(cell: str) -> None:
    stack = random_stack(cell, 2, EXTRA, dropout=0.5).eval()
    plain = random_stack(cell, 2, EXTRA)
    inputs = random_inputs(INPUT + EXTRA)
    for first, second in ((stack, plain), (plain, stack)):
        steps = first.for_steps()
        (output,), _ = steps.step(steps.project(inputs[:, 0, :INPUT]), inputs[:, 0, INPUT:], random_state(first))
        (expected,), _ = second(inputs[:, :1], random_state(second))
        torch.testing.assert_close(output, expected[:, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [PLAIN, *LAYERED], ids=named)
@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_dropout_is_applied_between_layers_only(cell: str, options: dict[str, Any]) -> None:
    stack = random_stack(cell, 2, dropout=0.5, **options)
    steps, state = stack.for_steps(), random_state(stack)
    projected = steps.project(random_inputs(INPUT)[:, 0])
    _, first = steps.step(projected, None, state)
    _, second = steps.step(projected, None, state)
    assert torch.equal(first[0][0], second[0][0])
    assert not torch.equal(first[0][1], second[0][1])
