import gc
import weakref

import pytest
import torch
from gradients import assert_same_gradients
from torch import Tensor, nn

from nmt.layers.kernels.stepwise import PreparedLinear, StepLinear, StepWeight, for_steps


def make_layer(bias: bool = True) -> StepLinear:
    torch.manual_seed(0)
    return StepLinear(3, 3, bias=bias).double()


def run(layer: nn.Module, inputs: Tensor) -> Tensor:
    """A recurrence in which the second step's outcome is used twice and the third's is not."""
    first = layer(inputs).tanh()
    second = layer(first + inputs).tanh()
    layer(second)
    return torch.stack([second, layer(second).tanh() * second, first])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 4, 3)])
def test_a_prepared_layer_changes_no_number(shape: tuple[int, ...], bias: bool) -> None:
    layer = make_layer(bias)
    inputs = torch.randn((1, *shape), dtype=torch.float64).requires_grad_()
    parts = [inputs, *layer.parameters()]
    expected, found = run(layer, inputs), run(for_steps(layer), inputs)
    for _ in range(2):  # the graph can be gone through again
        assert_same_gradients(found, expected, parts, atol=1e-13)


def test_a_loss_without_some_steps() -> None:
    layer = make_layer()
    prepared = for_steps(layer)
    inputs = torch.randn(2, 3, dtype=torch.float64)
    first = prepared(inputs)
    prepared(first)
    (found,) = torch.autograd.grad(first.sum(), layer.weight)
    torch.testing.assert_close(found, inputs.sum(dim=0).expand(3, 3))


def test_several_backwards_add_up_and_each_weight_gets_its_gradient_once() -> None:
    layer, calls = make_layer(), []
    layer.weight.register_post_accumulate_grad_hook(lambda weight: calls.append(weight.grad.clone()))
    inputs = torch.randn(2, 3, dtype=torch.float64)
    for _ in range(2):
        torch.autograd.backward(run(for_steps(layer), inputs).sum())
    assert len(calls) == 2
    torch.testing.assert_close(calls[1], 2 * calls[0])


def test_a_frozen_weight_and_evaluation() -> None:
    layer = make_layer()
    inputs = torch.randn(2, 3, dtype=torch.float64).requires_grad_()
    expected = layer(inputs)
    with torch.no_grad():
        torch.testing.assert_close(for_steps(layer)(inputs), expected, rtol=0, atol=1e-14)
    layer.weight.requires_grad_(False)
    prepared = for_steps(layer)
    torch.autograd.backward(prepared(prepared(inputs)).sum())
    assert inputs.grad is not None
    assert layer.weight.grad is None
    assert layer.bias.grad is not None


def test_a_part_of_a_weight_gets_its_part_of_the_gradient() -> None:
    layer = make_layer()
    inputs = torch.randn(4, 2, dtype=torch.float64)
    weight = StepWeight(layer.weight[:, 1:])
    total = sum(weight(inputs).square().sum() for _ in range(3))
    (found,) = torch.autograd.grad(total, layer.weight)
    (expected,) = torch.autograd.grad(3 * (inputs @ layer.weight[:, 1:].t()).square().sum(), layer.weight)
    torch.testing.assert_close(found, expected)
    assert not found[:, 0].any()


def test_one_matrix_per_sentence() -> None:
    """Contexts of steps that share their sentences: weights [B, N, S] times values [B, S, V]."""
    torch.manual_seed(0)
    values = torch.randn(2, 5, 3, dtype=torch.float64).requires_grad_()
    steps = [torch.randn(2, rows, 5, dtype=torch.float64).requires_grad_() for rows in (1, 1, 4)]
    expected, weight = [weights @ values for weights in steps], StepWeight(values.mT)
    found = [weight(weights) for weights in steps]
    assert_same_gradients(torch.cat(found, dim=1), torch.cat(expected, dim=1), [values, *steps])


def test_under_autocast_a_weight_is_cast_once() -> None:
    layer = make_layer().float()
    inputs = torch.randn(4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected, prepared = layer(inputs), for_steps(layer)
        assert isinstance(prepared, PreparedLinear)
        assert prepared.weight.matrix.dtype == torch.bfloat16
        found = prepared(inputs)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, rtol=0, atol=0.02)
    (gradient,) = torch.autograd.grad(found.float().sum(), layer.weight)
    assert gradient.dtype == torch.float32
    torch.testing.assert_close(gradient, inputs.sum(dim=0).expand(3, 3), rtol=0, atol=0.1)


class Parent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = make_layer()
        self.plain = nn.Linear(3, 3).double()
        self.nested = nn.Sequential(make_layer(), nn.Tanh())
        self.absent = None

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.nested(self.plain(self.step(inputs)))
        return outputs


def test_a_module_is_prepared_recursively_and_unchanged() -> None:
    module, inputs = Parent().eval(), torch.randn(2, 3, dtype=torch.float64)
    prepared = for_steps(module)
    assert isinstance(prepared, Parent)
    assert not prepared.training
    assert isinstance(prepared.step, PreparedLinear)
    assert isinstance(prepared.nested[0], PreparedLinear)
    assert prepared.plain.weight is module.plain.weight
    assert isinstance(module.step, StepLinear)
    assert isinstance(module.nested[0], StepLinear)
    torch.testing.assert_close(prepared(inputs), module(inputs), rtol=0, atol=1e-14)


def test_nothing_is_kept_after_backward() -> None:
    layer = make_layer()
    inputs = torch.randn(2, 3, dtype=torch.float64)
    prepared = for_steps(layer)
    assert isinstance(prepared, PreparedLinear)
    outputs = run(prepared, inputs)
    torch.autograd.backward(outputs.sum())
    assert not prepared.weight.calls
    watched = weakref.ref(prepared.weight)
    gc.disable()
    try:
        del prepared, outputs
        assert watched() is None  # without the help of the garbage collector
    finally:
        gc.enable()
