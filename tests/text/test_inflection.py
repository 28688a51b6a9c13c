"""Forms of words."""

import pytest

from nmt.text.inflection import has_forms, is_form, keeps_term


@pytest.mark.parametrize(
    ("word", "translation", "expected"),
    [
        ("Hunde", "Hund", True),
        ("Hund", "Hund", True),
        ("Hundehalsband", "Hund", False),  # a compound, not an ending
        ("hund", "Hund", False),
        ("Haus", "Hund", False),
        ("Ei", "Ei", False),  # too short to tell
        ("Auto", "Autor", True),  # they look like forms of one word
    ],
)
def test_forms_differ_in_a_short_ending(word: str, translation: str, expected: bool) -> None:
    assert is_form(word, translation) is expected


@pytest.mark.parametrize(
    ("text", "terms", "expected"),
    [
        ("Er sah die Hunde.", ["Hund"], True),
        ("Er sah sie.", ["Hund"], False),
        ("Hunde und Hund", ["Hund", "Hund"], True),
        ("Hunde", ["Hund", "Hund"], False),  # a word is the form of one term
        ("Ei", ["Ei"], True),
        ("die neuen Verfahren", ["neues Verfahren"], True),
        ("neuen, die Verfahren", ["neues Verfahren"], False),  # another word is between them
        ("irgendein Text", [], True),
        ("", ["Hund"], False),
    ],
)
def test_each_term_needs_a_form_of_its_own(text: str, terms: list[str], expected: bool) -> None:
    assert has_forms(text, terms) is expected


@pytest.mark.parametrize(
    ("word", "term", "expected"),
    [
        ("Lehrerinnen", "Lehrerin", True),
        ("geht", "gehen", True),
        ("Daten", "Datum", True),
        ("Hund", "Hund", True),
        ("Lehrer", "Lehrerin", False),
        ("Lehrkopf", "Lehrkraft", False),
        ("Hundehütte", "Hund", False),
        ("Bücher", "Buch", False),  # no letter of an umlaut is known: the term stays as it is
        ("sie", "sei", False),
    ],
)
def test_a_form_of_a_term_is_the_term_with_another_ending(word: str, term: str, expected: bool) -> None:
    assert keeps_term(word, term) is expected
