"""Copies of pairs with the translations of words beside them."""

import random
import re
from collections import Counter

import pytest

from nmt.corpus import Pair
from nmt.corpus.terms import annotate_terms, find_terms

LEXICON = {"dog": "Hund", "car": "Auto", "bought": "gekauft"}


@pytest.mark.parametrize(
    ("src", "tgt", "expected"),
    [
        ("The dog sees a car.", "Der Hund sieht Autos.", [("dog", "Hund", "", ""), ("car", "Autos", "s", "")]),
        ("A dog and a dog", "Hund", []),  # which is which is not known
        ("The dog", "Hunde und Hund", []),
        ("I bought it", "Ich habe es gekauft", [("bought", "gekauft", "", "")]),
        ("", "", []),
    ],
)
def test_terms_have_one_translation(src: str, tgt: str, expected: list[tuple[str, str, str, str]]) -> None:
    found = [
        (src[slice(*term.src)], tgt[slice(*term.tgt)], term.form, term.usual_form)
        for term in find_terms(Pair(src, tgt), LEXICON)
    ]
    assert found == expected


def test_translations_stand_beside_their_terms_and_the_endings_stay() -> None:
    pair = Pair("The dog sees a car.", "Der Hund sieht Autos.")
    kinds = Counter[tuple[bool, bool]]()
    for seed in range(100):
        src, tgt = annotate_terms(LEXICON, pair, random.Random(seed))
        notes = re.findall(r"(\w+)⟦=⟧ (\w+)⟦;⟧", src)
        assert re.sub(r"⟦=⟧ \w+⟦;⟧", "", src) == pair.src
        assert notes
        expected = pair.tgt
        for term, translation in notes:
            assert translation[0].isupper()
            expected = expected.replace(LEXICON[term], f"<{term}>")
        for term, translation in notes:
            expected = expected.replace(f"<{term}>", translation)
            kinds[translation in LEXICON.values(), translation == LEXICON[term]] += 1
        assert tgt == expected  # Autos: the stem changes, the ending does not
    assert set(kinds) == {(True, True), (True, False), (False, False)}  # its own, that of another word, made up
    assert all(20 < number < 110 for number in kinds.values())  # a third each of 1.5 terms of each of 100 pairs


def test_a_pair_without_terms_stays() -> None:
    pair = Pair("we go", "wir gehen")
    assert annotate_terms(LEXICON, pair, random.Random(1)) == pair
