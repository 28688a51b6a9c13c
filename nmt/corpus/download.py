"""Fetching corpora from the web, once, over a network that may break off."""

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

from nmt import __version__
from nmt.errors import DataError, printable, shorten
from nmt.files import flush
from nmt.progress import progress_bar

if TYPE_CHECKING:
    from requests import Response

log = logging.getLogger(__name__)

HEADERS = {
    "User-Agent": f"nmt/{__version__} (neural machine translation trainer)",
    "Accept-Encoding": "identity",  # else some servers pack what they send
}
TIMEOUT = 30.0  # seconds without a byte
BLOCK = 1 << 16  # bytes
ATTEMPTS = 4  # for one file, in one command
PAUSE = 2.0  # seconds before the second attempt; twice that before the third, and so on
BUSY = (429, 500, 502, 503, 504)  # HTTP status codes that may be gone a moment later
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


class _BrokenTransferError(Exception):
    """A transfer failed in a way that may not happen again."""


def resolve_sources(sources: Sequence[str], raw_directory: Path) -> list[Path]:
    """Turn file names and URLs into files on disk, downloading what is not there yet.

    A download that breaks off is tried again a few times. Until it is complete and known to be sound it is NAME.part.
    Of several processes that want one file, one downloads it and the others wait.

    Args:
        sources: Local paths and http or https URLs.
        raw_directory: Where downloads are kept, each under the last part of its URL; made when needed.

    Returns:
        One path for each source, in order. Local paths are not checked here.

    Raises:
        DataError: A URL cannot be downloaded, names no file, has the file name of another one or yields a damaged
            archive; or `raw_directory` cannot be written to.
    """
    urls: dict[Path, str] = {}
    paths = []
    for source in sources:
        if not source.lower().startswith(("http://", "https://")):
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
        raise _failure(url, "the URL names no file")
    return name


def _fetch(url: str, path: Path) -> None:
    """Download `url` to `path` unless it is there, or another process is just bringing it there."""
    if not path.exists():
        with _writing(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path):
            if not path.exists():
                _download(url, path)
                return
    log.info(f"Using {path}, downloaded before (delete it to download it again)")


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from downloading `path`; waits for one that does."""
    lock_path = path.with_name(f"{path.name}.lock")
    lock = FileLock(lock_path)
    with _writing(lock_path), contextlib.suppress(Timeout):
        lock.acquire(blocking=False)
    if not lock.is_locked:
        log.info(f"Waiting for another process, which downloads {path}")
        with _writing(lock_path):
            lock.acquire()
    try:
        yield
    finally:
        # Unlinked while it is held: whoever waits for it sees that the file has no name any more and locks a new one.
        with contextlib.suppress(OSError):  # Windows removes no open file; the release does it there
            lock_path.unlink()
        lock.release()


def _download(url: str, path: Path) -> None:
    """Download `url` to `path`, whole or not at all, in a few attempts.

    Raises:
        DataError: No attempt succeeded, what arrived is no good, or it cannot be stored.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        _try_to_transfer(url, path, part)
        with _writing(part):
            problem = _find_problem(part, path.suffix.lower())
            if problem is not None:
                raise _failure(url, problem, LATER)
            part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _try_to_transfer(url: str, path: Path, part: Path) -> None:
    """Bring the content of `url` to `part`, in a few attempts."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _transfer(url, path, part)
            return
        except _BrokenTransferError as error:
            if attempt == ATTEMPTS:
                raise _failure(url, f"{error}, at attempt {attempt} of {ATTEMPTS}", LATER) from None
            pause = PAUSE * attempt
            log.warning(f"{url}: {error}; attempt {attempt + 1} of {ATTEMPTS} follows in {pause:g} s")
            time.sleep(pause)


def _transfer(url: str, path: Path, part: Path) -> None:
    """Bring the content of `url` to `part`, in one attempt.

    Raises:
        _BrokenTransferError: Another attempt may succeed.
        DataError: Another attempt will not.
    """
    from pooch import HTTPDownloader
    from tqdm.utils import CallbackIOWrapper

    def announce(response: Response, **_: Any) -> None:
        responses.enter_context(response)
        if response.is_redirect:
            return
        _check_status(url, response)
        response.raw.headers.pop("Content-Encoding", None)  # a file is stored as it came, packed or not
        response.raw.enforce_content_length = False  # it is compared below
        bar.total = _length(url, response.headers)
        size = "size unknown" if bar.total is None else _readable_size(bar.total)
        log.info(f"Downloading {url} ({size}) to {path}")

    with (
        contextlib.ExitStack() as responses,
        progress_bar(unit="B", unit_scale=True, desc=path.name, leave=False) as bar,
        _writing(part),
    ):
        with part.open("wb") as file, _network(url):
            download = HTTPDownloader(chunk_size=BLOCK, timeout=TIMEOUT, headers=HEADERS, hooks={"response": announce})
            download(url, CallbackIOWrapper(bar.update, file, "write"), None)
        flush(part)
        received = part.stat().st_size
    if bar.total not in (None, received):
        raise _BrokenTransferError(f"{received:,} of {bar.total:,} bytes arrived")


def _check_status(url: str, response: Response) -> None:
    """Raise what a transfer raises unless the server sends what it was asked for."""
    reason = shorten(f"HTTP {response.status_code} {response.reason}")
    if response.status_code in BUSY:
        raise _BrokenTransferError(reason)
    if response.status_code != HTTPStatus.OK:
        raise _failure(url, reason, ADVICE.get(response.status_code, BY_HAND))


def _length(url: str, headers: Mapping[str, str]) -> int | None:
    """Content-Length in bytes; None if there is none."""
    text = headers.get("Content-Length")
    if text is not None and not re.fullmatch("[0-9]+", text):
        raise _failure(url, f"the server sent the length {shorten(repr(text))}")
    return None if text is None else int(text)


@contextlib.contextmanager
def _network(url: str) -> Iterator[None]:
    """Sort the errors of a request into those that may pass and those that will not."""
    from requests.exceptions import RequestException

    try:
        yield
    except RequestException as error:
        if isinstance(error, ValueError):  # a malformed URL, or an unknown scheme
            raise _failure(url, shorten(str(error))) from None
        cause: BaseException = error
        while earlier := cause.__cause__ or cause.__context__:  # libraries wrap the errors of one another
            cause = earlier
        reason = shorten(getattr(cause, "strerror", None) or str(cause) or type(cause).__name__)
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise _failure(url, reason) from None
        raise _BrokenTransferError(reason) from None


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Name the local path when it cannot be written."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written ({error.strerror or error}); "
            "see to the folder, its permissions and the free space, then run the command again"
        ) from None


def _find_problem(path: Path, suffix: str) -> str | None:
    """Read a download once and say what is wrong with it; None if nothing is.

    Args:
        path: The download.
        suffix: What kind of file it is to be: .zip, .gz, .bz2 and .xz are unpacked to their end.
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
        if isinstance(error, OSError) and error.errno is not None:  # the disk's fault
            raise
        return f"the archive is corrupt and was deleted: {shorten(str(error))}"
    return None


def _failure(url: str, reason: str, advice: str = BY_HAND) -> DataError:
    """Error for a URL that could not be fetched."""
    return DataError(f"{printable(url)}: cannot be downloaded ({reason}); {advice}")


def _readable_size(size: int) -> str:
    """Size in bytes as people read it: 9.2 MB (decimal units)."""
    if size < 1_000:
        return f"{size} bytes"
    if size < 1_000_000:
        return f"{size / 1e3:.1f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1_000_000_000 else f"{size / 1e9:.1f} GB"
