"""Reading corpora: tab-separated text (plain, gzip, zip) and parallel files."""

from __future__ import annotations

import gzip
import itertools
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from nmt.corpus import Pair
from nmt.errors import DataError

SPLIT_NAMES = ("train", "valid", "test")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Corpus:
    """What was read, as it stands in the files.

    Attributes:
        splits: Pairs under "all" for an unsplit corpus, under "train", "valid" and perhaps "test" for
            one that comes split.
        skipped: Lines left out because they have too few columns (blank lines among them).
        description: One line a source: the files, the number of lines, the columns.
    """

    splits: dict[str, list[Pair]]
    skipped: int
    description: tuple[str, ...]


def read_corpus(paths: Sequence[Path], *, columns: tuple[int, int] = (1, 2), first_lines: int | None = None) -> Corpus:
    """Read sentence pairs from one tab-separated file or from parallel files.

    Every file is UTF-8, with or without a byte order mark, lines ending in LF or CRLF; it may be plain,
    gzip (.gz) or a zip archive (.zip) of one file, not counting those whose name starts with `_`.

    Args:
        paths: One tab-separated file; or two parallel files (source, target); or four or six parallel
            files (source and target of train, valid and, with six, test).
        columns: Numbers, from 1, of the source and the target column. For a tab-separated file only.
        first_lines: Take only that many lines from the start of each file; None takes all.

    Raises:
        DataError: A file is missing, unreadable, not UTF-8 or empty, the parallel files have different
            numbers of lines, or no line has the wanted columns.
    """
    if len(paths) == 1:
        return _read_columns(paths[0], columns, first_lines)
    if len(paths) not in (2, 4, 6):
        raise DataError(
            f"sources: {len(paths)} files given; give 1 (tab-separated text), 2 (source, target), "
            "4 (source and target of train, then of valid) or 6 (the same and test)"
        )
    names = ("all",) if len(paths) == 2 else SPLIT_NAMES
    splits = {}
    description = []
    for name, src_path, tgt_path in zip(names, paths[::2], paths[1::2], strict=False):
        splits[name] = _read_parallel(src_path, tgt_path, first_lines)
        label = "" if name == "all" else f"{name}: "
        description.append(f"{label}{src_path} and {tgt_path}: {len(splits[name]):,} lines")
    return Corpus(splits, skipped=0, description=tuple(description))


def _read_columns(path: Path, columns: tuple[int, int], first_lines: int | None) -> Corpus:
    """Read the pairs of one tab-separated file; the parameters are those of `read_corpus`."""
    src_column, tgt_column = columns
    needed = max(columns)
    if min(columns) < 1:
        raise DataError(f"columns: {src_column}, {tgt_column}; columns are numbered from 1")
    pairs = []
    skipped = 0
    most = 0
    for line in itertools.islice(_lines(path), first_lines):
        cells = line.split("\t")
        most = max(most, len(cells))
        if len(cells) < needed:
            skipped += 1
        else:
            pairs.append(Pair(cells[src_column - 1], cells[tgt_column - 1]))
    if not pairs and not skipped:
        raise DataError(f"{path}: empty; give a file with lines of source<TAB>target")
    if not pairs:
        found = "one column only" if most == 1 else f"{most} columns at most"
        raise DataError(
            f"{path}: no line has columns {src_column} and {tgt_column} ({found} in {skipped:,} lines); the "
            "format is source<TAB>target, or say which columns hold them; parallel text takes two files"
        )
    lines = len(pairs) + skipped
    description = f"{path}: {lines:,} lines, source in column {src_column}, target in column {tgt_column}"
    return Corpus({"all": pairs}, skipped, (description,))


def _read_parallel(src_path: Path, tgt_path: Path, first_lines: int | None) -> list[Pair]:
    """Pair two files line by line; blank lines stay, because they keep the files aligned."""
    src = list(itertools.islice(_lines(src_path), first_lines))
    tgt = list(itertools.islice(_lines(tgt_path), first_lines))
    if len(src) != len(tgt):
        raise DataError(
            f"{src_path} and {tgt_path}: {len(src):,} and {len(tgt):,} lines; "
            "parallel files have one sentence a line and the same number of lines"
        )
    if not src:
        raise DataError(f"{src_path} and {tgt_path}: empty; give files with one sentence a line")
    return list(map(Pair, src, tgt))


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a plain, gzip or zip file, without their ends.

    Only LF ends a line, as in every other tool that counts them: U+2028, U+0085 and form feeds stay inside.
    """
    try:
        with _opened(path) as file:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    line = line.removeprefix(BYTE_ORDER_MARK)
                try:
                    text = line.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{path}, line {number:,}: not UTF-8 ({error.reason} at byte {error.start + 1} of "
                        "the line); convert the file to UTF-8"
                    ) from None
                yield text.removesuffix("\n").removesuffix("\r")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; check the path") from None
    except zipfile.BadZipFile as error:
        raise DataError(f"{path}: not a readable zip archive ({error}); download it again") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path}: damaged compressed data ({error}); download it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the path") from None


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes; its suffix says how it is packed."""
    match path.suffix.lower():
        case ".zip":
            with zipfile.ZipFile(path) as archive, _open_member(path, archive) as member:
                yield member
        case ".gz":
            with gzip.open(path) as unpacked:
                yield cast(IO[bytes], unpacked)
        case _:
            with path.open("rb") as file:
                yield file


def _open_member(path: Path, archive: zipfile.ZipFile) -> IO[bytes]:
    """Open the one data file of an archive; names that start with `_` (_about.txt) are not data."""
    names = [
        info.filename
        for info in archive.infolist()
        if not info.is_dir() and not any(part.startswith("_") for part in PurePosixPath(info.filename).parts)
    ]
    if len(names) != 1:
        found = f"{len(names)} data files ({', '.join(names)})" if names else "no data file"
        raise DataError(f"{path}: {found} in the archive, one is needed; unpack it and give the text file")
    try:
        return archive.open(names[0])
    except (RuntimeError, NotImplementedError) as error:  # a password, an unknown compression
        raise DataError(f"{path}: cannot be unpacked ({error}); unpack it and give the text file") from None
