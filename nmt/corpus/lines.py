"""Lines of text: read from files, plain or compressed, and taken by number from a buffer."""

import bz2
import codecs
import contextlib
import csv
import gzip
import io
import itertools
import lzma
import mmap
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from nmt.system.errors import DataError, list_names, shorten
from nmt.system.limits import MAX_LINE

BYTE_ORDER_MARK = codecs.BOM_UTF8
COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")
"""How files of gzip, bzip2, xz, zip and Zstandard begin."""
UNPACK: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
UNREADABLE = (OSError, RuntimeError, UnicodeError, EOFError, zipfile.BadZipFile, lzma.LZMAError, zlib.error)
"""Errors of reading: gzip and bzip2 report damage as an OSError without a number, zip a password as RuntimeError."""
CSV = ".csv"
"""A part of the name of each CSV file, plain or compressed."""
_WIDE = (
    ("UTF-32", (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), 1 / 2),
    ("UTF-16", (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), 1 / 4),
)
"""Encodings with zero bytes: their byte order marks, and a share of zeros that is exceeded in most lines."""
NOT_DATA = ("license", "licence", "copying", "copyright", "notice", "readme", "changelog")
"""Names, without suffix and in lower case, of files in an archive that are about its data."""
_CONTROL = re.compile("[\0-\b\x0e-\x1f]")
_BREAKS = str.maketrans("\t\n", "  ", "\r")
LONG_CELL = 10
"""Lines of a cell of CSV above which a quotation mark probably lacks its partner."""
BLOCK = 1 << 20  # bytes
BUFFER = 1 << 16  # bytes
TOO_LONG = b"\xff a line longer than a megabyte\n"
"""Placeholder for a longer line: it is not UTF-8, so no text is mistaken for it."""

Row = TypeVar("Row")
Rows = NDArray[np.int64]
"""Numbers of lines."""


def in_blocks(
    rows: Iterable[Row], size: Callable[[Row], int], limit: int = BLOCK, most: int | None = None
) -> Iterator[list[Row]]:
    """Group lines, or anything with a size, into blocks that depend on nothing else.

    Args:
        rows: The lines.
        size: The size of one.
        limit: A block ends when it has this size: about a megabyte, if sizes are bytes.
        most: Maximum number of rows of a block; None sets no limit.
    """
    block: list[Row] = []
    taken = 0
    for row in rows:
        block.append(row)
        taken += size(row)
        if taken >= limit or len(block) == most:
            yield block
            block = []
            taken = 0
    if block:
        yield block


def read_file_lines(path: Path, first_lines: int | None) -> Iterator[bytes]:
    """Lines of a plain or compressed file, each ending in a line feed; `TOO_LONG` for one that is longer.

    Args:
        path: The file; its suffix says how it is compressed.
        first_lines: Lines to read; None reads all.

    Raises:
        DataError: The file is unreadable, damaged or in another encoding.
    """
    with open_unpacked(path) as file:
        lines = iter(partial(file.readline, MAX_LINE + 1), b"")
        for number, line in enumerate(itertools.islice(lines, first_lines)):
            if number == 0:
                _check_encoding(path, line, line + file.peek())
            if not line.endswith(b"\n"):
                line = _end_line(line, file)
            yield line if number else line.removeprefix(BYTE_ORDER_MARK)


def read_rows(path: Path, first_lines: int | None, long_cells: list[tuple[int, int]] | None = None) -> Iterator[bytes]:
    """Lines of a table with a tab between cells, each ending in a line feed; CSV (RFC 4180) is brought into this form.

    The separator of the cells of CSV is the most frequent of `;`, tab and `,` in its first hundred lines. A cell with
    line breaks becomes one line, after blank ones, so that lines keep their numbers.

    Args:
        path: The file.
        first_lines: Lines to read; None reads all.
        long_cells: Receives the first and the last line of each row of CSV with a cell of more than `LONG_CELL` lines.

    Raises:
        DataError: As for `read_file_lines`, or quotation marks in CSV do not match.
    """
    lines = read_file_lines(path, first_lines)
    if CSV not in path.name.lower():
        yield from lines
        return
    texts = (line.decode("utf-8", "surrogateescape") for line in lines)
    sample = list(itertools.islice(texts, 100))
    separator = max(";\t,", key=lambda mark: sum(mark in line for line in sample))
    rows = csv.reader(itertools.chain(sample, texts), delimiter=separator, strict=True)
    number = 0
    try:
        for row in rows:
            yield from itertools.repeat(b"\n", rows.line_num - number - 1)
            if long_cells is not None and max(cell.count("\n") for cell in row or [""]) >= LONG_CELL:
                long_cells.append((number + 1, rows.line_num))
            number = rows.line_num
            yield "\t".join(cell.translate(_BREAKS) for cell in row).encode(errors="surrogateescape") + b"\n"
    except csv.Error as error:
        raise DataError(f"{path}:{number + 1}: not CSV ({error}); quote cells as RFC 4180 has it") from None


