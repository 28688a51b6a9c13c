"""Checkpoints: the only place where training state is saved and loaded.

`RUN/checkpoints/update-N.safetensors` holds tensors, and everything else as JSON in its metadata;
`update-N.safetensors.sha256` beside it, written last, is its checksum in the form that `sha256sum -c` reads. A
checkpoint without its checksum was never finished.
"""

from __future__ import annotations

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

from nmt.errors import CheckpointError, DataError, shorten
from nmt.files import check_file, flush, grant_usual_access, naming, read_bytes, sha256
from nmt.limits import MAX_CONFIG

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
        facts: Everything else, as JSON knows it.
    """

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any]


def write_checkpoint(run: Path, update: int, checkpoint: Checkpoint, keep: int) -> None:
    """Write a checkpoint so that a kill or a power failure at any moment leaves it whole or leaves those before it.

    Args:
        run: Run directory.
        update: Updates made.
        checkpoint: What to keep.
        keep: Newest checkpoints that stay; older ones are deleted once this one is safe.

    Raises:
        OSError: The disk is full, or the folder cannot be written.
    """
    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    name = f"update-{update:09d}"
    metadata = {_METADATA: json.dumps({"format_version": FORMAT_VERSION, **checkpoint.facts}, ensure_ascii=False)}
    with _written_durably(folder / (name + _TENSORS)) as temporary:
        try:
            save_file({key: tensor.contiguous() for key, tensor in checkpoint.tensors.items()}, temporary, metadata)
        except SafetensorError as error:
            raise OSError(str(error)) from None
        grant_usual_access(temporary)
        digest = sha256(temporary)
    with _written_durably(folder / (name + _CHECKSUM)) as temporary:
        temporary.write_text(f"{digest}  {name}{_TENSORS}\n", encoding="ascii")
    for old in _updates(folder)[keep:]:
        delete_checkpoint(folder, old)


def has_checkpoint(run: Path) -> bool:
    """Whether a checkpoint of a run was ever finished; it may be damaged since."""
    return bool(_updates(run / FOLDER))


def without_checksum(run: Path) -> list[Path]:
    """Checkpoints of a run that were never finished, or have lost their checksum."""
    folder = run / FOLDER
    unfinished = set(_updates(folder, _TENSORS)) - set(_updates(folder))
    return [folder / f"update-{update:09d}{_TENSORS}" for update in sorted(unfinished)]


def newest_checkpoint(run: Path) -> Checkpoint | None:
    """The newest good checkpoint of a run; None where none was ever finished. Damaged ones are passed over.

    Args:
        run: Run directory.

    Raises:
        CheckpointError: There are checkpoints, but all of them are damaged or of another format.
    """
    folder = run / FOLDER
    updates = _updates(folder)
    for path in without_checksum(run):
        log.warning(f"{path}: has no checksum, so it was never finished; passing over it")
    for update in updates:
        path = folder / f"update-{update:09d}{_TENSORS}"
        try:
            return _read(path)
        except (OSError, ValueError, TypeError, KeyError, RecursionError, DataError, SafetensorError) as error:
            log.warning(f"{path}: damaged ({error}); passing over it to the one before")
    if updates:
        raise CheckpointError(f"{folder}: no checkpoint is whole; start anew with --overwrite")
    return None


def delete_checkpoint(folder: Path, update: int) -> None:
    """Delete one, checksum first, so that half of it never looks like a checkpoint."""
    for suffix in (_CHECKSUM, _TENSORS):
        (folder / f"update-{update:09d}{suffix}").unlink(missing_ok=True)


def tidy_checkpoints(run: Path, update: int) -> None:
    """Delete what a killed process left unfinished, and damaged checkpoints that are newer than `update`."""
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
        raise ValueError("its checksum does not fit")
    with safe_open(path, framework="pt") as file:
        facts = json.loads(file.metadata()[_METADATA])
        if facts["format_version"] != FORMAT_VERSION:
            found = shorten(repr(facts["format_version"]))
            raise CheckpointError(f"{path}: checkpoint format {found}, this version of nmt reads {FORMAT_VERSION}")
        return Checkpoint({name: file.get_tensor(name) for name in file.keys()}, facts)  # noqa: SIM118


def _updates(folder: Path, suffix: str = _CHECKSUM) -> list[int]:
    """Updates of the checkpoints of which there is the file with a suffix, newest first; by default the finished."""
    names = (path.name.removesuffix(suffix).removeprefix("update-") for path in folder.glob(f"update-*{suffix}"))
    return sorted((int(name) for name in names if name.isdigit()), reverse=True)


@contextlib.contextmanager
def _written_durably(path: Path) -> Iterator[Path]:
    """Yield a temporary name; what was written under it is on the disk under its own when the block succeeds."""
    temporary = path.with_name(path.name + ".partial")
    try:
        with naming(path, temporary):
            yield temporary
            flush(temporary)
            temporary.replace(path)
            flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
