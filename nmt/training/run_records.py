"""The records of runs: what each has reached, and a list of them."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from nmt.models.lookup import BEST, MARKER, RUNS, TIME, last_change, newest_run, read_value
from nmt.system.errors import CheckpointError, DataError, shorten
from nmt.system.files import read_json
from nmt.system.progress import clock
from nmt.system.replacement import is_locked
from nmt.system.tables import Table


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


def list_runs(directory: Path) -> Table:
    """List the runs in a folder, the latest last, or a run itself; a star marks the one that commands use by default.

    If it has none, those of the cells of comparisons in it are listed.

    Raises:
        DataError: There are none.
    """
    folders = (".", "[!.]*", *("[!.]*/" * depth + "cells/[!.]*/run" for depth in range(3)))
    searches = (list(directory.glob(f"{folder}/{MARKER}")) for folder in folders)
    runs = sorted((path.parent for path in next(filter(None, searches), [])), key=last_change)
    if not runs:
        there = "is not a directory" if directory.exists() else "does not exist"
        problem = "contains no runs" if directory.is_dir() else there
        raise DataError(f"{directory}: {problem}; train first, or give the folder of your runs")
    default = None
    if directory.resolve() == RUNS.resolve():
        with contextlib.suppress(CheckpointError):
            default = shorten(newest_run()[0].name)
    header = ("run", "", "state", "updates", "best", "training", "last change", "epoch", "at")
    names = [shorten(str(run.relative_to(directory))) for run in runs]
    rows = [(name, "*" if name == default else "", *_describe_run(run)) for name, run in zip(names, runs, strict=True)]
    return Table(header, rows, "lllllllll", whole="cells")


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
