"""Translation memories in TMX 1.4, the exchange format of translators' programs, unit by unit."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from nmt.corpus.lines import open_unpacked
from nmt.system.errors import DataError, shorten
from nmt.system.limits import MAX_LINE

PIECE = 1 << 16  # bytes
NATIVE = {"bpt", "ept", "it", "ph", "ut"}
"""Elements with codes of the program that wrote the text, which are not text."""
MAX_DEPTH = 100
"""Elements that are open at once; text in codes in text has about ten."""
MAX_TEXTS = 200
"""Texts of a unit; a memory of all official languages of the EU has 24."""
MAX_NAMES = 10_000
"""Different names of elements and attributes, which the parser keeps."""
WIDE = ("utf-8", "utf-16", "utf-16-le", "utf-16-be")
"""Encodings of several bytes a character that the parser reads."""

Unit = dict[str, list[str]]
"""The texts of a translation unit by language."""


class _Reader:
    """Collects the texts of each unit by language.

    What would make a small file need much memory is refused, such as entities, deep nesting and endless tags.

    Attributes:
        units: Complete units, until they are taken.
    """

    def __init__(self, path: Path) -> None:
        self.units: list[Unit] = []
        self._path, self._language, self._open = path, "", list[str]()
        self._unit: dict[str, list[list[str]]] = {}
        self._text: list[str] = []
        self._texts, self._size, self._read = 0, 0, 0
        self._names: dict[str, str] = {}
        self._document_type: int | None = None
        self._parser = expat.ParserCreate(intern=self._names)
        self._parser.buffer_text = True
        self._parser.XmlDeclHandler = self._check_encoding
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add
        self._parser.EntityDeclHandler = self._refuse_declaration
        self._parser.SkippedEntityHandler = self._refuse_entity
        self._parser.StartDoctypeDeclHandler = self._begin_document_type
        self._parser.EndDoctypeDeclHandler = self._end_document_type

    def feed(self, piece: bytes) -> None:
        """Read the next piece of the file; an empty one is its end.

        Raises:
            DataError: It is not XML, or is refused.
        """
        self._read += len(piece)
        try:
            self._parser.Parse(piece, not piece)
        except expat.ExpatError as error:
            raise self._fail(f"not XML ({expat.ErrorString(error.code)}); export it as TMX again") from None
        # The parser keeps a tag or a comment until it ends.
        if self._read - self._parser.CurrentByteIndex > MAX_LINE:
            raise self._fail("a tag or comment longer than a megabyte; export it as TMX again")
        if self._document_type is not None and self._read - self._document_type > MAX_LINE:
            raise self._fail("a DOCTYPE longer than a megabyte; delete it")
        if len(self._names) > MAX_NAMES:
            raise self._fail(f"more than {MAX_NAMES:,} names of elements; export it as TMX again")

    def _start(self, qualified: str, attributes: dict[str, str]) -> None:
        name = _local(qualified)
        self._open.append(name)
        if len(self._open) > MAX_DEPTH:
            raise self._fail(f"more than {MAX_DEPTH} elements inside each other; export it as TMX again")
        if name == "tu":
            self._unit, self._texts, self._size = {}, 0, 0
        elif name == "tuv":
            self._language = (attributes.get("xml:lang") or attributes.get("lang") or "").casefold()
        elif name == "seg":
            self._texts += 1
            if self._texts > MAX_TEXTS:
                raise self._fail(f"a unit of more than {MAX_TEXTS} texts; write one sentence per unit")
            self._text = []
            self._unit.setdefault(self._language, []).append(self._text)

    def _end(self, qualified: str) -> None:
        self._open.pop()
        if _local(qualified) == "tu":
            texts = ((language, map(_as_line, texts)) for language, texts in self._unit.items())
            self.units.append({language: list(dict.fromkeys(lines)) for language, lines in texts})
            self._unit = {}

    def _add(self, text: str) -> None:
        if "seg" in self._open and NATIVE.isdisjoint(self._open):
            self._text.append(text)
            self._size += len(text)
            if self._size > MAX_LINE:
                raise self._fail("a unit longer than a megabyte; write one sentence per unit")

    def _check_encoding(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and not _is_readable(encoding):
            advice = 'convert it to UTF-8, and write encoding="UTF-8" there'
            raise self._fail(f"declares the encoding {shorten(encoding)!r}, which cannot be read; {advice}")

    def _begin_document_type(self, *_: Any) -> None:
        self._document_type = self._parser.CurrentByteIndex

    def _end_document_type(self) -> None:
        self._document_type = None

    def _refuse_declaration(self, name: str, *_: Any) -> None:
        fault = f"declares the entity {shorten(name)!r}, which a translation memory does not need; write out its text"
        raise self._fail(fault)

    def _refuse_entity(self, name: str, is_parameter: int) -> None:
        """Refuse a reference to what only a file that is not read declares: its text would be missing."""
        if not is_parameter:
            advice = "write out its text, such as &#233; for &eacute;"
            raise self._fail(f"uses the entity {shorten(name)!r}, which the file does not declare; {advice}")

    def _fail(self, fault: str) -> DataError:
        """An error at the current line."""
        return DataError(f"{self._path}:{self._parser.CurrentLineNumber}: {fault}")


def read_units(path: Path) -> Iterator[Unit]:
    """Texts of each translation unit by language, `en` or `en-gb`, in lower case; spaces are single.

    A unit may have several different texts of a language, such as two translations of one source.

    Raises:
        DataError: The file cannot be read, is not XML, is in an unknown encoding, uses entities of its own, or would
            need much memory.
    """
    reader = _Reader(path)
    with open_unpacked(path) as file:
        piece: bytes | None = None
        while piece != b"":
            piece = file.read(PIECE)
            reader.feed(piece)
            yield from reader.units
            reader.units = []


def _as_line(pieces: list[str]) -> str:
    return " ".join("".join(pieces).split())


def _local(qualified: str) -> str:
    """A name without the prefix of its namespace."""
    return qualified.rpartition(":")[2]


def _is_readable(encoding: str) -> bool:
    """True if the parser reads an encoding: one of `WIDE`, or one with a byte a character that contains ASCII."""
    try:
        if codecs.lookup(encoding).name in WIDE:
            return True
        single = len(bytes(range(256)).decode(encoding, "replace")) == 256
        return single and all(bytes([code]).decode(encoding) == chr(code) for code in range(128))
    except (LookupError, ValueError):
        return False
