"""HTML as parts of a document: text to translate, and tags, attributes and comments that stay.

A document is split at block tags into units of running text. The tags inside a unit (bold, links, ...) are placed
around the translations of their words.
"""

import html
import itertools
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lxml import etree

from nmt.serving.document import Document, Unit
from nmt.serving.tags import Element, find_words
from nmt.text.spans import find_spans, replace_places


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


INLINE = _names(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math q rp rt ruby s samp "
    "small span strike strong sub sup svg time tt u var wbr"
)
"""Elements within running text; all others end it."""
VOID = _names("area base br col embed hr img input link meta param source track wbr")
"""Elements without an end tag."""
RAW = _names("script style xmp iframe noembed noframes plaintext")
"""Elements whose content has neither tags nor entities."""
ANNOTATION = _names("rp rt")
"""Elements that say how a word is read: not translated, and no part of the running text."""
UNTRANSLATED = RAW | ANNOTATION | _names("textarea pre code svg math template")
"""Elements whose text is not translated."""
PICTURES = _names("svg")
FOOTNOTE = re.compile(r"\s*(?:\[?[0-9]{1,3}\]?|[*\u2020\u2021\u00a7]{1,3}|[a-z])\s*")
"""The text of a `<sup>` that refers to a footnote."""
ONE_WORD = ("braces", "code", "email", "format", "handle", "tag", "url")
"""Kinds of spans that are one word of running text."""
FIRST_SYMBOL = 0xE000
NUM_SYMBOLS = 0x1900
"""The private use area, whose characters stand for parts that are not translated."""
MAX_TAGS = 200
"""Maximum number of inline tags in a unit; with more, each piece of text between them is translated separately."""


@dataclass
class Piece:
    """A part of a document.

    Attributes:
        content: Its text, or its source.
        kind: text, start (tag), end (tag), single (a tag without content or anything else that may occur between
            words), opaque (an element that is a word and not translated) or block (anything that ends running text).
    """

    content: str
    kind: str

    @property
    def source(self) -> str:
        """It as HTML."""
        return html.escape(self.content, quote=False) if self.kind == "text" else self.content


def read_html(source: str) -> Document:
    """Split HTML into running texts and the markup between them.

    Args:
        source: Any text, including malformed HTML: a page, or a piece of one.
    """
    return Document([_unit(run) or "".join(piece.source for piece in run) for run in _runs(_read_pieces(source))])


def _read_pieces(source: str) -> list[Piece]:
    """Parse HTML as a browser does, whatever is wrong with it."""
    lowered = source.lower()
    is_page = any(tag in lowered for tag in ("<!doctype", "<html", "<body"))
    reader = _Reader(frozenset() if is_page else _names("html body"))
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
        hidden = self._depth > 0 or (opens and _is_untranslated(name, attributes))
        self._raw = hidden and name in RAW
        kind = "block" if name not in INLINE else "start" if opens else "single"
        self._add(f"<{name}{values}>", kind, deeper=int(opens and hidden))
        if opens and not hidden:
            self._open.append(self._pieces[-1])

    def end(self, name: str) -> None:
        """An end tag, or the place where a browser would add it."""
        if name in self._implied or name in VOID:
            return
        if self._depth:
            self._raw = False
            inline = "single" if name in ANNOTATION | PICTURES else "opaque"
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
        return list(_with_whole_footnotes(self._pieces))

    def _add(self, source: str, kind: str, *, deeper: int = 0) -> None:
        """Add a piece, or a part of an element that is not translated, which some parts begin and end."""
        if not self._depth:
            self._flush("text")
        self._depth += deeper
        self._buffer.append(source)
        if not self._depth:
            self._flush(kind)

    def _flush(self, kind: str) -> None:
        """Add the content of the buffer; inline elements around a block are blocks, too."""
        if self._buffer:
            self._pieces.append(Piece("".join(self._buffer), kind))
            self._buffer.clear()
        if kind == "block":
            for outer in itertools.takewhile(lambda piece: piece.kind == "start", reversed(self._open)):
                outer.kind = "block"


def _is_untranslated(name: str, attributes: Mapping[str, str]) -> bool:
    """True if the text of an element must not be translated."""
    is_marked = attributes.get("translate", "").lower() == "no"
    return name in UNTRANSLATED or is_marked or "notranslate" in attributes.get("class", "").lower().split()


def _with_whole_footnotes(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Pieces in which a reference to a footnote is a single one: it is no running text."""
    position = 0
    while position < len(pieces):
        start, *rest = pieces[position : position + 3]
        is_raised = start.kind == "start" and start.content.startswith("<sup") and len(rest) == 2
        if is_raised and rest[0].kind == "text" and rest[1].kind == "end" and FOOTNOTE.fullmatch(rest[0].content):
            yield Piece("".join(piece.source for piece in (start, *rest)), "single")
            position += 3
        else:
            yield start
            position += 1


def _runs(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Running texts, and the markup between them; a piece of a text with very many tags is a run of its own."""
    for is_block, group in itertools.groupby(pieces, lambda piece: piece.kind == "block"):
        run = list(group)
        if not is_block and sum(piece.kind != "text" for piece in run) > MAX_TAGS:
            yield from ([piece] for piece in run)
        else:
            yield run


def _unit(run: Sequence[Piece]) -> Unit | None:
    """A run as a unit; None if it has no word to translate."""
    text = "".join(piece.content for piece in run if piece.kind == "text")
    if not any(map(str.isalnum, text)):
        return None
    free = (chr(code) for code in range(FIRST_SYMBOL, FIRST_SYMBOL + NUM_SYMBOLS) if chr(code) not in text)
    opaque: dict[str, str] = {}

    def hide(source: str) -> str:
        """A character that stands for a part of the document."""
        symbol = next(free)
        opaque[symbol] = source
        return symbol

    words = list(run)
    for number, piece in enumerate(run):
        if piece.kind == "opaque":
            words[number] = Piece(hide(piece.content), "text")
        elif piece.kind == "text":
            # No tag is put into a placeholder or an address: each is one word.
            spans = [span for span in find_spans(piece.content) if span.kind in ONE_WORD]
            hidden = {
                (span.begin, span.end): hide(html.escape(piece.content[span.begin : span.end], quote=False))
                for span in spans
            }
            words[number] = Piece(replace_places(piece.content, hidden), "text")
    text = "".join(piece.content for piece in words if piece.kind == "text")
    before = text[: len(text) - len(text.lstrip())] if words[0].kind == "text" else ""
    after = text[len(text.rstrip()) :] if words[-1].kind == "text" else ""
    return Unit(" ".join(text.split()), before, after, _elements(words, text), opaque)


def _elements(run: Sequence[Piece], text: str) -> list[Element]:
    """The tags of a run by the words of its text."""
    root = Element("")
    path = [root]
    words = find_words(text)
    offset = begun = 0  # characters and words before a piece; the last word may go on in it
    for piece in run:
        glued = offset > 0 and not text[offset - 1].isspace()
        spaced = text[offset : offset + 1].isspace()
        if piece.kind == "text":
            offset += len(piece.content)
            begun = bisect_left(words, offset, key=re.Match.start)
        elif piece.kind == "end":
            element = path.pop()
            element.end = piece.content
            element.last = max(begun, element.first)
        else:
            opens = piece.kind == "start"
            in_word = opens and begun > 0 and offset < words[begun - 1].end()
            element = Element(piece.content, first=begun - in_word, last=begun, glued=glued, spaced=spaced)
            path[-1].children.append(element)
            if opens:
                path.append(element)
    return root.children
