"""Fetching corpora from the web, once, over a network that may break off."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import http.client
import io
import lzma
import os
import re
import struct
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from email.message import Message
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import cast

from filelock import FileLock, Timeout
from tqdm import tqdm

from nmt import __version__
from nmt.errors import DataError, printable, shorten
from nmt.files import read_json, write_json

USER_AGENT = f"nmt/{__version__} (neural machine translation trainer; python-urllib)"
TIMEOUT = 30.0  # seconds without a byte
BLOCK = 1 << 16  # bytes
ATTEMPTS = 4  # for one file, in one command
PAUSE = 2.0  # seconds before the second attempt; twice that before the third, and so on
BUSY = (429, 500, 502, 503, 504)  # HTTP status codes that may be gone a moment later
BY_HAND = "download it yourself and give the file with --source PATH"
MOVED = f"the file may have moved: look for it with a browser, {BY_HAND}"
REFUSED = "the server refuses automatic downloads: fetch it with a browser and give the file with --source PATH"
ADVICE = {403: REFUSED, 404: MOVED, 406: REFUSED, 410: MOVED}  # by HTTP status code
UNPACKERS: dict[str, Callable[[Path], io.BufferedIOBase]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError)


@dataclass(frozen=True)
class Origin:
    """Where the bytes of an unfinished download come from; kept beside them as JSON.

    Attributes:
        url: The URL.
        validator: ETag or Last-Modified by which the server knows this version of the file; None where it sent none.
        total: Size of the whole file in bytes; None where the server did not say.
    """

    url: str
    validator: str | None
    total: int | None


class _BrokenTransferError(Exception):
    """A transfer failed in a way that may not happen again."""


class _RangeError(_BrokenTransferError):
    """The server does not have the part of the file that was asked for."""


def resolve_sources(sources: Sequence[str], raw_directory: Path, say: Callable[[str], None]) -> list[Path]:
    """Turn file names and URLs into files on disk, downloading what is not there yet.

    A download that breaks off is tried again a few times, and goes on where it stopped if the server allows,
    in a later call as well: what arrived is kept as NAME.part with NAME.part.json. Of several processes that want one
    file, one downloads it and the others wait.

    Args:
        sources: Local paths and http or https URLs.
        raw_directory: Where downloads are kept, each under the last part of its URL; made when needed.
        say: Receives a line for each URL (that it is downloaded, or that an earlier download is used) and for each
            time that something goes wrong and is tried again.

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
        _fetch(source, path, say)
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


def _fetch(url: str, path: Path, say: Callable[[str], None]) -> None:
    """Download `url` to `path` unless it is there, or another process is just bringing it there."""
    if not path.exists():
        with _writing(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path, say):
            if not path.exists():
                _download(url, path, say)
                return
    say(f"Using {path}, downloaded before (delete it to download it again)")


