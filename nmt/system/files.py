"""Reading and writing files: shipped resources, atomic writes, small JSON files."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from nmt.system.errors import DataError, shorten
from nmt.system.limits import MAX_DIGITS, MAX_JSON

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

AnyPath = str | os.PathLike[str]
AnyPaths = AnyPath | Sequence[AnyPath]

PACKAGE = Path(__file__).resolve().parents[1]


def as_path(path: AnyPath | None) -> Path | None:
    """A path, or None."""
    return None if path is None else Path(path)


def as_paths(paths: AnyPaths | None) -> list[Path]:
    """One path, several or none, as a list."""
    return list(map(Path, as_names(paths)))


def as_names(names: AnyPaths | None) -> list[str]:
    """One path or other name, several or none, as a list."""
    return [str(name) for name in ([names] if isinstance(names, str | os.PathLike) else names or ())]


def file_above(path: Path) -> Path | None:
    """The file that a path has in place of a folder; None if there is none."""
    return next(filter(Path.is_file, path.parents), None)


def shipped(relative: str) -> Path:
    """Path of a file that ships with the project (`configs/...`, `data/sample/...`).

    Works for a checkout (next to the package) and for a wheel (inside the package).
    """
    in_wheel = PACKAGE / "shipped" / relative
    return in_wheel if in_wheel.exists() else PACKAGE.parent / relative


@contextlib.contextmanager
def naming(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Make an OSError of the block name `path` if it names no file, or only something under `temporary`.

    An error of a full disk names no file, and those of numpy, safetensors and shutil have no error number either.
    """
    try:
        yield
    except OSError as error:
        named = error.filename2 or error.filename
        if named is not None and not (temporary and Path(str(named)).is_relative_to(temporary)):
            raise
        hidden = re.search(r"(?:Errno|os error) (\d+)", str(error))
        number = errno.EIO
        reason = f"not written completely ({error}); is the disk full?"
        if hidden:
            number = int(hidden[1])
            reason = os.strerror(int(hidden[1]))
        raise OSError(number, reason, str(path)) from None


def is_stream(path: Path) -> bool:
    """True if writing to a path goes to a device, a pipe or an open stream such as /dev/stdout.

    A stream may lead to a file, which the shell has opened.
    """
    if str(path.absolute().parent) in ("/dev", "/dev/fd", "/proc/self/fd"):
        return path.exists()
    return path.exists() and not path.is_file() and not path.is_dir()


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary name next to a file; the file of that name replaces it if the block succeeds.

    The name is always the same, so that a killed process leaves at most one file. If the block fails, it is deleted.
    Devices, pipes and open streams are written directly.
    """
    if is_stream(path):
        with naming(path):
            yield path
        return
    temporary = hidden_path(path, "partial-0")
    try:
        with naming(path, temporary):
            yield temporary
            temporary.replace(real_path(path))
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def open_text(path: Path, errors: str = "strict") -> Iterator[TextIO]:
    """Open a file for UTF-8 text with line feeds; see `atomic_file`."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    mode: Literal["a", "w"] = "a" if is_stream(path) else "w"  # what a stream has written stays
    with atomic_file(path) as temporary, temporary.open(mode, encoding="utf-8", newline="\n", errors=errors) as file:
        yield file


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 atomically: readers never see half a file."""
    with open_text(path) as file:
        file.write(text)


def append_text(path: Path, text: str) -> None:
    """Append `text` as UTF-8 to a file."""
    with naming(path), path.open("a", encoding="utf-8") as file:
        file.write(text)


def sha256(path: Path) -> str:
    """SHA-256 checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_default_permissions(path: Path) -> None:
    """Give a file the default permissions of new files; some libraries create files that only the owner can read."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    write_text(path, as_json_text(value))


def as_json_text(value: Any) -> str:
    """Format `value` as indented JSON that ends in a line feed."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def read_bytes(path: Path, limit: int, folder: Path | None = None) -> bytes:
    """The content of an untrusted file.

    Args:
        path: A regular file: others could block, or never end.
        limit: Maximum size in bytes.
        folder: The folder that must contain the file, links followed; None allows any.

    Raises:
        DataError: The file is something else, too large, or outside the folder.
        OSError: It cannot be read, or is a folder.
    """
    return check_file(path, folder, limit).read_bytes()


def read_text(path: Path, limit: int, folder: Path | None = None) -> str:
    """The content of an untrusted text file; see `read_bytes`.

    Raises:
        DataError: It is not UTF-8, or `read_bytes` refuses it.
        OSError: It cannot be read, or is a folder.
    """
    try:
        return read_bytes(path, limit, folder).decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not UTF-8 text; convert it to UTF-8, or delete it") from None


def real_path(path: Path) -> Path:
    """The absolute path of a file or folder, which need not exist, with links followed.

    Raises:
        DataError: A link points to itself.
    """
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:  # which `resolve` raises before Python 3.13 only
            raise DataError(f"{path}: is a link that points to itself; replace or delete it") from None
    return path.resolve()


def check_file(path: Path, folder: Path | None, limit: int | None = None) -> Path:
    """Check a file of an untrusted folder, and return its path; it need not exist.

    Args:
        path: A file, or a folder, below `folder`.
        folder: The folder that must contain it, links followed: a link must not point outside. None allows any.
        limit: Maximum size in bytes of a file; None is no limit.

    Raises:
        DataError: It is outside the folder, is neither a regular file nor a folder, or is too large.
    """
    if folder is not None and not real_path(path).is_relative_to(real_path(folder)):
        raise DataError(f"{path}: is a link to a place outside {folder}; replace it by the file")
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        status = path.stat()
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise DataError(f"{path}: is not a regular file; replace it by one")
        if limit is not None and status.st_size > limit:
            raise DataError(f"{path}: has {status.st_size:,} bytes, more than the limit of {limit:,}")
    return path


def read_json(path: Path, limit: int = MAX_JSON) -> Any:
    """Read a JSON file of an untrusted folder.

    Args:
        path: A regular file; a link must not point outside its folder.
        limit: Maximum size in bytes.

    Raises:
        DataError: The file is missing, not JSON, too large, or not a regular file in its folder.
    """
    try:
        text = read_bytes(path, limit, path.parent).decode("utf-8")
        return json.loads(text, parse_int=_bounded_int)
    except FileNotFoundError:
        raise DataError(f"{path}: missing; the directory is incomplete") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); the directory is damaged") from None


def map_array(path: Path, dtype: DTypeLike, advice: str) -> NDArray[Any]:
    """Memory-map a one-dimensional array in an untrusted .npy file.

    Args:
        path: The file; a link must not point outside its folder.
        dtype: Expected type.
        advice: The remedy for an unusable file.

    Raises:
        DataError: The file is missing or damaged, or contains something else.
    """
    import numpy as np

    check_file(path, path.parent)
    try:
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")  # which takes no archives and no objects
    except FileNotFoundError:
        raise DataError(f"{path}: missing; the directory is incomplete, {advice}") from None
    except Exception as error:  # numpy parses the header as Python, which fails in many ways
        raise DataError(f"{path}: damaged ({shorten(str(error))}); {advice}") from None
    if array.dtype != dtype or array.ndim != 1:
        raise DataError(f"{path}: damaged (not an array of {np.dtype(dtype)}); {advice}")
    return array


def _bounded_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


def hidden_path(path: Path, suffix: str) -> Path:
    """Path of a hidden sibling of a file or folder, links followed, so that a rename stays on one file system."""
    real = real_path(path)
    return real.parent / f".{real.name}.{suffix}"
