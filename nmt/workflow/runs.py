"""Run directories: where they lie, what state they are in, which model is meant."""

from __future__ import annotations

import datetime
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.dataset import MARKER as DATA_MARKER
from nmt.errors import CheckpointError, DataError, shorten
from nmt.files import check_file, read_json, real_path, write_json
from nmt.model.storage import MARKER as MODEL_MARKER
from nmt.model.storage import SavedModel
from nmt.replacement import Verdict, is_locked
from nmt.table import Table
from nmt.training.checkpoint import has_checkpoint

MARKER = "run.json"
BEST = "best"
MODELS = "models"
RUNS = Path("runs")
TIME = "%Y-%m-%dT%H:%M:%S%z"


@dataclass(frozen=True)
class Run:
    """A run that has come to its end.

    Attributes:
        path: The run directory.
        updates: Updates that were made.
        epochs: Epochs that were begun.
        metric: What the best model was chosen by: bleu, chrf or loss.
        best: Its value, as the run measured it; None where there was nothing to validate on.
        best_update: The update after which it was reached; 0 where there is none.
        seconds: Seconds of training, validation not counted.
    """

    path: Path
    updates: int
    epochs: int
    metric: str
    best: float | None
    best_update: int
    seconds: float

    @property
    def model(self) -> Path:
        """The model directory: the best model, or the last one where there was nothing to validate on."""
        return self.path / BEST


def write_state(run: Path, state: str, **facts: Any) -> None:
    """Record `running`, `finished`, `stopped` (can be resumed) or `broken`, with whatever explains it."""
    write_json(run / MARKER, {"state": state, "time": time.strftime(TIME), **facts})


def path_from(run: Path, data: Path) -> str | None:
    """The path of a data directory from a run's, for whoever has both; None where they share no folder but the root.

    From the root on it would be the absolute path of a machine, which others need not know.
    """
    run, data = real_path(run), real_path(data)
    shared = Path(os.path.commonpath([run, data]))
    return None if shared == Path(shared.anchor) else os.path.relpath(data, run)


def find_data(saved: SavedModel) -> Path:
    """The data directory that a model was trained on.

    Raises:
        CheckpointError: The model does not tell, or was moved away from it.
    """
    data = saved.facts.get("data")
    path = data.get("path") if isinstance(data, dict) else data  # before, models kept an absolute path
    if isinstance(path, str) and path and "\0" not in path:
        run = next((folder for folder in saved.path.resolve().parents if (folder / MARKER).is_file()), None)
        if run is not None or Path(path).is_absolute():
            found = (run or Path()) / path
            if (found / DATA_MARKER).is_file():
                return Path(os.path.relpath(found)) if found.is_relative_to(Path.cwd()) else found
    raise CheckpointError(f"{saved.path}: the data it was trained on is not where it was; name it with --data DIR")


def find_model(path: Path | None) -> Path:
    """The model directory that a user means.

    Args:
        path: A run or model directory; None means the newest finished run under `runs`.

    Raises:
        CheckpointError: There is none.
    """
    if path is None:
        finished = [run for run in RUNS.glob("[!.]*") if read_state(run) == "finished"]
        if not finished:
            raise CheckpointError(f"{RUNS}: no finished run in {RUNS.resolve()}; train first, or give --model DIR")
        path = max(finished, key=_last_change)
    if check_file(path / BEST / MODEL_MARKER, path).is_file():
        return path / BEST
    if (path / MARKER).is_file():
        raise CheckpointError(f"{path}: this run has no model yet (state: {shorten(str(read_state(path)))})")
    return path


def read_state(run: Path) -> str | None:
    """The state that a run was last known to be in; None where there is no run."""
    state = _read_fact(run, "state")
    return None if state is None else str(state)


def read_launch(run: Path) -> Any:
    """The name of the launch of several processes that a run belongs to; None where there is none."""
    return _read_fact(run, "launch")


def judge(run: Path) -> Verdict:
    """What a run is worth beside the earlier one that it is to replace.

    One that has learnt something takes its place. One that can be resumed, or that is no run of ours, leaves both
    where they are. One that has saved nothing, or has come to its end without having learnt anything, goes.
    """
    learnt = _read_fact(run, "learnt")
    if learnt:
        return Verdict.NEW
    theirs = not (run / MARKER).exists() and any(run.glob("[!.]*"))
    return Verdict.BOTH if theirs or (learnt is None and has_checkpoint(run)) else Verdict.EARLIER


def _read_fact(run: Path, name: str) -> Any:
    try:
        return read_json(run / MARKER)[name]
    except (DataError, KeyError, TypeError, OSError):
        return None


def list_runs(directory: Path) -> Table:
    """The runs in a folder, the latest last.

    Raises:
        DataError: There are none.
    """
    found = sorted((path.parent for path in directory.glob("[!.]*/" + MARKER)), key=_last_change)
    if not found:
        there = "is not a directory" if directory.exists() else "does not exist"
        what = "holds no runs" if directory.is_dir() else there
        raise DataError(f"{directory}: {what}; train first, or name the folder that holds them")
    header = ("run", "state", "updates", "epoch", "best", "at", "training", "last change")
    return Table(header, [_describe_run(run) for run in found], "llllllll")


def _last_change(run: Path) -> tuple[float, float]:
    """When a run last told of itself, as it says, for a copy of it has other times; then as its file says."""
    written = (run / MARKER).stat().st_mtime
    try:
        return datetime.datetime.strptime(_read_fact(run, "time"), TIME).timestamp(), written
    except (TypeError, ValueError, OverflowError):
        return written, written


def _describe_run(run: Path) -> tuple[str, ...]:
    try:
        facts = read_json(run / MARKER)
        state = str(facts["state"])
        if state == "running" and not is_locked(run):
            state = "broken"  # killed: it could not say so itself
        updates = f"{facts['updates']:,} of {facts['total_updates']:,}"
        best = "-" if facts["best"] is None else f"{facts['metric']} {facts['best']:.2f}"
        at = "-" if facts["best"] is None else f"{facts['best_update']:,}"
        minutes, seconds = divmod(round(facts["training_seconds"]), 60)
        hours, minutes = divmod(minutes, 60)
        changed = time.strftime("%Y-%m-%d %H:%M", time.strptime(facts["time"], TIME))
        time_taken = f"{hours}:{minutes:02}:{seconds:02}"
        cells = (run.name, state, updates, str(facts["epochs"]), best, at, time_taken, changed)
        return tuple(map(shorten, cells))
    except (DataError, KeyError, TypeError, ValueError, ArithmeticError, OSError):
        return shorten(run.name), "broken", *["-"] * 6
