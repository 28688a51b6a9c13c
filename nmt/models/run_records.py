"""Run directories: their location, their state and their models."""

from __future__ import annotations

import contextlib
import datetime
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.system.errors import CheckpointError, DataError, shorten
from nmt.system.files import check_file, read_json, real_path
from nmt.system.messages import Parameter
from nmt.system.progress import clock
from nmt.system.replacement import is_locked
from nmt.system.tables import Table

if TYPE_CHECKING:
    from nmt.models.storage import SavedModel

MARKER = "run.json"
BEST = "best"
MODELS = "models"
RUNS = Path("runs")
TIME = "%Y-%m-%dT%H:%M:%S%z"


@dataclass(frozen=True)
class RunOutcome:
    """What a run has reached.

    Attributes:
        path: The run directory.
        updates: Number of updates.
        epochs: Number of epochs started.
        metric: Metric that chose the best model: bleu, chrf or loss.
        best: Its value in validation; None without validation.
        best_update: Update of the best model; 0 without validation.
        seconds: Seconds of training, without validation.
    """

    path: Path
    updates: int
    epochs: int
    metric: str
    best: float | None
    best_update: int
    seconds: float

    def __repr__(self) -> str:
        best = "" if self.best is None else f", {self.metric} {self.best:.2f} at update {self.best_update:,}"
        return f"<{type(self).__name__} {self.path}: {self.updates:,} updates{best}>"

    @property
    def model(self) -> Path:
        """The model directory: the best model, or the last one without validation."""
        return self.path / BEST

    @classmethod
    def read(cls, run: Path) -> RunOutcome:
        """What a run directory records.

        Raises:
            CheckpointError: It is not one, or is damaged.
        """
        names = "updates", "epochs", "metric", "best", "best_update", "training_seconds"
        values = [read_value(run, name) for name in names]
        if not all(map(isinstance, values, (int, int, str, float | None, int, int | float))):
            raise CheckpointError(f"{run}: is not a run directory, or its {MARKER} is damaged; nmt train writes one")
        return cls(run, *values)


def path_from(run: Path, data: Path) -> str | None:
    """The path of a data directory relative to that of a run or a model; None if they share only the root folder.

    A path from the root would reveal the absolute path.
    """
    run, data = real_path(run), real_path(data)
    shared = Path(os.path.commonpath([run, data]))
    return None if shared == Path(shared.anchor) else os.path.relpath(data, run)


def find_data(saved: SavedModel) -> Path:
    """The data directory that a model was trained on.

    Raises:
        CheckpointError: The model does not name it, or it is no longer there.
    """
    from nmt.corpus.dataset import MARKER as DATA_MARKER

    data = saved.metadata.get("data")
    path = data.get("path") if isinstance(data, dict) else None
    if isinstance(path, str) and path and "\0" not in path:
        run = next((folder for folder in saved.path.resolve().parents if (folder / MARKER).is_file()), None)
        location = (run or saved.path.resolve()) / path
        if (location / DATA_MARKER).is_file():
            location = location.resolve()
            return Path(os.path.relpath(location)) if location.is_relative_to(Path.cwd()) else location
    raise CheckpointError(
        "{model}: the data it was trained on is no longer there; give it with {data}",
        model=saved.path,
        data=Parameter("data", "DIR"),
    )


def newest_run() -> tuple[Path, int]:
    """The newest finished run under `runs`, which commands use by default, and the number of finished runs.

    Raises:
        CheckpointError: There is none.
    """
    finished = [run for run in RUNS.glob("[!.]*") if read_value(run, "state") == "finished"]
    if not finished:
        raise CheckpointError(
            "{runs}: no finished run in {folder}; train first, or give the best model of an unfinished run with "
            "{model}",
            runs=RUNS,
            folder=RUNS.resolve(),
            model=Parameter("model", "DIR"),
        )
    return max(finished, key=_last_change), len(finished)


