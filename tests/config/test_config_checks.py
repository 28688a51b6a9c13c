"""Combinations that make no sense, and all wrong values at once."""

from pathlib import Path
from typing import Any

import yaml
from config_keys import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config import Config, dump_config, parse_config
from nmt.config.description import describe_keys
from nmt.system.errors import ConfigError


def test_a_saved_config_may_have_settings_without_effect() -> None:
    text = "train: {schedule: {name: plateau, patience: 5}}"
    assert parse_config(text, "runs/a/config.yaml").train.schedule.patience == 5


def test_all_wrong_values_are_named_and_combinations_only_without_any(tmp_path: Path) -> None:
    text = """\
train:
  epochs: many
  optimizer: {momentum: 0.9}
  schedule: {name: inverse_sqrt}
model:
  tying: all
  dropuot: 0.1
"""
    [epochs, momentum, warmup, dropout] = sorted(refused(tmp_path, text))
    assert epochs == "mine.yaml:2: train.epochs: should be a valid integer, found 'many'"
    assert momentum.startswith("mine.yaml:3: train.optimizer.momentum: unknown key with name: adam")
    assert warmup == "mine.yaml:4: train.schedule.warmup: inverse_sqrt needs a number of updates"
    assert dropout == "mine.yaml:7: model.dropuot: unknown key; did you mean dropout?"


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
