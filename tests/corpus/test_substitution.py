"""Copies of pairs with placeholders in place of what both sides have."""

import random
import re
from collections import Counter

import pytest

from nmt.corpus import Pair
from nmt.corpus.substitution import find_common_words, find_shared, substitute
from nmt.text.placeholders import PLACEHOLDER, make_placeholders

LEXICON = {"dogs": "hunde", "garden": "garten"}


@pytest.mark.parametrize(
    ("src", "tgt", "expected"),
    [
        ("Tom has 3 dogs.", "Tom hat 3 Hunde.", [("3", "3"), ("Tom", "Tom"), ("dogs", "Hunde")]),
        ("See https://a.b now.", "Siehe https://a.b jetzt.", [("https://a.b", "https://a.b")]),
        ("Tom and Tom", "Tom und Tom", []),  # which is which is not known
        ("the garden", "der Garten", [("garden", "Garten")]),
        ("the Garden", "der Hund", []),
        ("3 or 4", "3 oder 5", [("3", "3")]),
        ("we have tom", "wir haben tom", []),  # no name, and not in the lexicon
        ("", "", []),
    ],
)
def test_what_both_sides_have(src: str, tgt: str, expected: list[tuple[str, str]]) -> None:
    shared = find_shared(Pair(src, tgt), LEXICON)
    assert [(src[slice(*part.src)], tgt[slice(*part.tgt)]) for part in shared] == expected


def test_the_same_placeholders_stand_on_both_sides_and_the_rest_stays() -> None:
    pair, placeholders = Pair("Tom has 3 dogs in the garden.", "Tom hat 3 Hunde im Garten."), make_placeholders(8)
    numbers = Counter[int]()
    used = set[str]()
    for seed in range(200):
        src, tgt = substitute(placeholders, LEXICON, pair, random.Random(seed))
        found = PLACEHOLDER.findall(src)
        assert Counter(found) == Counter(PLACEHOLDER.findall(tgt))
        assert len(set(found)) == len(found)
        assert re.fullmatch(r"(Tom|\S+) has (3|\S+) (dogs|\S+) in the (garden|\S+)\.", src)
        numbers[len(found)] += 1
        used |= set(found)
    assert set(numbers) == {1, 2, 3, 4}
    assert used == set(placeholders)


def test_a_pair_with_nothing_in_common_stays() -> None:
    pair = Pair("we go", "wir gehen")
    assert substitute(make_placeholders(2), LEXICON, pair, random.Random(1)) == pair


def test_common_words_are_counted_in_any_case() -> None:
    assert find_common_words(["The cat", "the dog"]) == {"the", "cat", "dog"}
    many = [" ".join([f"w{number}"] * (400 - number)) for number in range(400)]
    assert find_common_words(many) == {f"w{number}" for number in range(300)}
