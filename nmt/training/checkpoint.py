"""Checkpoints: the only place where training state is saved and loaded.

`RUN/checkpoints/update-N.safetensors` contains tensors, and everything else as JSON in its metadata. It gets this name
when all of it is on the disk.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from nmt.system.errors import CheckpointError, DataError, shorten
from nmt.system.files import check_file, naming, set_default_permissions, sync

log = logging.getLogger(__name__)

FOLDER = "checkpoints"
FORMAT_VERSION = 1

_METADATA = "nmt"


@dataclass(frozen=True)
class Checkpoint:
    """Training state at the end of one update.

    Attributes:
        tensors: Weights, optimiser, random states, sums since the last report.
        metadata: Everything else, as JSON values.
    """

    tensors: Mapping[str, Tensor]
    metadata: dict[str, Any]


def write_checkpoint(run: Path, update: int, checkpoint: Checkpoint, keep: int) -> None:
    """Write a checkpoint atomically, even in case of a kill or a power failure.

    Args:
        run: Run directory.
        update: Number of updates so far.
        checkpoint: The training state.
        keep: Number of newest checkpoints to keep; older ones are deleted once this one is safe.

    Raises:
        OSError: The disk is full, or the folder cannot be written.
    """
    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    path = _path(folder, update)
    temporary = path.with_name(path.name + ".partial")
    metadata = {_METADATA: json.dumps({"format_version": FORMAT_VERSION, **checkpoint.metadata}, ensure_ascii=False)}
    with naming(path, temporary):
        try:
            save_file({key: tensor.contiguous() for key, tensor in checkpoint.tensors.items()}, temporary, metadata)
            set_default_permissions(temporary)
            sync(temporary)
            temporary.replace(path)
            sync(folder)
        except SafetensorError as error:
            raise OSError(str(error)) from None
        finally:
            temporary.unlink(missing_ok=True)
    for old in _updates(folder)[keep:]:
        _path(folder, old).unlink(missing_ok=True)


def has_checkpoint(run: Path) -> bool:
    """Whether a run has a checkpoint, which may be damaged."""
    return bool(_updates(run / FOLDER))


def newest_checkpoint(run: Path) -> Checkpoint | None:
    """The newest intact checkpoint of a run; None if there is none. Damaged ones are skipped.

    Args:
        run: Run directory.

    Raises:
        CheckpointError: There are checkpoints, but all of them are damaged or of another format.
    """
    folder = run / FOLDER
    updates = _updates(folder)
    for path in (_path(folder, update) for update in updates):
        try:
            return _read(path)
        except (OSError, ValueError, TypeError, KeyError, RecursionError, DataError, SafetensorError) as error:
            log.warning(f"{path}: damaged ({error}); using the one before")
    if updates:
        raise CheckpointError(f"{folder}: all checkpoints are damaged; start over with `overwrite=True`")
    return None


def clean_up_checkpoints(run: Path, update: int) -> None:
    """Delete unfinished checkpoints of a killed process, and damaged ones, which are newer than `update`."""
    folder = run / FOLDER
    newer = (_path(folder, number) for number in _updates(folder) if number > update)
    # .tmp?????? is how safetensors names a file that it has not finished.
    for path in (*newer, *folder.glob("update-*.partial"), *folder.glob(".tmp??????")):
        path.unlink(missing_ok=True)


def _read(path: Path) -> Checkpoint:
    with safe_open(check_file(path, path.parent), framework="pt") as file:
        metadata = json.loads(file.metadata()[_METADATA])
        if (version := metadata["format_version"]) != FORMAT_VERSION:
            raise CheckpointError(
                f"{path}: checkpoint format {shorten(repr(version))}, this version of nmt reads {FORMAT_VERSION}"
            )
        return Checkpoint({name: file.get_tensor(name) for name in file.keys()}, metadata)  # noqa: SIM118


def _path(folder: Path, update: int) -> Path:
    return folder / f"update-{update:09d}.safetensors"


def _updates(folder: Path) -> list[int]:
    """Updates of the checkpoints in a folder, newest first."""
    names = (path.stem.removeprefix("update-") for path in folder.glob("update-*.safetensors"))
    return sorted((int(name) for name in names if name.isdigit()), reverse=True)
