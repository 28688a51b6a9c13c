"""Copies of training pairs in other forms."""

import random
import re

import pytest

from nmt.config import AugmentSection, load_config
from nmt.corpus import Pair, augmentation
from nmt.corpus.augmentation import FORMS, find_numbers, make_copies
from nmt.system.errors import ConfigError


@pytest.mark.parametrize("setting", ["all_caps=-0.1", "all_caps=1.1", "all_caps=true", "all_cap=0.1"])
def test_a_share_is_from_0_to_1_and_of_a_known_form(setting: str) -> None:
    with pytest.raises(ConfigError, match=r"data\.augment\.all_caps: should|did you mean all_caps"):
        load_config("tatoeba", [f"data.augment.{setting}"])


@pytest.mark.parametrize(
    ("text", "without", "title", "small"),
    [
        ("How are you?", "How are you", "How Are You", "how are you?"),
        ("Wait ...", "Wait", "Wait", "wait ..."),
        ("It's 3.50!?", "It's 3.50", "It's 3.50", "it's 3.50!?"),
        ("?!", "?!", "?!", "?!"),
        ("你好。", "你好", "你好", "你好。"),
        ("", "", "", ""),
    ],
)
def test_forms(text: str, without: str, title: str, small: str) -> None:
    assert augmentation.without_final_stop(text) == without
    assert augmentation.in_title_case(text) == title
    assert augmentation.with_lowercase_first(text) == small


def copy(form: str, src: str, tgt: str, seed: int = 1) -> Pair:
    return FORMS[form](Pair(src, tgt), random.Random(seed))


@pytest.mark.parametrize(
    ("form", "pair", "copied"),
    [
        ("no_final_stop", ("Hello!", "Hallo."), ("Hello", "Hallo")),
        ("no_final_stop", ("Hello", "Hallo."), None),
        ("no_final_stop", ("Hello.", "Hallo"), None),
        ("all_caps", ("It's big.", "Groß."), ("IT'S BIG.", "GROSS.")),
        ("all_caps", ("你好", "OK"), None),
        ("title_case", ("How are you?", "Wie geht es dir?"), ("How Are You", "Wie geht es dir")),
        ("title_case", ("Hello!", "Hallo!"), None),
        ("lowercase_first", ("How are you?", "Wie geht es dir?"), ("how are you?", "Wie geht es dir?")),
        ("lowercase_first", ("1 dog", "1 Hund"), None),
        ("short", ("Happy New Year!", "Frohes neues Jahr!"), ("happy New Year", "Frohes neues Jahr")),
        ("short", ("How are you doing?", "Wie geht's?"), None),
        ("numbers", ("I have two.", "Ich habe zwei."), None),
        ("numbers", ("I have 2.", "Ich habe zwei."), None),
        ("numbers", ("I have 1.", "Ich habe 1."), None),
        ("names", ("I saw a computer.", "Ich sah einen Computer."), None),
        ("names", ("OK, he said.", "OK, sagte er."), None),
        ("names", ("Mary left.", "Maria ging."), None),
    ],
)
def test_copies(form: str, pair: tuple[str, str], copied: tuple[str, str] | None) -> None:
    assert copy(form, *pair) == (copied or pair)


def test_numbers_change_alike_on_both_sides() -> None:
    pair = "At 9:30 I paid 1,050 and 1 euro, not 930.", "Ich zahlte 1.050 um 9.30 und 1 Euro, nicht 930."
    for seed in range(50):
        src, tgt = copy("numbers", *pair, seed)
        found = re.fullmatch(r"At ([1-9]):(\d\d) I paid ([1-9]),(\d{3}) and 1 euro, not ([1-9]\d\d)\.", src)
        assert found
        assert tgt == f"Ich zahlte {found[3]}.{found[4]} um {found[1]}.{found[2]} und 1 Euro, nicht {found[5]}."
    assert len({copy("numbers", "In 1984.", "Im Jahr 1984.", seed) for seed in range(50)}) > 40
    assert find_numbers(copy("numbers", "Call 007.", "Ruf 007.").src)[0].startswith("0")


