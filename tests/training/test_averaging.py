import pytest
import torch
from torch import nn

from nmt.training.state import average_weights


def layer(value: float) -> nn.Linear:
    module = nn.Linear(1, 1, bias=False)
    nn.init.constant_(module.weight, value)
    return module


def test_the_average_of_a_few_updates_by_hand() -> None:
    module = layer(0.0)
    average = average_weights(module, 0.5)
    for value in (11.0, 12.0, 26.0):
        nn.init.constant_(module.weight, value)
        average.update_parameters(module)
    # Decays: 2/11, 3/12, 4/13. 9/11 * 11 = 9; 9 / 4 + 12 * 3 / 4 = 11.25; 11.25 * 4 / 13 + 26 * 9 / 13.
    assert average.module.weight.item() == pytest.approx(11.25 * 4 / 13 + 18)
    assert module.weight.item() == 26


def test_late_updates_decay_as_configured() -> None:
    module = layer(0.0)
    average = average_weights(module, 0.9)
    average.n_averaged += 1000
    nn.init.constant_(module.weight, 1.0)
    for _ in range(10):
        average.update_parameters(module)
    assert average.module.weight.item() == pytest.approx(1 - 0.9**10)


def test_tied_weights_are_averaged_once() -> None:
    module = nn.Sequential(layer(1.0), layer(2.0))
    module[1].weight = module[0].weight
    average = average_weights(module, 0.9)
    nn.init.constant_(module[0].weight, 4.0)
    average.update_parameters(module)
    expected = 1 + 3 * (1 - 2 / 11)
    assert [part.weight.item() for part in average.module] == pytest.approx([expected, expected])
    assert torch.equal(module[0].weight, torch.tensor([[4.0]]))
