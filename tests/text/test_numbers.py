import random

import pytest

from nmt.config import CleaningSection
from nmt.corpus import Pair
from nmt.corpus.augmentation import FORMS
from nmt.corpus.cleaning import Cleaner
from nmt.text.direction import Direction
from nmt.text.numbers import find_numbers, have_same_numbers, write_like
from nmt.translation.copies import repair_copies


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("at 2:30, 2.30 or 2,30", ["230"] * 3),
        ("10 000 people", ["10000"]),
        ("10\u00a0000, 10\u202f000 and 10\u2009000", ["10000"] * 3),
        ("10'000 and 10’000", ["10000"] * 2),
        ("1 234 567,50 €", ["123456750"]),
        ("٣ كتب و ١٠٬٠٠٠", ["10000", "3"]),
        ("३ किताबें, ১২, ៥, １０", ["10", "12", "3", "5"]),
        ("in 2010 500 people", ["2010", "500"]),
        ("room 12 5000", ["12", "5000"]),
        ("007", ["007"]),
        ("², ½, Ⅷ, 三", []),
    ],
)
def test_numbers_are_found_however_they_are_written(text: str, numbers: list[str]) -> None:
    assert find_numbers(text) == sorted(numbers)


SAME = [
    ("The city has 10,000 inhabitants.", "La ville compte 10 000 habitants."),
    ("It costs 1,250 dollars.", "Cela coûte 1\u202f250 dollars."),
    ("There are 3 books.", "هناك ٣ كتب."),
    ("It costs 1,250.50.", "Es kostet 1'250,50."),
    ("3 100-euro notes", "3 Scheine zu 100 Euro"),
    ("3 100-euro notes for 10,000 people", "3 Scheine zu 100 Euro für 10 000 Leute"),
    ("12 345 678 of 90", "90, 12,345,678"),
    ("No number.", "Keine Zahl."),
]
OTHER = [
    ("10,000", "1,000"),
    ("10 000", "10 001"),
    ("There are 3 books.", "هناك ٤ كتب."),
    ("3 books", "drei Bücher"),
    ("3 and 3", "3"),
]


@pytest.mark.parametrize(("pair", "same"), [*((pair, True) for pair in SAME), *((pair, False) for pair in OTHER)])
def test_translations_have_the_same_numbers(pair: tuple[str, str], same: bool) -> None:
    assert have_same_numbers(*pair) is same
    assert have_same_numbers(*pair[::-1]) is same
    cleaner = Cleaner(CleaningSection(same_numbers=True, min_letters=0.0, max_ratio=None), Direction("en", "de"))
    _, report = cleaner.clean([Pair(*pair)])
    assert report.dropped.keys() == (set() if same else {"other_numbers"})


@pytest.mark.parametrize("pair", SAME[:7])
def test_copies_have_other_numbers_in_the_same_form(pair: tuple[str, str]) -> None:
    shapes = set()
    for seed in range(20):
        copy = FORMS["numbers"](Pair(*pair), random.Random(seed))
        assert have_same_numbers(*copy)
        for text, changed in zip(pair, copy, strict=True):
            assert [c for c in text if not c.isdecimal()] == [c for c in changed if not c.isdecimal()]
            assert [c.isascii() for c in text] == [c.isascii() for c in changed]
        shapes.add(copy)
    assert len(shapes) > 3


def test_a_number_is_copied_in_the_digits_of_the_translation() -> None:
    assert write_like("1,2.3", "٤٥") == "١,٢.٣"
    source, translation = ["▁Flight", "▁2", "38", "6"], ["▁رحلة", "▁٢٣", "٦"]
    assert "".join(repair_copies(source, translation, [-1.0] * 3)) == "▁رحلة▁٢٣٨٦"
    same = ["▁رحلة", "▁٢٣", "٨٦"]
    assert repair_copies(source, same, [-1.0] * 3) == same
