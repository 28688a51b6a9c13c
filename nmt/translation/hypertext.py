"""The elements of HTML: which are inside running text, and which have text that is not translated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from nmt.translation.running_text import Piece


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


def is_untranslated(name: str, attributes: Mapping[str, str]) -> bool:
    """True if the text of an element must not be translated."""
    is_marked = attributes.get("translate", "").lower() == "no"
    return name in UNTRANSLATED or is_marked or "notranslate" in attributes.get("class", "").lower().split()


LONGEST_FOOTNOTE = 16
"""Pieces of a reference to a footnote, with the link and the brackets that an encyclopedia puts around its number."""


def join_footnotes(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Pieces in which a reference to a footnote is a single one: it is no running text."""
    position = 0
    while position < len(pieces):
        end = _find_end_of_footnote(pieces, position)
        if end is None:
            yield pieces[position]
            position += 1
        else:
            yield Piece("".join(piece.source for piece in pieces[position:end]), "single")
            position = end


def _find_end_of_footnote(pieces: Sequence[Piece], begin: int) -> int | None:
    """The position behind a `<sup>` that refers to a footnote, or behind the link around it; None if none begins."""
    if pieces[begin].kind != "start":
        return None
    if re.match(r"<a\s", pieces[begin].content):
        end = _find_end_of_footnote(pieces, begin + 1)
        return end + 1 if end is not None and pieces[end].kind == "end" else None
    if not re.match(r"<sup\b", pieces[begin].content):
        return None
    open_elements = 0
    text = ""
    for position, piece in enumerate(pieces[begin : begin + LONGEST_FOOTNOTE], begin):
        match piece.kind:
            case "start":
                open_elements += 1
            case "end":
                open_elements -= 1
            case "text":
                text += piece.content
            case _:
                return None
        if not open_elements:
            return position + 1 if FOOTNOTE.fullmatch(text) else None
    return None
