"""Short inputs: how they are made, and which translations are faults."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nmt.corpus import Pair
from nmt.corpus.augmentation import find_numbers, in_title_case, without_final_stop
from nmt.corpus.dataset import EncodedPairs, Sequences
from nmt.evaluation.metrics import ScoringRules
from nmt.evaluation.short_inputs import (
    SIZES,
    ShortInput,
    TextStatistics,
    build_short_inputs,
    find_names,
    find_repeats,
    find_violations,
    split_words,
)
from nmt.evaluation.training_text import count_training_words, read_training_pairs
from nmt.system.errors import DataError
from nmt.system.files import write_json
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary

STATISTICS = TextStatistics(ratio=1.2, doubled=frozenset({"sie"}))


def make_pairs() -> list[Pair]:
    """Sentences with names, numbers and words that repeat."""
    names = ["Tom", "Mary", "Boston", "Melanie", "Kyoto", "Sandra"]
    verbs = {"sees": "sieht", "knows": "kennt", "helps": "hilft", "finds": "findet"}
    things = {"dog": "Hund", "house": "Haus", "book": "Buch", "cat": "Katze"}
    pairs = [
        Pair(f"{name} {verb} the {thing}.", f"{name} {verbs[verb]} das {things[thing]}.")
        for name in names
        for verb in verbs
        for thing in things
    ]
    pairs += [
        Pair(f"The {thing} costs {n} euros.", f"Das {things[thing]} kostet {n} Euro.")
        for n in (12, 250, 99)
        for thing in things
    ]
    pairs += [Pair(f"It is {n}:30 now.", f"Es ist {n}.30 Uhr.") for n in range(2, 10)]
    return [*pairs, Pair("I have 2 cats.", "Ich habe zwei Katzen."), Pair("Do you know her?", "Kennen Sie sie?")]


def test_the_inputs_are_balanced_and_depend_on_the_text_and_the_seed_alone() -> None:
    pairs = make_pairs()
    made = build_short_inputs(pairs)
    found = {category: [each for each in made if each.category == category] for category in SIZES}
    assert sum(SIZES.values()) == 100
    assert {category: len(each) for category, each in found.items()} == SIZES | {
        "single words": len(found["single words"])
    }
    assert len({each.text for each in made}) == len(made)
    shuffled = random.Random(3).sample(pairs, len(pairs))
    assert build_short_inputs(shuffled) == made
    assert build_short_inputs(pairs, seed=2) != made
    sources = {pair.src for pair in pairs}
    for category, form in (("titles", in_title_case), ("all caps", str.upper), ("no final stop", without_final_stop)):
        assert all(each.plain in sources and each.text == form(each.plain) != each.plain for each in found[category])
    assert {"dog", "sees", "Tom"} <= {each.text for each in found["single words"]}
    (dog,) = [each for each in found["single words"] if each.text == "dog"]
    assert {"hund", "tom", "kostet"} <= dog.evidence
    assert "haus" not in dog.evidence


def test_numbers_are_changed_and_remain_possible() -> None:
    made = [each.text for each in build_short_inputs(make_pairs()) if each.category == "numbers"]
    assert made
    assert not any("cats" in text for text in made)  # its translation has no digit
    for text in made:
        (number, *_) = find_numbers(text)
        if ":" in text:
            hour, minute = text.split()[2].split(":")
            assert 1 <= int(hour) <= 9
            assert int(minute) in (10, 20, 30)
        else:
            assert any(
                len(number) == len(old)
                and all("1" <= new <= sign or new == sign for new, sign in zip(number, old, strict=True))
                for old in ("12", "250", "99")
            )
    assert find_numbers("at 2:30, 1,000 of 7") == ["1000", "230", "7"]


def test_unknown_names_are_not_in_the_training_text() -> None:
    pairs = make_pairs()
    assert find_names(pairs) == ["Boston", "Kyoto", "Mary", "Melanie", "Sandra", "Tom"]
    known = {word for pair in pairs for side in pair for word in split_words(side)}
    made = [each for each in build_short_inputs(pairs) if each.category == "unknown names"]
    assert len({each.name for each in made}) == len(made) == SIZES["unknown names"]
    assert all(each.name.casefold() not in known and each.name in each.text for each in made)
    assert sum(each.text == each.name for each in made) == 4


def test_a_text_without_anything_for_a_category_has_none() -> None:
    assert build_short_inputs([]) == []
    assert {each.category for each in build_short_inputs([Pair("a b c", "C B A")])} == {"titles", "all caps"}
    assert build_short_inputs([Pair("我很好", "很好")]) == []


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("a b c", []),
        ("a a", [(2, "a")]),
        ("Hallo hallo!", [(2, "hallo")]),
        ("Hallo, hallo!", []),
        ("b a a a", [(2, "a"), (3, "a")]),
        ("x a b a b", [(2, "a b")]),
        ("a b a", []),
        ("a b c a b c a b c", [(2, "a b c"), (3, "a b c")]),
    ],
)
def test_repeats(text: str, repeats: list[tuple[int, str]]) -> None:
    assert [(copies, " ".join(group)) for copies, group in find_repeats(split_words(text))] == repeats


@pytest.mark.parametrize(
    ("made", "output", "plain", "rules"),
    [
        (ShortInput("single words", "Hello"), "Hallo", "", ()),
        (ShortInput("single words", "Hello"), "", "", ("empty", "length")),
        (ShortInput("single words", "Hello"), "Hello hello", "", ("repetition",)),
        (ShortInput("single words", "Bye bye"), "tschüss tschüss tschüss", "", ("repetition",)),
        (ShortInput("no final stop", "Do you know her"), "Kennen Sie sie?", "", ()),
        (ShortInput("no final stop", "Do you know her"), "Kennen sie sie sie?", "", ("repetition",)),
        (ShortInput("single words", "Hi"), "Du, es ist so ?", "", ("length",)),
        (ShortInput("single words", "Hello"), "Donaudampfschiffahrtsgesellschaft", "", ("length",)),
        (ShortInput("all caps", "WHAT IS THAT FOR?"), "Hä?", "", ("length",)),
        (ShortInput("single words", "dog", evidence=frozenset({"hund", "der"})), "Der Hund.", "", ()),
        (ShortInput("single words", "dog", evidence=frozenset({"hund"})), "Haund", "", ("evidence",)),
        (ShortInput("numbers", "It is 2:30."), "Es ist 2.30 Uhr.", "", ()),
        (ShortInput("numbers", "It is 2:30."), "Es ist 3.20 Uhr.", "", ("digits",)),
        (ShortInput("titles", "One Dog"), "1 Hund", "", ()),
        (ShortInput("unknown names", "I am Bostilda.", name="Bostilda"), "Ich bin Bostildas.", "", ()),
        (ShortInput("unknown names", "I am Bostilda.", name="Bostilda"), "Ich bin Boston.", "", ("name",)),
        (ShortInput("all caps", "I SEE HIM.", "I see him."), "ICH SEHE IHN.", "Ich sehe ihn.", ()),
        (ShortInput("all caps", "I SEE HIM.", "I see him."), "Ich sah sie.", "Ich sehe ihn.", ("drift",)),
        (ShortInput("titles", "I See Him", "I see him."), "ich sehe ihn", "Ich sehe ihn.", ("beginning",)),
    ],
)
def test_rules(made: ShortInput, output: str, plain: str, rules: tuple[str, ...]) -> None:
    assert find_violations(made, output, plain, STATISTICS, lowercase=False) == rules


def test_case_is_not_judged_in_a_lowercase_model() -> None:
    title = ShortInput("titles", "I See Tomara", "I see Tomara.", name="Tomara")
    assert find_violations(title, "ich sehe tomara", "ich sehe tomara .", STATISTICS, lowercase=True) == ()
    assert find_violations(title, "ich sehe tomara", "", STATISTICS, lowercase=False) == ("name", "beginning")


def test_statistics_come_from_the_text() -> None:
    statistics = TextStatistics.of([Pair("abcd", "Sie sie."), Pair("ab", "die, die")])
    assert statistics == TextStatistics(16 / 6, frozenset({"sie"}))
    assert TextStatistics.of([]) == TextStatistics(0.0, frozenset())


def write_data(folder: Path, *, ids: int = 5, **metadata: object) -> TextProcessor:
    """A data directory with 5 training pairs, of which pair n is the token n."""
    tokenizer, vocabulary = WhitespaceTokenizer(), Vocabulary(map(str, range(ids)))
    write_json(folder / "data.json", {"format_version": 1, **metadata})
    rows = Sequences.pack([[index] for index in range(4, 9)])
    EncodedPairs(rows, rows).save(folder, "train")
    return TextProcessor(tokenizer, tokenizer, vocabulary, vocabulary)


def test_training_pairs_are_read_without_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_training_pairs(tmp_path, write_data(tmp_path)) == [Pair(n, n) for n in "01234"]
    assert read_training_pairs(tmp_path, write_data(tmp_path, copies=2)) == [Pair(n, n) for n in "012"]
    assert count_training_words(tmp_path, write_data(tmp_path, copies=2), ScoringRules()) == Counter("012")
    monkeypatch.setattr("nmt.evaluation.training_text.SAMPLE", 2)
    monkeypatch.setattr("nmt.evaluation.training_text.MAX_PAIRS", 2)
    first, second = (read_training_pairs(tmp_path, write_data(tmp_path)) for _ in range(2))
    assert first == second
    assert len(set(first)) == 2
    assert count_training_words(tmp_path, write_data(tmp_path), ScoringRules()) == Counter("04")


@pytest.mark.parametrize("copies", [-1, True, "2", None, 6])
def test_a_damaged_number_of_copies_is_refused(tmp_path: Path, copies: object) -> None:
    processor = write_data(tmp_path, copies=copies)
    with pytest.raises(DataError, match="copies"):
        read_training_pairs(tmp_path, processor)


def test_ids_beyond_the_vocabulary_are_refused(tmp_path: Path) -> None:
    processor = write_data(tmp_path, ids=4)
    with pytest.raises(DataError, match="beyond"):
        read_training_pairs(tmp_path, processor)
    negative = Sequences(np.array([-1], dtype=np.int32), np.array([0, 1]))
    EncodedPairs(negative, negative).save(tmp_path, "train")
    with pytest.raises(DataError, match="beyond"):
        read_training_pairs(tmp_path, processor)
