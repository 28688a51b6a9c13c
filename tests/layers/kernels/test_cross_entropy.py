import math

import pytest
import torch
from gradients import assert_same_gradients
from torch import Tensor, nn

from nmt.layers.kernels import cross_entropy, products
from nmt.layers.kernels.cross_entropy import chunk_rows, consistent_cross_entropy, output_cross_entropy

SIZE, UNITS = 10, 4  # of the vocabulary, of a readout
SMOOTHING = pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])


def layer(positions: int, scale: float = 1.0) -> tuple[list[Tensor], Tensor]:
    """Readouts, weight and bias of float64 that need gradients, and words."""
    torch.manual_seed(positions)
    shapes = ((positions, UNITS), (SIZE, UNITS), (SIZE,))
    parts = [(torch.randn(shape, dtype=torch.float64) * scale).requires_grad_() for shape in shapes]
    return parts, torch.randint(SIZE, (positions,))


def written_out(parts: list[Tensor], targets: Tensor, smoothing: float) -> Tensor:
    """Cross-entropy by torch's own loss."""
    logits = nn.functional.linear(*parts)
    return nn.functional.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)


def test_cross_entropy_of_the_uniform_distribution() -> None:
    weight, bias = torch.zeros(SIZE, UNITS), torch.zeros(SIZE)
    found = output_cross_entropy(torch.ones(3, UNITS), weight, bias, torch.tensor([3, 4, 9]), 0.2)
    assert float(found) == pytest.approx(3 * math.log(SIZE), rel=1e-6)


def test_the_loss_of_an_impossible_word_is_finite() -> None:
    weight = torch.tensor([[200.0], [0.0], [-200.0]])
    found = output_cross_entropy(torch.ones(1, 1), weight, torch.zeros(3), torch.tensor([2]))
    assert float(found) == pytest.approx(400.0)


@pytest.mark.parametrize("positions", [1, 3, 4, 5, 7, 8, 9, 16, 21])
@SMOOTHING
def test_loss_and_gradients_equal_torchs_in_any_number_of_chunks(
    positions: int, smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "CHUNK_ROWS", 8)
    monkeypatch.setattr(products, "ROW_STEP", 3)
    parts, targets = layer(positions, 2.5)
    expected = written_out(parts, targets, smoothing)
    found = output_cross_entropy(*parts, targets, smoothing)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    assert_same_gradients(found, expected, parts, atol=2e-12 * max(1.0, float(expected.detach())))


@pytest.mark.parametrize("places", [[], [0], [2, 3, 8], list(range(9))])
@SMOOTHING
def test_ignored_positions_have_no_loss_and_no_gradient(
    places: list[int], smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "CHUNK_ROWS", 4)
    parts, targets = layer(9)
    targets = targets.clamp(min=1)
    targets[places] = 0
    logits = nn.functional.linear(*parts)
    options = {"reduction": "sum", "label_smoothing": smoothing, "ignore_index": 0}
    expected = nn.functional.cross_entropy(logits, targets, **options)
    found = output_cross_entropy(*parts, targets, smoothing, ignored=0)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    assert_same_gradients(found, expected, parts, atol=1e-12)


def test_logits_in_memory_depend_on_the_device_and_the_vocabulary() -> None:
    assert chunk_rows("cpu", 100) == chunk_rows("cpu", 100_000) == 1024
    assert chunk_rows("cuda", 8192) == 8192  # times 8,192 words of four bytes: 256 MiB
    assert chunk_rows("cuda", 1 << 20) == 1024


@SMOOTHING
def test_without_gradients_the_loss_is_the_same(smoothing: float) -> None:
    parts, targets = layer(5)
    expected = output_cross_entropy(*parts, targets, smoothing)
    with torch.no_grad():
        assert torch.equal(output_cross_entropy(*parts, targets, smoothing), expected)


@SMOOTHING
def test_without_positions_the_loss_is_zero(smoothing: float) -> None:
    parts, targets = layer(0)
    found = output_cross_entropy(*parts, targets, smoothing)
    assert found.item() == 0
    assert all(not gradient.any() for gradient in torch.autograd.grad(found, parts))


