"""Replacing directories safely: atomically, by one command at a time, and never while another process reads them.

The directory that a new one replaces is set aside under a hidden name, and `settle` decides which of the two stays.
The next command cleans up whatever a killed command leaves behind.
"""

from __future__ import annotations

import contextlib
import enum
import glob
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from nmt.system.errors import DataError
from nmt.system.files import beside, naming


def check_output(directory: Path, marker: str, *, overwrite: bool) -> None:
    """Reject an output folder that is not empty, unless it is an earlier result to overwrite.

    Args:
        directory: The output folder.
        marker: File that shows that `directory` was written by the same command.
        overwrite: Whether an earlier result may be replaced.

    Raises:
        DataError: The folder is not empty and may not be replaced.
    """
    if directory.is_file():
        raise DataError(f"{directory}: is a file; give a folder with --output")
    if not directory.exists() or not any(directory.iterdir()):
        return
    if not (directory / marker).exists():
        raise DataError(f"{directory}: contains other files (no {marker}); choose another --output")
    if not overwrite:
        raise DataError(f"{directory}: contains an earlier result; add --overwrite or choose another --output")


@contextlib.contextmanager
def atomic_directory(directory: Path) -> Iterator[Path]:
    """Yield a temporary sibling folder that replaces `directory` when the block succeeds.

    If the block fails, `directory` is unchanged and the temporary folder is deleted.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = beside(directory, f"partial-{os.getpid()}")
    try:
        with naming(directory, temporary):
            shutil.rmtree(temporary, ignore_errors=True)  # of a killed process with the same id
            temporary.mkdir()
            yield temporary
            settle(directory)
            set_aside(directory)
            try:
                temporary.rename(directory.resolve())
            finally:
                settle(directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


class Verdict(enum.Enum):
    """What happens to a folder and to the earlier one that was set aside for it."""

    NEW = "the earlier one is deleted"
    BOTH = "both stay for now"
    EARLIER = "the new one is deleted, the earlier one is restored"


Judge = Callable[[Path], Verdict]
"""Decides by the files of a folder alone, so that the next command can repeat the decision after a kill."""


def keep_new(directory: Path) -> Verdict:
    """Prefer the new folder as soon as it exists: for folders that are created atomically."""
    return Verdict.NEW if directory.exists() else Verdict.EARLIER


def set_aside(directory: Path) -> None:
    """Rename a folder that is not empty to a hidden sibling, until `settle` is called.

    If another one is already set aside, that one is kept and this one is deleted: `settle` preferred the other one.

    Raises:
        DataError: It is the working folder of this process.
    """
    if not directory.exists() or not any(directory.iterdir()):
        return
    if Path.cwd().is_relative_to(directory.resolve()):
        raise DataError(f"{directory}: is the working folder and cannot be replaced; run the command from elsewhere")
    earlier = earlier_path(directory)
    if earlier.exists():
        shutil.rmtree(_rename_for_deletion(directory))
    else:
        directory.resolve().rename(earlier)


def settle(directory: Path, judge: Judge = keep_new) -> Verdict | None:
    """Decide between a folder and the earlier one that was set aside for it.

    Safe to interrupt at any point and to call again.

    Args:
        directory: The folder.
        judge: Decides which one to keep.

    Returns:
        The decision; None if no earlier folder was set aside.
    """
    earlier = earlier_path(directory)
    if not earlier.exists():
        return None
    verdict = judge(directory)
    if verdict is Verdict.NEW:
        shutil.rmtree(earlier)
    elif verdict is Verdict.EARLIER:
        new = _rename_for_deletion(directory) if directory.exists() else None
        earlier.rename(directory.resolve())
        if new:
            shutil.rmtree(new)
    return verdict


def earlier_path(directory: Path) -> Path:
    """Where `set_aside` puts an earlier folder: hidden, so that it is not mistaken for a result."""
    return beside(directory, "earlier")


def _rename_for_deletion(directory: Path) -> Path:
    """Rename a folder before it is deleted, so that a kill does not leave half of it under its own name."""
    return directory.resolve().rename(beside(directory, f"partial-{os.getpid()}-deleted"))


def clean_up(directory: Path) -> None:
    """Clean up after a killed process in a folder that no other process writes to.

    Files and folders with temporary names are deleted; folders that were set aside are settled.
    """
    for left in directory.glob(".*.partial*"):
        if left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink()
    for earlier in directory.glob(".*.earlier"):
        settle(directory / earlier.name.removeprefix(".").removesuffix(".earlier"))


@contextlib.contextmanager
def locked(directory: Path, judge: Judge = keep_new) -> Iterator[Verdict | None]:
    """Keep other commands from writing to a folder or file; the lock of a dead process does not count.

    Leftovers of a killed command are cleaned up first: unfinished folders are deleted, and an earlier one that was set
    aside is settled.

    Args:
        directory: The folder or file, which need not exist.
        judge: As for `settle`.

    Yields:
        The decision of `settle`.

    Raises:
        DataError: Another command holds the lock.
    """
    path = beside(directory, "lock")
    missing = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        with naming(directory, path):
            path.touch()  # in a read-only folder the lock would only wait
        lock.acquire(timeout=0)
    except Timeout:
        raise DataError(f"{directory}: in use by another command{_holder(path)}; wait for it to end") from None
    try:
        with contextlib.suppress(OSError):  # the id only helps to find the process
            path.write_text(str(os.getpid()), encoding="ascii")
        for left in path.parent.glob(f"{glob.escape(beside(directory, 'partial').name)}-[0-9]*"):
            if left.is_dir():
                shutil.rmtree(left)
        yield settle(directory, judge)
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # while it is still ours
        lock.release()
        for parent in missing:
            with contextlib.suppress(OSError):  # not empty: the command has written its result
                parent.rmdir()


def is_locked(directory: Path) -> bool:
    """Whether a living process holds the lock of `directory`."""
    path = beside(directory, "lock")
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return _is_held(path)
    lock.release()
    return False


def _is_held(lock: Path) -> bool:
    """Whether a living process holds a lock file of another user, which we cannot write.

    A file that we cannot read either counts as held.
    """
    try:
        import fcntl

        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False  # just released
    except (ImportError, OSError):
        return True
    return False


def _holder(lock: Path) -> str:
    try:
        return f" (process {int(lock.read_text(encoding='ascii'))})"
    except (OSError, ValueError):
        return ""


@contextlib.contextmanager
def reading(directory: Path, reader: Path) -> Iterator[None]:
    """Keep commands from replacing `directory` while the block runs; the lock of a dead process does not count.

    If nothing can be written next to the folder, there is no lock.

    Args:
        directory: The folder to read.
        reader: The run that reads it, for the error of a writer.

    Raises:
        DataError: The folder is being written.
    """
    path = beside(directory, f"reader-{os.getpid()}")
    lock = FileLock(path)
    for _ in _readers(directory):
        pass  # deletes the lock files of killed readers
    with contextlib.suppress(OSError, Timeout):
        path.touch()  # in a read-only folder the lock would only wait
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


def check_not_in_use(directory: Path) -> None:
    """Refuse to replace a folder that is being read. The caller holds its lock, so no new reader can start.

    Raises:
        DataError: A process is reading it.
    """
    for path in _readers(directory):
        process = path.name.rpartition("-")[2]
        raise DataError(
            f"{directory}: in use by the run {_content(path)} (process {process}); wait for it to end, or choose "
            "another --output"
        )


def _readers(directory: Path) -> Iterator[Path]:
    """Yield the lock files of a folder's readers; those of dead processes are deleted."""
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
        return "of another user"
