"""Averaging the weights of models."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.system.errors import CheckpointError, ConfigError, as_nmt_errors, check_at_least, list_names
from nmt.system.files import AnyPath, AnyPaths, as_paths
from nmt.system.messages import Parameter
from nmt.system.replacement import locked
from nmt.system.surroundings import plain_torch
from nmt.translation.loading import text_of

if TYPE_CHECKING:
    from nmt.config import Config
    from nmt.models.storage import SavedModel

log = logging.getLogger(__name__)


@as_nmt_errors()
@plain_torch()
def average(
    models: AnyPaths,
    output: AnyPath,
    *,
    last: int | None = None,
    overwrite: bool = False,
    allowed_classes: Collection[str] = (),
) -> Path:
    """Average the weights of models, such as a run's last ones.

    They should have begun with the same weights: models of one run, or of runs with the same parent.

    Example: nmt average runs/tatoeba --last 5 --output runs/tatoeba-average

    Args:
        models: Run or model directories.
        output: Model directory to write.
        last: Average so many of the latest models that one run has kept in RUN/models.
        overwrite: Replace an earlier model.
        allowed_classes: Dotted paths of classes that the models' configs may use; their code runs.

    Returns:
        The model directory.

    Raises:
        NmtError: There are fewer than two models, one cannot be used, or they differ in more than their weights.
    """
    from nmt.config import differing_keys
    from nmt.config.outputs import MODEL, check_directory
    from nmt.config.parent import MODEL_KEYS, is_inherited
    from nmt.models.lookup import find_model
    from nmt.models.storage import load_model, save_model

    paths = as_paths(models)
    folder = Path(output)
    directories = [find_model(path) for path in paths] if last is None else _latest(paths, last)
    if len(directories) < 2:
        raise ConfigError(
            "an average needs at least two models: give several, or with {last} those that one run has kept",
            last=Parameter("last"),
        )
    with locked(folder):
        needed = {f"model {number}": directory for number, directory in enumerate(directories, 1)}
        check_directory(folder, MODEL, overwrite=overwrite, needed=needed)
        first = load_model(directories[0], allowed_classes=allowed_classes)
        sums = {name: part.double() for name, part in first.model.state_dict().items()}
        strangers = []
        for directory in directories[1:]:
            model = load_model(directory, allowed_classes=allowed_classes)
            keys = differing_keys(model.config.model, first.config.model, "model.")
            differing = [key for key in keys if is_inherited(key, MODEL_KEYS)]
            if text_of(model) != text_of(first):
                differing.append("vocabulary or tokenizer")
            if differing:
                problem = f"differs from {first.path} in {', '.join(differing)}"
                raise CheckpointError(f"{model.path}: {problem}; only models with the same ones can be averaged")
            if not _began_alike(model.config, first.config):
                strangers.append(str(model.path))
            for name, part in model.model.state_dict().items():
                sums[name] += part
        first.model.load_state_dict({name: part / len(directories) for name, part in sums.items()})
        metadata: dict[str, Any] = {"average_of": [directory.name for directory in directories]}
        if isinstance(first.metadata.get("data"), dict):
            metadata["data"] = _data_of(first, folder)
        save_model(folder, first.config, first.model, first.text, metadata)
    if strangers:
        why = f"began with other weights than {first.path} (another seed, no common parent)"
        log.warning(f"{list_names(strangers)}: {why}: such an average is usually useless; let them translate together")
    log.info(f"model directory: {folder}, the average of {len(directories)} models")
    return folder


def _began_alike(config: Config, first: Config) -> bool:
    """True if two models began with the same weights: of the same seed, or of the same parent."""
    have_same_seed = config.train.seed == first.train.seed
    have_same_parent = first.parent.run is not None and config.parent.run == first.parent.run
    return have_same_seed or have_same_parent


def _data_of(model: SavedModel, output: Path) -> Any:
    """The metadata of a model's data, with the path from another model directory; without one if the data is gone."""
    from nmt.models.lookup import find_data, path_from

    path = None
    with contextlib.suppress(CheckpointError):
        path = path_from(output, find_data(model))
    return {**model.metadata["data"], "path": path}


def _latest(paths: Sequence[Path], last: int) -> list[Path]:
    from nmt.models.lookup import MODELS, find_run
    from nmt.models.storage import refuse_export

    if len(paths) != 1:
        raise ConfigError("{last} averages models of one run: give one", last=Parameter("last"))
    check_at_least("last", last, 2)
    run = find_run(paths[0])
    refuse_export(run)
    models = sorted((run / MODELS).glob("update-*"))
    if len(models) < last:
        advice = "set train.checkpoint.keep_best before training"
        raise CheckpointError(f"{paths[0]}: has kept {len(models)} models, not {last}; {advice}")
    return models[-last:]
