import pytest
import torch

from nmt.layers.kernels.dropout import LEVELS, Dropout, draw_mask


@pytest.mark.parametrize("kept", [1, 1000, LEVELS // 2, LEVELS - 1])
def test_the_exact_share_of_random_values_is_kept(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    every = torch.arange(LEVELS, dtype=torch.int32).to(torch.int16).view(torch.int64)
    monkeypatch.setattr(torch.Tensor, "random_", lambda self, *bounds: self.copy_(every))
    mask = draw_mask(torch.Size([256, 256]), kept)
    assert int(mask.sum()) == kept
    assert set(mask.unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.2, 0.5, 0.75])
def test_the_mean_stays(p: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    found = Dropout(p).train()(torch.ones(301, 1003, dtype=dtype))
    assert found.dtype == dtype
    share = float((found == 0).double().mean())
    assert share == pytest.approx(p, abs=4 * (p * (1 - p) / found.numel()) ** 0.5)
    levels = found.unique().tolist()
    assert levels[0] == 0
    assert levels[1:] == pytest.approx([1 / (1 - p)], rel=4e-3 if dtype == torch.bfloat16 else 1e-4)
    rows = (found != 0).double()
    assert float(torch.corrcoef(rows.flatten().view(-1, 7).t())[0, 1:].abs().max()) < 0.02  # neighbours are independent


def test_kept_units_are_divided_by_the_true_probability() -> None:
    """1 - p = 2 / 65536 after rounding."""
    torch.manual_seed(0)
    found = Dropout(1 - 2.4 / LEVELS).train()(torch.ones(10**6, dtype=torch.float64))
    assert float(found.max()) == LEVELS / 2


def test_gradients_pass_where_units_do() -> None:
    torch.manual_seed(0)
    inputs = torch.rand(5, 9).add(1).requires_grad_()
    outputs = Dropout(0.4).train()(inputs)
    (gradient,) = torch.autograd.grad(outputs.sum(), inputs)
    torch.testing.assert_close(gradient, (outputs / inputs).detach())


@pytest.mark.parametrize(("p", "training"), [(0.5, False), (0.0, True)])
def test_without_training_or_probability_nothing_happens(p: float, training: bool) -> None:
    inputs = torch.rand(4, 3)
    state = torch.get_rng_state()
    assert Dropout(p).train(training)(inputs) is inputs
    assert torch.equal(torch.get_rng_state(), state)


def test_everything_can_be_dropped() -> None:
    assert not Dropout(1.0).train()(torch.ones(7, 3)).any()


def test_random_numbers_come_from_the_global_generator() -> None:
    dropout, inputs = Dropout(0.5).train(), torch.ones(8, 5)
    torch.manual_seed(3)
    first, second = dropout(inputs), dropout(inputs)
    torch.manual_seed(3)
    assert torch.equal(dropout(inputs), first)
    assert not torch.equal(first, second)


def test_no_units() -> None:
    assert Dropout(0.5).train()(torch.ones(0, 3)).shape == (0, 3)
