import math

import pytest
import torch
from small_models import randomize

from nmt.layers.kernels.stepwise import for_steps
from nmt.layers.output import SHORTEST, FixedNormOutput, OutputLayer


def make_layer(size: int = 3, words: int = 5, norm: float = 2.0) -> FixedNormOutput:
    return randomize(FixedNormOutput(size, words, norm=norm))


def test_logits_are_the_squared_norm_times_cosines() -> None:
    layer = make_layer(2, 3)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[3.0, 4.0], [0.0, 5.0], [-4.0, 3.0]]))
        layer.bias.copy_(torch.tensor([0.5, 0.0, -1.0]))
    logits = layer(torch.tensor([[6.0, 8.0]], dtype=torch.float64))
    torch.testing.assert_close(logits, torch.tensor([[4.5, 3.2, -1.0]], dtype=torch.float64), rtol=0, atol=1e-12)


def test_lengths_of_readouts_and_words_do_not_matter() -> None:
    layer, readouts = make_layer(), torch.rand(4, 3, dtype=torch.float64) + 0.5
    before = layer(readouts)
    with torch.no_grad():
        layer.weight *= torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])
    torch.testing.assert_close(layer(7 * readouts), before, rtol=0, atol=1e-12)


def test_a_vector_of_zeros_has_the_logit_of_its_bias_and_a_moderate_gradient() -> None:
    layer = make_layer()
    with torch.no_grad():
        layer.weight[0] = 0
    readouts = torch.ones(1, 3, dtype=torch.float64)
    logits = layer(readouts)
    assert logits[0, 0] == layer.bias[0]
    (gradient,) = torch.autograd.grad(logits[0, 0], layer.weight)
    expected = 4 * readouts[0] / math.sqrt(3) / SHORTEST
    torch.testing.assert_close(gradient[0], expected, rtol=0, atol=1e-12)
    assert not gradient[1:].any()


def test_the_loss_and_the_steps_of_a_loop_use_the_same_logits() -> None:
    layer, readouts = make_layer(), torch.randn(4, 3, dtype=torch.float64).requires_grad_()
    targets = torch.tensor([0, 4, 2, 2])
    parts = [readouts, *layer.parameters()]
    expected = torch.nn.functional.cross_entropy(layer(readouts), targets, reduction="sum")
    in_loop = torch.nn.functional.cross_entropy(for_steps(layer)(readouts), targets, reduction="sum")
    fused = layer.loss(readouts, targets)
    gradients = torch.autograd.grad(expected, parts)
    for found in (in_loop, fused):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
        for one, other in zip(torch.autograd.grad(found, parts), gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_under_autocast_norms_are_not_rounded() -> None:
    layer = make_layer(64, 50, norm=5.0).float()
    readouts = torch.randn(8, 64)
    expected = layer(readouts)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x, weight, _ = layer.operands(readouts.bfloat16())
        found = layer(readouts)
    assert x.dtype == weight.dtype == torch.float32
    torch.testing.assert_close(x.norm(dim=-1), torch.full((8,), 25.0), rtol=1e-6, atol=0)
    torch.testing.assert_close(found.float(), expected, rtol=0, atol=0.15)


@pytest.mark.parametrize(("norm", "size"), [(None, 64), (3.0, 64), (5.0, 256)])
def test_initial_loss(norm: float | None, size: int) -> None:
    words, rows = 4000, 2000
    layer = OutputLayer(size, words) if norm is None else FixedNormOutput(size, words, norm=norm)
    assert layer.initial_loss == pytest.approx(math.log(words) + (0 if norm is None else norm**4 / (2 * size)))
    torch.manual_seed(0)
    with torch.no_grad():
        layer.weight.uniform_(-0.1, 0.1)
        layer.bias.zero_()
        loss = torch.nn.functional.cross_entropy(layer(0.1 * torch.randn(rows, size)), torch.randint(words, (rows,)))
    assert float(loss) == pytest.approx(layer.initial_loss, abs=0.1)
