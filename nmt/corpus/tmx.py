"""Translation memories in TMX 1.4, the exchange format of translators' programs, unit by unit."""

from __future__ import annotations

import codecs
import re
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
# Python's names of the encodings of several bytes a character that are read.
UTF8 = ("utf-8", "utf-8-sig")
UTF16 = ("utf-16", "utf-16-le", "utf-16-be")
BEGINNINGS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    b"<\0\0\0": "utf-32",
    b"\0\0\0<": "utf-32",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
    "<?xm".encode("cp037"): "EBCDIC",
    b"+ADw": "utf-7",
}
"""First bytes, of which the first that fit show the encoding, whatever the declaration says (XML 1.0, appendix F)."""
DECLARATION = re.compile(rb"<\?xml\s[^>]*?\sencoding\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)')")
TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
ENTITY = re.compile(rb"&(?!#|(?:amp|lt|gt|quot|apos);)([^;&<>\s]+);")
"""A reference to an entity that XML itself does not declare."""
LANGUAGE = re.compile(rb"""lang\s*=\s*(?:"([^"]*)"|'([^']*)')""")
"""The end of an attribute that names a language, such as `xml:lang` and `srclang`, and its value."""

ASCII = (*map(chr, range(128)), r"\u0041")
"""Its characters, each by itself, and an escape, which stays as it is."""

Unit = dict[str, list[str]]
"""The texts of a translation unit by language."""


class _Reader:
    """Collects the texts of each unit by language.

    Whatever makes a small file need much memory is refused, such as entities, deep nesting and endless tags.

    Attributes:
        units: Complete units, until they are taken.
    """

    def __init__(self, path: Path) -> None:
        self.units: list[Unit] = []
        self._path = path
        self._language = ""
        self._open = list[str]()
        self._unit: dict[str, list[list[str]]] = {}
        self._text: list[str] = []
        self._texts = 0
        self._size = 0
        self._read = 0
        self._names: dict[str, str] = {}
        self._document_type: int | None = None
        self._encoding = ""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._pending = b""  # the beginning of a tag that goes on in the next piece
        self._has_entities = False
        # The parser knows few encodings and few of their names: it receives UTF-8, whatever the file is in.
        self._parser = expat.ParserCreate("utf-8", intern=self._names)
        self._parser.buffer_text = True
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
        if self._decoder is None:
            piece = self._find_encoding(piece)
            self._decoder = codecs.getincrementaldecoder(self._encoding)()
        try:
            self._parse(self._decoder.decode(piece, not piece), is_last=not piece)
        except UnicodeDecodeError as error:
            # What comes before the fault moves the parser to its line.
            self._parse(error.object[: error.start].decode(self._encoding), is_last=False)
            advice = "convert it to UTF-8, and write that encoding in the first line"
            raise self._fail(f"has bytes that are not in its encoding, {shorten(self._encoding)}; {advice}") from None

    def _find_encoding(self, piece: bytes) -> bytes:
        """Find the encoding of a file that begins with these bytes, and return them without a byte order mark.

        Raises:
            DataError: The encoding cannot be read, or the declaration contradicts the bytes.
        """
        shown = next((name for start, name in BEGINNINGS.items() if piece.startswith(start)), None)
        if shown in ("utf-8", *UTF16):
            self._encoding = shown
            marks = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            return next((piece.removeprefix(mark) for mark in marks if piece.startswith(mark)), piece)
        advice = 'convert it to UTF-8, and write encoding="UTF-8" there'
        readable = piece.decode("cp037").encode("utf-8") if shown == "EBCDIC" else piece
        match = DECLARATION.match(readable)
        declared = (match[1] or match[2] or b"").decode("utf-8", "replace") if match else None
        if declared is not None and not _is_readable(declared):
            raise self._fail(f"declares the encoding {shorten(declared)!r}, which cannot be read; {advice}")
        if shown is not None:
            raise self._fail(f"is in the encoding {shown}, which cannot be read; {advice}")
        name = declared or "utf-8"
        if codecs.lookup(name).name in UTF16:
            raise self._fail(f"declares the encoding {shorten(name)!r}, but its bytes are not in it; {advice}")
        self._encoding = name
        return piece

    def _parse(self, text: str, *, is_last: bool) -> None:
        piece = text.encode()
        self._read += len(piece)
        self._pending += piece
        self._has_entities = ENTITY.search(self._pending) is not None
        try:
            self._parser.Parse(piece, is_last)
        except expat.ExpatError as error:
            raise self._fail(f"not XML ({expat.ErrorString(error.code)}); export it as TMX again") from None
        pending = self._read - self._parser.CurrentByteIndex
        self._pending = self._pending[len(self._pending) - pending :]
        # The parser keeps a tag or a comment until it ends.
        if pending > MAX_LINE:
            raise self._fail("a tag or comment longer than a megabyte; export it as TMX again")
        if self._document_type is not None and self._read - self._document_type > MAX_LINE:
            raise self._fail("a DOCTYPE longer than a megabyte; delete it")
        if len(self._names) > MAX_NAMES:
            raise self._fail(f"more than {MAX_NAMES:,} names of elements; export it as TMX again")

    def _start(self, qualified: str, attributes: dict[str, str]) -> None:
        name = _local(qualified)
        if self._has_entities:
            self._check_languages()
        self._open.append(name)
        if len(self._open) > MAX_DEPTH:
            raise self._fail(f"more than {MAX_DEPTH} elements inside each other; export it as TMX again")
        if name == "tu":
            self._unit = {}
            self._texts = 0
            self._size = 0
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

    def _check_languages(self) -> None:
        """Refuse a tag that names a language by an entity, which the parser leaves out of an attribute."""
        tag = TAG.match(self._parser.GetInputContext() or b"")
        for match in LANGUAGE.finditer(tag[0] if tag else b""):
            entity = ENTITY.search(match[1] or match[2] or b"")
            if entity:
                self._refuse_entity(entity[1].decode(), is_parameter=0)

    def _begin_document_type(self, *_: Any) -> None:
        self._document_type = self._parser.CurrentByteIndex

    def _end_document_type(self) -> None:
        self._document_type = None

    def _refuse_declaration(self, name: str, *_: Any) -> None:
        fault = f"declares the entity {shorten(name)!r}, which a translation memory does not need; write out its text"
        raise self._fail(fault)

    def _refuse_entity(self, name: str, is_parameter: int) -> None:
        """Refuse a reference to an entity that only a file that is not read declares: its text would be missing."""
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
    """True if an encoding is UTF-8, UTF-16, or one with a byte a character that contains ASCII."""
    try:
        if codecs.lookup(encoding).name in (*UTF8, *UTF16):
            return True
        single = len(bytes(range(256)).decode(encoding, "replace")) == 256
        return single and all(text.encode().decode(encoding) == text for text in ASCII)
    except (LookupError, ValueError):
        return False
