"""Words that a model cannot read, as its vocabulary has none of their letters: *日本語* for a model of English.

A translation takes them over as they are; a model would invent a word for them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable

WORD = r"[^\W\d_]+"
"""A word of letters."""
_WORD = re.compile(WORD)


def list_letters(tokens: Iterable[str]) -> frozenset[str]:
    """The letters of some tokens."""
    return frozenset(filter(str.isalpha, "".join(tokens)))


def find_unread(text: str, letters: Collection[str]) -> list[tuple[int, int]]:
    """Where a text has words, one or several in a row, that have none of some letters in any form.

    Args:
        text: The text.
        letters: The letters that a model knows; see `list_letters`. None are looked for if there are none.
    """
    if not letters or all(character in letters for character in text if character.isalpha()):
        return []
    places: list[tuple[int, int]] = []
    for word in _WORD.finditer(text):
        begin, end = word.span()
        if _is_read(word[0], letters):
            continue
        if places and text[places[-1][1] : begin].isspace():
            begin = places.pop()[0]  # the word goes on with the words before it
        places.append((begin, end))
    return places


def _is_read(word: str, letters: Collection[str]) -> bool:
    """True if a model may know a letter of a word, which it may read in small letters, or without ligatures."""
    forms = word + unicodedata.normalize("NFKC", word).lower()
    return any(letter in letters for letter in forms)