def _is_data(name: str) -> bool:
    """True unless a file of an archive is hidden, about the data (_about.txt, LICENSE) or the archiver's."""
    path = PurePosixPath(name)
    return not any(part.startswith(("_", ".")) for part in path.parts) and path.stem.lower() not in NOT_DATA


class Lines:
    """Lines of UTF-8 in a buffer, by number.

    Args:
        buffer: The lines; a line feed ends each.
        lengths: Bytes of each line, with its line feed.
    """

    def __init__(self, buffer: bytes | bytearray | mmap.mmap, lengths: NDArray[np.int64]) -> None:
        self._buffer = buffer
        self._ends = np.cumsum(lengths)

    def raw(self, rows: Rows) -> bytes:
        """The lines at `rows`, with their line feeds."""
        ends = self._ends[rows]
        starts = np.where(rows > 0, self._ends[rows - 1], 0)
        buffer = self._buffer
        return b"".join([buffer[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])

    def texts(self, rows: Rows) -> list[str]:
        """The lines at `rows` as text, without their line feeds."""
        return decode_lines(self.raw(rows))


def encode_lines(texts: Iterable[str]) -> bytes:
    """Texts without line feeds as a block of lines."""
    return "".join([f"{text}\n" for text in texts]).encode()


def encode_pairs(pairs: Sequence[Sequence[str]]) -> tuple[bytes, bytes]:
    """Both sides of pairs, without line feeds, as blocks of lines."""
    src = encode_lines(pair[0] for pair in pairs)
    tgt = encode_lines(pair[1] for pair in pairs)
    return src, tgt


def decode_lines(block: bytes) -> list[str]:
    """The texts of a block of lines."""
    return block.decode().split("\n")[:-1]


def line_lengths(block: bytes) -> NDArray[np.int64]:
    """Bytes of each line of a block, with its line feed."""
    return np.diff(np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")), prepend=-1)


def _end_line(line: bytes, file: BinaryIO) -> bytes:
    """Complete the last line of a file with a line feed; or skip the rest of a long line and return `TOO_LONG`."""
    if len(line) <= MAX_LINE:
        return line + b"\n"
    while (rest := file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
        pass
    return TOO_LONG


def _check_encoding(path: Path, line: bytes, start: bytes) -> None:
    """Reject UTF-16 and UTF-32 (zero bytes or a byte order mark of their own), bytes that are no text, and lone CRs.

    Args:
        path: The file.
        line: Its first line.
        start: The first line and some of the text after it.
    """
    if line.startswith(COMPRESSED):
        advice = "unpack it, name it after its compression, such as .gz, or save it as .csv if it is a spreadsheet"
        raise DataError(f"{path}: contains compressed data; {advice}")
    zeros = line.count(b"\0") / len(line)
    for name, marks, least in _WIDE:
        texts = [line.decode(f"{name}-{order}", errors="ignore") for order in ("LE", "BE")]
        if line.startswith(marks) or (zeros > least and any(not _CONTROL.search(text) for text in texts)):
            raise DataError(f"{path}: looks like {name}; convert it: iconv -f {name} -t UTF-8")
    if zeros > 1 / 4 or len(_CONTROL.findall(start.decode("latin-1"))) > 64 + len(start) / 30:
        raise DataError(f"{path}: is not text; give a file of lines of text, such as source<TAB>target")
    if line.rstrip(b"\r\n").count(b"\r") > 1:
        raise DataError(f"{path}: lines end only in a carriage return; convert them: tr '\\r' '\\n'")


@contextmanager
def open_unpacked(path: Path) -> Iterator[io.BufferedReader]:
    """Open a file for reading bytes; its suffix says how it is compressed.

    Raises:
        DataError: It cannot be read, now or later; the message names it.
    """
    suffix = path.suffix.lower()
    with contextlib.ExitStack() as stack:
        try:
            if suffix == ".zip":
                unpacked: Any = _open_member(path, stack.enter_context(zipfile.ZipFile(path)))
            else:
                unpacked = UNPACK.get(suffix, open)(path, "rb")
            # The `readline` of a file that is unpacked while it is read is slow, unless it is buffered.
            buffered = isinstance(unpacked, io.BufferedReader)
            yield stack.enter_context(unpacked if buffered else io.BufferedReader(unpacked, BUFFER))
        except UNREADABLE as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the path") from None
            advice = "download it again, or unpack it and give the text file"
            raise DataError(f"{path}: cannot be unpacked ({shorten(str(error))}); {advice}") from None


def _open_member(path: Path, archive: zipfile.ZipFile) -> IO[bytes]:
    """Open the only data file of an archive."""
    names = [info.filename for info in archive.infolist() if not info.is_dir() and _is_data(info.filename)]
    if len(names) != 1:
        files = f"{len(names):,} data files ({list_names(names)})" if names else "no data file"
        raise DataError(f"{path}: {files} in the archive, exactly one is needed; unpack it and give the text file")
    return archive.open(names[0])
