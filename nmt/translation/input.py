"""Lines of text from a file, a pipe or a terminal, as soon as they are there."""

import codecs
from collections import Counter
from collections.abc import Callable, Iterator
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import NamedTuple

from nmt.system.errors import DataError
from nmt.system.limits import MAX_LINE, OVERLONG

CHUNK = 1 << 16
UTF_16 = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
"""What UTF-16 begins with."""

PROBLEMS = {
    "not UTF-8": ("invalid bytes became U+FFFD", "convert it to UTF-8 first"),
    "has NUL characters, as UTF-16 does": ("convert it to UTF-8 first", "convert it to UTF-8 first"),
    OVERLONG: ("the rest was ignored", "write one sentence per line"),
}
"""What can be wrong with a line of input: how the line is handled, for a warning, and what to do, for an error."""


class Line(NamedTuple):
    """A line of text.

    Attributes:
        text: Its text, without its line end.
        end: Its line end: a carriage return or none, then a line feed, which only the last line may lack.
    """

    text: str
    end: str


def stream_lines(stream: BufferedIOBase, name: str, warn: Callable[[str], object] | None) -> Iterator[list[Line]]:
    """Yield the lines of a byte stream as soon as they are available, several at a time.

    Ill-formed UTF-8 becomes U+FFFD, and only the first `MAX_LINE` bytes of a line are read. Only a line feed ends a
    line, as for `wc -l`, but the last line may lack it.

    Args:
        stream: The bytes.
        name: Name of the stream for errors.
        warn: Called with a message for the first line with each of `PROBLEMS`, and at the end with their number if
            there are more; None makes them errors.

    Raises:
        DataError: It is UTF-16, or a line has a problem and `warn` is None.
    """
    number = 0
    lines_with = Counter[str]()

    def decode(line: bytes, feed: str) -> Line:
        nonlocal number
        number += 1
        if number == 1 and line.startswith(UTF_16):
            raise DataError(f"{name}: is UTF-16, not UTF-8; convert it first: iconv -f UTF-16 -t UTF-8")
        text, problems = decode_line(line)
        for problem in problems:
            if warn is None:
                raise DataError(f"{name}: line {number}: {problem}; {PROBLEMS[problem][1]}")
            lines_with[problem] += 1
            if lines_with[problem] == 1:
                warn(f"line {number}: {problem}; {PROBLEMS[problem][0]}")
        carriage_return = "\r" if line.endswith(b"\r") else ""
        return Line(text, carriage_return + feed)

    rest = b""
    while True:
        try:
            chunk = stream.read1(CHUNK)
        except OSError as error:
            raise DataError(f"{name}: cannot be read ({error.strerror})") from None
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        # Enough to tell that the line is too long, and whether its end begins with a carriage return.
        rest = rest[:MAX_LINE] + rest[MAX_LINE:][-1:]
        if warn is None and len(rest) > MAX_LINE:
            decode(rest, "")  # raises at once, as the line may never end
        if lines:
            yield [decode(line, "\n") for line in lines]
    if rest:
        yield [decode(rest, "")]
    for problem, count in lines_with.items():
        if warn is not None and count > 1:
            warn(f"{count:,} lines in all: {problem}")


def decode_line(line: bytes) -> tuple[str, list[str]]:
    """The text of a line without its line end, and which of `PROBLEMS` it has."""
    longer = len(line) > MAX_LINE
    line = line[:MAX_LINE]
    text, _ = codecs.utf_8_decode(line, "replace", not longer)  # a character cut in two is dropped
    present = {
        "not UTF-8": text.count("\ufffd") != line.count("\ufffd".encode()),
        "has NUL characters, as UTF-16 does": b"\0" in line,
        OVERLONG: longer,
    }
    return text.lstrip("\ufeff").removesuffix("\r"), [problem for problem, is_present in present.items() if is_present]


def open_input(path: Path) -> BufferedReader:
    """Open a file to translate.

    Raises:
        DataError: It cannot be read, or over a third of its beginning is not text.
    """
    try:
        if path.is_file():
            with path.open("rb") as file:
                _check_is_text(file.read(CHUNK), path)
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def _check_is_text(begin: bytes, path: Path) -> None:
    text = begin.decode("utf-8", "replace")
    share = (text.count("\ufffd") - begin.count("\ufffd".encode()) + text.count("\0")) / max(1, len(text))
    if share > 1 / 3 and not begin.startswith(UTF_16):
        advice = "give a text file, or convert it first, as in: iconv -f UTF-16 -t UTF-8"
        raise DataError(f"{path}: is not UTF-8 text ({share:.0%} of its beginning is not); {advice}")


def read_text(path: Path) -> list[str]:
    """Read the lines of a file.

    Raises:
        DataError: It cannot be read, is not UTF-8 or has an overlong line.
    """
    with open_input(path) as stream:
        return [line.text for lines in stream_lines(stream, str(path), None) for line in lines]
