"""Files and folders: shipped resources, whole-or-nothing writes, small JSON files."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.errors import DataError

PACKAGE = Path(__file__).resolve().parent


def shipped(relative: str) -> Path:
    """Path of a file that ships with the project (`configs/...`, `data/sample/...`).

    One look-up serves a checkout (beside the package) and a wheel (inside the package).
    """
    in_wheel = PACKAGE / "shipped" / relative
    return in_wheel if in_wheel.exists() else PACKAGE.parent / relative


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 under a temporary name, then rename: readers never see half a file."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, whole or not at all."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        DataError: The file is missing or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: missing; the directory is incomplete") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); the directory is damaged") from None


def check_output(directory: Path, marker: str, *, overwrite: bool) -> None:
    """Refuse an output folder that holds something already.

    Args:
        directory: Where output is to go.
        marker: File that shows that `directory` was written by the same command.
        overwrite: Whether the user asked for an earlier result to be replaced.

    Raises:
        DataError: The folder is not empty and may not be replaced.
    """
    if directory.is_file():
        raise DataError(f"{directory}: is a file; give a folder with --output")
    if not directory.exists() or not any(directory.iterdir()):
        return
    if not (directory / marker).exists():
        raise DataError(f"{directory}: holds files that are not ours (no {marker}); choose another --output")
    if not overwrite:
        raise DataError(f"{directory}: holds an earlier result; add --overwrite or choose another --output")


@contextlib.contextmanager
def whole_directory(directory: Path) -> Iterator[Path]:
    """Yield a temporary sibling folder that takes the place of `directory` when the block succeeds.

    When the block fails, whatever `directory` held before is still there, and nothing else is.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        if directory.exists():
            previous = Path(tempfile.mkdtemp(prefix=f".{directory.name}.old.", dir=directory.parent))
            directory.rename(previous / "old")
            try:
                temporary.rename(directory)
            except BaseException:
                (previous / "old").rename(directory)
                raise
            finally:
                shutil.rmtree(previous)
        else:
            temporary.rename(directory)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
