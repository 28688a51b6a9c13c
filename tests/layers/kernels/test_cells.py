import pytest
import torch
from gradients import assert_same_gradients
from torch import Tensor, nn

from nmt.layers.kernels import cells
from nmt.layers.kernels.activation import tanh
from nmt.layers.kernels.additive_scores import additive_scores
from nmt.layers.kernels.cells import cpu_has_bfloat16_lstm, gru_sequence, gru_step, lstm_step, rnn_step, run_lstm
from nmt.layers.kernels.reversal import reorder
from nmt.layers.kernels.stepwise import StepWeight


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("rows", [1, 3])
def test_a_step_of_an_lstm_equals_torchs(rows: int) -> None:
    torch.manual_seed(0)
    cell = nn.LSTMCell(4, 5).double()
    read, hidden, memory = draw(rows, 4), draw(rows, 5), draw(rows, 5)
    bias = cell.bias_ih + cell.bias_hh
    weight = StepWeight(torch.cat([cell.weight_ih, cell.weight_hh], dim=1))
    found = lstm_step(bias.expand(rows, -1), torch.cat([read, hidden], dim=1), memory, weight)
    expected = cell(read, (hidden, memory))
    parts = [read, hidden, memory, *cell.parameters()]
    assert_same_gradients(torch.cat(found, dim=1), torch.cat(expected, dim=1), parts)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_step_of_a_gru_equals_torchs(rows: int) -> None:
    torch.manual_seed(0)
    cell = nn.GRUCell(4, 5).double()
    read, hidden = draw(rows, 4), draw(rows, 5)
    gates = nn.functional.linear(read, cell.weight_ih, cell.bias_ih)
    from_hidden = nn.functional.linear(hidden, cell.weight_hh, cell.bias_hh)
    parts = [read, hidden, *cell.parameters()]
    assert_same_gradients(gru_step(gates, from_hidden, hidden), cell(read, hidden), parts)


def test_a_step_of_a_plain_cell_equals_torchs() -> None:
    torch.manual_seed(0)
    cell = nn.RNNCell(4, 5).double()
    read, hidden = draw(3, 4), draw(3, 5)
    gates = nn.functional.linear(read, cell.weight_ih, cell.bias_ih)
    from_hidden = nn.functional.linear(hidden, cell.weight_hh, cell.bias_hh)
    parts = [read, hidden, *cell.parameters()]
    assert_same_gradients(rnn_step(gates, from_hidden, hidden), cell(read, hidden), parts)


@pytest.mark.parametrize(("rows", "length"), [(1, 1), (3, 4), (2, 7)])
def test_a_gru_over_sequences_equals_torchs(rows: int, length: int) -> None:
    torch.manual_seed(0)
    layer = nn.GRU(4, 5, batch_first=True).double()
    inputs, hidden = draw(rows, length, 4), draw(rows, 5)
    weights = (layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0)
    states, last = gru_sequence(inputs, hidden, *weights)
    expected, expected_last = layer(inputs, hidden.unsqueeze(0))
    parts = [inputs, hidden, *weights]
    assert_same_gradients(
        torch.cat([states, last.unsqueeze(1)], dim=1),
        torch.cat([expected, expected_last.transpose(0, 1)], dim=1),
        parts,
    )


def test_under_autocast_a_gru_is_close_to_float32() -> None:
    torch.manual_seed(0)
    layer = nn.GRU(4, 5, batch_first=True)
    inputs, hidden = torch.randn(3, 6, 4), torch.randn(3, 5)
    weights = (layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0)
    expected, _ = gru_sequence(inputs, hidden, *weights)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, _ = gru_sequence(inputs, hidden, *weights)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0, atol=0.03)
    gradients = [torch.autograd.grad(out.float().sum(), weights) for out in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=0.05, atol=0.3)


def lstm_layers() -> tuple[nn.LSTM, Tensor, tuple[Tensor, Tensor]]:
    torch.manual_seed(0)
    return nn.LSTM(4, 5, 2, batch_first=True), torch.randn(3, 7, 4), (torch.randn(2, 3, 5), torch.randn(2, 3, 5))


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_without_autocast_an_lstm_is_torchs(has_bfloat16: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "cpu_has_bfloat16_lstm", lambda: has_bfloat16)
    layers, inputs, state = lstm_layers()
    torch.testing.assert_close(run_lstm(layers, inputs, state), layers(inputs, state), rtol=0, atol=0)


def test_a_cpu_without_bfloat16_computes_an_lstm_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "cpu_has_bfloat16_lstm", lambda: False)
    layers, inputs, state = lstm_layers()
    with torch.autocast("cpu", torch.bfloat16):
        outputs, (h, c) = run_lstm(layers, inputs.bfloat16(), (state[0].bfloat16(), state[1]))
    expected = layers(inputs.bfloat16().float(), (state[0].bfloat16().float(), state[1]))
    torch.testing.assert_close((outputs, (h, c)), expected, rtol=0, atol=0)
    torch.autograd.backward(outputs.sum())
    assert all(parameter.grad is not None for parameter in layers.parameters())


def test_under_autocast_an_lstm_works_on_every_cpu_and_draws_no_random_numbers() -> None:
    cpu_has_bfloat16_lstm.cache_clear()
    layers, inputs, state = lstm_layers()
    before = torch.get_rng_state()
    with torch.autocast("cpu", torch.bfloat16):
        outputs, _ = run_lstm(layers, inputs, state)
    assert torch.equal(torch.get_rng_state(), before)
    torch.testing.assert_close(outputs.float(), layers(inputs, state)[0], rtol=0, atol=0.05)


@pytest.mark.parametrize("own_keys", [False, True])
@pytest.mark.parametrize(("queries", "source"), [(1, 1), (1, 4), (3, 5)])
def test_additive_scores_equal_the_formula(queries: int, source: int, own_keys: bool) -> None:
    """Bahdanau et al., 2015, appendix A.1.2."""
    torch.manual_seed(0)
    query, energy = draw(2, queries, 6), draw(6)
    keys = draw(2, queries, source, 6) if own_keys else draw(2, source, 6)
    expected = torch.tanh(query.unsqueeze(2) + (keys if own_keys else keys.unsqueeze(1))) @ energy
    assert_same_gradients(additive_scores(query, keys, energy), expected, [query, keys, energy])
    assert torch.autograd.gradcheck(additive_scores, (query, keys, energy))


def test_tanh_equals_torchs() -> None:
    inputs = torch.cat([torch.linspace(-30, 30, 301, dtype=torch.float64), torch.logspace(-12, 0, 50).double()])
    inputs.requires_grad_()
    assert_same_gradients(tanh(inputs), torch.tanh(inputs), [inputs])
    single = inputs.detach().float()
    torch.testing.assert_close(tanh(single), single.tanh(), rtol=0, atol=1.3e-7)
    half = single.bfloat16()
    assert torch.equal(tanh(half), half.tanh())


def test_a_reversal_applied_twice_is_the_identity() -> None:
    rows, order = draw(4, 3), torch.tensor([2, 1, 0, 3])
    reversed_rows = reorder(rows, order)
    assert torch.equal(reversed_rows, rows[[2, 1, 0, 3]])
    assert torch.equal(reorder(reversed_rows, order), rows)
    assert torch.autograd.gradcheck(lambda rows: reorder(rows, order), (rows,))
