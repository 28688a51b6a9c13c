"""Kinds of command-line arguments."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from benchmarks.systems import UPDATES_A_REPORT

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = object


def positive(text: str) -> int:
    """A whole number from 1."""
    return _at_least(1, text)


def updates(text: str) -> int:
    """A whole number of updates after which there is a report of the speed."""
    return _at_least(UPDATES_A_REPORT, text)


def _at_least(smallest: int, text: str) -> int:
    if not text.isdecimal() or int(text) < smallest:
        raise argparse.ArgumentTypeError(f"takes a whole number from {smallest}, found {text!r}")
    return int(text)
