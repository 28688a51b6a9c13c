import pytest
import torch
from torch import Tensor, nn

from nmt.layers.kernels import cross_entropy
from nmt.layers.kernels.consistency import consistent_cross_entropy
from nmt.layers.kernels.cross_entropy import output_cross_entropy

SIZE, UNITS = 10, 4  # of the vocabulary, of a readout


def layer(positions: int, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Readouts of two passes, weight and bias of float64 that need gradients, and words."""
    torch.manual_seed(positions)
    shapes = ((2 * positions, UNITS), (SIZE, UNITS), (SIZE,))
    readouts, weight, bias = ((torch.randn(shape, dtype=torch.float64) * scale).requires_grad_() for shape in shapes)
    return readouts, weight, bias, torch.randint(SIZE, (positions,)).repeat(2)


def written_out(parts: tuple[Tensor, ...], targets: Tensor, smoothing: float, weight: float) -> Tensor:
    """Half of equation 4 of Liang et al. (2021), with torch's own losses."""
    first, second = torch.log_softmax(nn.functional.linear(*parts), dim=1).chunk(2)
    divergence = nn.functional.kl_div(first, second, log_target=True, reduction="sum") + nn.functional.kl_div(
        second, first, log_target=True, reduction="sum"
    )
    logits = nn.functional.linear(*parts)
    entropy = nn.functional.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    return (entropy + weight * divergence / 2) / 2


@pytest.mark.parametrize("positions", [1, 3, 4, 5, 8, 21])
@pytest.mark.parametrize(("smoothing", "weight"), [(0.0, 1.0), (0.1, 5.0), (0.3, 0.0)])
def test_loss_and_gradients_equal_torchs_in_any_number_of_chunks(
    positions: int, smoothing: float, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "CHUNK_ROWS", 8)
    *parts, targets = layer(positions, 2.0)
    expected = written_out((*parts,), targets, smoothing, weight)
    found = consistent_cross_entropy(*parts, targets, smoothing, weight)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    for one, other in zip(
        torch.autograd.grad(0.3 * found, parts), torch.autograd.grad(0.3 * expected, parts), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_equal_passes_have_the_loss_of_one() -> None:
    readouts, weight, bias, targets = layer(5)
    twice = readouts[:5].repeat(2, 1)
    expected = output_cross_entropy(readouts[:5], weight, bias, targets[:5], 0.1)
    torch.testing.assert_close(consistent_cross_entropy(twice, weight, bias, targets, 0.1, 3.0), expected)


def test_without_gradients_the_loss_is_the_same() -> None:
    *parts, targets = layer(5)
    expected = consistent_cross_entropy(*parts, targets, 0.1, 3.0)
    with torch.no_grad():
        assert torch.equal(consistent_cross_entropy(*parts, targets, 0.1, 3.0), expected)


def test_without_positions_the_loss_is_zero() -> None:
    *parts, targets = layer(0)
    found = consistent_cross_entropy(*parts, targets)
    assert found.item() == 0
    assert all(not gradient.any() for gradient in torch.autograd.grad(found, parts))


def test_under_autocast_the_products_are_in_bfloat16_and_the_loss_is_not() -> None:
    *parts, targets = layer(40)
    parts = [part.detach().float().requires_grad_() for part in parts]
    expected = written_out((*parts,), targets, 0.1, 2.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = consistent_cross_entropy(*parts, targets, 0.1, 2.0)
    assert found.dtype == torch.float32
    assert not torch.equal(found, expected)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=0)
    for one, other in zip(torch.autograd.grad(found, parts), torch.autograd.grad(expected, parts), strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=0, atol=0.2)
