"""Configs with everything checked that can be checked before there is data."""

from __future__ import annotations

from pathlib import Path

from nmt import config as configs
from nmt.config import Config, Overrides
from nmt.model.attention.checks import attention_check


def load_config(config: str | Path | Config, overrides: Overrides = ()) -> Config:
    """Read a config; see `nmt.config.load_config`."""
    return configs.load_config(config, overrides, [attention_check()])


def show_config(name: str, overrides: Overrides = ()) -> str:
    """The whole config, each value with its origin; see `nmt.config.show_config`."""
    return configs.show_config(name, overrides, [attention_check()])
