"""What the table says of a score is what its class says; a new class in the folder belongs into the table."""

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

from nmt.config.attention_scores import SCORES, names_of, properties_of
from nmt.layers import attention
from nmt.layers.attention.score import Score, find_score


@pytest.mark.parametrize("name", SCORES)
def test_the_table_agrees_with_the_class(name: str) -> None:
    assert SCORES[name] == properties_of(find_score(name), name)


def test_every_score_of_the_folder_is_in_the_table() -> None:
    modules = [
        importlib.import_module(f"{attention.__name__}.{each.name}")
        for each in pkgutil.iter_modules(attention.__path__)
    ]
    classes = {part for module in modules for part in vars(module).values() if inspect.isclass(part)}
    assert {each for each in classes if issubclass(each, Score) and each is not Score} == set(map(find_score, SCORES))


def test_scores_are_listed_by_what_they_can_do() -> None:
    assert names_of(lambda score: score.multi_head) == "additive, concat, dot, general or scaled_dot"
    assert names_of(lambda score: score.takes_features) == "additive or concat"
    assert names_of(lambda score: not score.local) == "location"


def test_checking_a_config_does_not_import_torch() -> None:
    program = """
import sys
from nmt.config import load_config
load_config("tatoeba", ["model.attention={score: additive, heads: 2, options: {size: 64}}"])
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
