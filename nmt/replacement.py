"""Replacing directories safely: whole or not at all, by one command at a time, and never while somebody reads them.

What a new directory is to take the place of is set aside under a hidden name, and `settle` decides which of the two
stays. A command that is killed leaves only what the next one tidies up.
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

from nmt.errors import DataError
from nmt.files import beside, naming


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
    temporary = beside(directory, f"partial-{os.getpid()}")
    try:
        with naming(directory, temporary):
            shutil.rmtree(temporary, ignore_errors=True)  # of a killed process that had our number
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
    """What becomes of a folder and of the earlier one that was set aside for it."""

    NEW = "the earlier one goes"
    BOTH = "both stay until more is known"
    EARLIER = "the new one goes, the earlier one comes back"


Judge = Callable[[Path], Verdict]
"""Judges a folder by its files alone, so that it can be done again by whoever comes after a kill."""


def keep_new(directory: Path) -> Verdict:
    """A folder that appears whole or not at all is worth more than the earlier one as soon as it is there."""
    return Verdict.NEW if directory.exists() else Verdict.EARLIER


def set_aside(directory: Path) -> None:
    """Move a folder that holds something out of the way, beside where it was, until `settle` is called.

    Where an earlier one still waits there, it is the one that is kept: it was worth more, and this one goes.

    Raises:
        DataError: The process works in that folder.
    """
    if not directory.exists() or not any(directory.iterdir()):
        return
    if Path.cwd().is_relative_to(directory.resolve()):
        raise DataError(f"{directory}: is the working folder and cannot be replaced; run the command from elsewhere")
    earlier = earlier_of(directory)
    if earlier.exists():
        shutil.rmtree(_doomed(directory))
    else:
        directory.resolve().rename(earlier)


def settle(directory: Path, judge: Judge = keep_new) -> Verdict | None:
    """Decide between a folder and the earlier one that was set aside for it.

    Safe to be cut off anywhere and called again.

    Args:
        directory: The folder.
        judge: What the new one is worth.

    Returns:
        What was decided; None where none was set aside.
    """
    earlier = earlier_of(directory)
    if not earlier.exists():
        return None
    verdict = judge(directory)
    if verdict is Verdict.NEW:
        shutil.rmtree(earlier)
    elif verdict is Verdict.EARLIER:
        new = _doomed(directory) if directory.exists() else None
        earlier.rename(directory.resolve())
        if new:
            shutil.rmtree(new)
    return verdict


def earlier_of(directory: Path) -> Path:
    """Where `set_aside` puts an earlier folder: hidden, so that nobody takes it for one that counts."""
    return beside(directory, "earlier")


def _doomed(directory: Path) -> Path:
    """Give a folder a temporary name before it is deleted, lest a kill in between leave half of it under its own."""
    return directory.resolve().rename(beside(directory, f"partial-{os.getpid()}-deleted"))


def tidy(directory: Path) -> None:
    """Finish what a killed process left in a folder that nobody else writes into.

    Files and folders under temporary names go; what was set aside is settled.
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
    """Keep other commands from writing into `directory`, or a file of that name; a process that died keeps nobody out.

    What a killed command left beside it is tidied up first: unfinished folders go, and an earlier one that was set
    aside is settled.

    Args:
        directory: The folder, which need not exist.
        judge: As for `settle`.

    Yields:
        What `settle` decided.

    Raises:
        DataError: Another command holds it.
    """
    path = beside(directory, "lock")
    missing = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        with naming(directory, path):
            path.touch()  # where nothing can be written, the lock would only wait
        lock.acquire(timeout=0)
    except Timeout:
        raise DataError(f"{directory}: in use by another command{_holder(path)}; wait for it to end") from None
    try:
        with contextlib.suppress(OSError):  # the number only helps to find the process
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
            with contextlib.suppress(OSError):  # not empty: something came of it
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
    """Whether a living process holds a lock whose file we may not write, being another user's.

    A file that may not even be read tells nothing, and is taken for held.
    """
    try:
        import fcntl

        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False  # let go of in this moment
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
