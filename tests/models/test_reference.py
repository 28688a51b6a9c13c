"""The equations against values worked out by hand, and against torch's own layers."""

import math

import pytest
import torch
from torch import Tensor, nn

from nmt.models import reference


def vector(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_a_step_of_an_lstm_by_hand() -> None:
    W, U, b = vector(0.5, -1.0, 2.0, 0.25).view(4, 1), vector(1.0, 0.5, -1.0, 0.0).view(4, 1), vector(0.1, 0.2, 0.3, 0)
    h, c = reference.lstm_step(vector(2.0), vector(0.4), vector(-0.5), W, U, b)
    i, f, g, o = 1.0 + 0.4 + 0.1, -2.0 + 0.2 + 0.2, 4.0 - 0.4 + 0.3, 0.5
    expected = sigmoid(f) * -0.5 + sigmoid(i) * math.tanh(g)
    assert c.tolist() == pytest.approx([expected], abs=1e-12)
    assert h.tolist() == pytest.approx([sigmoid(o) * math.tanh(expected)], abs=1e-12)


def test_a_step_of_a_gru_by_hand() -> None:
    W, U = vector(0.5, -1.0, 2.0).view(3, 1), vector(1.0, 0.5, -1.0).view(3, 1)
    h = reference.gru_step(vector(2.0), vector(0.4), W, U, vector(0.1, 0.2, 0.3), vector(0.0, -0.1, 0.7))
    r, z = sigmoid(1.0 + 0.1 + 0.4), sigmoid(-2.0 + 0.2 + 0.2 - 0.1)
    n = math.tanh(4.0 + 0.3 + r * (-0.4 + 0.7))
    assert h.tolist() == pytest.approx([(1 - z) * n + z * 0.4], abs=1e-12)


def test_a_step_of_a_plain_cell_by_hand() -> None:
    """Two units, of which the second reads neither input nor its bias."""
    W, U, b, d = (
        vector(0.5, 0.0).view(2, 1),
        vector(1.0, -2.0, 0.25, 0.5).view(2, 2),
        vector(0.1, 0.0),
        vector(0.2, 0.0),
    )
    h = reference.rnn_step(vector(2.0), vector(0.4, 0.3), W, U, b, d)
    expected = [math.tanh(1.0 + 0.1 + 0.4 - 0.6 + 0.2), math.tanh(0.1 + 0.15)]
    assert h.tolist() == pytest.approx(expected, abs=1e-12)


def test_steps_equal_torchs() -> None:
    torch.manual_seed(0)
    sequence = torch.randn(6, 3, dtype=torch.float64)
    xs = list(sequence)
    h = c = torch.zeros(4, dtype=torch.float64)
    lstm, gru, rnn = nn.LSTM(3, 4).double(), nn.GRU(3, 4).double(), nn.RNN(3, 4).double()
    w, u, b, d = lstm.parameters()
    found = reference.run(lambda x, state: reference.lstm_step(x, *state, w, u, b + d), xs, (h, c))
    torch.testing.assert_close(torch.stack(found), lstm(sequence)[0], rtol=0, atol=1e-12)
    for module, step in ((gru, reference.gru_step), (rnn, reference.rnn_step)):
        weights = list(module.parameters())
        found = reference.run(lambda x, state, step=step, w=weights: (step(x, *state, *w),), xs, (h,))
        torch.testing.assert_close(torch.stack(found), module(sequence)[0], rtol=0, atol=1e-12)
    both = nn.GRU(3, 4, bidirectional=True).double()
    *rightward, w, u, b, d = both.parameters()
    directions = [lambda x, state, p=p: (reference.gru_step(x, *state, *p),) for p in (rightward, (w, u, b, d))]
    found = reference.encode(xs, *directions, (h,))
    torch.testing.assert_close(torch.stack(found), both(sequence)[0], rtol=0, atol=1e-12)


def test_layer_normalisation_equals_torchs() -> None:
    torch.manual_seed(0)
    norm = nn.LayerNorm(5).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    a = torch.randn(5, dtype=torch.float64)
    torch.testing.assert_close(reference.layer_norm(a, norm.weight, norm.bias), norm(a), rtol=0, atol=1e-12)


def test_layer_normalised_cells_by_hand() -> None:
    """With norms that change nothing they are the plain cells without biases."""
    torch.manual_seed(0)
    x, h, c = (torch.randn(size, dtype=torch.float64) for size in (3, 2, 2))
    W, U = torch.randn(8, 3, dtype=torch.float64), torch.randn(8, 2, dtype=torch.float64)

    def same(a: Tensor) -> Tensor:
        return a

    found = reference.normalized_lstm_step(x, h, c, W, U, same, same, same)
    torch.testing.assert_close(found, reference.lstm_step(x, h, c, W, U, W.new_zeros(8)))
    halved = reference.normalized_lstm_step(x, h, c, W, U, same, same, lambda a: a / 2)
    torch.testing.assert_close(halved[0] / found[0], torch.tanh(found[1] / 2) / torch.tanh(found[1]))
    found = reference.normalized_rnn_step(x, h, W[:2], U[:2], same, lambda a: a / 2)
    torch.testing.assert_close(found, torch.tanh(W[:2] @ x + U[:2] @ h / 2))
    W, U, zeros = W[:6], U[:6], W.new_zeros(6)
    found = reference.normalized_gru_step(x, h, W, U, (same, same), (same, same))
    torch.testing.assert_close(found, reference.gru_step(x, h, W, U, zeros, zeros))


def test_scores_by_hand() -> None:
    s, h = vector(1.0, 2.0), vector(0.5, -1.0)
    W, U = vector(1.0, 0.0, 0.0, 0.5).view(2, 2), vector(2.0, 0.0, 1.0, 1.0).view(2, 2)
    v = vector(3.0, -1.0)
    assert float(reference.dot(s, h)) == -1.5
    assert float(reference.scaled_dot(s, h)) == pytest.approx(-1.5 / math.sqrt(2))
    assert float(reference.general(s, h, U)) == 2.0 * 0.5 + 2 * (0.5 - 1.0)
    assert float(reference.cosine(s, h, vector(4.0))) == pytest.approx(4 * -1.5 / math.sqrt(5 * 1.25))
    assert reference.location(s, W).tolist() == [1.0, 1.0]
    expected = 3 * math.tanh(1.0 + 1.0) - math.tanh(1.0 - 0.5)
    assert float(reference.additive(s, h, W, U, v)) == pytest.approx(expected, abs=1e-12)
    found = reference.additive(s, h, W, U, v, vector(1.0, -2.0) * 0.5)
    assert float(found) == pytest.approx(3 * math.tanh(2.0 + 0.5) - math.tanh(0.5 - 1.0), abs=1e-12)


def test_location_features_by_hand() -> None:
    found = reference.location_features(vector(0.2, 0.8, 0.0), vector(1.0, 2.0, 3.0).view(1, 3))
    assert found.squeeze(1).tolist() == pytest.approx([0.4 + 2.4, 0.2 + 1.6, 0.8])


def test_attention_by_hand() -> None:
    states = vector(1.0, 0.0, 0.0, 1.0, 4.0, 4.0).view(3, 2)
    context, alignment = reference.attend(vector(0.0, math.log(2), 0.0), states)
    assert alignment.tolist() == pytest.approx([0.25, 0.5, 0.25])
    assert context.tolist() == pytest.approx([1.25, 1.5])


def test_windows_by_hand() -> None:
    assert [reference.monotonic_centre(t, 3) for t in range(5)] == [0, 1, 2, 2, 2]
    assert reference.window(6, 2.5, 1) == [2, 3]
    assert reference.window(6, 0, 2) == [0, 1, 2]
    W, v = torch.eye(2, dtype=torch.float64), vector(1.0, -1.0)
    centre = reference.predicted_centre(vector(0.3, 0.1), 8, W, v)
    assert float(centre) == pytest.approx(8 * sigmoid(math.tanh(0.3) - math.tanh(0.1)))
    found = reference.gaussian(vector(0.5, 0.5), vector(1.0, 2.0), vector(2.0), 4)
    assert found.tolist() == pytest.approx([0.5 * math.exp(-1 / 8), 0.5])


def test_the_coverage_loss_by_hand() -> None:
    alignments = vector(0.9, 0.1, 0.5, 0.5, 0.0, 1.0).view(3, 2)
    assert float(reference.coverage_loss(alignments)) == pytest.approx((0.5 + 0.1) + (0.0 + 0.6))


def test_readouts_by_hand() -> None:
    s, c, y = vector(1.0), vector(-2.0), vector(0.5)
    W, b = vector(1.0, 1.0, 2.0, 0.0, -1.0, 1.0).view(2, 3), vector(0.25, 0.0)
    assert reference.bahdanau_readout(s, c, y, W, b).tolist() == pytest.approx([math.tanh(0.25), math.tanh(2.5)])
    assert reference.maxout_readout(s, c, y, W, b).tolist() == [2.5]
    assert reference.initial_state(s, vector(3.0).view(1, 1), vector(-1.0)).tolist() == [math.tanh(2.0)]


def test_orders_of_attending_and_updating() -> None:
    """A cell that adds up what it reads shows what it read, and when."""

    def add(x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (state[0] + x.sum(),)

    def attention(query: Tensor) -> tuple[Tensor, Tensor]:
        return 10 * query, query

    s, c, a, state = reference.bahdanau_step(vector(1.0), (vector(2.0),), attention, add)
    assert (s.item(), c.item(), a.item(), state[0].item()) == (2 + 1 + 20, 20, 2, 23)
    W = vector(0.01, 0.1).view(1, 2)
    attentional, a, state = reference.luong_step(vector(1.0), (vector(2.0),), attention, add, W)
    assert (a.item(), state[0].item()) == (3, 3)
    assert attentional.item() == pytest.approx(math.tanh(0.01 * 30 + 0.1 * 3))
    _, a, _ = reference.luong_step(vector(1.0), (vector(2.0),), attention, add, W, feedback=vector(4.0))
    assert a.item() == 7


def test_cross_entropy_by_hand() -> None:
    W, b = vector(1.0, 0.0).view(2, 1), vector(0.0, math.log(3))
    loss = reference.cross_entropy(vector(0.0), 0, W, b)
    assert float(loss) == pytest.approx(math.log(4))
    smoothed = reference.cross_entropy(vector(0.0), 0, W, b, 0.1)
    assert float(smoothed) == pytest.approx(0.9 * math.log(4) + 0.1 * (math.log(4) + math.log(4 / 3)) / 2)
