"""Running text with tags inside it, as segments: every format with markup is read as pieces, which are divided here."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from nmt.text.spans import find_spans, replace_places
from nmt.translation.document import Segment, escape_markup
from nmt.translation.tags import Element, find_words

ONE_WORD = ("braces", "code", "email", "format", "handle", "tag", "url")
"""Kinds of spans that are one word of running text."""
FIRST_SYMBOL = 0xE000
NUM_SYMBOLS = 0x1900
"""The private use area, whose characters stand for parts that are not translated."""
MAX_TAGS = 200
"""Maximum number of inline tags in a unit; with more, each piece of text between them is translated separately."""

Kind = Literal["text", "start", "end", "single", "opaque", "break", "block"]
"""The kind of a piece: text, a start tag, an end tag, a single tag or anything else that may occur between words, an
untranslated word, a break in place of a space, or anything that ends running text."""


@dataclass
class Piece:
    """A part of a document.

    Attributes:
        content: Its text, or its source.
        kind: Its kind.
        original: A text as the document has it; None writes it with the escapes of HTML.
        name: Name of a tag, which tells which end tag belongs to a start tag; see `match_tags`.
    """

    content: str
    kind: Kind
    original: str | None = None
    name: str = ""

    @property
    def source(self) -> str:
        """It as in the document."""
        if self.original is not None:
            return self.original
        return escape_markup(self.content) if self.kind == "text" else self.content


def match_tags(pieces: Sequence[Piece]) -> None:
    """Make each start or end tag without its partner a single piece, and tags around a block blocks."""
    unclosed: list[Piece] = []
    around = Counter[str]()  # start tags in front of a block, whose end tags follow it
    for piece in pieces:
        if piece.kind == "end":
            names = [start.name for start in unclosed]
            if piece.name in names:
                while unclosed[-1].name != piece.name:
                    unclosed.pop().kind = "single"
                unclosed.pop()
            elif around[piece.name] > 0:
                around[piece.name] -= 1
                piece.kind = "block"
            else:
                piece.kind = "single"
        if piece.kind == "start":
            unclosed.append(piece)
        elif piece.kind == "block":
            for start in unclosed:
                start.kind = "block"
            around.update(start.name for start in unclosed)
            unclosed.clear()
    for start in unclosed:
        start.kind = "single"


def divide_text(
    pieces: Sequence[Piece], escape: Callable[[str], str], empty: Sequence[str] = ()
) -> list[str | Segment]:
    """Running texts as segments, and the markup between them.

    Args:
        pieces: The pieces of a document, in order and well nested; together their sources are the document.
        escape: Writes a text as the document does.
        empty: Tags around nothing, which are left out of a translation.
    """
    parts: list[str | Segment] = []
    for run in _runs(pieces):
        first, last = _inside(run)
        parts.append("".join(piece.source for piece in run[:first]))
        segment = make_segment(run[first:last], escape, empty)
        parts.append(segment or "".join(piece.source for piece in run[first:last]))
        parts.append("".join(piece.source for piece in run[last:]))
    return [part for part in parts if part]


def _runs(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Running texts, and the markup between them; a piece of a text with very many tags is a run of its own."""
    for is_block, group in itertools.groupby(pieces, lambda piece: piece.kind == "block"):
        run = list(group)
        num_tags = sum(piece.kind not in ("text", "break") for piece in run)
        if not is_block and num_tags > MAX_TAGS:
            yield from ([piece] for piece in run)
        else:
            yield run


def _inside(run: Sequence[Piece]) -> tuple[int, int]:
    """Where a run begins and ends without the breaks at its edges."""
    is_edge = [piece.kind == "break" or (piece.kind == "text" and not piece.content.strip()) for piece in run]
    if all(is_edge) or not any(piece.kind == "break" for piece in run):
        return 0, len(run)
    return is_edge.index(False), len(run) - is_edge[::-1].index(False)


def make_segment(run: Sequence[Piece], escape: Callable[[str], str], empty: Sequence[str] = ()) -> Segment | None:
    """A running text as a segment; None if it has no word to translate. For the arguments see `divide_text`."""
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
        elif piece.kind == "break":
            words[number] = Piece(" ", "text")
        elif piece.kind == "text":
            # No tag is put into a placeholder or an address: each is one word.
            spans = [span for span in find_spans(piece.content) if span.kind in ONE_WORD]
            hidden = {(span.begin, span.end): hide(escape(piece.content[span.begin : span.end])) for span in spans}
            words[number] = Piece(replace_places(piece.content, hidden), "text")
    text = "".join(piece.content for piece in words if piece.kind == "text")
    before = text[: len(text) - len(text.lstrip())] if words[0].kind == "text" else ""
    after = text[len(text.rstrip()) :] if words[-1].kind == "text" else ""
    is_original = all(piece.original is not None for piece in run if piece.kind == "text")
    return Segment(
        " ".join(text.split()),
        escape(before),
        escape(after),
        _elements(words, text),
        opaque,
        _breaks(run, words),
        escape,
        "".join(piece.source for piece in run) if is_original else None,
        empty,
    )


def _breaks(run: Sequence[Piece], words: Sequence[Piece]) -> list[tuple[float, str]]:
    """The breaks of a run, each with the share of the text in front of it."""
    text = ""
    breaks = []
    for piece, word in zip(run, words, strict=True):
        if piece.kind == "break":
            breaks.append((len(" ".join(text.split())), piece.source))
        if word.kind == "text":
            text += word.content
    total = max(1, len(" ".join(text.split())))
    return [(length / total, source) for length, source in breaks]


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
