"""The files behind the sources of a config, and whether they are still those that data was prepared from."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.corpus.marker_schema import MARKER, SourceFile, read_marker
from nmt.system.errors import printable
from nmt.system.files import sha256, shipped
from nmt.system.messages import Message

if TYPE_CHECKING:
    from nmt.config import DataSection
    from nmt.corpus.sources import Source

log = logging.getLogger(__name__)

RAW_DIRECTORY = Path("data/raw")


def open_sources(files: Sequence[str], data: DataSection) -> dict[str, Source]:
    """The splits of a corpus, which is downloaded if need be."""
    from nmt.corpus.download import resolve_sources
    from nmt.corpus.sources import open_corpus

    return open_corpus(resolve_sources([*map(bundled, files)], RAW_DIRECTORY), data)


def bundled(source: str) -> str:
    """The path of a file that ships with the project, unless the working folder has a file of that name."""
    is_bundled = source.startswith("data/sample/") and not Path(source).exists()
    return str(shipped(source)) if is_bundled else source


def record_sources(data: DataSection) -> dict[str, SourceFile]:
    """Size and checksum of each file that the sources of a config name, by its path as the config has it.

    A relative path stays relative to the working folder, and a URL is the path of its download.
    """
    from nmt.corpus.download import local_path
    from nmt.corpus.sources import find_files

    sources = [*data.source, *data.test]
    for corpus in data.extra.values():
        sources += corpus.source
    records = {}
    for source in sources:
        named = local_path(source, RAW_DIRECTORY)
        for file in find_files(Path(bundled(str(named))), data):
            if file.is_file():  # a pipe can be read only once
                records[named.with_name(file.name).as_posix()] = SourceFile(file.stat().st_size, sha256(file))
    return records


def find_changed(directory: Path) -> list[str]:
    """The source files that have changed since a data directory was prepared, each with the difference.

    Files that are gone are left out, as the directory may be a copy from another machine. The checksum of a file is
    computed only if it has the size of that time and was written since.

    Args:
        directory: Data directory.

    Raises:
        DataError: It is not a data directory, or is damaged.
    """
    sources = read_marker(directory).sources
    prepared = (directory / MARKER).stat().st_mtime
    changed = []
    for name, before in sources.items():
        file = Path(bundled(name))
        if not file.is_file():
            continue
        with contextlib.suppress(OSError):  # a file that cannot be read may be the same
            status = file.stat()
            if status.st_size != before.size:
                changed.append(f"{printable(name)} ({before.size:,} bytes then, {status.st_size:,} now)")
            elif status.st_mtime > prepared and sha256(file) != before.sha256:
                changed.append(f"{printable(name)} (other content of the same size)")
    return changed


def warn_of_earlier_content(directory: Path, changed: Sequence[str], advice: Message) -> None:
    """Warn that source files of a data directory have changed since.

    Args:
        directory: Data directory.
        changed: Result of `find_changed`, not empty.
        advice: What to do to use the new content.
    """
    files = ", ".join(changed)
    problem = "{directory}: was prepared from earlier content of {files}; {advice}"
    log.warning("%s", Message(problem, directory=directory, files=files, advice=advice))
