"""Names that training text never had: words with a capital, which a translation takes over as they are.

A model spells such a word from pieces that it knows from other words, and mostly gets it wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from nmt.system.errors import DataError
from nmt.system.files import check_file, write_text
from nmt.system.limits import MIB
from nmt.text.spans import AT_WORD, WORD_ENDS

PART = r"[^\W\d_]+"
"""The letters of a word."""
WORD = rf"{AT_WORD}{PART}(?:['\u2019-]{PART})*{WORD_ENDS}"
"""A word, perhaps with hyphens or apostrophes between its parts."""
LONGEST_FILE = MIB
"""Bytes of a file of known words: of more words, those that are rarest in training are not known."""
_PART = re.compile(PART)
_WORD = re.compile(WORD)


def list_words(text: str) -> set[str]:
    """The words of a text in small letters, each part of a word by itself."""
    return {part.lower() for part in _PART.findall(text)}


def find_names(text: str) -> Iterator[tuple[int, int]]:
    """Where a text has words with a capital: of each word the parts up to the first one in small letters.

    Those of `Jean-Luc's O'Brien-like talk` are `Jean-Luc` and `O'Brien`. A single letter is none.
    """
    for word in _WORD.finditer(text):
        end = word.start()
        for part in _PART.finditer(text, *word.span()):
            if not part[0][0].isupper():
                break
            end = part.end()
        if end - word.start() > 1:
            yield word.start(), end


def find_unknown_names(text: str, known_words: Collection[str]) -> list[tuple[int, int]]:
    """Where a text has words with a capital of which training had no form, or not every part.

    Args:
        text: The text.
        known_words: The words of training text; see `list_words`.
    """
    return [
        (begin, end)
        for begin, end in find_names(text)
        if not all(word in known_words for word in list_words(text[begin:end]))
    ]


def most_frequent(counts: Counter[str]) -> frozenset[str]:
    """The words that a file can have: of too many the most frequent ones."""
    chosen = set[str]()
    size = 0
    for word, _ in counts.most_common():
        size += len(word.encode()) + 1
        if size > LONGEST_FILE:
            break
        chosen.add(word)
    return frozenset(chosen)


def save_words(path: Path, words: Collection[str]) -> None:
    """Write known words, one on each line."""
    write_text(path, "".join(f"{word}\n" for word in sorted(words)))


def load_words(path: Path) -> frozenset[str]:
    """Read known words; a folder without the file knows none, and then no word is taken for an unknown name.

    Raises:
        DataError: The file is too large, or not in UTF-8.
    """
    if not check_file(path, path.parent, LONGEST_FILE).exists():
        return frozenset()
    try:
        return frozenset(path.read_text(encoding="utf-8").split())
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not in UTF-8; restore it, or delete it to take over no unknown names") from None
