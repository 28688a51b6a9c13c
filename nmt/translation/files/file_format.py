"""The interface of a file format: it reads a file as segments, and writes the file with their translations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nmt.system.errors import DataError
from nmt.system.limits import MIB

if TYPE_CHECKING:
    from nmt.translation.document import Document, Part, Segment

MAX_FILE = 64 * MIB
"""Bytes of a file with markup: it is held in memory as a whole."""
MAX_UNPACKED = 256 * MIB
"""Bytes of all that a ZIP archive holds."""


@dataclass(frozen=True)
class Task:
    """The purpose of the translation of a file.

    Attributes:
        name: Name of the file, for errors.
        source: Code of the language of its texts.
        target: Code of the language of the translations.
        retranslate: True if texts that have a translation are translated again.
        max_unpacked: Maximum bytes of all that a ZIP archive holds.
    """

    name: str
    source: str
    target: str
    retranslate: bool = False
    max_unpacked: int = MAX_UNPACKED

    def refuse(self, problem: str, line: int | None = None) -> DataError:
        """An error that names the file, and the line in it if there is one."""
        place = self.name if line is None else f"{self.name}:{line}"
        return DataError(f"{place}: {problem}")


class FileDocument(Protocol):
    """The content of a file."""

    @property
    def segments(self) -> Sequence[Segment]:
        """The texts to translate, in order."""

    def check(self, rendered: Sequence[str]) -> None:
        """Check that some segments can be written as they were rendered.

        Raises:
            DataError: The encoding of the file has no place for a character.
        """

    def write(self, rendered: Sequence[str]) -> bytes:
        """The file with its segments as they were rendered.

        Raises:
            DataError: The encoding of the file has no place for a character.
        """


class FileFormat(NamedTuple):
    """A format of files.

    Attributes:
        name: Its name for users.
        suffixes: Ends of the names of its files.
        title: Its name in messages, with an article.
        read: Reads the bytes of a file; DataError if it is not in this format.
        library: The module that it needs, and the name of its package; empty if Python's library has all.
    """

    name: str
    suffixes: tuple[str, ...]
    title: str
    read: Callable[[bytes, Task], FileDocument]
    library: tuple[str, str] = ("", "")


class Edit(NamedTuple):
    """A place of a text that gets other content.

    Attributes:
        begin: Its first character.
        end: The character after its last one.
        parts: The new content.
    """

    begin: int
    end: int
    parts: Sequence[Part]


def edit(text: str, edits: Sequence[Edit]) -> Document:
    """A text with other content at some places, in order, none of which overlaps another; all else stays."""
    from nmt.translation.document import Document

    parts: list[Part] = []
    position = 0
    for begin, end, content in edits:
        parts += [text[position:begin], *content]
        position = end
    return Document([part for part in [*parts, text[position:]] if part])
