import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.config import AttentionSection
from nmt.config.attention_checks import check_sizes, find_properties
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


def sources(lengths: Tensor = LENGTHS, width: int = 5, size: int = SIZE) -> tuple[Tensor, Tensor, Tensor]:
    """Encoder states that are 0 on padding, a summary of each, and the mask."""
    torch.manual_seed(1)
    mask = torch.arange(width) < lengths.unsqueeze(1)
    states = torch.randn(len(lengths), int(lengths.max()), size, dtype=torch.float64)
    states = torch.nn.functional.pad(states, (0, 0, 0, width - states.size(1))) * mask.unsqueeze(2)
    return states, torch.randn(len(lengths), size, dtype=torch.float64), mask


def queries(number: int = 6, size: int = SIZE) -> Tensor:
    torch.manual_seed(2)
    return torch.randn(len(LENGTHS), number, size, dtype=torch.float64)


def attend(attention: Attention, query: Tensor, width: int = 5, factor: float = 1.0) -> tuple[Tensor, Tensor, Memory]:
    states, summary, mask = sources(width=width)
    memory = attention.memorize(states * factor, summary, mask, LENGTHS)
    context, alignment, _ = attention.attend(query, memory, attention.initial_state(memory))
    return context, alignment, memory


def numpy_softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def test_the_fixed_context_is_the_summary_for_every_query() -> None:
    attention = build("none", SIZE, SIZE)
    assert isinstance(attention, FixedContext)
    assert not list(attention.parameters())
    _, summary, _ = sources()
    for query in (queries(), 100 * queries()):
        context, alignment, _ = attend(attention, query)
        assert torch.equal(context, summary.unsqueeze(1).expand(-1, 6, -1))
        assert alignment.shape == (3, 6, 1, 5)
        assert (alignment == 0).all()


def test_concat_and_additive_are_one_implementation() -> None:
    assert find_score("concat") is find_score("additive")


def test_scores_are_sorted_and_none_is_not_one() -> None:
    assert list(SCORES) == sorted(SCORES)
    assert find_properties("none") is None


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("aditive", ["unknown score 'aditive'", "did you mean additive?", "general"]),
        ("Dot", ["did you mean dot?"]),
        ("nonee", ["did you mean none?"]),
        ("xyzzy", ["known: none, additive"]),
        ("dot", ["equal sizes", "3", "4", "hidden_size"]),
        ("no_such_module.Score", ["no_such_module.Score", "cannot be imported"]),
        ("nmt.layers.attention.score.NoSuchScore", ["NoSuchScore", "cannot be imported"]),
        ("nmt.layers.attention.attention.Attention", ["not a subclass of nmt.Score"]),
        ("nmt.layers.attention.score.find_score", ["not a subclass of nmt.Score"]),
        ("nmt.layers.attention.score.", ["cannot be imported"]),
        (".Score", [".Score"]),
        ("..attention.Score", ["..attention.Score"]),
    ],
)
def test_unusable_scores_are_named(name: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        check_sizes(find_properties(name), 3, 4)
    message = str(caught.value)
    assert "\n" not in message
    assert ("did you mean" in message) == any("did you mean" in part for part in parts)
    for part in parts:
        assert part in message


USER_MODULE = """
from nmt.layers.attention.score import Score


class Distance(Score):
    needs_equal_sizes = True

    def __init__(self, query_size, key_size, *, factor=1.0):
        super().__init__()
        self.factor = factor

    def forward(self, query, keys):
        return -self.factor * (query.unsqueeze(2) - keys.unsqueeze(1)).square().sum(dim=-1)


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
    states, summary, mask = sources()
    memory = attention.memorize(states, summary, mask, LENGTHS)
    _, alignment, _ = attention.attend(queries(1), memory, {})
    for sentence, length in enumerate(LENGTHS.tolist()):
        distances = ((queries(1)[sentence] - states[sentence, :length]) ** 2).sum(dim=-1).numpy()
        expected = numpy_softmax(-3.0 * distances)
        np.testing.assert_allclose(alignment[sentence, 0, 0, :length].numpy(), expected, rtol=1e-10)
    with pytest.raises(ConfigError, match="equal sizes"):
        build(f"{user_module}.Distance", 3, 4)


def test_an_abstract_custom_class_is_refused(user_module: str) -> None:
    with pytest.raises(ConfigError):
        build(f"{user_module}.Unfinished", 4, 4, {})


def test_options_reach_the_score() -> None:
    attention = build("additive", 3, 4, {"size": 7})
    assert isinstance(attention, ScoreAttention)
    assert [tuple(p.shape) for p in attention.parameters()] == [(7, 3), (7, 4), (1, 7)]
    assert attention.context_size == 4
    default = build("additive", 3, 4)
    assert [tuple(p.shape) for p in default.parameters()] == [(3, 3), (3, 4), (1, 3)]
