"""Strings of programs: lines, tags and placeholders in a text that a format quotes in its own way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from nmt.translation.document import Part
from nmt.translation.running_text import Piece, divide_text, match_tags

_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)(?:\s[^<>\n]*)?(/?)>")
_CHOICE = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal)\s*,")
"""The beginning of a message with alternatives, as of ICU and MessageFormat."""
_END = re.compile(r"[.!?:;\u2026\u3002\uff01\uff1f)\]}]['\"\u2019\u201d\u00bb\u203a]*\s*$")


def divide_string(value: str, escape: Callable[[str], str], line_end: str) -> list[Part]:
    """A string as segments, and the text between them.

    Args:
        value: The string, without quotes and escapes.
        escape: Writes a text within the quotes.
        line_end: A line end within the quotes.
    """
    first, *others = value.split("\n")
    return divide_lines([("", first), *((line_end, line) for line in others)], escape)


def divide_lines(
    lines: Sequence[tuple[str, str]], escape: Callable[[str], str], *, are_folded: bool = False
) -> list[Part]:
    """The lines of a string as segments, and the text between them.

    Tags stand around the translations of their words. A line that goes on with a small letter is read together with
    the one before it. A message with alternatives, `{n, plural, ...}`, stays as it is: its words belong to its grammar.

    Args:
        lines: The text in front of each line, and the line.
        escape: Writes a text.
        are_folded: True if all lines go on, but for empty ones and those next to them.
    """
    if _CHOICE.search("\n".join(line for _, line in lines)):
        return ["".join(separator + escape(line) for separator, line in lines)]
    pieces = list(_pieces(lines, escape, are_folded))
    match_tags(pieces)
    return list(divide_text(pieces, escape))


def _pieces(lines: Sequence[tuple[str, str]], escape: Callable[[str], str], are_folded: bool) -> Iterator[Piece]:
    before = ""
    for separator, line in lines:
        if separator:
            is_text = bool(before.strip() and line.strip())
            goes_on = are_folded or (line[:1].islower() and before[-1:].isalnum() and not _END.search(before))
            yield Piece(separator, "break" if is_text and goes_on else "block")
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
