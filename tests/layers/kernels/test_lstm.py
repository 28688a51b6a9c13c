import pytest
import torch
from torch import Tensor, nn

from nmt.layers.kernels import lstm
from nmt.layers.kernels.lstm import cpu_has_bfloat16_lstm, run_lstm


def make_layers() -> tuple[nn.LSTM, Tensor, tuple[Tensor, Tensor]]:
    torch.manual_seed(0)
    return nn.LSTM(4, 5, 2, batch_first=True), torch.randn(3, 7, 4), (torch.randn(2, 3, 5), torch.randn(2, 3, 5))


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_without_autocast_it_is_torchs(has_bfloat16: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lstm, "cpu_has_bfloat16_lstm", lambda: has_bfloat16)
    layers, inputs, state = make_layers()
    expected, found = layers(inputs, state), run_lstm(layers, inputs, state)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_a_cpu_without_bfloat16_computes_it_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lstm, "cpu_has_bfloat16_lstm", lambda: False)
    layers, inputs, state = make_layers()
    with torch.autocast("cpu", torch.bfloat16):
        outputs, (h, c) = run_lstm(layers, inputs.bfloat16(), (state[0].bfloat16(), state[1]))
    expected = layers(inputs.bfloat16().float(), (state[0].bfloat16().float(), state[1]))
    torch.testing.assert_close((outputs, (h, c)), expected, rtol=0, atol=0)
    torch.autograd.backward(outputs.sum())
    assert all(parameter.grad is not None for parameter in layers.parameters())


def test_under_autocast_it_works_on_every_cpu() -> None:
    layers, inputs, state = make_layers()
    expected, _ = layers(inputs, state)
    with torch.autocast("cpu", torch.bfloat16):
        outputs, _ = run_lstm(layers, inputs, state)
    torch.testing.assert_close(outputs.float(), expected, rtol=0, atol=0.05)


def test_trying_a_cpu_draws_no_random_numbers() -> None:
    cpu_has_bfloat16_lstm.cache_clear()
    before = torch.get_rng_state()
    cpu_has_bfloat16_lstm()
    assert torch.equal(torch.get_rng_state(), before)
