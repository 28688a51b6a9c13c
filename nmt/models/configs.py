"""Configs with all checks that need no data."""

from __future__ import annotations

from pathlib import Path

from nmt.config import Config, Overrides, reading
from nmt.layers.attention.checks import attention_check


def load_config(config: str | Path | Config, overrides: Overrides = ()) -> Config:
    """Read a config file or a shipped config, with overrides.

    Args:
        config: Path of a YAML file, the name of a shipped config, or a config that was read earlier.
        overrides: Values that replace its own: `{"train.epochs": 3}` or `["train.epochs=3"]`.

    Raises:
        ConfigError: One line per problem: file and line, key, what was found, what is allowed.
    """
    return reading.load_config(config, overrides, [attention_check()])


def show_config(name: str, overrides: Overrides = ()) -> str:
    """The complete config, each value with its origin; see `nmt.config.show_config`."""
    return reading.show_config(name, overrides, [attention_check()])
