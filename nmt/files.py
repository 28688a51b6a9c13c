"""Files and folders: shipped resources, whole-or-nothing writes, small JSON files."""

from __future__ import annotations

import contextlib
import enum
import errno
import glob
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from filelock import FileLock, Timeout

from nmt.errors import DataError, shorten
from nmt.limits import MAX_DIGITS, MAX_JSON

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

PACKAGE = Path(__file__).resolve().parent


def shipped(relative: str) -> Path:
    """Path of a file that ships with the project (`configs/...`, `data/sample/...`).

    One look-up serves a checkout (beside the package) and a wheel (inside the package).
    """
    in_wheel = PACKAGE / "shipped" / relative
    return in_wheel if in_wheel.exists() else PACKAGE.parent / relative


@contextlib.contextmanager
def naming(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Let an OSError of the block tell of `path`, where it names no file or only something under `temporary`.

    A write to a full disk names none, and numpy, safetensors and shutil give no error number of their own either.
    """
    try:
        yield
    except OSError as error:
        named = error.filename2 or error.filename
        if named is not None and not (temporary and Path(str(named)).is_relative_to(temporary)):
            raise
        hidden = re.search(r"(?:Errno|os error) (\d+)", str(error))
        number = error.errno or (int(hidden[1]) if hidden else errno.EIO)
        reason = os.strerror(number) if error.errno or hidden else f"not written whole ({error}); is the disk full?"
        raise OSError(number, reason, str(path)) from None


@contextlib.contextmanager
def open_text(path: Path, errors: str = "strict") -> Iterator[TextIO]:
    """Open a file for UTF-8 text with line feeds; it appears whole when the block succeeds, or not at all.

    Until then it lies beside `path` under a temporary name. Devices and pipes are written as they are.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        with naming(path), path.open("w", encoding="utf-8", newline="\n", errors=errors) as file:
            yield file
        return
    temporary = beside(path, f"partial-{os.getpid()}")
    try:
        with naming(path, temporary):
            with temporary.open("w", encoding="utf-8", newline="\n", errors=errors) as file:
                yield file
            temporary.replace(path.resolve())
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, whole or not at all: readers never see half a file."""
    with open_text(path) as file:
        file.write(text)


def append_text(path: Path, text: str) -> None:
    """Add `text` as UTF-8 to the end of a file, whole or not at all."""
    data = text.encode("utf-8")
    with naming(path), path.open("ab", buffering=0) as file:
        size = file.tell()
        try:
            while data:  # a disk that is nearly full takes a part before it refuses the rest
                data = data[file.write(data) :]
        except OSError:
            file.truncate(size)
            raise


def sha256(path: Path) -> str:
    """SHA-256 checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def grant_usual_access(path: Path) -> None:
    """Give a file the permissions of any new file; some libraries make theirs readable by the owner alone."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, whole or not at all."""
    write_text(path, as_json_text(value))


def as_json_text(value: Any) -> str:
    """`value` as indented JSON that ends in a line feed."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def read_bytes(path: Path, limit: int) -> bytes:
    """The content of a file that somebody else may have made.

    Raises:
        DataError: It is no regular file (which could block or never end), or is larger than `limit` bytes.
        OSError: It cannot be read.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise DataError(f"{path}: is not an ordinary file; put one in its place")
        if found.st_size > limit:
            raise DataError(f"{path}: has {found.st_size:,} bytes, more than the {limit:,} that such a file may have")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(found.st_size)  # as many bytes are allocated as are asked for
    finally:
        os.close(handle)


def check_file(path: Path, folder: Path, limit: int | None = None) -> Path:
    """A file of a folder that somebody else may have made, after a look at what it is; it need not exist.

    Args:
        path: A file, or a folder, below `folder`.
        folder: What must hold it, links followed: a link may not lead out of it.
        limit: Most bytes of a file; None is no limit.

    Raises:
        DataError: It leads out of the folder, is neither a regular file nor a folder, or is too large.
    """
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (RuntimeError, OSError):
        raise DataError(f"{path}: is a link that leads to itself; put the file itself there") from None
    if not inside:
        raise DataError(f"{path}: is a link to a place outside {folder}; put the file itself there")
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        found = path.stat()
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise DataError(f"{path}: is not an ordinary file; put one in its place")
        if limit is not None and found.st_size > limit:
            raise DataError(f"{path}: has {found.st_size:,} bytes, more than the {limit:,} that such a file may have")
    return path


def read_json(path: Path, limit: int = MAX_JSON) -> Any:
    """Read a JSON file of a folder that somebody else may have made.

    Args:
        path: A regular file; a link may not lead out of the folder it is in.
        limit: Most bytes that it may have.

    Raises:
        DataError: The file is missing, not JSON, too large, or no regular file of its folder.
    """
    try:
        text = read_bytes(check_file(path, path.parent), limit).decode("utf-8")
        return json.loads(text, parse_int=_bounded_int)
    except FileNotFoundError:
        raise DataError(f"{path}: missing; the directory is incomplete") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); the directory is damaged") from None


def map_array(path: Path, dtype: DTypeLike, advice: str) -> NDArray[Any]:
    """A list of numbers in a .npy file that somebody else may have made, mapped into memory.

    Args:
        path: The file, which a link may not lead out of its folder.
        dtype: Type of the numbers.
        advice: What to do about a file that is none.

    Raises:
        DataError: It is missing, damaged, or holds something else.
    """
    import numpy as np

    check_file(path, path.parent)
    try:
        with path.open("rb") as file:
            if file.read(6) != b"\x93NUMPY":  # numpy would take an archive as well
                raise ValueError("no .npy file")
        found: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path}: missing; the directory is incomplete, {advice}") from None
    except Exception as error:  # numpy reads the header as Python, and fails in as many ways
        raise DataError(f"{path}: damaged ({shorten(str(error))}); {advice}") from None
    if found.dtype != dtype or found.ndim != 1:
        raise DataError(f"{path}: damaged (no list of {np.dtype(dtype)}); {advice}")
    return found


def _bounded_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


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
    """Keep other commands from writing into `directory`; a process that died keeps nobody out.

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


def beside(path: Path, suffix: str) -> Path:
    """A hidden sibling of a file or folder, links followed, so that a rename stays within one file system."""
    real = path.resolve()
    return real.parent / f".{real.name}.{suffix}"
