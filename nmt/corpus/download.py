"""Downloading corpora once, over a network that may fail."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import logging
import lzma
import re
import ssl
import struct
import time
import urllib.parse
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from nmt.system.errors import DataError, printable, shorten
from nmt.system.files import sync
from nmt.system.progress import progress_bar
from nmt.system.version import __version__

if TYPE_CHECKING:
    from requests import Response

log = logging.getLogger(__name__)

HEADERS = {
    "User-Agent": f"nmt/{__version__} (neural machine translation trainer)",
    "Accept-Encoding": "identity",  # otherwise some servers compress what they send
}
TIMEOUT = 30.0  # seconds without a byte
BLOCK = 1 << 16  # bytes
ATTEMPTS = 4  # for one file, in one command
PAUSE = 2.0  # seconds before the second attempt; twice that before the third, and so on
BUSY = (429, 500, 502, 503, 504)  # HTTP status codes that may be temporary
BY_HAND = "download it yourself and give the file with --source PATH"
LATER = f"run the command again later, or {BY_HAND}"
MOVED = f"the file may have moved: look for it with a browser, {BY_HAND}"
REFUSED = "the server refuses automatic downloads: fetch it with a browser and give the file with --source PATH"
ADVICE = {403: REFUSED, 404: MOVED, 406: REFUSED, 410: MOVED}  # by HTTP status code
UNPACKERS: dict[str, Callable[[Path], io.BufferedIOBase]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError)


class _TransientError(Exception):
    """A transfer failed in a way that may not happen again."""


def resolve_sources(sources: Sequence[str], raw_directory: Path) -> list[Path]:
    """Turn file names and URLs into files on disk, downloading what is missing.

    A failed download is retried a few times. The file is called NAME.part until it is complete and verified.
    If several processes want the same file, one downloads it and the others wait.

    Args:
        sources: Local paths and http or https URLs.
        raw_directory: Where downloads are kept, each under the last part of its URL; created if needed.

    Returns:
        One path for each source, in order. Local paths are not checked here.

    Raises:
        DataError: A URL cannot be downloaded, has no file name or that of another URL, or yields a damaged archive;
            or `raw_directory` cannot be written to.
    """
    urls: dict[Path, str] = {}
    paths = []
    for source in sources:
        if not source.lower().startswith(("http://", "https://")):
            if scheme := re.match(r"[a-z][a-z\d+.-]*://", source.lower()):
                raise DataError(f"{source}: {scheme[0]} is not supported; {BY_HAND}")
            paths.append(Path(source))
            continue
        path = raw_directory / _file_name(source)
        if urls.setdefault(path, source) != source:
            raise DataError(
                f"{source}: would be stored as {path}, like {urls[path]}; "
                "download them yourself under different names and give the files with --source PATH"
            )
        _fetch(source, path)
        paths.append(path)
    return paths


def _file_name(url: str) -> str:
    """Last part of the path of a URL."""
    try:
        name = PurePosixPath(urllib.parse.unquote(urllib.parse.urlsplit(url).path)).name
    except ValueError as error:
        raise _failure(url, str(error)) from None
    if name in ("", "..") or name != printable(name):
        raise _failure(url, "the URL has no file name")
    return name


def _fetch(url: str, path: Path) -> None:
    """Download `url` to `path` unless the file exists; wait if another process is downloading it."""
    if not path.exists():
        with _naming_write_errors(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(path):
            if not path.exists():
                _download(url, path)
                return
    log.info(f"Using {path}, downloaded earlier (delete it to download it again)")


@contextlib.contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Keep other processes from downloading `path`; wait for one that already does."""
    lock_path = path.with_name(f"{path.name}.lock")
    lock = FileLock(lock_path)
    with _naming_write_errors(lock_path), contextlib.suppress(Timeout):
        lock.acquire(blocking=False)
    if not lock.is_locked:
        log.info(f"Waiting for another process to download {path}")
        with _naming_write_errors(lock_path):
            lock.acquire()
    try:
        yield
    finally:
        # Unlinked while held: a process waiting for it sees that the file is gone and locks a new one.
        with contextlib.suppress(OSError):  # Windows cannot delete an open file; there the release does it
            lock_path.unlink()
        lock.release()


def _download(url: str, path: Path) -> None:
    """Download `url` to `path`, completely or not at all, in a few attempts.

    Raises:
        DataError: No attempt succeeded, or the file is damaged or cannot be stored.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        _try_to_transfer(url, path, part)
        with _naming_write_errors(part):
            problem = _find_problem(part, path.suffix.lower())
            if problem is not None:
                raise _failure(url, problem, LATER)
            part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _try_to_transfer(url: str, path: Path, part: Path) -> None:
    """Download `url` to `part`, in a few attempts."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _transfer(url, path, part)
            return
        except _TransientError as error:
            if attempt == ATTEMPTS:
                raise _failure(url, f"{error}, attempt {attempt} of {ATTEMPTS}", LATER) from None
            pause = PAUSE * attempt
            log.warning(f"{url}: {error}; attempt {attempt + 1} of {ATTEMPTS} in {pause:g} s")
            time.sleep(pause)