@SMOOTHING
def test_under_autocast_the_products_alone_are_in_bfloat16(smoothing: float) -> None:
    parts, targets = layer(40)
    parts = [part.detach().float().requires_grad_() for part in parts]
    expected = written_out(parts, targets, smoothing)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = output_cross_entropy(*parts, targets, smoothing)
    assert found.dtype == torch.float32
    assert not torch.equal(found, expected)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=0)
    for one, other in zip(torch.autograd.grad(found, parts), torch.autograd.grad(expected, parts), strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=0, atol=0.3)


# Two readings, and how far the second is from the first.

STOPPED = pytest.mark.parametrize("stop_gradient", [False, True])


def two_readings(positions: int, scale: float = 1.0) -> tuple[list[Tensor], Tensor]:
    """As `layer`, with readouts of two readings."""
    parts, _ = layer(2 * positions, scale)
    return parts, torch.randint(SIZE, (positions,))


def both_written_out(parts: list[Tensor], targets: Tensor, smoothing: float, stop_gradient: bool) -> Tensor:
    """Cross-entropy and three times the divergence by torch's own losses."""
    first, second = parts[0].split(len(targets))
    log_p, log_q = (nn.functional.linear(rows, *parts[1:]).log_softmax(dim=1) for rows in (first, second))
    divergence = nn.functional.kl_div(
        log_q, log_p.detach() if stop_gradient else log_p, reduction="sum", log_target=True
    )
    return written_out([first, *parts[1:]], targets, smoothing) + 3 * divergence


@pytest.mark.parametrize("positions", [1, 3, 4, 5, 7, 8, 9, 16, 21])
@SMOOTHING
@STOPPED
def test_loss_and_gradients_of_two_readings_equal_torchs_in_any_number_of_chunks(
    positions: int, smoothing: float, stop_gradient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "CHUNK_ROWS", 8)
    monkeypatch.setattr(products, "ROW_STEP", 3)
    parts, targets = two_readings(positions, 2.5)
    expected = both_written_out(parts, targets, smoothing, stop_gradient)
    found = consistent_cross_entropy(*parts, targets, smoothing, 3.0, stop_gradient=stop_gradient)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    assert_same_gradients(found, expected, parts, atol=2e-12 * max(1.0, float(expected.detach())))


@STOPPED
def test_without_gradients_the_loss_of_two_readings_is_the_same(stop_gradient: bool) -> None:
    parts, targets = two_readings(5)
    expected = consistent_cross_entropy(*parts, targets, 0.1, 3.0, stop_gradient=stop_gradient)
    with torch.no_grad():
        assert torch.equal(consistent_cross_entropy(*parts, targets, 0.1, 3.0), expected)


def test_equal_readings_do_not_diverge() -> None:
    parts, targets = layer(6)
    twice = [torch.cat([parts[0], parts[0]]), *parts[1:]]
    found = consistent_cross_entropy(*twice, targets, 0.1, 1000.0)
    torch.testing.assert_close(found, output_cross_entropy(*parts, targets, 0.1), rtol=1e-12, atol=0)


def test_the_divergence_of_impossible_words_is_finite() -> None:
    """The first reading is sure of a word that the second rules out: KL is the difference of the logits."""
    readouts, weight = torch.tensor([[1.0], [-1.0]]), torch.tensor([[200.0], [0.0], [-200.0]])
    found = consistent_cross_entropy(readouts, weight, torch.zeros(3), torch.tensor([0]), 0.0, 2.0)
    assert float(found) == pytest.approx(2 * 400.0)


@SMOOTHING
def test_without_positions_the_loss_of_two_readings_is_zero(smoothing: float) -> None:
    parts, targets = two_readings(0)
    found = consistent_cross_entropy(*parts, targets, smoothing, 3.0)
    assert found.item() == 0
    assert all(not gradient.any() for gradient in torch.autograd.grad(found, parts))


@STOPPED
def test_under_autocast_the_products_of_two_readings_alone_are_in_bfloat16(stop_gradient: bool) -> None:
    parts, targets = two_readings(40)
    parts = [part.detach().float().requires_grad_() for part in parts]
    expected = both_written_out(parts, targets, 0.1, stop_gradient)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = consistent_cross_entropy(*parts, targets, 0.1, 3.0, stop_gradient=stop_gradient)
    assert found.dtype == torch.float32
    assert not torch.equal(found, expected)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=0)
    for one, other in zip(torch.autograd.grad(found, parts), torch.autograd.grad(expected, parts), strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=0, atol=1.0)
