import math

import pytest
import torch
from gradients import assert_same_gradients
from torch import Tensor, nn

from nmt.layers.kernels import cross_entropy, products
from nmt.layers.kernels.cross_entropy import consistent_cross_entropy, output_cross_entropy

SIZE, UNITS = 10, 4  # of the vocabulary, of a readout
OPTIONS = pytest.mark.parametrize(
    ("smoothing", "weight"), [(0.0, None), (0.1, None), (0.5, None), (0.0, 1.0), (0.1, 5.0), (0.3, 0.0)]
)
"""Label smoothing, and the weight of R-Drop's divergence; None is one pass."""


def layer(positions: int, weight: float | None, scale: float = 1.0) -> tuple[list[Tensor], Tensor]:
    """Readouts, weight and bias of float64 that need gradients, and words; of one pass or two."""
    torch.manual_seed(positions)
    passes = 1 if weight is None else 2
    shapes = ((passes * positions, UNITS), (SIZE, UNITS), (SIZE,))
    parts = [(torch.randn(shape, dtype=torch.float64) * scale).requires_grad_() for shape in shapes]
    return parts, torch.randint(SIZE, (positions,)).repeat(passes)


def loss(parts: list[Tensor], targets: Tensor, smoothing: float, weight: float | None) -> Tensor:
    if weight is None:
        return output_cross_entropy(*parts, targets, smoothing)
    return consistent_cross_entropy(*parts, targets, smoothing, weight)


def written_out(parts: list[Tensor], targets: Tensor, smoothing: float, weight: float | None) -> Tensor:
    """Cross-entropy, or half of equation 4 of Liang et al. (2021), with torch's own losses."""
    logits = nn.functional.linear(*parts)
    entropy = nn.functional.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    if weight is None:
        return entropy
    first, second = torch.log_softmax(logits, dim=1).chunk(2)
    divergences = (
        nn.functional.kl_div(one, other, log_target=True, reduction="sum")
        for one, other in ((first, second), (second, first))
    )
    return (entropy + weight * sum(divergences) / 2) / 2


def test_cross_entropy_of_the_uniform_distribution() -> None:
    weight, bias = torch.zeros(SIZE, UNITS), torch.zeros(SIZE)
    found = output_cross_entropy(torch.ones(3, UNITS), weight, bias, torch.tensor([3, 4, 9]), 0.2)
    assert float(found) == pytest.approx(3 * math.log(SIZE), rel=1e-6)


def test_the_loss_of_an_impossible_word_is_finite() -> None:
    weight = torch.tensor([[200.0], [0.0], [-200.0]])
    found = output_cross_entropy(torch.ones(1, 1), weight, torch.zeros(3), torch.tensor([2]))
    assert float(found) == pytest.approx(400.0)


@pytest.mark.parametrize("positions", [1, 3, 4, 5, 7, 8, 9, 16, 21])
@OPTIONS
def test_loss_and_gradients_equal_torchs_in_any_number_of_chunks(
    positions: int, smoothing: float, weight: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "CHUNK_ROWS", 8)
    monkeypatch.setattr(products, "ROW_STEP", 3)
    parts, targets = layer(positions, weight, 2.5)
    expected = written_out(parts, targets, smoothing, weight)
    found = loss(parts, targets, smoothing, weight)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    assert_same_gradients(found, expected, parts, atol=2e-12 * max(1.0, float(expected.detach())))


def test_equal_passes_have_the_loss_of_one() -> None:
    (readouts, weight, bias), targets = layer(5, None)
    expected = output_cross_entropy(readouts, weight, bias, targets, 0.1)
    found = consistent_cross_entropy(readouts.repeat(2, 1), weight, bias, targets.repeat(2), 0.1, 3.0)
    torch.testing.assert_close(found, expected)


@OPTIONS
def test_without_gradients_the_loss_is_the_same(smoothing: float, weight: float | None) -> None:
    parts, targets = layer(5, weight)
    expected = loss(parts, targets, smoothing, weight)
    with torch.no_grad():
        assert torch.equal(loss(parts, targets, smoothing, weight), expected)


@OPTIONS
def test_without_positions_the_loss_is_zero(smoothing: float, weight: float | None) -> None:
    parts, targets = layer(0, weight)
    found = loss(parts, targets, smoothing, weight)
    assert found.item() == 0
    assert all(not gradient.any() for gradient in torch.autograd.grad(found, parts))


@OPTIONS
def test_under_autocast_the_products_alone_are_in_bfloat16(smoothing: float, weight: float | None) -> None:
    parts, targets = layer(40, weight)
    parts = [part.detach().float().requires_grad_() for part in parts]
    expected = written_out(parts, targets, smoothing, weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = loss(parts, targets, smoothing, weight)
    assert found.dtype == torch.float32
    assert not torch.equal(found, expected)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=0)
    for one, other in zip(torch.autograd.grad(found, parts), torch.autograd.grad(expected, parts), strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=0, atol=0.3)
