"""Fetching corpora from the web, once."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from tqdm import tqdm

from nmt import __version__
from nmt.errors import DataError

USER_AGENT = f"nmt/{__version__} (neural machine translation trainer; python-urllib)"
TIMEOUT = 30.0  # seconds without a byte
BLOCK = 1 << 16  # bytes


def resolve_sources(sources: Sequence[str], raw_directory: Path, say: Callable[[str], None]) -> list[Path]:
    """Turn file names and URLs into files on disk, downloading what is not there yet.

    Args:
        sources: Local paths and http or https URLs.
        raw_directory: Where downloads are kept, each under the last part of its URL; made when needed.
        say: Receives one line for each URL: that it is downloaded, or that an earlier download is used.

    Returns:
        One path for each source, in order. Local paths are not checked here.

    Raises:
        DataError: A URL cannot be downloaded, names no file, or has the file name of another one.
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
        if path.exists():
            say(f"Using {path}, downloaded before (delete it to download it again)")
        else:
            _download(source, path, say)
        paths.append(path)
    return paths


def _file_name(url: str) -> str:
    """Last part of the path of a URL."""
    try:
        name = PurePosixPath(urllib.parse.unquote(urllib.parse.urlsplit(url).path)).name
    except ValueError as error:
        raise _failure(url, str(error)) from None
    if not name:
        raise _failure(url, "the URL names no file")
    return name


def _download(url: str, path: Path, say: Callable[[str], None]) -> None:
    """Download `url` to `path`, whole or not at all.

    Raises:
        DataError: Anything went wrong on the way, a short transfer included.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        request = urllib.request.Request(url, headers={"User-Agent": USER_AGENT})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            length = response.headers.get("Content-Length")
            total = None if length is None else int(length)
            size = "size unknown" if total is None else _readable_size(total)
            say(f"Downloading {url} ({size}) to {path}")
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                received = _receive(response, part, total)
                if total is not None and received != total:
                    raise _failure(url, f"only {received:,} of {total:,} bytes arrived")
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
    except urllib.error.HTTPError as error:
        error.close()
        raise _failure(url, f"HTTP {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise _failure(url, str(error.reason)) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _failure(url, str(error) or type(error).__name__) from None


def _receive(response: IO[bytes], part: Path, total: int | None) -> int:
    """Write a response to `part` behind a progress bar; return the number of bytes received."""
    received = 0
    with (
        part.open("wb") as file,
        tqdm(total=total, unit="B", unit_scale=True, desc=part.stem, leave=False, disable=None) as progress,
    ):
        while block := response.read(BLOCK):
            file.write(block)
            received += len(block)
            progress.update(len(block))
    return received


def _failure(url: str, reason: str) -> DataError:
    """Error for a URL that could not be fetched."""
    return DataError(
        f"{url}: cannot be downloaded ({reason}); download it yourself and give the file with --source PATH"
    )


def _readable_size(size: int) -> str:
    """Size in bytes as people read it: 9.2 MB (decimal units)."""
    if size < 1_000:
        return f"{size} bytes"
    if size < 1_000_000:
        return f"{size / 1e3:.1f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1_000_000_000 else f"{size / 1e9:.1f} GB"
