"""Types of command-line arguments."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from benchmarks.systems import UPDATES_PER_REPORT

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = object


def positive(text: str) -> int:
    """An integer of at least 1."""
    return _at_least(1, text)


def updates(text: str) -> int:
    """A number of updates that includes at least one report of the speed."""
    return _at_least(UPDATES_PER_REPORT, text)


def _at_least(smallest: int, text: str) -> int:
    if not text.isdecimal() or int(text) < smallest:
        raise argparse.ArgumentTypeError(f"must be an integer of at least {smallest}, found {text!r}")
    return int(text)
