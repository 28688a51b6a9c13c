"""Strings of programs: lines, tags and placeholders in a text that a format quotes in its own way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from nmt.translation.document import Part
from nmt.translation.running_text import Piece, divide_text, match_tags

_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)(?:\s[^<>\n]*)?(/?)>")
_CHOICE = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal)\s*,")
"""The beginning of a message with alternatives, as of ICU and MessageFormat."""
_END = re.compile(r"[.!?:;\u2026\u3002\uff01\uff1f)\]}]['\"\u2019\u201d\u00bb\u203a]*\s*$")


def divide_string(value: str, escape: Callable[[str], str], line_end: str) -> list[Part]:
    """A string as segments, and what is between them.

    Tags stand around the translations of their words. A line that goes on with a small letter is read together with
    the one before it. A message with alternatives, `{n, plural, ...}`, stays as it is: its words belong to its grammar.

    Args:
        value: The string, without quotes and escapes.
        escape: Writes a text within the quotes.
        line_end: A line end within the quotes.
    """
    if _CHOICE.search(value):
        return [_escape_lines(value, escape, line_end)]
    pieces = list(_pieces(value, escape, line_end))
    match_tags(pieces)
    return list(divide_text(pieces, escape))


def _escape_lines(value: str, escape: Callable[[str], str], line_end: str) -> str:
    return line_end.join(map(escape, value.split("\n")))


def _pieces(value: str, escape: Callable[[str], str], line_end: str) -> Iterator[Piece]:
    before = ""
    for number, line in enumerate(value.split("\n")):
        if number:
            goes_on = line[:1].islower() and before[-1:].isalnum() and not _END.search(before)
            yield Piece(line_end, "break" if goes_on else "block")
        position = 0
        for match in _TAG.finditer(line):
            yield from _text(line[position : match.start()], escape)
            name = match[2].lower()
            is_single = match[3] or name in ("br", "hr", "img", "wbr")
            if is_single:
                yield Piece(escape(match[0]), "single")
            else:
                yield Piece(escape(match[0]), "end" if match[1] else "start", name=name)
            position = match.end()
        yield from _text(line[position:], escape)
        before = line


def _text(text: str, escape: Callable[[str], str]) -> Iterator[Piece]:
    if text:
        yield Piece(text, "text", escape(text))