@contextlib.contextmanager
def _alone(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Keep other processes from downloading `path`; waits for one that does."""
    lock_path = path.with_name(f"{path.name}.lock")
    lock = FileLock(lock_path)
    with _writing(lock_path), contextlib.suppress(Timeout):
        lock.acquire(blocking=False)
    if not lock.is_locked:
        say(f"Waiting for another process, which downloads {path}")
        with _writing(lock_path):
            lock.acquire()
    try:
        yield
    finally:
        # Unlinked while it is held: whoever waits for it sees that the file has no name any more and locks a new one.
        with contextlib.suppress(OSError):  # Windows removes no open file; the release does it there
            lock_path.unlink()
        lock.release()


def _download(url: str, path: Path, say: Callable[[str], None]) -> None:
    """Download `url` to `path`, whole or not at all, in a few attempts.

    Raises:
        DataError: No attempt succeeded, what arrived is no good, or it cannot be stored.
    """
    part = path.with_name(f"{path.name}.part")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _transfer(url, path, part, say)
            break
        except _BrokenTransferError as error:
            if attempt == ATTEMPTS:
                advice = f"run the command again later, or {BY_HAND}"
                raise _failure(url, f"{error}, at attempt {attempt} of {ATTEMPTS}", advice) from None
            pause = PAUSE * attempt
            say(f"{url}: {error}; attempt {attempt + 1} of {ATTEMPTS} follows in {pause:g} s")
            time.sleep(pause)
    with _writing(part):
        problem = _find_problem(part, path.suffix.lower())
        if problem is None:
            part.replace(path)
        else:
            part.unlink()
        _origin_path(part).unlink()
    if problem is not None:
        raise _failure(url, problem, f"run the command again later, or {BY_HAND}")


def _transfer(url: str, path: Path, part: Path, say: Callable[[str], None]) -> None:
    """Bring `part` to its full size, in one attempt; what arrived stays there in any case.

    Raises:
        _BrokenTransferError: Another attempt may succeed.
        DataError: Another attempt will not.
    """
    with _writing(part):
        left_behind = part.stat().st_size if part.exists() else 0
        origin = _resumable(url, part, left_behind)
    if origin is not None and left_behind == origin.total:
        say(f"Using {part}, which is complete: {_readable_size(left_behind)} of {url}")
        return
    response, start = _open(url, origin, left_behind)
    with response:
        if origin is None or start == 0:
            origin = Origin(url, _validator(response.headers), _length(url, response.headers))
        size = "size unknown" if origin.total is None else _readable_size(origin.total)
        line = f"Downloading {url} ({size}) to {path}"
        if start:
            line += f", resuming at {_readable_size(start)} of {size}"
        elif left_behind:
            line += f", from its start: the {_readable_size(left_behind)} that came before cannot be resumed"
        say(line)
        with _writing(part):
            if start == 0:  # emptied first: bytes never stand beside the origin of others
                part.write_bytes(b"")
                write_json(_origin_path(part), asdict(origin))
            received = start + _receive(url, response, part, start, origin.total)
    if origin.total is not None and received != origin.total:
        raise _BrokenTransferError(f"{received:,} of {origin.total:,} bytes arrived")


def _origin_path(part: Path) -> Path:
    """Where the origin of an unfinished download is kept."""
    return part.with_name(f"{part.name}.json")


def _resumable(url: str, part: Path, size: int) -> Origin | None:
    """Origin of an unfinished download of `size` bytes; None where it cannot be told that more would fit."""
    if size == 0:
        return None
    try:
        origin = Origin(**read_json(_origin_path(part)))
    except (DataError, TypeError):
        return None
    if origin.url != url or not isinstance(origin.validator, str) or not isinstance(origin.total, int):
        return None
    return origin if size <= origin.total else None


def _validator(headers: Message) -> str | None:
    """Value for If-Range: the ETag, or the time of the last change where that is weak or missing.

    A weak ETag stays the same while bytes change, so it cannot join two halves of a file (RFC 9110, section 13.1.5).
    """
    etag = headers.get("ETag")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified")


def _length(url: str, headers: Message) -> int | None:
    """Content-Length in bytes; None if there is none."""
    text = headers.get("Content-Length")
    if text is not None and not re.fullmatch("[0-9]+", text):
        raise _failure(url, f"the server sent the length {shorten(repr(text))}")
    return None if text is None else int(text)


def _open(url: str, origin: Origin | None, size: int) -> tuple[http.client.HTTPResponse, int]:
    """Ask for what is missing of a file of which `size` bytes are there, or else for all of it.

    Returns:
        The response, and the position in the file of its first byte.
    """
    if origin is not None and origin.validator is not None:
        with contextlib.suppress(_RangeError):
            response = _request(url, {"Range": f"bytes={size}-", "If-Range": origin.validator})
            if response.status != HTTPStatus.PARTIAL_CONTENT:
                return response, 0
            if _continues(response.headers, origin, size):
                return response, size
            response.close()
    return _request(url, {}), 0


def _continues(headers: Message, origin: Origin, size: int) -> bool:
    """Whether a response goes on where the first `size` bytes of `origin` end."""
    found = re.fullmatch("bytes ([0-9]+)-[0-9]+/([0-9]+)", headers.get("Content-Range", ""))
    same = _validator(headers) in (None, origin.validator)
    return same and found is not None and (int(found[1]), int(found[2])) == (size, origin.total)


def _request(url: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    """Send a GET request and return the response, not yet read."""
    with _network(url):
        request = urllib.request.Request(url, headers={"User-Agent": USER_AGENT} | headers)
        return cast(http.client.HTTPResponse, urllib.request.urlopen(request, timeout=TIMEOUT))


def _receive(url: str, response: http.client.HTTPResponse, part: Path, start: int, total: int | None) -> int:
    """Append a response to `part` behind a progress bar and sync it to disk; return the number of bytes received."""
    received = 0
    with (
        part.open("ab") as file,
        tqdm(
            initial=start, total=total, unit="B", unit_scale=True, desc=part.stem, leave=False, disable=None
        ) as progress,
    ):
        while block := _next_block(url, response):
            file.write(block)
            received += len(block)
            progress.update(len(block))
        file.flush()
        os.fsync(file.fileno())
    return received


def _next_block(url: str, response: http.client.HTTPResponse) -> bytes:
    """Bytes as they arrive, none at the end: nothing is held back that a breakdown would lose."""
    with _network(url):
        return response.read1(BLOCK)


@contextlib.contextmanager
def _network(url: str) -> Iterator[None]:
    """Sort the errors of a request into those that may pass and those that will not."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        reason = shorten(f"HTTP {error.code} {error.reason}")
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise _RangeError(reason) from None
        if error.code in BUSY:
            raise _BrokenTransferError(reason) from None
        raise _failure(url, reason, ADVICE.get(error.code, BY_HAND)) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        reason = shorten(str(cause) or type(cause).__name__)
        # A malformed URL, an unknown scheme, or a certificate that is not valid (a ValueError too).
        if isinstance(cause, (str, ValueError, http.client.InvalidURL)):
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
