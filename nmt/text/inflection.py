"""Forms of a word, as far as its letters show them: the same beginning, and another ending.

There are two rules. `is_form` finds examples in training text, where a wrong one costs little. `keeps_term` judges
translations, where a wrong one breaks a promise, and is stricter.
"""

import re
from collections.abc import Iterable

SHORTEST_STEM = 3
"""Letters that two forms of a word have in common at least."""
LONGEST_ENDING = 4
"""Letters in which two forms of a word differ at most."""
MOST_MISSING = 2
"""Letters at the end of a term that a form of it may lack."""
_WORD = re.compile(r"\w+")


def find_stem(word: str, form: str) -> str:
    """The letters with which two words begin."""
    length = 0
    for letter, same in zip(word, form, strict=False):
        if letter != same:
            break
        length += 1
    return word[:length]


def is_form(word: str, translation: str) -> bool:
    """True if a word differs from a translation only in a short ending."""
    stem = len(find_stem(word, translation))
    if word == translation:
        return stem >= SHORTEST_STEM
    longer = max(len(word), len(translation))
    return stem > SHORTEST_STEM and longer - stem <= LONGEST_ENDING and 2 * stem > longer


def keeps_term(word: str, term: str) -> bool:
    """True if a word is a term with another ending: *Lehrerinnen* for *Lehrerin*, *geht* for *gehen*.

    At most two letters of the term are missing, and others stand in their place: *Lehrer* is not a form of *Lehrerin*.
    """
    stem = len(find_stem(word, term))
    missing = len(term) - stem
    added = len(word) - stem
    if missing == 0:
        return added <= LONGEST_ENDING
    return missing <= MOST_MISSING and 0 < added <= LONGEST_ENDING and stem >= SHORTEST_STEM


def has_forms(text: str, terms: Iterable[str]) -> bool:
    """True if a text has a form of each term, at a place of its own.

    The words of a term of several words follow each other, each in some form.
    """
    words = _WORD.findall(text)
    for term in terms:
        parts = _WORD.findall(term)
        place = _find_forms(words, parts)
        if place is None:
            return False
        words[place : place + len(parts)] = [""]  # no other term is found here
    return True


def _find_forms(words: list[str], parts: list[str]) -> int | None:
    """Where the words of a term begin, each in some form."""
    for place in range(len(words) - len(parts) + 1):
        candidates = words[place : place + len(parts)]
        if all(keeps_term(word, part) for word, part in zip(candidates, parts, strict=True)):
            return place
    return None
