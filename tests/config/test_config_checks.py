"""Combinations that make no sense, and all wrong values at once."""

from pathlib import Path

from config_keys import refused

from nmt.config import parse_config


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
