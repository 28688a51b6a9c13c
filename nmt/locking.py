"""Who uses a folder: readers that go on for long keep writers out, and writers readers."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from nmt.errors import DataError
from nmt.files import beside, is_locked


@contextlib.contextmanager
def reading(directory: Path, reader: Path) -> Iterator[None]:
    """Keep commands from replacing `directory` while the block runs; a process that died keeps nobody out.

    Where nothing can be written beside the folder, nobody is kept out.

    Args:
        directory: What is read.
        reader: What it is read for, which writers are told.

    Raises:
        DataError: The folder is being written.
    """
    path = beside(directory, f"reader-{os.getpid()}")
    lock = FileLock(path)
    for _ in _readers(directory):
        pass  # what killed ones left behind goes
    with contextlib.suppress(OSError, Timeout):
        path.touch()  # where nothing can be written, the lock would only wait
        lock.acquire(timeout=1)
        path.write_text(str(reader), encoding="utf-8")
    try:
        if is_locked(directory):
            raise DataError(f"{directory}: is being written by another command; wait for it to end")
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # while it is still ours
        lock.release()


def check_unread(directory: Path) -> None:
    """Refuse to replace a folder that somebody reads; its own lock is held, so that nobody begins to.

    Raises:
        DataError: Somebody does.
    """
    for path in _readers(directory):
        process = path.name.rpartition("-")[2]
        raise DataError(
            f"{directory}: in use by the run {_content(path)} (process {process}); wait for it to end, or choose "
            "another --output"
        )


def _readers(directory: Path) -> Iterator[Path]:
    """The lock files of those who read a folder; those that killed ones left behind are deleted."""
    marker = beside(directory, "reader-")
    for path in sorted(marker.parent.glob(f"{glob.escape(marker.name)}*")):
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except (Timeout, OSError):
            yield path
            continue
        with contextlib.suppress(OSError):
            path.unlink()
        lock.release()


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return "of somebody else"
