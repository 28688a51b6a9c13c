import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config import AttentionSection
from nmt.config.attention_checks import find_properties
from nmt.config.attention_scores import SCORES
from nmt.layers.attention.attention import Attention, FixedContext, ScoreAttention, build_attention
from nmt.layers.attention.score import find_score
from nmt.layers.attention.source_memory import Memory
from nmt.system.errors import ConfigError

LENGTHS = torch.tensor([5, 3, 1])
SIZE = 4


def build(name: str, query_size: int, key_size: int, options: Mapping[str, Any] | None = None) -> Attention:
    """The attention of a score, with the options to try it with if none are given."""
    if options is None:
        options = {} if name == "none" else find_score(name).example
    return build_attention(AttentionSection(score=name, options=dict(options)), query_size, key_size)


def remembered(attention: Attention) -> tuple[Memory, Tensor]:
    """The memory of encoder states that are 0 on padding, and a summary of each sentence."""
    torch.manual_seed(1)
    mask = torch.arange(5) < LENGTHS.unsqueeze(1)
    states = torch.randn(3, 5, SIZE, dtype=torch.float64) * mask.unsqueeze(2)
    summary = torch.randn(3, SIZE, dtype=torch.float64)
    return attention.memorize(states, summary, mask, LENGTHS), summary


def test_the_fixed_context_is_the_summary_for_every_query() -> None:
    attention = build("none", SIZE, SIZE)
    assert isinstance(attention, FixedContext)
    assert not list(attention.parameters())
    memory, summary = remembered(attention)
    for query in (torch.randn(3, 6, SIZE).double(), 100 * torch.randn(3, 6, SIZE).double()):
        context, alignment, _ = attention.attend(query, memory, attention.initial_state(memory))
        assert torch.equal(context, summary.unsqueeze(1).expand(-1, 6, -1))
        assert alignment.shape == (3, 6, 1, 5)
        assert (alignment == 0).all()


def test_concat_and_additive_are_one_implementation() -> None:
    assert find_score("concat") is find_score("additive")


def test_scores_are_sorted_and_none_is_not_one() -> None:
    assert list(SCORES) == sorted(SCORES)
    assert find_properties("none") is None


USER_MODULE = """
import torch
from torch import nn

from nmt.layers.attention.score import Score


class Distance(Score):
    needs_equal_sizes = True

    def __init__(self, query_size, key_size, *, factor=1.0):
        super().__init__()
        self.factor = factor

    def forward(self, query, keys):
        return -self.factor * (query.unsqueeze(2) - keys.unsqueeze(1)).square().sum(dim=-1)


class Random(Distance):
    def __init__(self, query_size, key_size):
        super().__init__(query_size, key_size)
        self.weight = nn.Parameter(torch.rand(query_size, key_size))

    def forward(self, query, keys):
        return nn.functional.dropout(super().forward(query @ self.weight, keys))


class Unfinished(Score):
    def __init__(self, query_size, key_size):
        super().__init__()
"""


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "nmt_user_scores.py").write_text(USER_MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "nmt_user_scores", raising=False)
    return "nmt_user_scores"


def test_a_custom_class_is_found_by_its_dotted_path(user_module: str) -> None:
    attention = build(f"{user_module}.Distance", 4, 4, {"factor": 3.0})
    memory, _ = remembered(attention)
    queries = torch.randn(3, 1, SIZE, dtype=torch.float64)
    _, alignment, _ = attention.attend(queries, memory, {})
    for sentence, length in enumerate(LENGTHS.tolist()):
        distances = ((queries[sentence] - memory.values[sentence, 0, :length]) ** 2).sum(dim=-1)
        torch.testing.assert_close(alignment[sentence, 0, 0, :length], (-3.0 * distances).softmax(dim=-1))
    with pytest.raises(ConfigError, match="equal sizes"):
        build(f"{user_module}.Distance", 3, 4)


def test_an_abstract_custom_class_is_refused(user_module: str) -> None:
    with pytest.raises(ConfigError):
        build(f"{user_module}.Unfinished", 4, 4, {})


@pytest.mark.parametrize(
    ("scores", "result"),
    [
        ("query.sum(dim=(1, 2)).unsqueeze(1) * keys.sum(dim=2)", "returns [3, 2]"),
        ("(query @ keys.transpose(1, 2)).transpose(1, 2)", "returns [3, 2, 4]"),
        (
            "query * keys",
            "fails (The size of tensor a (4) must match the size of tensor b (2) at non-singleton dimension 1)",
        ),
    ],
)
def test_a_custom_class_that_returns_another_shape_is_refused(user_module: str, scores: str, result: str) -> None:
    score = f"{user_module}.Distance"
    find_score(score).forward = eval(f"lambda self, query, keys: {scores}")
    with pytest.raises(ConfigError) as refused, torch.device("meta"):
        build(score, 7, 7)
    inputs = "for queries [3, 4, 7] and encoder states [3, 2, 7]"
    needed = "return [B, N, S] = [3, 4, 2], a score for each query and position"
    assert str(refused.value) == f"model.attention.score: {score} {result} {inputs}; {needed}"


def test_a_custom_class_that_cannot_be_built_is_one_line(user_module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    score = f"{user_module}.Distance"
    monkeypatch.setattr(find_score(score), "__init__", lambda self: None)
    with pytest.raises(
        ConfigError, match=rf"^model.attention.score: {score} cannot be built \(.* takes 1 positional .*"
    ):
        build(score, 7, 7)


def test_trying_a_custom_class_spends_no_random_numbers(user_module: str) -> None:
    path = f"{user_module}.Random"
    torch.manual_seed(1)
    find_score(path)(4, 4)
    expected = torch.rand(3)
    torch.manual_seed(1)
    build(path, 4, 4)
    assert torch.equal(torch.rand(3), expected)


def test_options_reach_the_score() -> None:
    attention = build("additive", 3, 4, {"size": 7})
    assert isinstance(attention, ScoreAttention)
    assert [tuple(p.shape) for p in attention.parameters()] == [(7, 3), (7, 4), (1, 7)]
    assert attention.context_size == 4
    default = build("additive", 3, 4)
    assert [tuple(p.shape) for p in default.parameters()] == [(3, 3), (3, 4), (1, 3)]