def _transfer(url: str, path: Path, part: Path) -> None:
    """Download `url` to `part`, in one attempt.

    Raises:
        _TransientError: Another attempt may succeed.
        DataError: Another attempt will not.
    """
    from pooch import HTTPDownloader
    from tqdm.utils import CallbackIOWrapper

    def announce(response: Response, **_: Any) -> None:
        responses.enter_context(response)
        if response.is_redirect:
            return
        _check_status(url, response)
        response.raw.headers.pop("Content-Encoding", None)  # store the file as it was sent, compressed or not
        response.raw.enforce_content_length = False  # compared below
        bar.total = _length(url, response.headers)
        size = "size unknown" if bar.total is None else _readable_size(bar.total)
        log.info(f"Downloading {url} ({size}) to {path}")

    with (
        contextlib.ExitStack() as responses,
        progress_bar(unit="B", unit_scale=True, desc=path.name, leave=False) as bar,
        _naming_write_errors(part),
    ):
        with part.open("wb") as file, _naming_network_errors(url):
            download = HTTPDownloader(chunk_size=BLOCK, timeout=TIMEOUT, headers=HEADERS, hooks={"response": announce})
            download(url, CallbackIOWrapper(bar.update, file, "write"), None)
        sync(part)
        received = part.stat().st_size
    if bar.total not in (None, received):
        raise _TransientError(f"{received:,} of {bar.total:,} bytes arrived")


def _check_status(url: str, response: Response) -> None:
    """Raise the errors of `_transfer` unless the server sends the file."""
    reason = shorten(f"HTTP {response.status_code} {response.reason}")
    if response.status_code in BUSY:
        raise _TransientError(reason)
    if response.status_code != HTTPStatus.OK:
        raise _failure(url, reason, ADVICE.get(response.status_code, BY_HAND))


def _length(url: str, headers: Mapping[str, str]) -> int | None:
    """Content-Length in bytes; None if there is none."""
    text = headers.get("Content-Length")
    if text is not None and not re.fullmatch("[0-9]+", text):
        raise _failure(url, f"the server sent the length {shorten(repr(text))}")
    return None if text is None else int(text)


@contextlib.contextmanager
def _naming_network_errors(url: str) -> Iterator[None]:
    """Turn the errors of a request into those worth a retry and those that are not."""
    from requests.exceptions import RequestException

    try:
        yield
    except RequestException as error:
        if isinstance(error, ValueError):  # a malformed URL, or an unknown scheme
            raise _failure(url, shorten(str(error))) from None
        cause: BaseException = error
        while earlier := cause.__cause__ or cause.__context__:  # libraries wrap each other's errors
            cause = earlier
        reason = shorten(getattr(cause, "strerror", None) or str(cause) or type(cause).__name__)
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise _failure(url, reason) from None
        raise _TransientError(reason) from None


@contextlib.contextmanager
def _naming_write_errors(path: Path) -> Iterator[None]:
    """Turn write errors into a DataError that names the local path."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written ({error.strerror or error}); "
            "check the folder, its permissions and the free space, then run the command again"
        ) from None


def _find_problem(path: Path, suffix: str) -> str | None:
    """Read a download once and say what is wrong with it; None if nothing is.

    Args:
        path: The download.
        suffix: The expected type: .zip, .gz, .bz2 and .xz are decompressed to the end.
    """
    with path.open("rb") as file:
        start = file.read(1024)
    if start.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return "the server sent an HTML page"
    try:
        if suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                damaged = archive.testzip()
            if damaged is not None:
                raise zipfile.BadZipFile(f"bad checksum of {damaged!r}")
        elif suffix in UNPACKERS:
            with UNPACKERS[suffix](path) as unpacked:
                while unpacked.read(BLOCK):
                    pass
    except (*UNREADABLE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # an error of the disk
            raise
        return f"the archive is corrupt and was deleted: {shorten(str(error))}"
    return None


def _failure(url: str, reason: str, advice: str = BY_HAND) -> DataError:
    """Error for a URL that could not be downloaded."""
    return DataError(f"{url}: cannot be downloaded ({reason}); {advice}")


def _readable_size(size: int) -> str:
    """Human-readable size (decimal units): 9.2 MB."""
    if size < 1_000:
        return f"{size} bytes"
    if size < 1_000_000:
        return f"{size / 1e3:.1f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1_000_000_000 else f"{size / 1e9:.1f} GB"
