"""Combinations that make no sense, and all problems at once."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config import Config, dump_config, load_config, parse_config
from nmt.config.description import describe_keys
from nmt.system.errors import ConfigError


def write(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def problems(tmp_path: Path, text: str, *overrides: str) -> list[str]:
    """Lines of the error that a config gives, sorted, without the path of its folder."""
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, text), overrides)
    return sorted(str(caught.value).replace(f"{tmp_path}/", "").split("\n"))


OPTIMIZERS = "'adam', 'adamw', 'sgd', 'rmsprop', 'radam', 'nadam', 'adadelta' or 'muon'"
PLATEAU = "train: {{schedule: {{name: plateau, patience: {}}}, validation: {{patience: {}}}}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            PLATEAU.format(4, 5),
            "train.schedule.patience: 4 never lowers the learning rate, as train.validation.patience: 5 stops the run "
            "first; lower this, or set 6 or more there",
        ),
        (
            "train: {schedule: {name: plateau}}\ndata: {source: a.tsv, split: {valid_size: 0}}",
            "train.schedule.name: plateau needs validation, but data.split.valid_size is 0",
        ),
        (
            "data: {source: [a, b], first_lines: 2000}",
            "data.first_lines: yields at most 2000 pairs, but data.split needs 2001 or more",
        ),
        (
            "data: {source: a.tsv, first_lines: 50, split: {train_size: 41, valid_size: 5, test_size: 5}}",
            "data.first_lines: yields at most 50 pairs, but data.split needs 51 or more",
        ),
        ("text: {tokenizer: spacy, tokenized: true}", "text.tokenized: has no effect with text.tokenizer: spacy"),
        (
            "text: {tokenizer: spacy, vocabulary: {min_count: 0}}",
            "text.vocabulary.min_count: has no effect with text.tokenizer: spacy, only with subword",
        ),
    ],
)
def test_settings_without_effect_are_refused(tmp_path: Path, text: str, message: str) -> None:
    [problem] = problems(tmp_path, text)
    assert problem.startswith(f"mine.yaml:1: {message}")


@pytest.mark.parametrize(
    "text",
    [
        PLATEAU.format(3, 5),
        PLATEAU.format(9, "null"),
        "train: {schedule: {name: plateau}}\ndata: {split: {valid_size: 0}}",
        "train: {schedule: {name: plateau}}\ndata: {source: [a, b, c, d], split: {valid_size: 0}}",
        "data: {source: a.tsv, first_lines: 2001}",
        "data: {source: [a, b, c, d], first_lines: 5}",
        "data: {first_lines: 5}",
        "text: {vocabulary: {min_count: 0}}",
        "model: {tying: target, embedding_size: 8, decoder: {hidden_size: 12}}",
        "model: {tying: target, embedding_size: 8, decoder: {hidden_size: 12, order: bahdanau}}",
        "decode: {max_length: 5}",
    ],
)
def test_settings_with_effect_are_accepted(tmp_path: Path, text: str) -> None:
    load_config(write(tmp_path, text))


def test_a_saved_config_may_have_settings_without_effect() -> None:
    text = "train: {schedule: {name: plateau, patience: 5}}"
    assert parse_config(text, "runs/a/config.yaml").train.schedule.patience == 5


def test_combinations_are_checked_along_with_wrong_values(tmp_path: Path) -> None:
    text = """\
train:
  epochs: many
  optimizer: {momentum: 0.9}
  schedule: {name: inverse_sqrt}
model:
  tying: all
  dropuot: 0.1
"""
    [epochs, momentum, warmup, tying, dropout] = problems(tmp_path, text)
    assert epochs == "mine.yaml:2: train.epochs: should be a valid integer, found 'many'"
    assert momentum.startswith("mine.yaml:3: train.optimizer.momentum: unknown key with name: adam")
    assert warmup == "mine.yaml:4: train.schedule.warmup: inverse_sqrt needs a number of updates"
    assert tying == "mine.yaml:6: model.tying: all needs text.vocabulary.joint: true"
    assert dropout == "mine.yaml:7: model.dropuot: unknown key; did you mean dropout?"


@pytest.mark.parametrize(
    "text",
    [
        "train: {schedule: {name: inverse_sqrt, warmup: -5}}",
        "train: {schedule: {name: inverse_sqrt, warmpu: 5}}",
        "train: {schedule: {name: inverse_squrt, warmup: 0}}",
        "train: {optimizer: {name: sdg, momentum: 0.9}}",
        "train: {optimizer: {nam: sgd, momentum: 0.9}}",
        "text: 3\nmodel: {tying: all}",
        "modle: {encoder: {bidirectional: true}}\nmodel: {encoder: {bidirectional: false}, decoder: "
        "{initial_state: backward}}",
        "model: {encoder: {hidden_size: -1}, attention: {score: dot}}",
    ],
)
def test_combinations_with_unknown_values_are_not_checked(tmp_path: Path, text: str) -> None:
    assert len(problems(tmp_path, text)) == 1


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.optimizer.name=adm", f"should be {OPTIMIZERS}, found 'adm'; did you mean adam?"),
        ("train.optimizer.name=qqq", f"should be {OPTIMIZERS}, found 'qqq'"),
        ("text.tokenizer=Subwords", "should be 'spacy', 'subword' or 'whitespace', found 'Subwords'; did you mean "
         "subword?"),
        ("model.dropout='0.1'", "should be a valid number, found '0.1'"),
        ("model.dropout=true", "should be a valid number, found True"),
        ("model.dropout=.inf", "should be a valid number, found '.inf'"),
        ("train.device=gpu", r"should match pattern '^(auto|cpu|mps|cuda(:\d+)?)$', found 'gpu'"),
        ("data.src_language=''", "should have at least 1 character, found ''"),
    ],
)  # fmt: skip
def test_wrong_values_are_reported_with_what_may_have_been_meant(tmp_path: Path, override: str, message: str) -> None:
    key = override.partition("=")[0]
    assert problems(tmp_path, "", override) == [f"--set {key}: {message}"]


SECTIONS_AND_KEYS = [key.path for key in describe_keys()]
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(SECTIONS_AND_KEYS), junk, max_size=4))
def test_junk_is_refused_with_one_line_per_problem(values: dict[str, Any]) -> None:
    nested: dict[str, Any] = {}
    for path in sorted(values):
        *sections, key = path.split(".")
        inner = nested
        for section in sections:
            inner = inner.setdefault(section, {})
            if not isinstance(inner, dict):
                break
        else:
            inner[key] = values[path]
    found = ""
    try:
        config = parse_config(yaml.safe_dump(nested), "junk.yaml")
        assert parse_config(dump_config(config), "dump.yaml") == config
    except ConfigError as error:
        found = str(error)
    assert all(line.startswith(("junk.yaml:", *Config.model_fields)) for line in found.splitlines())
