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
AT_WORD = r"(?<![^\W_])"
"""A place without a letter or digit in front of it; an underscore is the mark of Markdown."""
WORD_ENDS = r"(?![^\W_])"
_PATH = (
    r"(?<![\w\\])[A-Za-z]:\\[^\s<>\"|]*[^\s<>\"|.,;:!?)]|\\\\[\w.-]+\\[^\s<>\"|]*[^\s<>\"|.,;:!?)]"
    r"|(?<![^\s(\"'`])(?:~|\.\.?)?/[\w.-]*\w(?:/[\w.-]*\w)+/?|(?<![^\s(\"'`])--[a-z][\w-]*(?:=[^\s]*\w)?"
)
_IDENTIFIER = (
    rf"__[A-Z][A-Z0-9_]*__(?!\w)|_{{3,}}|{AT_WORD}[^\W_]+(?:_+[^\W_]+)+{WORD_ENDS}"
    rf"|{AT_WORD}(?:[A-Z]\+\+|[CFJ]#|[A-Z][^\W_]*(?:\+[A-Z][^\W_]*)+)(?!\w)"
)
"""Words of programs: constants, blanks to fill in, words with underscores, names of languages, keys."""
_CODE = rf"``[^\n]+?``|`[^`\n]+`|{_PATH}|{_IDENTIFIER}"
_SCHEME = r"(?:[A-Za-z][A-Za-z0-9+.-]{1,20}://|[Ww][Ww][Ww]\.|(?:tel|sms|doi|urn|magnet):(?=[+\w]))"
_IN_URL = rf"[^\s<>\"'`\u201c\u201d{PICTURES}]"
_URL = rf"(?<=[*_~]){_SCHEME}{_IN_URL}*?(?=[*_~]+(?![^\W_]))|{AT_WORD}{_SCHEME}{_IN_URL}+"  # marks around it stay marks
_EMAIL = rf"{AT_WORD}(?:mailto:)?[\w.+'-]+@[\w-]+(?:\.[\w-]*[^\W_])+(?::[\w~-][\w./~-]*\w)?"
_INNER = r"\{(?:[^{}\n]|\{[^{}\n]{0,80}\}){0,80}\}"
_BRACES = (
    rf"[$#%@]?\{{\{{\{{[^{{}}\n]{{0,200}}\}}\}}\}}|[$#%@]?\{{(?:[^{{}}\n]|{_INNER}){{0,200}}\}}|\$\w*\([^()\n]{{1,80}}\)"
    r"|\[\[[^\[\]\n]{1,80}\]\]|\[%\w+%\]|\$[A-Za-z_]\w*|(?<![\w:/]):[A-Za-z_]\w+(?![\w:])"
    r"|&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});"
)
_DIRECTIVE = r"%(?:\d+\$|<\w+>)?[-+#0]*(?:\d*|\*)(?:\.\d+)?(?:hh|ll|[hlLzjt])?[a-zA-Z@](?![a-zA-Z])"
_ESCAPE = r"\\[\"']|\\[nrt](?![a-z])|(?<=\S)\\[nrt]|\\\d{1,2}(?!\d)|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}"
_FORMAT = rf"%%|%\([\w.-]+\)[A-Za-z]|{_DIRECTIVE}|(?<!\d)(?<!\d )% d(?!\w)|{AT_WORD}%\w*[^\W_]%{WORD_ENDS}|{_ESCAPE}"
_TAG = r"</?[A-Za-z][^<>\n]*>|</?\d{1,3} ?/?>|<!--[^\n]*?-->|<%[^\n]*?%>"
BLOCK = r"^</?(?:br|hr|p|div|h[1-6]|ul|ol|li|dl|dt|dd|table|tr|td|th|blockquote|pre)(?![\w-])"
"""The beginning of a tag that ends a line or a paragraph."""
_BLOCK = re.compile(BLOCK)
_BULLET = r"[-*+\u2022\u2023\u25cf\u25cb\u25aa\u25ab\u25e6\u2192\u27a4\u00b7]"
_MARKS = (
    rf"^\s*(?:>(?: ?>)*\s+)?(?:#{{1,6}}|(?:{_BULLET}|\d{{1,3}}[.)])(?:\s+\[[ xX]\])?)(?=\s)|^\s*>(?: ?>)*(?=\s|\w)"
    r"|\*{2,3}|__|~~|(?<![\w*])\*(?=[^\s*.,;:!?)\]}])|(?<=[^\s*(\[{])\*(?![\w*])"
    r"|(?<!\w)_(?=[^\s_.,;:!?)\]}])|(?<=[^\s_(\[{])_(?!\w)|(?<!\w)\||\|(?!\w)|\[\^[\w-]{1,20}\]|\[\d{1,3}\](?![(\[])"
)
_TARGET = r"\((?:[^()\s]|\([^()\s]*\))*(?:\s+(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'))?\)"
"""The address of a link, perhaps with its title."""
_LINK = (
    rf"\]{_TARGET}|\]\[[^\[\]\n]{{0,40}}\]|\[(?=!\[[^\[\]\n]{{0,200}}\]\([^()\s]{{0,300}}\)\])"
    rf"|!?\[(?=[^\[\]\n]{{1,200}}\](?:{_TARGET}|\[[^\[\]\n]{{0,40}}\]))"
)
_HANDLE = rf"{AT_WORD}(?<![@#&])[@#]:?[^\W_](?:[\w-]*[^\W_])?(?:[./@:](?:[\w-]*[^\W_]))*"
_EMOJI = (
    rf"[0-9#*]\ufe0f?\u20e3|[{PICTURES}][{PICTURES}\ufe0e\ufe0f\u200d\u20e3\U000e0020-\U000e007f]*"
    r"|(?<!\S)(?:[:;=][-o^']?[)(\]\[DPpO/\\|3*]{1,3}|[xX]D+|<3|\^_?\^|-_-|:'\()(?=$|[\s.,;!?])"
)
_SMALL = "\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089"
"""Raised and lowered digits."""
_PART = "\u00bc-\u00be\u2150-\u218b"
"""Fractions and Roman numerals that are one character."""
_CURRENCY = r"(?:(?:US|A|C|NZ)?[$\u20ac\u00a3\u00a5\u20b9\u20bd\u20a9\u00a7\u2116][ \u00a0]?)"
_SIGN = r"(?:(?:[<>~\u2248\u2264\u2265\u00b1] ?)?[+\-\u2212]?)"
_BEFORE = rf"{AT_WORD}(?<![.,])(?:{_SIGN}{_CURRENCY})?{_SIGN}"
"""What may stand in front of a number: a currency or the sign of a paragraph, and the sign of the number."""
_BEHIND = (
    r"(?:[ \u00a0\u202f]?(?:%(?![%\w(])|\u2030|\u00b0[CF]?(?!\w)|[\u20ac\u00a3\u00a5\u20b9\u20bd\u20a9\u00a2](?!\d)))?"
)
"""What may stand behind it: percent, degrees or a currency."""
_ENDINGS = r"(?:[Ss][Tt]|[Nn][Dd]|[Rr][Dd]|[Tt][Hh]|[Ss]|[Ee][Rr][Ss]?|[Ee]|[Tt][Ee][Nn]?|[Mm][Aa][Ll])(?!\w)"
"""Letters that make an ordinal, a decade or a word of a number, which is translated."""
_SIGNS_OF_FORMULAS = r"[=+*/^<>\u2248\u2264\u2265\u00b1\u00d7\u00f7\u2212]"
_OPERATOR = rf"(?:{_SIGNS_OF_FORMULAS}| {_SIGNS_OF_FORMULAS} )"
_TERM = rf"(?:\d(?:[\d.,]*\d)?[A-Za-z]?|[A-Za-z])[{_SMALL}]*(?![^\W_])"
_FORMULA = (
    # x=5, a + b = c
    rf"{AT_WORD}(?:{_TERM}(?:{_OPERATOR}{_TERM}){{0,8}}?)(?:[\^=]| [=<>] ){_TERM}(?:{_OPERATOR}{_TERM}){{0,8}}"
    rf"|{AT_WORD}\d(?:[\d.,]*\d)?(?:(?:{_OPERATOR}| [\u2013-] )\d(?:[\d.,]*\d)?(?!\w)){{1,16}}"  # 3 + 4, 5 - 6
)
_NUMBER = (
    rf"{AT_WORD}\d{{4}}-\d\d-\d\dT[\d:.]*\d(?:Z|[+-]\d\d:?\d\d)?{WORD_ENDS}"  # a date with its time
    rf"|{AT_WORD}\d\d?:\d\d(?::\d\d)?[+-]\d\d:?\d\d{WORD_ENDS}"  # a time with its zone
    rf"|{AT_WORD}\d{{4}}-W\d\d(?:-\d)?{WORD_ENDS}"  # a week
    rf"|{AT_WORD}[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}{WORD_ENDS}"  # a UUID
    rf"|{AT_WORD}\+\d[\d ()/-]{{5,20}}\d(?![^\W_]|[:./-]\d)"  # a telephone number, no date behind it
    rf"|{AT_WORD}\(\d{{3}}\) ?\d{{3}}-\d{{4}}{WORD_ENDS}"
    rf"|{AT_WORD}(?<![.-])[vV]?\d+\.\d+\.\d+[-+][\w.+-]*[^\W_]"  # a version with what follows it
    rf"|{_FORMULA}"
    rf"|{_BEFORE}\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}})+(?:[.,]\d+)?{WORD_ENDS}{_BEHIND}"  # thousands by spaces
    rf"|{_BEFORE}\d(?:[\d.,]*\d)?[eE][+-]?\d+{WORD_ENDS}"  # 1e-5
    # With a unit: 5kg, 7:30am, 0x1F, 10.5km/h, 5m\u00b2.
    rf"|{_BEFORE}\d(?:[\d.,:]*\d)?(?!{_ENDINGS})[^\W\d_][^\W_]{{0,5}}(?:/[^\W\d_][^\W_]{{0,3}})?{WORD_ENDS}"
    rf"|{_BEFORE}\.?\d(?:[\d.,:/'\u2019\u066b\u066c\u2013-]*\d)?[{_PART}{_SMALL}]*{WORD_ENDS}{_BEHIND}"
    rf"(?:[\u2013-]{_CURRENCY}?\d(?:[\d.,]*\d)?{WORD_ENDS}{_BEHIND}|,[\u2013\u2014-]{{1,2}}(?!\w))?"  # 5%-10%; 5,-
    rf"|{AT_WORD}(?<![.-])[^\W\d_]{{1,20}}\d[^\W_]*(?:\.[^\W_]+)*(?:-[^\W_]*\d[^\W_]*)*{WORD_ENDS}"  # v1.2.3, R2-D2
    rf"|{AT_WORD}(?<![.-])[^\W\d_]{{1,20}}(?:-(?!\d+{_ENDINGS})\d[^\W_]*(?:\.[^\W_]+)*)+{WORD_ENDS}"  # ISO-8859-1
    rf"|{AT_WORD}[^\W\d_]{{0,3}}[{_SMALL}{_PART}]+[^\W_]{{0,2}}{WORD_ENDS}|[{_SMALL}{_PART}]+"  # x\u00b2, \u00bd
)
_SIGNS = r"(?<!\S)[=+<>\u2248\u2264\u2265\u00b1\u00d7\u00f7~^\u2190-\u21ff\u00b7\u2022]{1,3}(?!\S)"
"""Signs between words."""
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
            "emoji": _EMOJI,
            "marks": _MARKS,
            "handle": _HANDLE,
            "number": _NUMBER,
            "sign": _SIGNS,
            "reserved": _RESERVED,
            "opaque": _OPAQUE,
        }.items()
    )
)
"""Every span but names, in a group with the name of its kind."""
_WORDS = re.compile("[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f ,.!?;'\"\u2019]*")
AFTER = ".,;:!?\u2026)]}'\"\u3002\uff0c\uff01\uff1f\u060c\u061f"
"""Characters at the end of an address that belong to the sentence around it."""
_BRACKETS = {")": "(", "]": "[", "}": "{"}


