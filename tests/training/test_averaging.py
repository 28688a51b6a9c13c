import pytest
import torch
from torch import nn

from nmt.training.averaging import WeightAverage


def layer(value: float) -> nn.Linear:
    module = nn.Linear(1, 1, bias=False)
    nn.init.constant_(module.weight, value)
    return module


def test_the_average_of_a_few_updates_by_hand() -> None:
    module = layer(0.0)
    average = WeightAverage(module, 0.5)
    for updates, value in enumerate([11.0, 12.0, 26.0], 1):
        nn.init.constant_(module.weight, value)
        average.update(updates)
    # Decays: 2/11, 3/12, 4/13. 9/11 * 11 = 9; 9 / 4 + 12 * 3 / 4 = 11.25; 11.25 * 4 / 13 + 26 * 9 / 13.
    expected = 11.25 * 4 / 13 + 18
    with average.applied():
        assert module.weight.item() == pytest.approx(expected)
    assert module.weight.item() == 26


def test_late_updates_decay_as_configured() -> None:
    module = layer(0.0)
    average = WeightAverage(module, 0.9)
    nn.init.constant_(module.weight, 1.0)
    for updates in range(1000, 1010):
        average.update(updates)
    with average.applied():
        assert module.weight.item() == pytest.approx(1 - 0.9**10)


def test_the_weights_return_after_an_error() -> None:
    module = layer(3.0)
    average = WeightAverage(module, 0.9)
    nn.init.constant_(module.weight, 5.0)

    def fail() -> None:
        with average.applied():
            assert module.weight.item() == 3
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert module.weight.item() == 5
    with average.applied():
        assert module.weight.item() == 3


def test_tied_weights_are_averaged_once() -> None:
    module = nn.Sequential(layer(1.0), layer(2.0))
    module[1].weight = module[0].weight
    average = WeightAverage(module, 0.9)
    assert average.nbytes == 4
    nn.init.constant_(module[0].weight, 4.0)
    with average.applied():
        assert [part.weight.item() for part in module] == [1, 1]


def test_without_a_decay_nothing_is_averaged() -> None:
    module = layer(2.0)
    average = WeightAverage(module, None)
    average.update(1)
    assert average.nbytes == 0
    with average.applied():
        assert module.weight.item() == 2
    assert torch.equal(module.weight, torch.tensor([[2.0]]))
