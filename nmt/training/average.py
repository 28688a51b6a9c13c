"""Averaging the weights of models."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from nmt.models.runs import MODELS, find_data, find_model, path_from
from nmt.models.storage import SavedModel, load_model, save_model
from nmt.system.errors import CheckpointError, ConfigError
from nmt.system.outputs import MODEL, check_directory
from nmt.system.replacement import locked
from nmt.translation.loading import text_of

log = logging.getLogger(__name__)


def average(
    paths: Sequence[Path],
    output: Path,
    *,
    last: int | None = None,
    overwrite: bool = False,
    allowed_classes: Collection[str] = (),
) -> Path:
    """Write a model whose weights are the mean of those of other models, such as the last ones of a run.

    Args:
        paths: Run or model directories; with `last`, one run that kept its models (`train.checkpoint.keep_best`).
        output: Model directory to write.
        last: Average this many of the latest models that the run kept.
        overwrite: Replace an earlier model.
        allowed_classes: As for `load_model`.

    Returns:
        The model directory.

    Raises:
        ConfigError: There are fewer than two models.
        CheckpointError: A model is missing or damaged, or they differ in more than their weights.
        DataError: The output folder contains something else.
    """
    directories = [find_model(path) for path in paths] if last is None else _kept(paths, last)
    if len(directories) < 2:
        raise ConfigError("an average needs at least two models")
    with locked(output):
        needed = {f"model {number}": directory for number, directory in enumerate(directories, 1)}
        check_directory(output, MODEL, overwrite=overwrite, needed=needed)
        first = load_model(directories[0], allowed_classes=allowed_classes)
        sums = {name: part.double() for name, part in first.model.state_dict().items()}
        for directory in directories[1:]:
            other = load_model(directory, allowed_classes=allowed_classes)
            _check_alike(first, other)
            for name, part in other.model.state_dict().items():
                sums[name] += part
        first.model.load_state_dict({name: part / len(directories) for name, part in sums.items()})
        facts = {"data": _data_of(first, output)} if "data" in first.facts else {}
        names = [directory.name for directory in directories]
        save_model(output, first.config, first.model, first.text, {**facts, "average_of": names})
    log.info(f"model directory: {output}, the average of {len(directories)} models")
    return output


def _data_of(model: SavedModel, output: Path) -> Any:
    """What a model says of its data, with the path from another model directory; without one if the data is gone."""
    data = model.facts["data"]
    if not isinstance(data, dict):
        return data
    try:
        return {**data, "path": path_from(output, find_data(model))}
    except CheckpointError:
        return {**data, "path": None}


def _kept(paths: Sequence[Path], last: int) -> list[Path]:
    if len(paths) != 1:
        raise ConfigError("--last averages models of one run: give one")
    if last < 2:
        raise ConfigError(f"--last {last}: must be at least 2")
    kept = sorted((paths[0] / MODELS).glob("update-*"))
    if len(kept) < last:
        raise CheckpointError(
            f"{paths[0]}: has kept {len(kept)} models, not {last}; set train.checkpoint.keep_best before training"
        )
    return kept[-last:]


def _check_alike(first: SavedModel, other: SavedModel) -> None:
    if other.config.model != first.config.model or text_of(other) != text_of(first):
        raise CheckpointError(
            f"{other.path}: has a different model section or vocabulary than {first.path}; only models with the same "
            "ones can be averaged"
        )
