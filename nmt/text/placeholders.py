"""Reserved tokens: placeholders for what a translation takes over, and marks around the translation of a term.

Training teaches to copy placeholders, and to use a translation that stands beside its term.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt.config import TextSection

PLACEHOLDER = re.compile("\u27e6[1-9][0-9]?\u27e7")
"""A placeholder in a text."""

MAX_PLACEHOLDERS = 99
"""Maximum number of a model's placeholders."""

TERM_MARKS = ("\u27e6=\u27e7", "\u27e6;\u27e7")
"""They stand between a term and its translation, and behind the translation."""

RESERVED = re.compile("\u27e6(?:\\d+|[=;])\u27e7")
"""A token in a text that is reserved in this model or in another."""


def make_placeholders(number: int) -> list[str]:
    """The first placeholders: \u27e61\u27e7, \u27e62\u27e7, and so on.

    Args:
        number: How many.
    """
    return [f"\u27e6{place}\u27e7" for place in range(1, number + 1)]


def reserved_tokens(text: TextSection) -> list[str]:
    """The reserved tokens of a config."""
    marks = TERM_MARKS if text.term_marks else ()
    return [*make_placeholders(text.placeholders), *marks]


def annotate(term: str, translation: str) -> str:
    """A term of a source with its translation beside it (Dinu et al., 2019, "append")."""
    begin, end = TERM_MARKS
    return f"{term}{begin} {translation}{end}"
