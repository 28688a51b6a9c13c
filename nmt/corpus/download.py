"""Downloading corpora once."""

from __future__ import annotations

import contextlib
import logging
import re
import urllib.parse
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from nmt.system.errors import DataError, printable, shorten
from nmt.system.files import naming, set_default_permissions
from nmt.system.messages import Message, Parameter
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
FILE = Parameter("source", "PATH")
BY_HAND = Message("download it yourself and give the file with {file}", file=FILE)
LATER = Message("run the command again later, or {by_hand}", by_hand=BY_HAND)
MOVED = Message("the file may have moved: look for it with a browser, {by_hand}", by_hand=BY_HAND)
REFUSED = Message(
    "the server refuses automatic downloads: fetch it with a browser and give the file with {file}", file=FILE
)
ADVICE = {401: BY_HAND, 403: REFUSED, 404: MOVED, 406: REFUSED, 410: MOVED}  # by HTTP status code


def resolve_sources(sources: Sequence[str], raw_directory: Path) -> list[Path]:
    """Turn file names and URLs into files on disk, downloading those that are missing.

    Args:
        sources: Local paths and http or https URLs.
        raw_directory: Where downloads are kept, each under the last part of its URL; created if needed.

    Returns:
        One path for each source, in order. Local paths are not checked here.

    Raises:
        DataError: A URL cannot be downloaded, or has no file name or that of another URL.
        OSError: `raw_directory` cannot be written to.
    """
    urls: dict[Path, str] = {}
    paths = []
    for source in sources:
        path = local_path(source, raw_directory)
        if not _is_url(source):
            paths.append(path)
            continue
        if urls.setdefault(path, source) != source:
            raise DataError(
                "{source}: would be stored as {path}, like {other}; download them yourself under different names and "
                "give the files with {file}",
                source=source,
                path=path,
                other=urls[path],
                file=FILE,
            )
        if path.exists():
            log.info(f"Using {path}, downloaded earlier (delete it to download it again)")
        else:
            _download(source, path)
        paths.append(path)
    return paths


def local_path(source: str, raw_directory: Path) -> Path:
    """The path of a local file, or that of the download of a URL.

    Raises:
        DataError: It is a URL of another kind, or has no file name.
    """
    if _is_url(source):
        return raw_directory / _file_name(source)
    if scheme := re.match(r"[a-z][a-z\d+.-]*://", source.lower()):
        raise DataError(
            "{source}: {scheme} is not supported; {by_hand}", source=source, scheme=scheme[0], by_hand=BY_HAND
        )
    return Path(source)


def _is_url(source: str) -> bool:
    return source.lower().startswith(("http://", "https://"))


def _file_name(url: str) -> str:
    """Last part of the path of a URL."""
    name = PurePosixPath(urllib.parse.unquote(re.sub(r"^\w+://[^/?#]*|[?#].*", "", url, flags=re.DOTALL))).name
    if name in ("", "..") or name != printable(name):
        raise _failure(url, "the URL has no file name")
    return name


def _download(url: str, path: Path) -> None:
    """Download `url` to `path`, completely or not at all.

    Raises:
        DataError: It cannot be downloaded, or is an HTML page.
        OSError: It cannot be stored.
    """
    import pooch
    from requests.exceptions import RequestException

    def receive(response: Response, **_: Any) -> None:
        responses.enter_context(response)
        # Many servers say of a .gz file that it was packed for the way; it is stored as it was sent.
        response.raw.headers.pop("Content-Encoding", None)

    log.info(f"Downloading {url} to {path}")
    pooch.get_logger().setLevel(logging.WARNING)
    with (
        naming(path),
        contextlib.ExitStack() as responses,
        progress_bar(total=1, unit="B", unit_scale=True, desc=path.name, leave=False) as bar,
    ):
        options = {"timeout": TIMEOUT, "headers": HEADERS, "hooks": {"response": receive}}
        downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=BLOCK, **options)
        try:
            pooch.retrieve(url, None, path.name, path.parent, downloader=downloader)
        except (RequestException, ValueError) as error:  # a ValueError alone is a malformed header
            if (response := getattr(error, "response", None)) is not None:
                reason = f"HTTP {response.status_code} {response.reason}"
                raise _failure(url, reason, ADVICE.get(response.status_code, LATER)) from None
            cause: BaseException = error
            while earlier := cause.__cause__ or cause.__context__:  # libraries wrap each other's errors
                cause = earlier
            reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
            raise _failure(url, reason, BY_HAND if isinstance(error, ValueError) else LATER) from None
    set_default_permissions(path)
    with path.open("rb") as file:
        start = file.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        path.unlink()
        raise _failure(url, "the server sent an HTML page")


def _failure(url: str, reason: str, advice: Message = BY_HAND) -> DataError:
    """Error for a URL that could not be downloaded."""
    return DataError("{url}: cannot be downloaded ({reason}); {advice}", url=url, reason=shorten(reason), advice=advice)
