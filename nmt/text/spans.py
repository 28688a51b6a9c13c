"""Spans of text that a translation takes over as they are: placeholders, addresses, marks, emoji, numbers, names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

PICTURES = (
    "\u00a9\u00ae\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u25aa\u25ab\u25b6"
    "\u25c0\u25fb-\u25fe\u2600-\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\U0001f000-\U0001faff"
)
"""Characters that are emoji, without those that are marks of sentences."""
_URL = rf"(?:\b[a-z][a-z0-9+.-]{{1,20}}://|\bwww\.)[^\s<>\"'`\u201c\u201d{PICTURES}]+"
_EMAIL = r"\b(?:mailto:)?[\w.+'-]+@[\w-]+(?:\.[\w-]+)+"
_CODE = r"``[^\n]+?``|`[^`\n]+`"
_INNER = r"\{(?:[^{}\n]|\{[^{}\n]{0,80}\}){0,80}\}"
_BRACES = (
    rf"[$#%]?\{{\{{\{{[^{{}}\n]{{0,200}}\}}\}}\}}|[$#%]?\{{(?:[^{{}}\n]|{_INNER}){{0,200}}\}}|\$\w*\([^()\n]{{1,80}}\)"
    r"|\[\[[^\[\]\n]{1,80}\]\]|\[%\w+%\]|\$[A-Za-z_]\w*|(?<![\w:/]):[a-z_]\w+(?![\w:])"
)
_DIRECTIVE = r"%(?:\d+\$|<\w+>)?[-+#0]*(?:\d*|\*)(?:\.\d+)?(?:hh|ll|[hlLzjt])?[a-zA-Z@](?![a-zA-Z])"
_FORMAT = rf"%%|%\([\w.-]+\)[a-z]|{_DIRECTIVE}|(?<!\w)%\w+%(?!\w)|\\[nrt\"'](?![A-Za-z])"
_TAG = r"</?[A-Za-z][^<>\n]*>|</?\d{1,3} ?/?>|<!--[^\n]*?-->|<%[^\n]*?%>"
_MARKS = (
    r"\*\*|__|~~|(?<![\w*])\*(?=[\w(])|(?<=[\w.!?)])\*(?![\w*])|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)|^(?:#{1,6}|>)(?=\s)"
    r"|^\s*(?:[-*+\u2022]|\d{1,3}[.)])(?:\s+\[[ x]\])?(?=\s)|(?<!\S)\|(?!\S)|\[\^[\w-]{1,20}\]"
)
_LINK = (
    r"\]\([^()\s]+\)|\]\[[^\[\]\n]{0,40}\]"
    r"|!?\[(?=[^\[\]\n]{1,200}\](?:\([^()\s]+\)|\[[^\[\]\n]{0,40}\]))"
)
_HANDLE = r"(?<![\w@#&])[@#]:?[^\W_][\w-]*(?:[./@:][\w-]+)*"
_EMOJI = rf"[0-9#*]\ufe0f?\u20e3|[{PICTURES}][{PICTURES}\ufe0e\ufe0f\u200d\u20e3\U000e0020-\U000e007f]*"
_SIGN = r"[+\-\u2212]?"
_BEFORE = rf"(?<![\w.,])(?:{_SIGN}(?:US|A|C|NZ)?[$\u20ac\u00a3\u00a5\u20b9\u20bd\u20a9\u00a7\u2116][ \u00a0]?)?{_SIGN}"
"""What may stand in front of a number: a currency or the sign of a paragraph, and the sign of the number."""
_BEHIND = (
    r"(?:[ \u00a0\u202f]?(?:%(?![%\w(])|\u2030|\u00b0[CF]?(?!\w)|[\u20ac\u00a3\u00a5\u20b9\u20bd\u20a9\u00a2](?!\d)))?"
)
"""What may stand behind it: percent, degrees or a currency."""
_ENDINGS = r"(?:st|nd|rd|th|s|ers?|e|ten?|mal)(?!\w)"
"""Letters that make an ordinal, a decade or a word of a number, which is translated."""
_NUMBER = (
    r"(?<!\w)\d{4}-\d\d-\d\dT[\d:.]*\d(?:Z|[+-]\d\d:?\d\d)?(?!\w)"  # a date with its time
    r"|(?<!\w)\d\d?:\d\d(?::\d\d)?[+-]\d\d:?\d\d(?!\w)|(?<!\w)\d{4}-W\d\d(?:-\d)?(?!\w)"  # a time with its zone, a week
    r"|(?<!\w)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?!\w)"  # a UUID
    r"|(?<!\w)\+\d[\d ()/-]{5,20}\d(?!\w|[:./-]\d)"  # a telephone number, not the beginning of a date behind it
    r"|(?<!\w)\(\d{3}\) ?\d{3}-\d{4}(?!\w)"
    r"|(?<![\w.-])v?\d+\.\d+\.\d+[-+][\w.+-]*\w"  # a version with what follows it
    rf"|{_BEFORE}\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}})+(?:[.,]\d+)?(?![\w]){_BEHIND}"  # thousands by spaces
    rf"|{_BEFORE}\d(?:[\d.,:]*\d)?(?!{_ENDINGS})[^\W\d_]\w{{0,5}}(?!\w)"  # with a unit: 5kg, 7:30am, 0x1F
    rf"|{_BEFORE}\.?\d(?:[\d.,:/'\u2019\u066b\u066c\u2013-]*\d)?(?!\w){_BEHIND}"
    r"|(?<![\w.-])[^\W\d_]{1,20}\d[\w.]*(?<![.])(?!\w)"  # a name or version with digits: v1.2.3, B2B
    r"|(?<![\w.-])[^\W\d_]{2,20}(?:-\d[\w.]*)+(?<![.])(?!\w)"  # ISO-8859-1
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
        names: Words, or several, that are spans wherever they stand as whole words, with the same capitals. One that
            contains other spans, such as a number, is put in their place.
    """
    spans = [_trimmed(text, match) for match in PATTERN.finditer(text)]
    if names:
        spans = put_over(spans, _find_names(text, names))
    return sorted(spans)


Place = TypeVar("Place", bound=tuple[Any, ...])


def put_over(places: Sequence[Place], others: Iterable[Place]) -> list[Place]:
    """Places with others in place of those that they contain; one that overlaps a place otherwise is left out.

    Of each, the first two items are where it begins and ends.
    """
    chosen = list(places)
    for added in others:
        begin, end = added[:2]
        touched = [place for place in chosen if not is_apart(begin, end, [place])]
        if all(begin <= place[0] and place[1] <= end for place in touched):
            chosen = [place for place in chosen if place not in touched]
            chosen.append(added)
    return chosen


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
    """A match as a span, without white space in front; an address ends before the punctuation of its sentence."""
    kind = str(match.lastgroup)
    begin, end = match.span()
    if kind == "url":
        while text[end - 1] in AFTER:
            opening = _BRACKETS.get(text[end - 1])
            if opening and text.count(opening, begin, end) >= text.count(text[end - 1], begin, end):
                break
            end -= 1
    while text[begin].isspace():  # in front of the mark of a list
        begin += 1
    return Span(begin, end, kind)


def _find_names(text: str, names: Collection[str]) -> Iterable[Span]:
    """The longest names first, where two begin at the same place."""
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    for match in re.finditer(rf"(?<!\w)(?:{pattern})(?!\w)", text):
        yield Span(match.start(), match.end(), "name")
