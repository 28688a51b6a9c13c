"""Replacing directories safely: by one command at a time, and never while another process reads them.

The directory that a new one replaces is renamed, and deleted when the new one is complete. The next command cleans up
the remains of a killed command.
"""

import contextlib
import glob
import logging
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from nmt.system.errors import DataError
from nmt.system.files import file_above, hidden_path, naming
from nmt.system.messages import Parameter

log = logging.getLogger(__name__)


@contextlib.contextmanager
def atomic_directory(directory: Path) -> Iterator[Path]:
    """Yield a temporary sibling folder that replaces `directory` when the block succeeds.

    If the block fails, `directory` is unchanged and the temporary folder is deleted.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = hidden_path(directory, f"partial-{os.getpid()}")
    try:
        with naming(directory, temporary):
            shutil.rmtree(temporary, ignore_errors=True)  # of a killed process with the same id
            temporary.mkdir()
            yield temporary
            if directory.exists():  # it is complete, so what a killed process set aside for it is out of date
                discard_earlier(directory)
            set_aside(directory)
            temporary.rename(directory.resolve())
            discard_earlier(directory)
    finally:
        take_back_earlier(directory)
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def replacing(directory: Path) -> Iterator[None]:
    """Delete the earlier folder that was set aside, if the block succeeds; otherwise log how to take it back."""
    try:
        yield
    except BaseException:
        take_back_earlier(directory)
        if (earlier := earlier_path(directory)).exists():
            new, old = (shlex.quote(os.path.relpath(path)) for path in (directory.resolve(), earlier))
            log.warning(f"{directory}: the earlier result is kept; take it back with: rm -r {new} && mv {old} {new}")
        raise
    discard_earlier(directory)


def set_aside(directory: Path) -> None:
    """Rename a folder that is not empty to `earlier_path`, until the one that replaces it is complete.

    If an earlier folder is there already, that one stays and `directory`, which was to replace it, is deleted.

    Raises:
        DataError: It is the working folder of this process.
    """
    if not directory.exists() or not any(directory.iterdir()):
        return
    if Path.cwd().is_relative_to(directory.resolve()):
        raise DataError(f"{directory}: is the working folder and cannot be replaced; run the command from elsewhere")
    if earlier_path(directory).exists():
        _delete(directory.resolve(), directory)
    else:
        directory.resolve().rename(earlier_path(directory))


def take_back_earlier(directory: Path) -> None:
    """Rename the folder that was set aside to its old name, if nothing has taken its place."""
    if not directory.exists() and earlier_path(directory).exists():
        earlier_path(directory).rename(directory.resolve())


def discard_earlier(directory: Path) -> None:
    """Delete the folder that was set aside, if there is one."""
    if earlier_path(directory).exists():
        _delete(earlier_path(directory), directory)


def earlier_path(directory: Path) -> Path:
    """Where `set_aside` puts an earlier folder: hidden, so that it is not mistaken for a result."""
    return hidden_path(directory, "earlier")


def _delete(folder: Path, directory: Path) -> None:
    """Delete a folder after it got a temporary name, so that a kill leaves no half of it under its own."""
    shutil.rmtree(folder.rename(hidden_path(directory, f"partial-{os.getpid()}-deleted")))


def clean_up(directory: Path) -> None:
    """Clean up after a killed process in a folder that no other process writes to.

    Files and folders with temporary names are deleted; of a folder that `atomic_directory` was replacing, one stays.
    """
    for left in directory.glob(".*.partial*"):
        if left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink()
    for earlier in directory.glob(".*.earlier"):
        target = directory / earlier.name.removeprefix(".").removesuffix(".earlier")
        take_back_earlier(target)
        discard_earlier(target)


@contextlib.contextmanager
def _locked_file(path: Path, content: str, timeout: float = 0) -> Iterator[str]:
    """Hold a lock file with some content, which is deleted afterwards.

    In a folder that cannot be written nobody holds it.

    Yields:
        Nothing if this process holds it, otherwise the content that the one which holds it wrote.
    """
    lock = FileLock(path)
    with contextlib.suppress(OSError, Timeout):
        path.touch()  # in a read-only folder the lock would only wait
        lock.acquire(timeout=timeout)
        with contextlib.suppress(OSError):  # the content only helps people
            path.write_text(content, encoding="utf-8")
    holder = ""
    if not lock.is_locked:
        holder = "of another user"
        with contextlib.suppress(OSError):
            holder = path.read_text(encoding="utf-8", errors="replace") or holder
    try:
        yield holder
    finally:
        if lock.is_locked:
            with contextlib.suppress(OSError):
                path.unlink()  # while it is still ours
            lock.release()


@contextlib.contextmanager
def locked(directory: Path, timeout: float = 0) -> Iterator[None]:
    """Keep other commands from writing to a folder or file; the lock of a dead process does not count.

    Leftovers of a killed command are cleaned up first: unfinished folders are deleted, and an earlier one that was set
    aside is taken back if nothing took its place.

    Args:
        directory: The folder or file, which need not exist.
        timeout: Seconds to wait for the lock.

    Raises:
        DataError: Another command holds the lock, or the path leads through a file.
    """
    if file := file_above(directory):
        raise DataError(
            "{directory}: {file} is a file, not a folder; choose another {output}",
            directory=directory,
            file=file,
            output=Parameter("output"),
        )
    path = hidden_path(directory, "lock")
    missing = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with naming(directory, path):
            path.touch()
        with _locked_file(path, f"process {os.getpid()}", timeout) as holder:
            if holder:
                raise DataError(f"{directory}: in use by another command ({holder}); wait for it to end")
            for left in path.parent.glob(f"{glob.escape(hidden_path(directory, 'partial').name)}-[0-9]*"):
                if left.is_dir():
                    shutil.rmtree(left)
            take_back_earlier(directory)
            yield
    finally:
        for parent in missing:
            with contextlib.suppress(OSError):  # not empty: the command has written its result
                parent.rmdir()


def is_locked(directory: Path) -> bool:
    """True if a living process holds the lock of `directory`; the lock of another user always counts as held."""
    path = hidden_path(directory, "lock")
    if not path.exists():
        return False
    with _locked_file(path, "") as holder:
        return bool(holder)


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
    list(_readers(directory))  # deletes the lock files of killed readers
    content = f"the run {reader} (process {os.getpid()})"
    with _locked_file(hidden_path(directory, f"reader-{os.getpid()}"), content, timeout=1):
        if is_locked(directory):
            raise DataError(f"{directory}: is being written by another command; wait for it to end")
        yield


def check_not_in_use(directory: Path) -> None:
    """Refuse to replace a folder that is being read. The caller holds its lock, so no new reader can start.

    Raises:
        DataError: A process is reading it.
    """
    for reader in _readers(directory):
        raise DataError(
            "{directory}: in use by {reader}; wait for it to end, or choose another {output}",
            directory=directory,
            reader=reader,
            output=Parameter("output"),
        )


def _readers(directory: Path) -> Iterator[str]:
    """Yield the readers of a folder; the lock files of dead ones are deleted."""
    marker = hidden_path(directory, "reader-")
    for path in sorted(marker.parent.glob(f"{glob.escape(marker.name)}*")):
        with _locked_file(path, "") as reader:
            if reader:
                yield reader
