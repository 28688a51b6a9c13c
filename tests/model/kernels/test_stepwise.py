import gc
import weakref

import pytest
import torch
from torch import Tensor, nn

from nmt.model.kernels.stepwise import Linear, in_loop, loop, once, product, step_weight


def make_layer(bias: bool = True) -> Linear:
    torch.manual_seed(0)
    return Linear(3, 3, bias=bias).double()


def run(layer: nn.Module, inputs: Tensor) -> Tensor:
    """A recurrence in which the second step's outcome is used twice and the third's is not."""
    first = layer(inputs).tanh()
    second = layer(first + inputs).tanh()
    layer(second)
    return torch.stack([second, layer(second).tanh() * second, first])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 4, 3)])
def test_a_loop_changes_no_number(shape: tuple[int, ...], bias: bool) -> None:
    layer = make_layer(bias)
    inputs = torch.randn((1, *shape), dtype=torch.float64).requires_grad_()
    parts = [inputs, *layer.parameters()]
    expected = run(layer, inputs)
    with loop():
        found = run(layer, inputs)
    assert torch.equal(found, expected)
    weights = torch.randn_like(found)
    for _ in range(2):  # the graph can be gone through again
        for one, other in zip(
            torch.autograd.grad(found, parts, weights, retain_graph=True),
            torch.autograd.grad(expected, parts, weights, retain_graph=True),
            strict=True,
        ):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-13)


def test_gradients_are_those_of_finite_differences() -> None:
    layer = make_layer()

    def by_steps(inputs: Tensor, *weights: Tensor) -> Tensor:
        with loop():
            return run(layer, inputs)

    inputs = torch.randn(2, 3, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(by_steps, (inputs, *layer.parameters()))


def test_a_loss_that_some_steps_do_not_reach() -> None:
    layer = make_layer()
    inputs = torch.randn(2, 3, dtype=torch.float64)
    with loop():
        first = layer(inputs)
        layer(first)
    (found,) = torch.autograd.grad(first.sum(), layer.weight)
    torch.testing.assert_close(found, inputs.sum(dim=0).expand(3, 3))


def test_several_backwards_add_up_and_each_weight_is_told_once() -> None:
    layer, calls = make_layer(), []
    layer.weight.register_post_accumulate_grad_hook(lambda weight: calls.append(weight.grad.clone()))
    inputs = torch.randn(2, 3, dtype=torch.float64)
    for _ in range(2):
        with loop():
            torch.autograd.backward(run(layer, inputs).sum())
    assert len(calls) == 2
    torch.testing.assert_close(calls[1], 2 * calls[0])


def test_a_frozen_weight_and_evaluation() -> None:
    layer = make_layer()
    inputs = torch.randn(2, 3, dtype=torch.float64).requires_grad_()
    expected = layer(inputs)
    with loop(), torch.no_grad():
        assert torch.equal(layer(inputs), expected)
    layer.weight.requires_grad_(False)
    with loop():
        outputs = layer(layer(inputs))
    torch.autograd.backward(outputs.sum())
    assert inputs.grad is not None
    assert layer.weight.grad is None
    assert layer.bias.grad is not None


def test_a_part_of_a_weight_gets_its_part_of_the_gradient() -> None:
    layer = make_layer()
    inputs = torch.randn(4, 2, dtype=torch.float64)
    with loop():
        total = sum(product(inputs, "part", lambda: layer.weight[:, 1:]).square().sum() for _ in range(3))
    (found,) = torch.autograd.grad(total, layer.weight)
    (expected,) = torch.autograd.grad(3 * (inputs @ layer.weight[:, 1:].t()).square().sum(), layer.weight)
    torch.testing.assert_close(found, expected)
    assert not found[:, 0].any()


def test_a_matrix_for_each_of_a_batch() -> None:
    """Contexts of steps that share their sentences: weights [B, N, S] times values [B, S, V]."""
    torch.manual_seed(0)
    values = torch.randn(2, 5, 3, dtype=torch.float64).requires_grad_()
    steps = [torch.randn(2, rows, 5, dtype=torch.float64).requires_grad_() for rows in (1, 1, 4)]
    expected = [weights @ values for weights in steps]
    with loop():
        found = [product(weights, "values", lambda: values.mT) for weights in steps]
    outside = [product(weights, "values", lambda: values.mT) for weights in steps]
    for one, other, plain in zip(found, outside, expected, strict=True):
        torch.testing.assert_close(one, plain, rtol=0, atol=1e-14)
        torch.testing.assert_close(other, plain, rtol=0, atol=1e-14)
    parts = [values, *steps]
    gradients = [torch.autograd.grad(sum(part.pow(3).sum() for part in all_), parts) for all_ in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_what_steps_share_is_made_once_a_loop() -> None:
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return made[-1]

    assert [once("key", make), once("key", make)] == [0, 1]
    with loop():
        assert [once("key", make), once("key", make), once("other", make)] == [2, 2, 3]
        with loop():
            assert once("key", make) == 4
    with loop():
        assert once("key", make) == 5


def test_under_autocast_a_weight_is_cast_once() -> None:
    layer = make_layer().float()
    inputs = torch.randn(4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = layer(inputs)
        with loop():
            found = layer(inputs)
            weight = step_weight(layer, lambda: layer.weight)
            assert weight is not None
            assert weight.matrix.dtype == torch.bfloat16
            assert step_weight(layer, lambda: layer.weight) is weight
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, rtol=0, atol=0.02)
    (gradient,) = torch.autograd.grad(found.float().sum(), layer.weight)
    assert gradient.dtype == torch.float32
    torch.testing.assert_close(gradient, inputs.sum(dim=0).expand(3, 3), rtol=0, atol=0.1)


def test_loops_within_loops_are_their_own() -> None:
    layer = make_layer()
    assert not in_loop()
    with loop():
        outer = step_weight(layer, lambda: layer.weight)
        with loop():
            assert step_weight(layer, lambda: layer.weight) is not outer
        assert step_weight(layer, lambda: layer.weight) is outer
    assert step_weight(layer, lambda: layer.weight) is None


def test_nothing_is_kept_after_backward() -> None:
    layer = make_layer()
    inputs = torch.randn(2, 3, dtype=torch.float64)
    with loop():
        outputs = run(layer, inputs)
        weight = step_weight(layer, lambda: layer.weight)
    assert weight is not None
    torch.autograd.backward(outputs.sum())
    assert not weight.calls
    watched = weakref.ref(weight)
    gc.disable()
    try:
        del weight, outputs
        assert watched() is None  # without the help of the garbage collector
    finally:
        gc.enable()
