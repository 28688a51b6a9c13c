"""Checkpoints: the only place where training state is saved and loaded.

`RUN/checkpoints/update-N.safetensors` contains tensors, and everything else as JSON in its metadata, with a checksum of
both. It gets this name when all of it is on the disk.
"""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor, uint8

from nmt.models.storage import write_tensors
from nmt.system.errors import CheckpointError, DataError, shorten
from nmt.system.files import atomic_file, check_file, sync
from nmt.system.messages import Message, Parameter

log = logging.getLogger(__name__)

FOLDER = "checkpoints"
FORMAT_VERSION = 2

_METADATA = "nmt"
_CHECKSUM = "sha256"


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
    text = json.dumps({"format_version": FORMAT_VERSION, **checkpoint.metadata}, ensure_ascii=False)
    tensors = {key: tensor.contiguous() for key, tensor in checkpoint.tensors.items()}
    with atomic_file(path) as temporary:
        write_tensors(temporary, tensors, {_METADATA: text, _CHECKSUM: _digest(tensors, text)})
        sync(temporary)
    sync(folder)
    for old in _updates(folder)[keep:]:
        _path(folder, old).unlink(missing_ok=True)


def has_checkpoint(run: Path) -> bool:
    """True if a run has a checkpoint, which may be damaged."""
    return bool(_updates(run / FOLDER))


def newest_checkpoint(run: Path) -> Checkpoint:
    """The newest intact checkpoint of a run. Damaged ones are skipped.

    Args:
        run: Run directory.

    Raises:
        CheckpointError: All checkpoints are damaged, or one is of another format.
    """
    folder = run / FOLDER
    for path in (_path(folder, update) for update in _updates(folder)):
        try:
            return _read(path)
        except (OSError, ValueError, TypeError, KeyError, RecursionError, DataError, SafetensorError) as error:
            log.warning("%s", Message("{path}: damaged ({error}); using the one before", path=path, error=error))
    overwrite = Parameter("overwrite", True)
    raise CheckpointError(
        "{folder}: all checkpoints are damaged; start over with {overwrite}", folder=folder, overwrite=overwrite
    )


def clean_up_checkpoints(run: Path, update: int) -> None:
    """Delete unfinished checkpoints of a killed process, and damaged ones, which are newer than `update`."""
    folder = run / FOLDER
    newer = (_path(folder, number) for number in _updates(folder) if number > update)
    # .tmp?????? is how safetensors names a file that it has not finished.
    for path in (*newer, *folder.glob(".update-*.partial*"), *folder.glob(".tmp??????")):
        path.unlink(missing_ok=True)


def _read(path: Path) -> Checkpoint:
    with safe_open(check_file(path, path.parent), framework="pt") as file:
        stored = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    metadata = json.loads(stored[_METADATA])
    if (version := metadata["format_version"]) not in (1, FORMAT_VERSION):
        problem = f"checkpoint format {shorten(repr(version))}, this version of nmt reads {FORMAT_VERSION}"
        raise CheckpointError(f"{path}: {problem}")
    if version != 1 and stored[_CHECKSUM] != _digest(tensors, stored[_METADATA]):  # 1 had it in another file
        raise ValueError("wrong checksum")
    return Checkpoint(tensors, metadata)


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    """SHA-256 checksum of tensors with their names, and of the rest as JSON."""
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(uint8).numpy().data)
    return digest.hexdigest()


def _path(folder: Path, update: int) -> Path:
    return folder / f"update-{update:09d}.safetensors"


def _updates(folder: Path) -> list[int]:
    """Updates of the checkpoints in a folder, newest first."""
    names = (path.stem.removeprefix("update-") for path in folder.glob("update-*.safetensors"))
    return sorted((int(name) for name in names if name.isdigit()), reverse=True)
