"""Configs with everything checked that can be checked before there is data."""

from __future__ import annotations

from collections.abc import Sequence

from nmt import config
from nmt.config import Config
from nmt.model.attention.checks import attention_check


def load_config(name: str, overrides: Sequence[str] = ()) -> Config:
    """Read a config; see `nmt.config.load_config`."""
    return config.load_config(name, overrides, [attention_check()])


def show_config(name: str, overrides: Sequence[str] = ()) -> str:
    """The whole config, each value with its origin; see `nmt.config.show_config`."""
    return config.show_config(name, overrides, [attention_check()])