class Span(NamedTuple):
    """A part of a text that a translation takes over as it is.

    Attributes:
        begin: Its first character.
        end: The character after its last one.
        kind: What it is: code, url, email, link, braces, tag, format, marks, handle, emoji, number, sign,
            reserved, opaque (a character of the private use area, which stands for a part of a document) or name.
    """

    begin: int
    end: int
    kind: str


def ends_text(text: str, kind: str) -> bool:
    """True if a span ends the sentence before it, however that ends: a tag or an escape that breaks a line, a cell.

    Args:
        text: The span.
        kind: Its kind.
    """
    if kind == "tag":
        return bool(_BLOCK.match(text))
    return text in ("\\n", "\\r", "|")


def may_have_spans(text: str) -> bool:
    """False for words of Latin letters and usual punctuation, as most sentences are: this is found out quickly."""
    return _WORDS.fullmatch(text) is None or "www." in text.lower() or "XD" in text.upper()


def find_spans(text: str, names: Collection[str] = ()) -> list[Span]:
    """The spans of a text, in order; none overlaps another.

    Args:
        text: The text.
        names: Words, or several, that are spans wherever they stand as whole words, with the same capitals. One that
            contains other spans, such as a number, is put in their place.
    """
    spans = [_trimmed(text, match) for match in PATTERN.finditer(text)] if may_have_spans(text) else []
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
    for match in re.finditer(f"{AT_WORD}(?:{pattern}){WORD_ENDS}", text):
        yield Span(match.start(), match.end(), "name")