def test_names_change_alike_on_both_sides() -> None:
    made, pair = set(), ("I told Tom about Tom's dog and Boston.", "Ich habe Tom von Tom Hund und Boston erzählt.")
    for seed in range(50):
        src, tgt = copy("names", *pair, seed)
        name = src.split()[2]
        assert re.fullmatch(r"[A-Z][a-z]{1,17}", name)
        assert src == f"I told {name} about {name}'s dog and Boston."
        assert tgt == f"Ich habe {name} von {name} Hund und Boston erzählt."
        made.add(name)
    assert len(made) > 45
    assert max(map(len, made)) > 8  # long ones, too, as in `Papadimitriou`


def test_pairs_are_chosen_by_text_and_seed() -> None:
    pairs = [Pair(f"word{n} more.", f"wort{n} mehr.") for n in range(2000)]
    shares = {"no_final_stop": 0.1, "all_caps": 0.05, "title_case": 1.0}
    copies = make_copies(pairs, shares, 1)
    counts = {form: sum(name == form for name, _ in copies) for form in shares}
    assert 160 < counts["no_final_stop"] < 240  # 200 expected, deviation 13
    assert 70 < counts["all_caps"] < 130  # 100 expected, deviation 10
    assert counts["title_case"] == 2000
    assert sorted(make_copies(pairs[::-1], shares, 1)) == sorted(copies)
    assert make_copies(pairs[:700], shares, 1) + make_copies(pairs[700:], shares, 1) == copies
    assert make_copies(pairs, {"all_caps": 0.05}, 1) == [each for each in copies if each[0] == "all_caps"]
    assert make_copies(pairs, shares, 2) != copies
    assert make_copies(pairs, dict.fromkeys(shares, 0.0), 1) == []


def join(lengths: list[tuple[int, int]], longest: int) -> list[list[int]]:
    """Join numbered pairs of so many words on each side: the numbers of the pairs in each copy."""
    pairs = [Pair(" ".join([f"{n}"] * src), " ".join([f"-{n}"] * tgt)) for n, (src, tgt) in enumerate(lengths)]
    copies = make_copies(pairs, {"joined": 1.0}, 1, longest)
    assert {name for name, _ in copies} <= {"joined"}
    joined = []
    for _, (src, tgt) in copies:
        numbers = [int(number) for number in dict.fromkeys(src.split())]
        for side, text in enumerate((src, tgt)):
            assert text == " ".join(pairs[number][side] for number in numbers)
        joined.append(numbers)
    return joined


def test_pairs_are_joined_with_others_to_lengths_up_to_the_maximum() -> None:
    lengths = [(1 + n % 7, 1 + n % 5) for n in range(5000)]
    joined = join(lengths, 50)
    assert len(joined) > 4500
    assert [numbers[0] for numbers in joined] == sorted({numbers[0] for numbers in joined})
    assert all(len(numbers) > 1 for numbers in joined)
    words = [sum(max(lengths[number]) for number in numbers) for numbers in joined]
    assert max(words) == 50
    for low in (10, 20, 30, 40):  # evenly spread: a fifth each, and the last a little less, as pairs are not cut
        assert 0.16 < sum(low <= number < low + 10 for number in words) / len(words) < 0.25
    assert len({number for numbers in joined for number in numbers[1:]}) > 4500


def test_long_pairs_are_not_joined_and_one_language_may_have_no_spaces() -> None:
    assert join([(5, 1), (1, 5), (9, 1)], 5) == []
    assert all(len(numbers) <= 5 for numbers in join([(1, 2)] * 5000, 10))


def test_every_form_has_a_key() -> None:
    keys = AugmentSection().model_dump()
    assert keys.pop("joined_words") == 100
    assert list(keys) == [*FORMS, "words", "placeholders", "terms", "joined"]
    assert set(keys.values()) == {0.0}
    assert all(len(name) <= 16 for name in FORMS)  # of a random draw
