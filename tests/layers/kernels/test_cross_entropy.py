import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.layers.kernels import cross_entropy
from nmt.layers.kernels.cross_entropy import output_cross_entropy

SIZE, UNITS = 10, 4  # of the vocabulary, of a readout


def logsumexp(x: np.ndarray) -> float:
    return float(x.max() + np.log(np.exp(x - x.max()).sum()))


def layer(rows: int, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Readouts, weight and bias of float64 that need gradients, and words."""
    torch.manual_seed(rows)
    shapes = ((rows, UNITS), (SIZE, UNITS), (SIZE,))
    readouts, weight, bias = ((torch.randn(shape, dtype=torch.float64) * scale).requires_grad_() for shape in shapes)
    return readouts, weight, bias, torch.randint(SIZE, (rows,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_cross_entropy_by_hand(smoothing: float) -> None:
    """Szegedy et al., 2016, section 7: (1 - e) to the reference and e spread evenly over all words."""
    readouts, weight, bias, targets = layer(5)
    logits = readouts.detach().numpy() @ weight.detach().numpy().T + bias.detach().numpy()
    expected = 0.0
    for row, target in zip(logits, targets.tolist(), strict=True):
        log_probs = row - logsumexp(row)
        expected -= (1 - smoothing) * log_probs[target] + smoothing * log_probs.mean()
    found = output_cross_entropy(readouts, weight, bias, targets, smoothing)
    assert found.dtype == torch.float64
    assert found.item() == pytest.approx(expected, rel=1e-12)
    with torch.no_grad():
        assert torch.equal(output_cross_entropy(readouts, weight, bias, targets, smoothing), found)


def test_cross_entropy_of_the_uniform_distribution() -> None:
    weight, bias = torch.zeros(SIZE, UNITS), torch.zeros(SIZE)
    found = output_cross_entropy(torch.ones(3, UNITS), weight, bias, torch.tensor([3, 4, 9]), 0.2)
    assert float(found) == pytest.approx(3 * math.log(SIZE), rel=1e-6)


def test_the_loss_of_an_impossible_word_is_finite() -> None:
    weight = torch.tensor([[200.0], [0.0], [-200.0]])
    found = output_cross_entropy(torch.ones(1, 1), weight, torch.zeros(3), torch.tensor([2]))
    assert float(found) == pytest.approx(400.0)


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 21])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradients_equal_torchs_in_any_number_of_chunks(
    rows: int, smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "CHUNK_ROWS", 8)
    monkeypatch.setattr(cross_entropy, "ROW_STEP", 3)
    readouts, weight, bias, targets = layer(rows, 3.0)
    logits = nn.functional.linear(readouts, weight, bias)
    expected = nn.functional.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    found = output_cross_entropy(readouts, weight, bias, targets, smoothing)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    parts = (readouts, weight, bias)
    for one, other in zip(
        torch.autograd.grad(0.3 * found, parts), torch.autograd.grad(0.3 * expected, parts), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_without_positions_the_loss_is_zero() -> None:
    readouts, weight, bias, targets = layer(0)
    found = output_cross_entropy(readouts, weight, bias, targets)
    assert found.item() == 0
    assert all(
        torch.equal(gradient, torch.zeros_like(part))
        for gradient, part in zip(
            torch.autograd.grad(found, (readouts, weight, bias)), (readouts, weight, bias), strict=True
        )
    )


def test_under_autocast_the_products_are_in_bfloat16_and_the_loss_is_not() -> None:
    readouts, weight, bias, targets = (
        part.detach().float() if part.is_floating_point() else part for part in layer(40)
    )
    parts = [part.requires_grad_() for part in (readouts, weight, bias)]
    expected = nn.functional.cross_entropy(nn.functional.linear(*parts), targets, reduction="sum")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = output_cross_entropy(readouts, weight, bias, targets)
    assert found.dtype == torch.float32
    assert not torch.equal(found, expected)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=0)
    for one, other in zip(torch.autograd.grad(found, parts), torch.autograd.grad(expected, parts), strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=0, atol=0.1)
