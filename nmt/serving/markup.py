"""Translation of the text in HTML; everything else is kept as it is.

A document is split at block tags into units of running text. The tags inside a unit (bold, links, ...) are placed
around the translations of their words. Translated text is escaped; nothing is executed or fetched.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from nmt.serving.tags import Element, link_words, place_tags
from nmt.text.processor import TextProcessor
from nmt.translation.translation import Translation


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


INLINE = _names(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math q rp rt ruby s samp "
    "small span strike strong sub sup svg time tt u var wbr"
)
"""Elements within running text; all others end it."""
VOID = _names("area base br col embed hr img input link meta param source track wbr")
"""Elements without an end tag."""
RAW = _names("script style textarea xmp iframe noembed noframes")
"""Elements whose content is not parsed for tags."""
KEPT = _names("pre code svg math template")
"""Elements whose text is not translated."""
MAX_TAGS = 200
"""Maximum number of inline tags in a unit; with more, each piece of text between them is translated separately."""

_MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<[!?][^>]*(?:>|\Z)|</(?![A-Za-z])[^>]*(?:>|\Z)"
    r"""|<(?P<close>/?)(?P<name>[A-Za-z][^\s/>]*+)"""
    r"""(?P<rest>(?:=\s*+(?:"[^"]*"|'[^']*'|(?!["']))|[^>=])*+)(?P<end>>|.*\Z)""",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""([^\s=/"'>]+)\s*(?:=\s*("[^"]*"|'[^']*'|[^\s"'>]*))?""")
_SPACES = re.compile(r"&nbsp;|&#160;|&#[xX][aA]0;|\s|[^\s&]+|&")
_WORD = re.compile(r"\S+")
_NUMBER = re.compile("&#0*([0-9]+)")


@dataclass
class Piece:
    """A part of a document.

    Attributes:
        raw: Its source.
        kind: text, start (tag), end (tag), single (a tag without content or anything else that may occur between
            words) or block (anything that ends running text).
        name: Name of the element, in lower case; empty if there is none.
    """

    raw: str
    kind: str
    name: str = ""


@dataclass
class Unit:
    """Running text with the tags inside it.

    Attributes:
        before: White space before it, in its source form.
        text: The text to translate, without tags and entities, with single spaces.
        after: White space after it, in its source form.
        elements: Its tags, in order.
    """

    before: str
    text: str
    after: str
    elements: list[Element]


class Document:
    """A piece of HTML.

    Args:
        source: Any text, including malformed HTML.
    """

    def __init__(self, source: str) -> None:
        self._parts: list[str | Unit] = []
        for run in _runs(_match_tags(list(_join_kept(_pieces(source))))):
            unit = None if run[0].kind == "block" else _unit(run)
            self._parts.append(unit or "".join(piece.raw for piece in run))
        self.units = [part for part in self._parts if isinstance(part, Unit)]

    @property
    def texts(self) -> list[str]:
        """The texts to translate, in order."""
        return [unit.text for unit in self.units]

    @property
    def needs_alignment(self) -> bool:
        """Whether there are tags to place among the words of a translation."""
        return any(unit.elements for unit in self.units)

    def render(self, translations: Sequence[Translation], processor: TextProcessor) -> str:
        """The document with its texts translated.

        Args:
            translations: One for each of `texts`, with alignments if they are needed.
            processor: The text processor of the model.
        """
        remaining = iter(translations)
        return "".join(
            part if isinstance(part, str) else _render(part, next(remaining), processor) for part in self._parts
        )


def _pieces(source: str) -> Iterator[Piece]:
    """Split HTML into text, tags and the rest; the pieces joined are the source.

    An unfinished tag, and an element that is not parsed, such as a script, end where they would in a browser.
    """
    position = 0
    while position < len(source):
        found = _MARKUP.search(source, position)
        if found is None:
            yield Piece(source[position:], "text")
            return
        if found.start() > position:
            yield Piece(source[position : found.start()], "text")
        position = found.end()
        name = (found["name"] or "").lower()
        if not name:
            yield Piece(found[0], "single" if found[0].startswith("<!--") else "block")
        elif found["end"] != ">":
            yield Piece(found[0], "block")
        elif name in RAW and not found["close"]:
            end = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(source, position)
            stop = end.start() if end else len(source)
            yield Piece(found[0] + source[position:stop], "block", name)
            position = stop
        elif name not in INLINE:
            kind = "block" if found["close"] or name in VOID or not _is_kept(name, found["rest"]) else "block kept"
            yield Piece(found[0], kind, name)
        elif found["close"]:
            yield Piece(found[0], "end", name)
        elif name in VOID:
            yield Piece(found[0], "single", name)
        else:
            yield Piece(found[0], "start kept" if _is_kept(name, found["rest"]) else "start", name)


def _is_kept(name: str, attributes: str) -> bool:
    """Whether the text of an element must not be translated."""
    if name in KEPT:
        return True
    if "translate" not in attributes.lower():
        return False
    found = {key.lower(): value.strip("\"'").lower() for key, value in _ATTRIBUTE.findall(attributes)}
    return found.get("translate") == "no" or "notranslate" in found.get("class", "").split()


def _join_kept(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Join each element that is not translated into one piece; without an end tag, it extends to the end."""
    for piece in pieces:
        if not piece.kind.endswith(" kept"):
            yield piece
            continue
        raw, depth = [piece.raw], 1
        while depth and (inner := next(pieces, None)) is not None:
            raw.append(inner.raw)
            if inner.name == piece.name and inner.name not in VOID | RAW:
                depth += -1 if inner.raw.startswith("</") else 1
        yield Piece("".join(raw), "single" if piece.kind == "start kept" else "block", piece.name)


def _match_tags(pieces: list[Piece]) -> list[Piece]:
    """Turn inline tags without a matching tag in the same running text into blocks; the rest are well nested."""
    opened: list[int] = []
    partners: dict[int, int] = {}
    for number, piece in enumerate(pieces):
        if piece.kind == "start":
            opened.append(number)
        elif piece.kind == "end":
            match = next((place for place in reversed(opened[-MAX_TAGS:]) if pieces[place].name == piece.name), None)
            if match is None:
                piece.kind = "block"
                continue
            while (last := opened.pop()) != match:
                pieces[last].kind = "block"
            partners[match] = number
    for number in opened:
        pieces[number].kind = "block"
    blocks = [0, *accumulate(piece.kind == "block" for piece in pieces)]
    for start, end in partners.items():
        if blocks[end] != blocks[start]:
            pieces[start].kind = pieces[end].kind = "block"
    return pieces


def _runs(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """Each block separately, and each run of pieces between two blocks."""
    run: list[Piece] = []
    for piece in [*pieces, Piece("", "block")]:
        if piece.kind != "block":
            run.append(piece)
            continue
        tags = [each for each in run if each.kind != "text"]
        if len(tags) > MAX_TAGS:
            yield from ([each] if each.kind == "text" else [Piece(each.raw, "block")] for each in run)
        elif run:
            yield run
        yield [piece]
        run = []


def _unit(run: list[Piece]) -> Unit | None:
    """A run of text and inline tags as a unit; None if it has no word to translate."""
    raw = "".join(piece.raw for piece in run if piece.kind == "text")
    if not any(map(str.isalnum, _unescape(raw))):
        return None
    parts = _SPACES.findall(raw)
    before = "".join(takewhile(_is_space, parts)) if run[0].kind == "text" else ""
    after = "".join([*takewhile(_is_space, reversed(parts))][::-1]) if run[-1].kind == "text" else ""
    text, elements = _read(run)
    return Unit(before, text, after, elements)


def _is_space(part: str) -> bool:
    return _unescape(part).isspace()


def _unescape(text: str) -> str:
    # Eight digits are more than any character has, and Python converts no number of several thousand.
    return html.unescape(_NUMBER.sub(lambda found: f"&#{found[1][:8]}", text))


def _read(run: list[Piece]) -> tuple[str, list[Element]]:
    """The words of a run, separated by single spaces, and its tags."""
    contents = [_unescape(piece.raw) if piece.kind == "text" else "" for piece in run]
    text = "".join(contents)
    words = [found.span() for found in _WORD.finditer(text)]
    starts, ends = [start for start, _ in words], [end for _, end in words]
    root = Element("")
    path = [root]
    offset = 0
    for piece, content in zip(run, contents, strict=True):
        started, ended = bisect_left(starts, offset), bisect_right(ends, offset)
        if piece.kind == "end":
            element = path.pop()
            element.end, element.last = piece.raw, max(started, element.first)
        elif piece.kind != "text":
            glued = offset > 0 and not text[offset - 1].isspace()
            spaced = text[offset : offset + 1].isspace()
            opens = piece.kind == "start"
            element = Element(piece.raw, first=ended if opens else started, last=started, glued=glued, spaced=spaced)
            path[-1].children.append(element)
            if opens:
                path.append(element)
        offset += len(content)
    return " ".join(text[start:end] for start, end in words), root.children


def _render(unit: Unit, translation: Translation, processor: TextProcessor) -> str:
    words = translation.text.split()
    if not unit.elements:
        return unit.before + html.escape(" ".join(words), quote=False) + unit.after
    links = link_words(unit.text, translation, processor)
    return unit.before + place_tags(unit.elements, links, len(unit.text.split()), words) + unit.after
