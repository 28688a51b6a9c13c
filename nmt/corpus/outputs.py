"""Checks of output paths: no input, and no file that nmt did not write, may be overwritten."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nmt.system.errors import DataError
from nmt.system.files import real_path
from nmt.system.replacement import check_output
from nmt.text.processor import TEXT_FILES

_TEXT = rf"text(/({'|'.join(map(re.escape, (*TEXT_FILES, 'SHA256SUMS')))}))?"
_UNSAVED = r"\.tmp\w{6}"
"""Name of an unfinished file of safetensors."""
_MODEL = rf"README\.md|model\.json|model\.safetensors|{_UNSAVED}|config\.yaml|{_TEXT}"
_CHECKPOINT = rf"update-\d+\.safetensors(\.sha256)?(\.partial)?|{_UNSAVED}"
_LEFTOVER = re.compile(r"(?<![^/])\.([^/]+)\.(partial(-\d+(-deleted)?)?|earlier)(?![^/])")
"""Name of what a killed command leaves behind: its unfinished output, or the earlier one that it was to replace."""


@dataclass(frozen=True)
class Kind:
    """A kind of directory that a command writes.

    Attributes:
        name: Name in messages.
        marker: A file in every directory of this kind.
        companion: Another one, so that an unrelated file with the marker's name is not mistaken for it.
        own: Matches the relative path of every file that nmt writes there, or that an earlier version wrote.
    """

    name: str
    marker: str
    companion: str
    own: re.Pattern[str]

    def owns(self, path: Path) -> bool:
        """Whether nmt writes a file with this relative path."""
        return self.own.fullmatch(_LEFTOVER.sub(r"\1", path.as_posix())) is not None


DATA = Kind(
    "data directory",
    "data.json",
    "train.src.ids.npy",
    re.compile(
        r"data\.json|config\.yaml|report\.json|report\.md|lengths\.png|(valid|test)\.jsonl"
        rf"|(train|valid|test)\.(src|tgt)\.(ids|offsets)\.npy|{_TEXT}"
    ),
)
MODEL = Kind("model directory", "model.json", "model.safetensors", re.compile(_MODEL))
RUN = Kind(
    "run directory",
    "run.json",
    "config.yaml",
    re.compile(
        rf"run\.json|config\.yaml|environment\.json|attention\.json|metrics\.jsonl|learning_curve\.png|{_TEXT}|best(/({_MODEL}))?"
        rf"|models(/update-\d+(/({_MODEL}))?)?|checkpoints(/({_CHECKPOINT}))?|tensorboard(/events\.out\.tfevents\.[^/]+)?"
    ),
)


def check_directory(directory: Path, kind: Kind, *, overwrite: bool, needed: Mapping[str, Path | None]) -> None:
    """Reject an output folder that contains files to keep, or that is inside another directory of nmt.

    Args:
        directory: The output folder.
        kind: Its kind.
        overwrite: Whether an earlier result may be replaced.
        needed: Paths that the command reads, by option or config key.

    Raises:
        DataError: The folder contains something else, or is inside another directory of nmt.
    """
    check_not_inside(directory)
    real = real_path(directory)
    for name, path in needed.items():
        if path is not None and real_path(path).is_relative_to(real):
            raise DataError(f"{name}: {path} would be lost when {directory} is replaced; choose another --output")
    check_output(directory, kind.marker, overwrite=overwrite)
    if foreign := _find_foreign(directory, kind):
        raise DataError(
            f"{directory}: contains {foreign.relative_to(directory)}, which nmt did not write; move it away, or choose "
            "another --output"
        )


def check_not_inside(directory: Path) -> None:
    """Reject an output folder inside another directory of nmt.

    Raises:
        DataError: It is inside one.
    """
    if found := _enclosing(real_path(directory)):
        outer, folder = found
        raise DataError(f"{directory}: is inside the {outer.name} {folder}; choose another --output")


def check_files(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """Reject output files without a folder, or that would overwrite an input, each other, or part of nmt's directories.

    A run directory may contain other files, such as scores; data and model directories may not.

    Args:
        outputs: Files to write, by option; devices and pipes are allowed.
        inputs: Files that the command reads.

    Raises:
        DataError: An output is rejected.
    """
    taken = dict.fromkeys(inputs, "is read by this command")
    for option, path in outputs.items():
        if path is None or (path.exists() and not path.is_file()):
            continue
        if not path.parent.is_dir():
            raise DataError(f"{option} {path}: the folder {path.parent} does not exist; create it")
        for other, use in taken.items():
            if _is_same(path, other):
                raise DataError(f"{option} {path}: {use}; choose another file")
        taken[path] = f"is also given for {option}"
        real = real_path(path)
        if found := _enclosing(real):
            kind, folder = found
            if kind is not RUN or kind.owns(Path(real.relative_to(folder).parts[0])):
                raise DataError(f"{option} {path}: is inside the {kind.name} {folder}; choose another file")


def _enclosing(path: Path) -> tuple[Kind, Path] | None:
    """The innermost directory of nmt that contains a path, links followed."""
    for folder in path.parents:
        for kind in (DATA, MODEL, RUN):
            if (folder / kind.marker).is_file() and (folder / kind.companion).exists():
                return kind, folder
    return None


def _find_foreign(directory: Path, kind: Kind) -> Path | None:
    """A file in a directory that nmt did not write; None if there is none."""
    for folder, folders, files in os.walk(directory):
        links = [name for name in folders if Path(folder, name).is_symlink()]  # not followed
        for path in (Path(folder, name) for name in sorted(files + links)):
            if not kind.owns(path.relative_to(directory)):
                return path
    return None


def _is_same(first: Path, second: Path) -> bool:
    return real_path(first) == real_path(second) or (first.exists() and second.exists() and first.samefile(second))
