"""Spans of text that a translation takes over as they are: placeholders, addresses, marks, emoji, numbers, names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

PICTURES = "\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff"
"""Characters that are emoji."""
_URL = rf"(?:\b[a-z][a-z0-9+.-]{{1,20}}://|\bwww\.)[^\s<>\"'`\u201c\u201d{PICTURES}]+"
_EMAIL = r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_CODE = r"`[^`\n]+`"
_BRACES = (
    r"[$#%]?\{\{\{[^{}\n]{0,200}\}\}\}|[$#%]?\{(?:[^{}\n]|\{[^{}\n]{0,200}\}){0,200}\}|\$\([^()\n]{1,80}\)"
    r"|\[\[[^\[\]\n]{1,80}\]\]|\$[A-Za-z_]\w*"
)
_DIRECTIVE = r"%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh|ll|[hlLzjt])?[a-zA-Z@](?![a-zA-Z])"
_FORMAT = rf"%%|%\([\w.-]+\)[a-z]|{_DIRECTIVE}|(?<!\w)%\w+%(?!\w)"
_TAG = r"</?[A-Za-z][^<>\n]*>|<!--[^\n]*?-->|<%[^\n]*?%>"
_MARKS = r"\*\*|__|~~|(?<![\w*])\*(?=[\w(])|(?<=[\w.!?)])\*(?![\w*])|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)|^(?:#{1,6}|>)(?=\s)"
_LINK = r"\]\([^()\s]+\)|!?\[(?=[^\[\]\n]{1,200}\]\([^()\s]+\))"
_HANDLE = r"(?<![\w@#&])[@#][^\W_][\w-]*"
_EMOJI = rf"[0-9#*]\ufe0f?\u20e3|[{PICTURES}][{PICTURES}\ufe0e\ufe0f\u200d\u20e3\U000e0020-\U000e007f]*"
_NUMBER = (
    r"(?<!\w)\d{4}-\d\d-\d\dT[\d:.]*\d(?:Z|[+-]\d\d:?\d\d)?(?!\w)"  # a date with its time
    r"|(?<!\w)\+\d[\d ()/-]{5,20}\d(?!\w|[:./-]\d)"  # a telephone number, not the beginning of a date behind it
    r"|(?<![\w.,])[+\-\u2212]?\d{1,3}(?:[\u00a0\u202f]\d{3})+(?!\w)"  # thousands by spaces
    r"|(?<![\w.,])[+\-\u2212]?\.?\d(?:[\d.,:/'\u2019\u066b\u066c\u2013-]*\d)?(?!\w)"
    r"|(?<![\w.-])[^\W\d_]{1,20}\d[\w.]*(?<![.])(?!\w)"  # a name or version with digits: v1.2.3, B2B
)
_RESERVED = r"\u27e6(?:\d+|[=;])\u27e7"
_OPAQUE = r"[\ue000-\uf8ff]"
PATTERN = re.compile(
    "|".join(
        f"(?P<{kind}>{pattern})"
        for kind, pattern in {
            "code": _CODE,
            "url": _URL,
            "email": _EMAIL,
            "link": _LINK,
            "braces": _BRACES,
            "tag": _TAG,
            "format": _FORMAT,
            "marks": _MARKS,
            "handle": _HANDLE,
            "emoji": _EMOJI,
            "number": _NUMBER,
            "reserved": _RESERVED,
            "opaque": _OPAQUE,
        }.items()
    ),
    re.IGNORECASE,
)
"""Every span but names, in a group with the name of its kind."""
AFTER = ".,;:!?\u2026)]}'\"\u3002\uff0c\uff01\uff1f\u060c\u061f"
"""Characters at the end of an address that belong to the sentence around it."""
_BRACKETS = {")": "(", "]": "[", "}": "{"}


class Span(NamedTuple):
    """A part of a text that a translation takes over as it is.

    Attributes:
        begin: Its first character.
        end: The character after its last one.
        kind: What it is: code, url, email, link, braces, tag, format, marks, handle, emoji, number, reserved,
            opaque (a character of the private use area, which stands for a part of a document) or name.
    """

    begin: int
    end: int
    kind: str


def find_spans(text: str, names: Collection[str] = ()) -> list[Span]:
    """The spans of a text, in order; none overlaps another.

    Args:
        text: The text.
        names: Words, or several, that are spans wherever they stand as whole words, with the same capitals.
    """
    spans = [_trimmed(text, match) for match in PATTERN.finditer(text)]
    if names:
        spans += [name for name in _find_names(text, names) if is_apart(name.begin, name.end, spans)]
    return sorted(spans)


def is_apart(begin: int, end: int, places: Iterable[tuple[Any, ...]]) -> bool:
    """True if a part of a text overlaps none of some places, of which each begins and ends with its first two items."""
    return all(end <= place[0] or place[1] <= begin for place in places)


def replace_places(text: str, replacements: Mapping[tuple[int, int], str]) -> str:
    """A text with other texts at some places, which do not overlap."""
    parts = []
    position = 0
    for (begin, end), replacement in sorted(replacements.items()):
        parts += [text[position:begin], replacement]
        position = end
    return "".join([*parts, text[position:]])


def _trimmed(text: str, match: re.Match[str]) -> Span:
    """A match as a span; an address ends before the punctuation of its sentence."""
    kind = str(match.lastgroup)
    begin, end = match.span()
    if kind == "url":
        while text[end - 1] in AFTER:
            opening = _BRACKETS.get(text[end - 1])
            if opening and text.count(opening, begin, end) >= text.count(text[end - 1], begin, end):
                break
            end -= 1
    return Span(begin, end, kind)


def _find_names(text: str, names: Collection[str]) -> Iterable[Span]:
    """The longest names first, where two begin at the same place."""
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    for match in re.finditer(rf"(?<!\w)(?:{pattern})(?!\w)", text):
        yield Span(match.start(), match.end(), "name")
