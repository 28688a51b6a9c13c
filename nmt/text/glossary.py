"""Terms with the translations that they must have, and names that stay as they are, from files of a user."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nmt.system.errors import CONTROL, DataError, shorten
from nmt.system.files import read_bytes
from nmt.system.limits import MAX_LINE, MAX_TEXT_FILE, OVERLONG
from nmt.text.placeholders import RESERVED

MOST_WORDS = 20
"""Maximum number of words of a term, translation or name."""
LONGEST_WORD = 100
"""Characters of the longest word of a term or name."""
FORMS = ("exact", "inflected")
"""How a translation may stand in a sentence: as it is, or in the form that the sentence needs."""


class Glossary(NamedTuple):
    """Terms and their translations.

    Attributes:
        terms: Translations by term.
        inflected: The terms whose translations may be inflected.
    """

    terms: dict[str, str]
    inflected: frozenset[str]


class _Entry(NamedTuple):
    """A line of a glossary.

    Attributes:
        number: Its number, from 1.
        translation: The translation of its term.
        form: One of `FORMS`.
    """

    number: int
    translation: str
    form: str


def read_glossary(path: Path) -> Glossary:
    """Read a glossary: a term, a tab and its translation on each line; empty lines are skipped.

    A third column says `exact`, which is the default, or `inflected`. A term may be repeated, with the same columns.

    Args:
        path: UTF-8 text.

    Raises:
        DataError: There is no entry, or a line is malformed, contradicts an earlier one, or has a translation that is
            a term itself.
        OSError: The file cannot be read.
    """
    terms: dict[str, str] = {}
    inflected = set[str]()
    known: dict[str, _Entry] = {}  # the first of each term
    for number, line in read_entries(path):
        fields = [" ".join(field.split()) for field in line.split("\t")]
        if len(fields) > 3:
            raise DataError(f"{path}, line {number}: {len(fields)} columns; write a term, its translation and a form")
        if len(fields) < 2 or not all(fields):
            raise DataError(
                f"{path}, line {number}: {shorten(repr(line))} is not an entry; write a term, a tab and its translation"
            )
        term, translation = fields[:2]
        form = fields[2] if len(fields) > 2 else FORMS[0]
        if form not in FORMS:
            raise DataError(
                f"{path}, line {number}: {shorten(repr(form))} in the third column; write {' or '.join(FORMS)} there"
            )
        for text in (term, translation):
            _check_text(path, number, text)
        _check_words(path, number, term)
        first = known.setdefault(term, _Entry(number, translation, form))
        contradiction = ""
        if first.form != form:
            contradiction = f"{form} here and {first.form}"
        if first.translation != translation:
            contradiction = f"{shorten(repr(translation))} here and {shorten(repr(first.translation))}"
        if contradiction:
            raise DataError(
                f"{path}, line {number}: {shorten(repr(term))} is {contradiction} in line {first.number}; keep one of "
                "them"
            )
        terms[term] = translation
        if form == "inflected":
            inflected.add(term)
    if not terms:
        raise DataError(f"{path}: has no entries; write a term, a tab and its translation on each line")
    for term, translation in terms.items():
        number = known[term].number
        if translation.lower() != term.lower() and not known.keys().isdisjoint((translation, translation.lower())):
            raise DataError(
                f"{path}, line {number}: the translation {translation!r} of {term!r} is a term too; leave out one of "
                "the two"
            )
    return Glossary(terms, frozenset(inflected))


def read_names(path: Path) -> list[str]:
    """Read names that stay as they are: one on each line; empty lines are skipped.

    Raises:
        DataError: There is no name, or a line is not a name.
        OSError: The file cannot be read.
    """
    names = []
    for number, line in read_entries(path):
        name = " ".join(line.split())
        _check_text(path, number, name)
        _check_words(path, number, name)
        names.append(name)
    if not names:
        raise DataError(f"{path}: has no names; write one on each line")
    return names


def read_entries(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a user's file that are not empty, with their numbers.

    Raises:
        DataError: It is not UTF-8, or a line is too long.
        OSError: It cannot be read.
    """
    try:
        text = read_bytes(path, MAX_TEXT_FILE).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {number}: not UTF-8; convert it to UTF-8 first") from None
    for number, line in enumerate(text.split("\n"), 1):
        if len(line.encode()) > MAX_LINE:
            raise DataError(f"{path}, line {number}: {OVERLONG}; write one entry per line")
        if line.strip():
            yield number, line.rstrip("\r")


def _check_text(path: Path, number: int, text: str) -> None:
    """Refuse a term, translation or name that no sentence can have.

    Raises:
        DataError: It has a control character, a reserved token or too many words.
    """
    if CONTROL.search(text):
        raise DataError(f"{path}, line {number}: {shorten(repr(text))} has a control character; remove it")
    if reserved := RESERVED.search(text):
        raise DataError(
            f"{path}, line {number}: {shorten(repr(text))} has {reserved[0]}, which is reserved for models; remove it"
        )
    words = len(text.split())
    if words > MOST_WORDS:
        raise DataError(f"{path}, line {number}: {shorten(text)!r} has {words} words; write at most {MOST_WORDS}")


def _check_words(path: Path, number: int, text: str) -> None:
    """Refuse a term or name with a word that is too long.

    Raises:
        DataError: One has more than `LONGEST_WORD` characters.
    """
    longest = max(map(len, text.split()))
    if longest > LONGEST_WORD:
        raise DataError(
            f"{path}, line {number}: {shorten(text)!r} has a word of {longest:,} characters; write at most "
            f"{LONGEST_WORD}"
        )
