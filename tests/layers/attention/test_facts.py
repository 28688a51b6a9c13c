"""What a score says of itself is the same whether its source is read or its class imported."""

import subprocess
import sys

import pytest
from torch import Tensor

from nmt.layers.attention import Score, find_score, register_score, score_names
from nmt.layers.attention import facts as module
from nmt.layers.attention.facts import facts_of, known_scores, names_of


@pytest.mark.parametrize("name", score_names())
def test_facts_from_the_source_equal_those_of_the_class(name: str) -> None:
    read = known_scores()[name]
    assert name in read.names
    assert read == facts_of(find_score(name), *read.names)


def test_every_score_of_the_folder_is_known_by_its_source_alone() -> None:
    assert sorted(module._own_scores()) == score_names()


def test_scores_are_listed_by_what_they_can_do() -> None:
    own = {"additive", "dot", "general", "location"}
    assert names_of(lambda facts: facts.names[0] in own and facts.multi_head) == "additive, concat, dot or general"
    assert names_of(lambda facts: facts.names[0] in own and facts.takes_features) == "additive or concat"
    assert names_of(lambda facts: facts.names[0] in own and not facts.local) == "location"


def test_a_score_registered_elsewhere_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    from nmt.layers.attention import registry

    monkeypatch.setattr(registry, "_SCORES", dict(registry._SCORES))
    monkeypatch.setattr(module, "_registered", {})

    @register_score("nearest")
    class Nearest(Score):
        local = False

        def __init__(self, query_size: int, key_size: int, *, power: float, scale: float = 1.0) -> None:
            super().__init__()

        def forward(self, query: Tensor, keys: Tensor) -> Tensor:
            return query @ keys.transpose(1, 2)

    facts = known_scores()["nearest"]
    assert facts.names == ("nearest",)
    assert not facts.local
    assert [(option.name, option.annotation, option.required) for option in facts.options] == [
        ("power", float, True),
        ("scale", float, False),
    ]


def test_checking_a_config_does_not_import_torch() -> None:
    program = """
import sys
from nmt.models.configs import load_config
load_config("tatoeba", ["model.attention={score: additive, heads: 2, options: {size: 64}}"])
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