def find_run(path: Path) -> Path:
    """The path, or the run of this name under `runs` if there is no such path."""
    named = RUNS / path.name
    return named if path == Path(path.name) and not path.exists() and (named / MARKER).is_file() else path


def find_model(path: Path | None) -> Path:
    """The model directory of a run or model directory.

    Args:
        path: A run or model directory, or the name of a run under `runs`; None is the newest finished one there.

    Raises:
        CheckpointError: There is no finished run, or the run has no model.
    """
    from nmt.models.storage import MARKER as MODEL_MARKER

    path = newest_run()[0] if path is None else find_run(path)
    if check_file(path / BEST / MODEL_MARKER, path).is_file():
        return path / BEST
    if (path / MARKER).is_file():
        state = shorten(str(read_value(path, "state")))
        raise CheckpointError(f"{path}: this run has no model yet (state: {state}); train it first")
    return path


def describe_stop(model: Path) -> str | None:
    """How far the training of a model has come; None if it is finished, or the model's folder is not in a run's."""
    from nmt.models.card import count

    if read_value(model.parent, "state") in (None, "finished"):
        return None
    updates, planned = (count(read_value(model.parent, name)) for name in ("updates", "total_updates"))
    return f"its training has not finished: update {updates} of {planned}"


def read_value(run: Path, name: str, file: str = MARKER) -> Any:
    """A recorded value of a run; None if it cannot be read."""
    try:
        return read_json(run / file)[name]
    except (DataError, KeyError, TypeError, OSError):
        return None


def list_runs(directory: Path) -> Table:
    """List the runs in a folder, the latest last, or a run itself; a star marks the one that commands use by default.

    If it has none, those of the cells of comparisons in it are listed.

    Raises:
        DataError: There are none.
    """
    folders = (".", "[!.]*", *("[!.]*/" * depth + "cells/[!.]*/run" for depth in range(3)))
    searches = (list(directory.glob(f"{folder}/{MARKER}")) for folder in folders)
    runs = sorted((path.parent for path in next(filter(None, searches), [])), key=_last_change)
    if not runs:
        there = "is not a directory" if directory.exists() else "does not exist"
        what = "contains no runs" if directory.is_dir() else there
        raise DataError(f"{directory}: {what}; train first, or give the folder of your runs")
    default = None
    if directory.resolve() == RUNS.resolve():
        with contextlib.suppress(CheckpointError):
            default = shorten(newest_run()[0].name)
    header = ("run", "", "state", "updates", "best", "training", "last change", "epoch", "at")
    names = [shorten(str(run.relative_to(directory))) for run in runs]
    rows = [(name, "*" if name == default else "", *_describe_run(run)) for name, run in zip(names, runs, strict=True)]
    return Table(header, rows, "lllllllll", whole="cells")


def _last_change(run: Path) -> tuple[float, float]:
    """Time of the last change, as recorded by the run itself (a copy has other file times), then of the file."""
    written = (run / MARKER).stat().st_mtime
    try:
        return datetime.datetime.strptime(read_value(run, "time"), TIME).timestamp(), written
    except (TypeError, ValueError, OverflowError):
        return written, written


def _describe_run(run: Path) -> tuple[str, ...]:
    try:
        metadata = read_json(run / MARKER)
        state = str(metadata["state"])
        if state == "running" and not is_locked(run):
            state = "broken"  # it was killed
        updates = f"{metadata['updates']:,}/{metadata['total_updates']:,}"
        best = "-" if metadata["best"] is None else f"{metadata['metric']} {metadata['best']:.2f}"
        at = "-" if metadata["best"] is None else f"{metadata['best_update']:,}"
        training = clock(metadata["training_seconds"])
        changed = time.strftime("%Y-%m-%d %H:%M", time.strptime(metadata["time"], TIME))
        return tuple(map(shorten, (state, updates, best, training, changed, str(metadata["epochs"]), at)))
    except (DataError, KeyError, TypeError, ValueError, ArithmeticError, OSError):
        return "broken", *["-"] * 6
