"""Checks of output paths: no input, no file that is not empty, and no folder of others may be overwritten.

A marker and a companion make a folder a directory of nmt. When such a directory is replaced, every file in it must have
a name that nmt uses.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from nmt.system.errors import DataError
from nmt.system.files import AnyPath, as_path, file_above, is_stream, real_path
from nmt.system.messages import Message, Parameter


class Kind(NamedTuple):
    """A kind of directory that a command writes.

    Attributes:
        name: Name in messages.
        marker: A file in every directory of this kind.
        companion: Another one, so that an unrelated file with the marker's name is not mistaken for it.
    """

    name: str
    marker: str
    companion: str


Needed = Mapping[str, Path | None] | Mapping[str | Parameter, Path | None]

DATA = Kind("data directory", "data.json", "train.src.ids.npy")
MODEL = Kind("model directory", "model.json", "model.safetensors")
RUN = Kind("run directory", "run.json", "config.yaml")

NAMES = (
    *("data.json", "report.json", "report.md", "lengths.png", "valid.jsonl", "test.jsonl", "train.???.*.npy"),
    *("valid.???.*.npy", "test.???.*.npy", "model.json", "model.safetensors", "README.md", "config.yaml", "run.json"),
    *("environment.json", "attention.json", "metrics.jsonl", "learning_curve.png", "events.out.tfevents.*"),
    *("update-*.safetensors*", ".tmp??????", "SHA256SUMS", "normalization.json", "???.tokenizer.json"),
    *("???.subwords.model", "???.vocabulary.json", "text", "best", "models", "update-?????????", "checkpoints"),
    *("tensorboard", "live.html"),
)
"""Names of files and folders in directories of nmt; `.tmp??????` is an unfinished file of safetensors."""
_LEFTOVER = re.compile(r"\.(.+)\.(partial.*|earlier)")
"""Names of folders that a killed command leaves: its unfinished output, or the earlier one that it was to replace."""


def check_directory(directory: Path, kind: Kind, *, overwrite: bool, needed: Needed) -> None:
    """Reject an output folder that contains files to keep, or that is inside another directory of nmt.

    Args:
        directory: The output folder.
        kind: Its kind.
        overwrite: True if an earlier result may be replaced.
        needed: Paths that the command reads, by parameter or config key.

    Raises:
        DataError: The folder contains something else, or is inside another directory of nmt.
    """
    check_output(directory, kind.marker, overwrite=overwrite)
    real = real_path(directory)
    for name, path in needed.items():
        if path is not None and real_path(path).is_relative_to(real):
            raise DataError(
                "{name}: {path} would be lost when {directory} is replaced; choose another {output}",
                name=name,
                path=path,
                directory=directory,
                output=Parameter("output"),
            )
    for path in sorted(file.relative_to(directory) for file in directory.rglob("*")):  # links are not followed
        if not _is_ours(path.name) or (path == Path("README.md") and kind is not MODEL):
            raise DataError(
                "{directory}: contains {path}, which nmt did not write; move it away, or choose another {output}",
                directory=directory,
                path=path,
                output=Parameter("output"),
            )


def check_output(directory: Path, marker: str, *, overwrite: bool) -> None:
    """Reject an output folder inside another directory of nmt, or with anything but an earlier result to overwrite.

    Args:
        directory: The output folder.
        marker: File that shows that `directory` was written by the same command.
        overwrite: True if an earlier result may be replaced.

    Raises:
        DataError: The folder is inside another directory, or is not empty and may not be replaced.
    """
    output = Parameter("output")
    if enclosing := _enclosing(real_path(directory)):
        kind, folder = enclosing
        raise DataError(
            "{directory}: is inside the {kind} {folder}; choose another {output}",
            directory=directory,
            kind=kind.name,
            folder=folder,
            output=output,
        )
    if directory.is_file():
        raise DataError("{directory}: is a file; give a folder as {output}", directory=directory, output=output)
    if not directory.exists() or all(_LEFTOVER.fullmatch(path.name) for path in directory.iterdir()):
        return
    if not (directory / marker).exists():
        raise DataError(
            "{directory}: contains other files (no {marker}); choose another {output}",
            directory=directory,
            marker=marker,
            output=output,
        )
    if not overwrite:
        raise DataError(
            "{directory}: contains an earlier result; add {overwrite} or choose another {output}",
            directory=directory,
            overwrite=Parameter("overwrite", True),
            output=output,
        )


def check_files(
    outputs: Mapping[str, AnyPath | None],
    inputs: Iterable[AnyPath | None],
    *,
    overwrite: bool,
    advice: Mapping[str, Message] = {},
) -> None:
    """Reject output files without a folder, or that would overwrite an input, each other, or part of nmt's directories.

    An earlier file is overwritten only if that is asked for. A run directory may contain other files, such as scores;
    data and model directories may not.

    Args:
        outputs: Files to write, by the name of their parameter; devices and pipes are allowed.
        inputs: Files that the command reads.
        overwrite: True if files that are not empty may be replaced.
        advice: By parameter, a third way out for who names a file that is not empty.

    Raises:
        DataError: An output is rejected.
    """
    taken = {Path(path): Message("is read by this command") for path in inputs if path is not None}
    for name, path in zip(outputs, map(as_path, outputs.values()), strict=True):
        given = Parameter(name, path)
        if path is not None and path.is_dir():
            raise DataError("{given}: is a folder; choose another file", given=given)
        if path is None or (path.exists() and not path.is_file()):
            continue
        if file := file_above(path):
            raise DataError("{given}: {file} is a file, not a folder; choose another file", given=given, file=file)
        if not path.parent.is_dir():
            folder = path.parent
            raise DataError("{given}: the folder {folder} does not exist; create it", given=given, folder=folder)
        for output, use in taken.items():
            if _is_same(path, output):
                raise DataError("{given}: {use}; choose another file", given=given, use=use)
        taken[path] = Message("is also given for {parameter}", parameter=Parameter(name))
        if enclosing := _enclosing(real_path(path)):
            kind, folder = enclosing
            if kind is not RUN or _is_ours(real_path(path).relative_to(folder).parts[0]):
                raise DataError(
                    "{given}: is inside the {kind} {folder}; choose another file",
                    given=given,
                    kind=kind.name,
                    folder=folder,
                )
        if not overwrite and path.exists() and path.stat().st_size and not is_stream(path):
            raise DataError(
                "{given}: exists and is not empty; choose another file, or replace it with {overwrite}{more}",
                given=given,
                overwrite=Parameter("overwrite", True),
                more=advice.get(name, ""),
            )


def _enclosing(path: Path) -> tuple[Kind, Path] | None:
    """The innermost directory of nmt that contains a path, links followed."""
    for folder in path.parents:
        for kind in (DATA, MODEL, RUN):
            if (folder / kind.marker).is_file() and (folder / kind.companion).exists():
                return kind, folder
    return None


def _is_ours(name: str) -> bool:
    """True if nmt writes files or folders of this name."""
    left = _LEFTOVER.fullmatch(name)
    return any(fnmatchcase(left[1] if left else name, pattern) for pattern in NAMES)


def _is_same(first: Path, second: Path) -> bool:
    return real_path(first) == real_path(second) or (first.exists() and second.exists() and first.samefile(second))
