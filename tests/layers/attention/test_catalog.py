import re
from typing import ClassVar, get_args

import pytest
from conftest import Cli
from torch import Tensor

from nmt.config import AttentionSection
from nmt.config.attention_scores import SCORES, properties_of
from nmt.config.attention_sections import NormalizerSection
from nmt.config.description import describe_keys
from nmt.layers.attention.catalog import Mechanism, describe_mechanisms, list_mechanisms
from nmt.layers.attention.normalizer import SUMMARIES
from nmt.layers.attention.score import Score


def mechanism(key: str, name: str) -> Mechanism:
    (found,) = [each for each in list_mechanisms() if each.key == key and name in each.names]
    return found


def names(key: str) -> list[str]:
    return [name for each in list_mechanisms() if each.key == key for name in each.names]


def scores_in(limit: str) -> set[str]:
    """The scores that a limit lists; further ones do not change a test."""
    return set(re.split(", | or ", limit.partition("score ")[2]))


def test_every_registered_score_is_listed_once() -> None:
    assert sorted(names("score")) == sorted([*SCORES, "none"])


@pytest.mark.parametrize("key", ["window.name", "normalizer.name", "past.name"])
def test_everything_that_a_config_accepts_is_listed(key: str) -> None:
    (accepted,) = (each.values for each in describe_keys() if each.path == f"model.attention.{key}")
    assert ", ".join(names(key)) == accepted


def test_keys_are_those_of_a_config() -> None:
    for key in dict.fromkeys(each.key for each in list_mechanisms()):
        assert key.partition(".")[0] in AttentionSection.model_fields


def test_every_mechanism_has_a_summary_and_a_paper() -> None:
    for each in list_mechanisms():
        assert each.summary
        assert "\n" not in each.summary
        plain = each.names in (("1",), ("none",)) and each.key in ("heads", "past.name")
        assert bool(each.paper) is not plain, each


def test_every_normaliser_has_its_lines() -> None:
    assert list(SUMMARIES) == list(get_args(NormalizerSection.model_fields["name"].annotation))


@pytest.mark.parametrize(
    ("key", "name", "limits", "work"),
    [
        ("score", "additive", [], "a"),
        ("score", "concat", [], "a"),
        ("score", "dot", ["equal sizes, or heads"], "a"),
        ("score", "cosine", ["equal sizes", "one head only"], "a"),
        ("score", "location", ["one head only", "no local window", "needs options.max_length"], "a"),
        ("window.name", "global", [], "a"),
        ("normalizer.name", "sparsemax", ["package entmax"], "a"),
        ("past.name", "none", [], "a"),
    ],
)
def test_limits_and_class_of_work(key: str, name: str, limits: list[str], work: str) -> None:
    found = mechanism(key, name)
    assert list(found.limits) == limits
    assert found.work == work


def test_limits_name_scores() -> None:
    (several,) = mechanism("heads", "2").limits
    assert scores_in(several) >= {"additive", "concat", "dot", "general", "scaled_dot"}
    assert not scores_in(several) & {"cosine", "location"}
    coverage = mechanism("past.name", "coverage")
    takers, one_head = coverage.limits
    assert scores_in(takers) >= {"additive", "concat"}
    assert not scores_in(takers) & {"dot", "general", "scaled_dot", "cosine", "location"}
    assert (one_head, coverage.work) == ("one head only", "b")
    (out_of_reach,) = mechanism("window.name", "local_p").limits
    assert out_of_reach.startswith("not with score ")
    assert "location" in scores_in(out_of_reach)
    assert not scores_in(out_of_reach) & {"additive", "dot"}


def test_a_citation_is_left_to_its_column() -> None:
    found = mechanism("score", "additive")
    assert found.summary == "Additive score: v^T tanh(W q + U k)"
    assert found.paper == "Bahdanau et al., 2015, A.1.2; Luong et al., 2015, section 3.1"


class Constant(Score):
    """Constant score (Nobody, 1999): 0 (everywhere)."""

    multi_head = True
    takes_features = True
    paper: ClassVar[str] = "Nobody, 1999"

    def __init__(self, query_size: int, key_size: int, *, needed: int, other: int = 1) -> None:
        super().__init__()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query.new_zeros(*query.shape[:2], keys.size(1))


def test_a_new_score_appears_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("constant", "even"):
        monkeypatch.setitem(SCORES, name, properties_of(Constant, name))
    assert mechanism("score", "even") == Mechanism(
        "score", ("constant", "even"), "Constant score: 0 (everywhere)", "Nobody, 1999", ("needs options.needed",)
    )
    for key, name in (("heads", "2"), ("past.name", "coverage")):
        assert {"constant", "even"} <= scores_in(mechanism(key, name).limits[0])
    block = "score: constant, even\n  Constant score: 0 (everywhere)\n  work: (a)\n  limits: needs options.needed\n"
    assert f"{block}  paper: Nobody, 1999\n" in describe_mechanisms()


def test_the_command_prints_a_block_each_that_fits_eighty_columns(cli: Cli) -> None:
    found = cli("attentions")
    assert (found.code, found.err) == (0, "")
    assert max(map(len, found.out.splitlines())) <= 80
    *blocks, explanation = found.out.split("\n\n")
    for each, block in zip(list_mechanisms(), blocks, strict=True):
        title, summary, *notes = re.sub("\n    +", " ", block).split("\n  ")
        assert title == f"{each.key}: {', '.join(each.names)}"
        assert summary == each.summary
        named = dict(note.split(": ", 1) for note in notes)
        assert named["work"] == f"({each.work})"
        assert (named.get("limits", ""), named.get("paper", "")) == ("; ".join(each.limits), each.paper)
    for letter in "abc":
        assert f"({letter})" in explanation
