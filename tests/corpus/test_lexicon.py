"""A lexicon from training pairs."""

import random
import string
from collections.abc import Iterable

import pytest

from nmt.corpus import Pair
from nmt.corpus.lexicon import LONGEST, find_lexicon


def lexicon(*pairs: tuple[str, str]) -> dict[str, str]:
    return dict(find_lexicon(Pair(*pair) for pair in pairs))


def test_words_are_those_with_the_largest_coefficient_of_dice() -> None:
    pairs = [
        ("I see a dog.", "Ich sehe einen Hund."),
        ("The dog sees a cat.", "Der Hund sieht eine Katze."),
        ("We like a cat.", "Wir mögen eine Katze."),
        ("They like cake.", "Sie mögen Kuchen."),
    ]
    # Of `dog`, in 2 pairs, both have `Hund`, which no other has: 2 * 2 / (2 + 2). `a` is in 3, of which 2 have `Hund`,
    # `eine` and `Katze`, each in 2: 2 * 2 / (3 + 2), and `Hund` is the first. `cat` has always `eine` and `Katze`.
    assert lexicon(*pairs) == {"a": "Hund", "cat": "eine", "dog": "Hund", "like": "mögen"}


def test_one_common_pair_is_not_enough() -> None:
    assert lexicon(("one rare dog", "ein seltener Hund")) == {}


@pytest.mark.parametrize(("others", "is_found"), [(5, True), (7, False)])
def test_a_small_coefficient_is_not_enough(others: int, is_found: bool) -> None:
    pairs = [(f"s{n} and", f"t{n} und") for n in range(2)] + [(f"u{n}", f"v{n} und") for n in range(others)]
    # `and` is in 2 pairs and `und` in those and the others: 2 * 2 / (2 + 2 + 5) = 0.44, and 4 / 11 = 0.36.
    assert lexicon(*pairs) == ({"and": "und"} if is_found else {})


def test_words_are_written_as_inside_sentences() -> None:
    pairs = [
        ("Give Tom the Dog.", "Gib Tom den hund."),
        ("Dog and Tom.", "Hund und Tom."),
        ("a dog dog", "ein Hund Hund"),
    ]
    assert lexicon(*pairs) == {"Tom": "Tom", "dog": "Hund"}


def test_what_is_a_sentence_of_its_own_is_left_out() -> None:
    pairs = [("to cheers", "auf Prost"), ("with cheers", "mit Prost")]
    assert lexicon(*pairs) == {"cheers": "Prost"}
    assert lexicon(*pairs, ("Cheers!", "Zum Wohl!")) == {}


def test_digits_are_no_words_and_long_pairs_are_not_read() -> None:
    assert lexicon(("in 1984", "von 1984"), ("for 1984", "im 1984")) == {}
    fill = " x" * (LONGEST - 1)
    assert lexicon((f"a big dog{fill}", "der Hund"), (f"the dog{fill}", "ein Hund")) == {}


def test_the_words_of_word_for_word_translations_are_found_in_any_order() -> None:
    letters, chance = string.ascii_lowercase, random.Random(1)
    sentences = [chance.sample(letters, 6) for _ in range(300)]
    pairs = [Pair(*(" ".join(side + letter for letter in sentence) for side in "st")) for sentence in sentences]
    pairs = [Pair(src, " ".join(chance.sample(tgt.split(), 6))) for src, tgt in pairs]
    for one in (pairs, pairs[::-1]):
        assert find_lexicon(one) == [Pair(f"s{letter}", f"t{letter}") for letter in letters]


@pytest.mark.parametrize("pairs", [[], [Pair("", "")], [Pair("?", "!")]])
def test_nothing_has_no_lexicon(pairs: Iterable[Pair]) -> None:
    assert find_lexicon(pairs) == []
