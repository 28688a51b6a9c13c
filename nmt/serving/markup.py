"""HTML as parts of a document: text to translate, and tags, attributes and comments that stay.

A document is split at block tags into units of running text. The tags inside a unit (bold, links, ...) are placed
around the translations of their words.
"""

import html
import itertools
from collections.abc import Mapping

from lxml import etree

from nmt.translation.document import Document, escape_markup
from nmt.translation.hypertext import ANNOTATION, INLINE, PICTURES, RAW, VOID, is_untranslated, join_footnotes
from nmt.translation.running_text import Kind, Piece, divide_text


def read_html(source: str) -> Document:
    """Split HTML into running texts and the markup between them.

    Args:
        source: Any text, including malformed HTML: a page, or a piece of one.
    """
    return Document(divide_text(_read_pieces(source), escape_markup))


def _read_pieces(source: str) -> list[Piece]:
    """Parse HTML as a browser does, whatever is wrong with it."""
    lowered = source.lower()
    is_page = any(tag in lowered for tag in ("<!doctype", "<html", "<body"))
    reader = _Reader(frozenset() if is_page else frozenset(("html", "body")))
    # No tree is built, so nothing needs the limits that huge_tree lifts: beyond them, text would be lost.
    parser = etree.HTMLParser(target=reader, encoding="utf-8", huge_tree=True)
    # Outside a body, the parser puts text into a paragraph.
    pieces: list[Piece] = etree.fromstring(f"{'' if is_page else '<html><body>'}{source}".encode(), parser)
    return pieces


class _Reader:
    """Receives tags and text from lxml's parser, in order and well nested.

    Args:
        implied: Names of elements that are not the document's own.
    """

    def __init__(self, implied: frozenset[str]) -> None:
        self._implied = implied
        self._pieces: list[Piece] = []
        self._open: list[Piece] = []  # start tags without their end tags
        self._buffer: list[str] = []  # the next piece: text, or an element that is not translated
        self._depth = 0  # open elements in the buffer
        self._raw = False  # whether the innermost of them has neither tags nor entities

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """A start tag; elements that have none get one."""
        if name in self._implied:
            return
        values = "".join(f' {key}="{html.escape(value)}"' for key, value in attributes.items())
        opens = name not in VOID
        hidden = self._depth > 0 or (opens and is_untranslated(name, attributes))
        self._raw = hidden and name in RAW
        kind: Kind = "block" if name not in INLINE else "start" if opens else "single"
        self._add(f"<{name}{values}>", kind, deeper=int(opens and hidden))
        if opens and not hidden:
            self._open.append(self._pieces[-1])

    def end(self, name: str) -> None:
        """An end tag, or the place where a browser would add it."""
        if name in self._implied or name in VOID:
            return
        if self._depth:
            self._raw = False
            inline: Kind = "single" if name in ANNOTATION | PICTURES else "opaque"
            self._add(f"</{name}>", inline if name in INLINE else "block", deeper=-1)
        else:
            self._add(f"</{name}>", "end" if self._open.pop().kind == "start" else "block")

    def data(self, text: str) -> None:
        """A part of a text, without entities."""
        self._buffer.append(html.escape(text, quote=False) if self._depth and not self._raw else text)

    def comment(self, text: str) -> None:
        """A comment, or anything that browsers read as one."""
        self._add(f"<!--{text}-->", "single")

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        """The document type."""
        keyword = " PUBLIC" if public else " SYSTEM" if system else ""
        names = "".join(f' "{html.escape(identifier)}"' for identifier in (public, system) if identifier)
        self._add(f"<!DOCTYPE {name}{keyword}{names}>", "block")

    def close(self) -> list[Piece]:
        """The whole document."""
        self._flush("text")
        return list(join_footnotes(self._pieces))

    def _add(self, source: str, kind: Kind, *, deeper: int = 0) -> None:
        """Add a piece, or a part of an element that is not translated, which some parts begin and end."""
        if not self._depth:
            self._flush("text")
        self._depth += deeper
        self._buffer.append(source)
        if not self._depth:
            self._flush(kind)

    def _flush(self, kind: Kind) -> None:
        """Add the content of the buffer; inline elements around a block are blocks, too."""
        if self._buffer:
            self._pieces.append(Piece("".join(self._buffer), kind))
            self._buffer.clear()
        if kind == "block":
            for outer in itertools.takewhile(lambda piece: piece.kind == "start", reversed(self._open)):
                outer.kind = "block"
