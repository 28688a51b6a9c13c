"""The records of runs: the outcome of each, and a list of them."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.models.lookup import BEST, MARKER, RUNS, TIME, last_change, newest_run, read_value
from nmt.system.errors import CheckpointError, DataError, shorten
from nmt.system.files import read_json
from nmt.system.progress import clock
from nmt.system.replacement import is_locked
from nmt.system.tables import Table


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run so far.

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
        """The outcome that a run directory records.

        Raises:
            CheckpointError: It is not one, or is damaged.
        """
        from nmt.models.storage import refuse_export

        refuse_export(run)
        types: dict[str, Any] = {
            "updates": int,
            "epochs": int,
            "metric": str,
            "best": float | None,
            "best_update": int,
            "training_seconds": int | float,
        }
        values = {name: read_value(run, name) for name in types}
        if not all(isinstance(values[name], expected) for name, expected in types.items()):
            raise CheckpointError(f"{run}: is not a run directory, or its {MARKER} is damaged; nmt train writes one")
        seconds = values.pop("training_seconds")
        return cls(run, **values, seconds=seconds)


def list_runs(directory: Path) -> Table:
    """List the runs in a folder, the latest last, or a run itself; a star marks the one that commands use by default.

    If it has none, those of the cells of comparisons in it are listed.

    Raises:
        DataError: There are none.
    """
    runs = sorted(_find_runs(directory), key=last_change)
    if not runs:
        if directory.is_dir():
            problem = "contains no runs"
        elif directory.exists():
            problem = "is not a directory"
        else:
            problem = "does not exist"
        raise DataError(f"{directory}: {problem}; train first, or give the folder of your runs")
    default = None
    if directory.resolve() == RUNS.resolve():
        with contextlib.suppress(CheckpointError):
            newest, _ = newest_run()
            default = shorten(newest.name)
    header = ("run", "", "state", "updates", "best", "training", "last change", "epoch", "at")
    rows = []
    for run in runs:
        name = shorten(str(run.relative_to(directory)))
        star = "*" if name == default else ""
        rows.append((name, star, *_describe_run(run)))
    return Table(header, rows, "lllllllll", whole="cells")


def _find_runs(directory: Path) -> list[Path]:
    """The folder itself if it is a run; else runs in it; else those of cells of comparisons, up to two folders deep."""
    of_cells = "cells/[!.]*/run"
    folders = [".", "[!.]*", of_cells, f"[!.]*/{of_cells}", f"[!.]*/[!.]*/{of_cells}"]
    for folder in folders:
        markers = list(directory.glob(f"{folder}/{MARKER}"))
        if markers:
            return [marker.parent for marker in markers]
    return []


def _describe_run(run: Path) -> tuple[str, ...]:
    """The cells of a run after its name and star; see `list_runs`."""
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
        epochs = str(metadata["epochs"])
        return tuple(map(shorten, (state, updates, best, training, changed, epochs, at)))
    except (DataError, KeyError, TypeError, ValueError, ArithmeticError, OSError):
        return "broken", *["-"] * 6
