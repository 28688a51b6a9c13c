"""Run directories: where they lie, what state they are in, which model is meant."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from nmt.errors import CheckpointError, DataError
from nmt.files import read_json, write_json
from nmt.model.storage import MARKER as MODEL_MARKER

MARKER = "run.json"
BEST = "best"
RUNS = Path("runs")


def write_state(run: Path, state: str, **facts: Any) -> None:
    """Record `running`, `finished`, `stopped` or `failed`, with whatever explains it."""
    write_json(run / MARKER, {"state": state, "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **facts})


def find_model(path: Path | None) -> Path:
    """The model directory that a user means.

    Args:
        path: A run or model directory; None means the newest finished run under `runs`.

    Raises:
        CheckpointError: There is none.
    """
    if path is None:
        finished = [run for run in RUNS.glob("[!.]*") if _state(run) == "finished"]
        if not finished:
            raise CheckpointError(f"{RUNS}: no finished run in {RUNS.resolve()}; train first, or give --model DIR")
        path = max(finished, key=lambda run: (run / MARKER).stat().st_mtime)
    if (path / BEST / MODEL_MARKER).is_file():
        return path / BEST
    if (path / MARKER).is_file():
        raise CheckpointError(f"{path}: this run has no model yet (state: {_state(path)})")
    return path


def _state(run: Path) -> str | None:
    try:
        return str(read_json(run / MARKER)["state"])
    except (DataError, KeyError, TypeError, OSError):
        return None
