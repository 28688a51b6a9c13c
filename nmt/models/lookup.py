"""Where the models of runs are, and the data that they were trained on."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.system.errors import CheckpointError, DataError, shorten
from nmt.system.files import check_file, read_json, real_path
from nmt.system.messages import Parameter

if TYPE_CHECKING:
    from nmt.models.storage import ModelFolder

MARKER = "run.json"
BEST = "best"
MODELS = "models"
RUNS = Path("runs")
TIME = "%Y-%m-%dT%H:%M:%S%z"


def path_from(run: Path, data: Path) -> str | None:
    """The path of a data directory relative to that of a run or a model; None if they share only the root folder.

    A path from the root would reveal the absolute path.
    """
    run = real_path(run)
    data = real_path(data)
    shared = Path(os.path.commonpath([run, data]))
    return None if shared == Path(shared.anchor) else os.path.relpath(data, run)


def find_data(saved: ModelFolder) -> Path:
    """The data directory that a model was trained on.

    Raises:
        CheckpointError: The model does not name it, or it is no longer there.
    """
    from nmt.corpus.marker_schema import MARKER as DATA_MARKER

    data = saved.metadata.get("data")
    path = data.get("path") if isinstance(data, dict) else None
    if isinstance(path, str) and path and "\0" not in path:
        # The path is relative to the run that the model is in, or to the model itself if it is in none.
        model = saved.path.resolve()
        runs = [folder for folder in model.parents if (folder / MARKER).is_file()]
        location = (runs[0] if runs else model) / path
        if (location / DATA_MARKER).is_file():
            location = location.resolve()
            is_below = location.is_relative_to(Path.cwd())
            return Path(os.path.relpath(location)) if is_below else location
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
    return max(finished, key=last_change), len(finished)


def find_run(path: Path) -> Path:
    """The path, or the run of this name under `runs` if there is no such path."""
    run = RUNS / path.name
    is_name = path == Path(path.name)
    if is_name and not path.exists() and (run / MARKER).is_file():
        return run
    return path


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
    updates = count(read_value(model.parent, "updates"))
    planned = count(read_value(model.parent, "total_updates"))
    return f"its training has not finished: update {updates} of {planned}"


def read_value(run: Path, name: str, file: str = MARKER) -> Any:
    """A recorded value of a run; None if it cannot be read."""
    try:
        return read_json(run / file)[name]
    except (DataError, KeyError, TypeError, OSError):
        return None


def last_change(run: Path) -> tuple[float, float]:
    """Time of the last change, as recorded by the run itself (a copy has other file times), then of the file."""
    written = (run / MARKER).stat().st_mtime
    try:
        return datetime.datetime.strptime(read_value(run, "time"), TIME).timestamp(), written
    except (TypeError, ValueError, OverflowError):
        return written, written
