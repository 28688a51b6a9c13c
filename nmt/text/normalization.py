"""Repairing the text of a sentence: Unicode form, invisible characters, entities, spaces."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from html.entities import html5
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, StrictBool

# Removed: control characters other than white space and those of Windows-1252, zero-width space, word joiner, soft
# hyphen, byte order mark, and marks of direction, annotation and invisible operators. The zero-width (non-)joiners
# U+200C and U+200D stay: Persian, Hindi and other languages are spelt with them, and emoji are built with them.
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb]+"
)
WINDOWS_1252 = {
    chr(code): bytes([code]).decode("cp1252")
    for code in range(0x80, 0xA0)
    if code not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}
"""Characters of Windows-1252 by the control characters (C1) that its bytes are in Latin-1: HTML has the same table."""
_WINDOWS_1252 = str.maketrans(WINDOWS_1252)
_C1 = re.compile("[\x80-\x9f]")
DOUBLE_QUOTES = re.compile("[\u201c-\u201f\u00ab\u00bb\u2033\u300c-\u300f\uff02]")
SINGLE_QUOTES = re.compile("[\u2018-\u201b\u2039\u203a\u2032`\u00b4]")
DASHES = re.compile("[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]")
_ENTITY = re.compile("&(#[0-9]{1,7};|#[xX][0-9a-fA-F]{1,6};|[a-zA-Z][a-zA-Z0-9]*;)")
_ESCAPED_OFTEN = re.compile("&(?:amp;)+")
_PLAIN = re.compile("[!-%'-~]+(?: [!-%'-~]+)*")  # ASCII words with single spaces and no &: nothing to repair

MAX_MARKS = 30
"""Maximum number of combining marks in a row, as in Unicode's stream-safe text (UAX #15, D3): nobody writes more, and
sorting many takes quadratic time."""
_KATAKANA_MARKS = "\uff9e\uff9f"  # letters that are marks in NFKC
_MANY_MARKS = re.compile(f"[\\W{_KATAKANA_MARKS}]{{{MAX_MARKS + 1},}}")  # may contain too many marks

Form = Literal["nfc", "nfkc", "none"]


@dataclass(frozen=True, kw_only=True)
class Normalizer:
    """Repairs one sentence. Repairing it again changes nothing.

    Attributes:
        unicode: Normal form; combining marks after the first `MAX_MARKS` in a row are removed.
        control_characters: Remove control, zero-width and direction characters and soft hyphens; those of C1 that are
            characters in Windows-1252, such as U+0092 for an apostrophe, become these.
        html_entities: Replace `&amp;` and the like, including those escaped twice.
        quotes: Replace typographic quotation marks by straight ones.
        dashes: Replace typographic dashes and hyphens by `-`.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")
    unicode: Form = "nfc"
    control_characters: StrictBool = True
    html_entities: StrictBool = True
    quotes: StrictBool = False
    dashes: StrictBool = False

    @property
    def settings(self) -> dict[str, Any]:
        """All attributes by name."""
        return asdict(self)

    @cached_property
    def without_repairs(self) -> Normalizer:
        """The normalizer of text that a model is scored with: its Unicode form and spaces, which no reader sees."""
        form: Form = "none" if self.unicode == "none" else "nfc"
        return Normalizer(unicode=form, control_characters=False, html_entities=False)

    @cached_property
    def steps(self) -> dict[str, Callable[[str], str]]:
        """The chosen steps by name, in order."""
        steps: dict[str, Callable[[str], str] | None] = {
            "control_characters": _without_control if self.control_characters else None,
            "html_entities": _unescape if self.html_entities else None,
            "unicode": partial(_compose, self.unicode) if self.unicode != "none" else None,
            "quotes": _straight_quotes if self.quotes else None,
            "dashes": partial(DASHES.sub, "-") if self.dashes else None,
            "blanks": _single_spaces,
        }
        return {name: step for name, step in steps.items() if step}

    def decode(self, text: str) -> str:
        """A line in which no space is a character of Windows-1252, so that it can be split at spaces."""
        return decode_windows_1252(text) if self.control_characters else text

    def __call__(self, text: str) -> str:
        """Repair a sentence: the chosen steps, then single spaces between words and none around them."""
        return self.explain(text)[0]

    def explain(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Repair a sentence, and name the steps that changed it."""
        if not self.quotes and _PLAIN.fullmatch(text):  # ` is a quotation mark in ASCII
            return text, ()
        applied: dict[str, None] = {}
        while True:  # one step can make work for another: an entity may stand for an invisible character
            before = text
            for name, step in self.steps.items():
                changed = step(text)
                if changed != text:
                    applied[name] = None
                    text = changed
            if text == before:
                return text, tuple(applied)


def _single_spaces(text: str) -> str:
    """Every run of Unicode white space becomes one space."""
    return " ".join(text.split())


def decode_windows_1252(text: str) -> str:
    """A text in which control characters of C1 are the characters of Windows-1252 with their numbers, if it has any."""
    return text.translate(_WINDOWS_1252) if _C1.search(text) else text


def _without_control(text: str) -> str:
    return INVISIBLE.sub("", decode_windows_1252(text))


def _unescape(text: str) -> str:
    """Replace entities that end in a semicolon: `html.unescape` alone would make `?a=1&section=2` `?a=1§ion=2`."""
    text = _ESCAPED_OFTEN.sub("&amp;", text)  # all at once: one level at a time would take quadratic time
    return _ENTITY.sub(lambda e: html.unescape(e[0]) if e[1][0] == "#" else html5.get(e[1], e[0]), text)


def _compose(form: Form, text: str) -> str:
    name: Literal["NFC", "NFKC"] = "NFC" if form == "nfc" else "NFKC"
    text = _MANY_MARKS.sub(_without_excess_marks, text)
    return text if unicodedata.is_normalized(name, text) else unicodedata.normalize(name, text)


def _without_excess_marks(run: re.Match[str]) -> str:
    shortened = ""
    marks = 0
    for character in run[0]:
        is_mark = unicodedata.category(character)[0] == "M" or character in _KATAKANA_MARKS
        marks = marks + 1 if is_mark else 0
        shortened += character if marks <= MAX_MARKS else ""
    return shortened


def _straight_quotes(text: str) -> str:
    return SINGLE_QUOTES.sub("'", DOUBLE_QUOTES.sub('"', text))
