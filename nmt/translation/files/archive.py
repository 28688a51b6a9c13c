"""Office documents: ZIP archives of parts, of which some have text; the others stay byte for byte."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from nmt.translation.document import make_marker
from nmt.translation.files.xml_text import Node

if TYPE_CHECKING:
    from nmt.translation.document import Document, Segment
    from nmt.translation.files.file_format import Task

MAX_PARTS = 10_000
"""Number of parts of an archive."""


def unpack(content: bytes, task: Task, title: str) -> dict[str, bytes]:
    """The parts of an archive by name, in order.

    Args:
        content: The archive.
        task: The purpose of the translation.
        title: The expected kind of file, for errors.

    Raises:
        DataError: It is no archive, is damaged or encrypted, or is larger than allowed when it is unpacked.
    """
    damaged = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, NotImplementedError, RuntimeError)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            size = sum(entry.file_size for entry in entries)
            if len(entries) > MAX_PARTS or len(set(names)) < len(names):
                raise task.refuse(f"has very many parts, or two of the same name; it is not {title}")
            if size > task.max_unpacked:
                limit = f"the limit is {task.max_unpacked:,}"
                raise task.refuse(f"has {size:,} bytes when it is unpacked; {limit}")
            if any(entry.flag_bits & 1 for entry in entries):
                raise task.refuse("is encrypted; save it without a password")
            # No more is unpacked of a part than its entry states: a checksum fails for one that is larger.
            return {entry.filename: archive.read(entry) for entry in entries}
    except damaged as error:
        raise task.refuse(f"is not {title}, or is damaged ({error}); save it again") from None


class Archive:
    """An archive some of whose parts are documents.

    Args:
        content: The archive.
        documents: Documents by the names of their parts.
        encodings: The encodings of these parts.
    """

    def __init__(self, content: bytes, documents: Mapping[str, Document], encodings: Mapping[str, str]) -> None:
        self._content = content
        self._documents = documents
        self._encodings = encodings
        self._segments = [segment for document in documents.values() for segment in document.segments]

    @property
    def segments(self) -> Sequence[Segment]:
        """The texts to translate, in order."""
        return self._segments

    def check(self, rendered: Sequence[str]) -> None:
        """Nothing to check: a character that an encoding lacks is written as a number."""

    def write(self, rendered: Sequence[str]) -> bytes:
        """The archive with the segments as they were rendered."""
        remaining = iter(rendered)
        changed: dict[str, bytes] = {}
        for name, document in self._documents.items():
            text = document.join([next(remaining) for _ in document.segments])
            changed[name] = text.encode(self._encodings[name], "xmlcharrefreplace")
        written = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self._content)) as source, zipfile.ZipFile(written, "w") as target:
            target.comment = source.comment
            for entry in source.infolist():
                copy = zipfile.ZipInfo(entry.filename, entry.date_time)
                copy.compress_type = entry.compress_type
                copy.external_attr = entry.external_attr
                copy.create_system = entry.create_system
                copy.comment = entry.comment
                target.writestr(copy, changed.get(entry.filename) or source.read(entry))
        return written.getvalue()


class Asides:
    """Texts inside tags of other texts, such as footnotes and text boxes: markers stand for them.

    Args:
        text: The part with the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._places: list[tuple[int, int, str]] = []
        self.number = 0

    def add(self, node: Node) -> str:
        """Let a new marker stand for an element."""
        marker = make_marker(self.number)
        self.number += 1
        self._places.append((node.begin, node.end, marker))
        return marker

    def source(self, begin: int, end: int) -> str:
        """A place of the text, with markers in place of the elements in it that have one."""
        return "".join(self._pieces(begin, end))

    def _pieces(self, begin: int, end: int) -> Iterator[str]:
        position = begin
        for first, last, marker in sorted(self._places):
            if position <= first and last <= end:
                yield self.text[position:first]
                yield marker
                position = last
        yield self.text[position:end]
