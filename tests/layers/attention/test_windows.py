"""Windows of attention: never empty, differentiable where they are predicted, drawn fairly where they are hard."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from nmt.config import AttentionSection
from nmt.layers.attention.attention import Attention, build_attention
from nmt.layers.attention.source_memory import Memory
from nmt.layers.attention.window import MonotonicWindow, PredictiveWindow

SIZE = 4


def memory_of(lengths: Tensor, width: int) -> Memory:
    nothing = torch.zeros(len(lengths), 1, width, SIZE)
    return Memory(nothing, nothing, torch.arange(width) < lengths.unsqueeze(1), lengths)


@given(st.integers(0, 300), st.integers(1, 60), st.integers(1, 12), st.integers(0, 5))
def test_a_monotonic_window_moves_on_and_is_never_empty(step: int, length: int, radius: int, padding: int) -> None:
    window = MonotonicWindow(radius)
    memory = memory_of(torch.tensor([length]), length + padding)
    state = {"step": window.initial_state(memory)["step"] + step}
    centre = min(step, length - 1)
    expected = [j for j in range(length) if abs(j - centre) <= radius]
    _, inside = window.locate(torch.zeros(1, 1, SIZE), memory, state)
    assert inside[0, 0].nonzero().flatten().tolist() == expected
    assert centre in expected
    assert window.advance(state)["step"].tolist() == [[step + 1]]
    assert window.unroll(state, 3)["step"].tolist() == [[step, step + 1, step + 2]]


@example(60.0, 259, 1, 0, torch.bfloat16)  # which knows 258 and 260 only
@given(
    st.floats(-60, 60),
    st.integers(1, 600),
    st.integers(1, 12),
    st.integers(0, 5),
    st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16]),
)
def test_a_predicted_window_is_never_empty(
    logit: float, length: int, radius: int, padding: int, dtype: torch.dtype
) -> None:
    window = PredictiveWindow(SIZE, radius).to(dtype)
    with torch.no_grad():
        window.hidden.weight.fill_(100)
        window.position.weight.fill_(logit / SIZE)
    memory = memory_of(torch.tensor([length]), length + padding)
    with torch.no_grad():
        centres, inside = window.locate(torch.ones(1, 1, SIZE, dtype=dtype), memory, {})
    assert 0 <= float(centres) <= length
    assert inside[0, 0, :length].any()
    assert not inside[0, 0, length:].any()
    if dtype == torch.float64:
        assert float(centres) == pytest.approx(length * float(torch.tensor(logit, dtype=dtype).sigmoid()))


def long_source(window: str, **options: object) -> tuple[Attention, Memory, Tensor]:
    torch.manual_seed(0)
    attention = build_attention(AttentionSection(window={"name": window, **options}), SIZE, SIZE).double()
    states = torch.randn(1, 5, SIZE, dtype=torch.float64)
    lengths = torch.tensor([5])
    memory = attention.memorize(states, states[:, 0], torch.ones(1, 5, dtype=torch.bool), lengths)
    return attention, memory, torch.randn(1, 3, SIZE, dtype=torch.float64)


def softened(attention: Attention) -> Attention:
    """The same attention to all positions."""
    soft = build_attention(AttentionSection(), SIZE, SIZE).double()
    soft.load_state_dict(attention.state_dict())
    return soft


def test_the_predicted_centre_has_a_gradient() -> None:
    """Luong et al., 2015, section 3.2: the Gaussian makes p_t, and so W_p and v_p, learn."""
    attention, memory, query = long_source("local_p", radius=2)

    def weights(hidden: Tensor, position: Tensor) -> Tensor:
        return attention.attend(query, memory, {})[1]

    predicted = attention.window.hidden.weight, attention.window.position.weight
    assert torch.autograd.gradcheck(weights, predicted)
    weights(*predicted)[..., 4].sum().backward()
    for weight in predicted:
        assert weight.grad is not None
        assert (weight.grad != 0).any()


def test_hard_attention_is_drawn_from_the_weights_in_training() -> None:
    attention, memory, query = long_source("hard")
    soft = softened(attention)
    number = 4000
    repeated = query[:, :1].expand(-1, number, -1)
    torch.manual_seed(3)
    _, drawn, _ = attention.train().attend(repeated, memory, {})
    assert ((drawn == 0) | (drawn == 1)).all()
    assert (drawn.sum(dim=-1) == 1).all()
    expected = number * soft.attend(query[:, :1], memory, {})[1].detach().flatten()
    observed = drawn.detach().sum(dim=(0, 1, 2))
    assert (expected > 20).all()
    assert float(((observed - expected) ** 2 / expected).sum()) < 30  # chi-square of 4 degrees: p = 5e-6


def test_hard_attention_takes_the_most_likely_position_in_decoding() -> None:
    attention, memory, query = long_source("hard")
    soft = softened(attention)
    context, alignment, _ = attention.eval().attend(query, memory, {})
    likeliest = soft.attend(query, memory, {})[1][0, :, 0].argmax(dim=-1)
    assert torch.equal(alignment[0, :, 0], torch.eye(5, dtype=torch.float64)[likeliest])
    assert torch.equal(context[0], memory.values[0, 0, likeliest])


def test_the_gradient_of_hard_attention_is_that_of_the_soft_weights() -> None:
    """Bengio et al., 2013, section 2.3: straight through."""
    attention, memory, query = long_source("hard")
    soft = softened(attention)
    factors = torch.randn(1, 3, SIZE, dtype=torch.float64)
    gradients = []
    for mechanism in (attention.train(), soft):
        given_query = query.clone().requires_grad_()
        context, _, _ = mechanism.attend(given_query, memory, {})
        (context * factors).sum().backward(retain_graph=True)
        assert given_query.grad is not None
        gradients.append(given_query.grad)
    assert (gradients[0] != 0).any()
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0, atol=1e-14)
