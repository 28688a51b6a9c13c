"""Choices of attention that do not go together, refused at load in one line that names the key."""

import sys
from pathlib import Path

import pytest

from nmt.config import load_config
from nmt.system.errors import ConfigError

NOTHING = "has no effect: the score is none"
LOCATION = "score: location, options: {max_length: 9}"


def load(tmp_path: Path, attention: str) -> None:
    """Load a config whose encoder and decoder states have 8 units."""
    path = tmp_path / "mine.yaml"
    sizes = "encoder: {hidden_size: 4}, decoder: {hidden_size: 8}"
    path.write_text(f"model: {{{sizes}, attention: {{{attention}}}}}\n", encoding="utf-8")
    load_config(str(path))


def problem(tmp_path: Path, attention: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, attention)
    return str(caught.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("attention", "key", "message"),
    [
        ("score: none, heads: 2", "heads", NOTHING),
        ("score: none, head_size: 2", "head_size", NOTHING),
        ("score: none, window: {name: hard}", "window.name", NOTHING),
        ("score: none, normalizer: {name: sparsemax}", "normalizer.name", NOTHING),
        ("score: none, normalizer: {temperature: 2}", "normalizer.temperature", NOTHING),
        ("score: none, past: {name: coverage}", "past.name", NOTHING),
        ("score: none, dropout: 0.1", "dropout", NOTHING),
        ("score: cosine, heads: 2", "heads", "the score cosine supports only one head; additive, concat, dot"),
        (f"{LOCATION}, heads: 2", "heads", "the score location supports only one head"),
        ("heads: 3", "heads", "3 do not divide the encoder states' 8 units; change it or set head_size"),
        ("head_size: 4", "head_size", "needs heads above 1"),
        (f"{LOCATION}, window: {{name: local_m}}", "window.name", "local_m can be out of reach of the score location"),
        (f"{LOCATION}, window: {{name: local_p}}", "window.name", "local_p can be out of reach of the score location"),
        ("score: dot, past: {name: coverage}", "past.name", "the score dot does not support coverage; additive"),
        (
            "score: general, past: {name: location}",
            "past.name",
            "the score general does not support location; additive",
        ),
        ("score: concat, heads: 2, past: {name: coverage}", "past.name", "coverage needs one head, found 2"),
        ("past: {loss_weight: 1.0}", "past.loss_weight", "unknown key with name: none, only with coverage"),
        ("score: additive, past: {name: location, loss_weight: 1}", "past.loss_weight", "only with coverage"),
        ("score: location", "options.max_length", "is required"),
        ("score: cosine, options: {size: 3}", "options.size", "unknown option; there are no options"),
        ("score: scaled, heads: 2", "score", "unknown score 'scaled'"),
        ("window: {name: local}", "window.name", "found 'local'"),
        ("normalizer: {name: entmax}", "normalizer.name", "found 'entmax'; did you mean entmax15?"),
    ],
)
def test_conflicting_choices_are_refused(tmp_path: Path, attention: str, key: str, message: str) -> None:
    found = problem(tmp_path, attention)
    assert "\n" not in found
    assert found.startswith(f"mine.yaml:1: model.attention.{key}: ")
    assert message in found


@pytest.mark.parametrize("score", ["dot", "scaled_dot", "cosine"])
def test_sizes_that_a_score_cannot_combine_are_refused(tmp_path: Path, score: str) -> None:
    path = tmp_path / "mine.yaml"
    text = "model: {encoder: {hidden_size: 8}, decoder: {hidden_size: 8}, attention: {score: %s, heads: %s}}"
    path.write_text(text % (score, 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=f"^[^\n]*attention.score: {score} needs equal sizes[^\n]*$"):
        load_config(str(path))
    if score != "cosine":  # which takes one head
        path.write_text(text % (score, 2), encoding="utf-8")
        load_config(str(path))


@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
def test_a_normaliser_without_its_library_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    load(tmp_path, f"normalizer: {{name: {name}}}")
    monkeypatch.setitem(sys.modules, "entmax", None)  # as if it were not installed
    found = problem(tmp_path, f"normalizer: {{name: {name}}}")
    assert found == (
        f"mine.yaml:1: model.attention.normalizer.name: {name} needs the package entmax, which is not installed: "
        "pip install entmax"
    )
    load(tmp_path, "normalizer: {name: softmax}")


@pytest.mark.parametrize(
    "attention",
    [
        "score: dot, heads: 3, head_size: 5, window: {name: local_p, radius: 2}, normalizer: {name: entmax15}",
        "score: additive, heads: 4, window: {name: hard}, dropout: 0.3",
        "score: concat, window: {name: local_m}, past: {name: coverage, loss_weight: 1.0}",
        "score: additive, past: {name: location, filters: 3, radius: 2}, normalizer: {temperature: 0.5}",
        f"{LOCATION}, window: {{name: hard}}",
        "score: none",
    ],
)
def test_compatible_choices_are_accepted(tmp_path: Path, attention: str) -> None:
    load(tmp_path, attention)
