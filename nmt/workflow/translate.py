"""Lines in, lines out."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Protocol

from nmt.decoding.translator import MAX_SOURCE_LENGTH, Translation, Translator
from nmt.errors import ConfigError, DataError

CHUNK = 1 << 16


class Readable(Protocol):
    """A byte stream that gives what is there without waiting for more."""

    def read1(self, size: int = -1, /) -> bytes:
        """At most `size` bytes."""
        ...


def read_lines(stream: Readable, name: str, warn: Callable[[str], object]) -> Iterator[list[str]]:
    """Lines of a byte stream as soon as they are there, several at a time; ill-formed UTF-8 becomes U+FFFD.

    Only a line feed ends a line, so that there are as many as `wc -l` counts, and one more if the last is open. A
    carriage return before it goes.

    Args:
        stream: Where bytes come from.
        name: What to call it in an error.
        warn: Receives a sentence about the first line of each kind that is hardly UTF-8 text.

    Raises:
        DataError: It is UTF-16.
    """
    number = 0
    warned: set[str] = set()

    def decode(line: bytes) -> str:
        nonlocal number
        number += 1
        if number == 1:
            refuse_utf16(line, name)
        text = line.decode("utf-8", errors="replace")
        doubts = {
            "not UTF-8; unreadable bytes became U+FFFD": text.count("\ufffd") != line.count("\ufffd".encode()),
            "holds NUL characters, as UTF-16 does; convert it to UTF-8 first": b"\0" in line,
        }
        for doubt, present in doubts.items():
            if present and doubt not in warned:
                warned.add(doubt)
                warn(f"line {number}: {doubt}")
        return text.lstrip("\ufeff").removesuffix("\r")

    rest = b""
    while chunk := stream.read1(CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield [decode(line) for line in lines]
    if rest:
        yield [decode(rest)]


def refuse_utf16(text: bytes, name: str) -> None:
    """Stop where text begins with the byte order mark of UTF-16, of which nothing can be read as UTF-8.

    Raises:
        DataError: It does.
    """
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{name}: is UTF-16, not UTF-8; convert it first, as with: iconv -f UTF-16 -t UTF-8")


def open_input(path: Path) -> BufferedReader:
    """Open a file to translate.

    Raises:
        DataError: It cannot be read.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def translate_stream(
    translator: Translator,
    batches: Iterator[list[str]],
    write: Callable[[str], object],
    *,
    n_best: int = 1,
    warn: Callable[[str], object],
    advance: Callable[[int], object] = lambda count: None,
) -> None:
    """Translate line by line in order.

    Args:
        translator: Model and search settings.
        batches: Lines, several at a time.
        write: Receives one line for each line; with `n_best` above 1 that many, each `number ||| text ||| score`.
        n_best: Translations a line.
        warn: Receives a sentence about a line that was cut off.
        advance: Called with the number of lines done.
    """
    number = 0
    for lines in batches:
        for translations in translator.translate(lines, n_best=n_best, advance=advance):
            number += 1
            if translations[0].truncated:
                warn(f"line {number}: longer than {MAX_SOURCE_LENGTH} tokens, the rest of it was not read")
            if n_best == 1:
                write(translations[0].text + "\n")
            else:
                for translation in translations:
                    write(f"{number} ||| {translation.text} ||| {translation.score:.4f}\n")


def translate_with_alignment(translator: Translator, sentence: str) -> Translation:
    """Translate one sentence and keep its alignment.

    Raises:
        ConfigError: The model has no attention to show.
        DataError: The sentence has no words.
    """
    best = translator.translate([sentence], with_alignment=True)[0][0]
    if best.alignment is None:
        raise DataError("the sentence has no words: there is no attention to draw")
    if not bool(best.alignment.any()):
        raise ConfigError("this model has no attention (model.attention.score: none): nothing to draw")
    return best
