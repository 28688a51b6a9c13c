"""Checkpoints: the only place where training state is saved and loaded.

`RUN/checkpoints/update-N.safetensors` contains tensors, and everything else as JSON in its metadata. Its checksum
`update-N.safetensors.sha256`, in the format of `sha256sum -c`, is written last: a checkpoint without it is unfinished.
"""

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from nmt.system.errors import CheckpointError, DataError, shorten
from nmt.system.files import check_file, naming, read_bytes, set_default_permissions, sha256, sync
from nmt.system.limits import MAX_CONFIG

log = logging.getLogger(__name__)

FOLDER = "checkpoints"
FORMAT_VERSION = 1

_TENSORS = ".safetensors"
_CHECKSUM = ".safetensors.sha256"
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
    name = f"update-{update:09d}"
    metadata = {_METADATA: json.dumps({"format_version": FORMAT_VERSION, **checkpoint.metadata}, ensure_ascii=False)}
    with _written_durably(folder / (name + _TENSORS)) as temporary:
        try:
            save_file({key: tensor.contiguous() for key, tensor in checkpoint.tensors.items()}, temporary, metadata)
        except SafetensorError as error:
            raise OSError(str(error)) from None
        set_default_permissions(temporary)
        digest = sha256(temporary)
    with _written_durably(folder / (name + _CHECKSUM)) as temporary:
        temporary.write_text(f"{digest}  {name}{_TENSORS}\n", encoding="ascii")
    for old in _updates(folder)[keep:]:
        delete_checkpoint(folder, old)


def has_checkpoint(run: Path) -> bool:
    """Whether a run has a finished checkpoint, which may be damaged."""
    return bool(_updates(run / FOLDER))


def without_checksum(run: Path) -> list[Path]:
    """Checkpoints of a run that are unfinished or have lost their checksum."""
    folder = run / FOLDER
    unfinished = set(_updates(folder, _TENSORS)) - set(_updates(folder))
    return [folder / f"update-{update:09d}{_TENSORS}" for update in sorted(unfinished)]


def newest_checkpoint(run: Path) -> Checkpoint | None:
    """The newest intact checkpoint of a run; None if none is finished. Damaged ones are skipped.

    Args:
        run: Run directory.

    Raises:
        CheckpointError: There are checkpoints, but all of them are damaged or of another format.
    """
    folder = run / FOLDER
    updates = _updates(folder)
    for path in without_checksum(run):
        log.warning(f"{path}: unfinished, as it has no checksum; skipping it")
    for update in updates:
        path = folder / f"update-{update:09d}{_TENSORS}"
        try:
            return _read(path)
        except (OSError, ValueError, TypeError, KeyError, RecursionError, DataError, SafetensorError) as error:
            log.warning(f"{path}: damaged ({error}); using the one before")
    if updates:
        raise CheckpointError(f"{folder}: all checkpoints are damaged; start over with `overwrite=True`")
    return None


def delete_checkpoint(folder: Path, update: int) -> None:
    """Delete a checkpoint, checksum first, so that half of it never looks like a checkpoint."""
    for suffix in (_CHECKSUM, _TENSORS):
        (folder / f"update-{update:09d}{suffix}").unlink(missing_ok=True)


def clean_up_checkpoints(run: Path, update: int) -> None:
    """Delete unfinished checkpoints of a killed process, and damaged ones that are newer than `update`."""
    finished = set(_updates(run / FOLDER))
    for path in (run / FOLDER).glob(f"update-*{_TENSORS}*"):
        number = path.name.removeprefix("update-").split(".")[0]
        if number.isdigit() and (path.suffix == ".partial" or int(number) > update or int(number) not in finished):
            path.unlink(missing_ok=True)
    for unsaved in (run / FOLDER).glob(".tmp??????"):  # as safetensors names a file that it has not finished
        unsaved.unlink(missing_ok=True)


def _read(path: Path) -> Checkpoint:
    checksum = check_file(path.with_name(path.name + ".sha256"), path.parent)
    expected = read_bytes(checksum, MAX_CONFIG).decode("ascii").split()
    if expected != [sha256(check_file(path, path.parent)), path.name]:
        raise ValueError("wrong checksum")
    with safe_open(path, framework="pt") as file:
        metadata = json.loads(file.metadata()[_METADATA])
        if (version := metadata["format_version"]) != FORMAT_VERSION:
            raise CheckpointError(
                f"{path}: checkpoint format {shorten(repr(version))}, this version of nmt reads {FORMAT_VERSION}"
            )
        return Checkpoint({name: file.get_tensor(name) for name in file.keys()}, metadata)  # noqa: SIM118


def _updates(folder: Path, suffix: str = _CHECKSUM) -> list[int]:
    """Updates of the checkpoints with a file of this suffix, newest first; by default the finished ones."""
    names = (path.name.removesuffix(suffix).removeprefix("update-") for path in folder.glob(f"update-*{suffix}"))
    return sorted((int(name) for name in names if name.isdigit()), reverse=True)


@contextlib.contextmanager
def _written_durably(path: Path) -> Iterator[Path]:
    """Yield a temporary name; when the block succeeds, the file is synced to disk and renamed."""
    temporary = path.with_name(path.name + ".partial")
    try:
        with naming(path, temporary):
            yield temporary
            sync(temporary)
            temporary.replace(path)
            sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
