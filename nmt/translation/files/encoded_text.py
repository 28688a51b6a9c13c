"""The text of a file and its encoding; it is written as it was read, with the same line ends and byte order mark."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.system.errors import shorten

if TYPE_CHECKING:
    from nmt.translation.document import Document, Segment
    from nmt.translation.files.file_format import Task

MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
"""Byte order marks, and the encodings that they show."""


def decode(content: bytes, task: Task, encoding: str = "utf-8") -> tuple[str, str]:
    """The text of a file, and its encoding.

    Args:
        content: The bytes.
        task: The purpose of the translation.
        encoding: Its encoding unless a byte order mark shows another.

    Raises:
        DataError: There are bytes that are not in the encoding.
    """
    for mark, shown in MARKS.items():
        if content.startswith(mark):
            encoding = shown
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        name = shorten(encoding).upper()
        raise task.refuse(f"is not {name}; convert it to UTF-8 first: iconv -t UTF-8", line) from None
    if "\0" in text:
        line = 1 + text.count("\n", 0, text.index("\0"))
        raise task.refuse("has NUL characters; it is no text file", line)
    return text, encoding


class EncodedText:
    """A document as a file.

    Args:
        document: The document.
        task: The purpose of the translation.
        encoding: Its encoding.
    """

    def __init__(self, document: Document, task: Task, encoding: str = "utf-8") -> None:
        self._document = document
        self._task = task
        self._encoding = encoding

    @property
    def segments(self) -> Sequence[Segment]:
        """The texts to translate, in order."""
        return self._document.segments

    def check(self, rendered: Sequence[str]) -> None:
        """Check that the encoding has a place for each character of some segments.

        Raises:
            DataError: It has none.
        """
        self._encode("".join(rendered))

    def write(self, rendered: Sequence[str]) -> bytes:
        """The file with its segments as they were rendered.

        Raises:
            DataError: The encoding has no place for a character.
        """
        return self._encode(self._document.join(rendered))

    def _encode(self, text: str) -> bytes:
        try:
            return text.encode(self._encoding)
        except UnicodeEncodeError as error:
            character = ascii(error.object[error.start])
            problem = f"its encoding, {shorten(self._encoding)}, has no {character}, which a translation needs"
            raise self._task.refuse(f"{problem}; convert the file to UTF-8 first") from None
