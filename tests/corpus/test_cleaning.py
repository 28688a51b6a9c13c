import itertools
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.config import CleaningSection
from nmt.corpus import Pair
from nmt.corpus.cleaning import SAMPLES, Cleaner, CleaningReport, RuleCount, letter_share
from nmt.text.direction import Direction

EN_DE = Direction("en", "de")
LENIENT = {"max_characters": None, "max_ratio": None, "min_letters": 0.0, "copies": True}


def cleaner(**rules: Any) -> Cleaner:
    return Cleaner(CleaningSection(**({**LENIENT, **rules})), EN_DE)


def verdict(pair: Pair, **rules: Any) -> str | None:
    """The rule that drops a pair, or None."""
    kept, report = cleaner(**rules).clean([pair])
    assert (report.read, report.kept, len(kept)) == (1, 1 - len(report.dropped), 1 - len(report.dropped))
    return next(iter(report.dropped), None)


@pytest.mark.parametrize(
    ("rules", "src", "tgt", "broken"),
    [
        ({}, "a", "b", None),
        ({}, "", "b", "empty"),
        ({}, " \u3000", "b", "empty"),  # only spaces count as empty
        ({}, "a", "\u200b", "empty"),
        ({}, "a " * 100, "b", None),
        ({}, "a " * 101, "b", "too_long"),
        ({"max_length": 2}, "a b", "c  d", None),
        ({"max_length": 2}, "a b", "c d e", "too_long"),
        ({"min_length": 2}, "a b", "c d", None),
        ({"min_length": 2}, "a b", " c ", "too_short"),
        ({"max_characters": 4}, "abcd", "äöüß", None),  # characters, not bytes
        ({"max_characters": 4}, "ab cd", "a", "too_many_characters"),
        ({"max_ratio": 2.0}, "ab", "abcd", None),
        ({"max_ratio": 2.0}, "ab", "abcde", "length_ratio"),
        ({"min_letters": 0.5}, "a1", "b 2", None),
        ({"min_letters": 0.5}, "a", "(b) 1", "few_letters"),
        ({"copies": False}, "a", "A", None),
        ({"copies": False}, "a  b", "a b", "copy"),
        ({"copies": True}, "a", "a", None),
    ],
)
def test_each_rule_at_its_boundary(rules: dict[str, Any], src: str, tgt: str, broken: str | None) -> None:
    assert [verdict(Pair(*sides), **rules) for sides in ((src, tgt), (tgt, src))] == [broken, broken]


def test_a_pair_counts_under_the_first_rule_it_violates() -> None:
    rules = {"min_length": 2, "max_length": 3, "max_characters": 8, "max_ratio": 2.0, "min_letters": 0.5}
    pairs = {
        "empty": Pair("", "1 2 3 4"),
        "too_short": Pair("1", "1 2 3 4 5 6"),
        "too_long": Pair("1 2", "1 2 3 4 5 6"),
        "too_many_characters": Pair("1 2", "123 456 7"),
        "length_ratio": Pair("1 2", "123 456"),
        "few_letters": Pair("1 2", "1 2"),
        "copy": Pair("a 2", "a 2"),
        "other_numbers": Pair("a 2", "b 3"),
    }
    rules |= {"copies": False, "same_numbers": True}
    for name, pair in pairs.items():
        assert verdict(pair, **rules) == name


@pytest.mark.parametrize(
    ("src", "tgt", "kept"),
    [
        ("Tom is 2.", "Том: 2.", True),
        ("Tom is in Москва.", "Том в LA.", True),
        ("Hello Мир и Москва", "Привет", False),
        ("Tom", "Tom lives", False),
        ("12 + 3", "12 + 3 = 15", True),
    ],
)
def test_letters_of_other_scripts_are_at_most_half(src: str, tgt: str, kept: bool) -> None:
    options = CleaningSection(scripts={"en": "latin", "ru": "cyrillic"}, min_letters=0, copies=True)
    assert Cleaner(options, Direction("en", "ru")).clean([Pair(src, tgt)])[0] == [Pair(src, tgt)] * kept
    japanese = CleaningSection(scripts={"ja": "japanese"})
    assert Cleaner(japanese, Direction("en", "ja")).clean([Pair("a cat", "これは猫カフェです")])[0]
    assert not Cleaner(japanese, Direction("en", "ja")).clean([Pair("a cat", "Ceci est un chat")])[0]


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 0.0),
        ("abc", 1.0),
        ("a b!", 2 / 3),
        ("1 2 ...", 0.0),
        ("ñ日本", 1.0),
        ("नमस्ते", 1.0),  # vowel signs and the virama are marks
        ("น้ำที่นี่", 1.0),
        ("وَلَد", 1.0),
        ("日本。", 2 / 3),
    ],
)
def test_marks_count_with_their_letters(text: str, share: float) -> None:
    assert letter_share(text) == pytest.approx(share)


@pytest.mark.parametrize(
    ("src", "tgt", "broken"),
    [
        ("Hello!", "नमस्ते!", None),
        ("Where is the station?", "स्टेशन कहाँ है?", None),
        ("Where is the station?", "สถานีอยู่ที่ไหน", None),
        ("Run!", "跑！", None),
        ("今天天气很好，我们去公园散步吧。", "今日は天気がいいから、公園へ散歩に行こう。", None),
        ("می\u200cخواهم بخوابم.", "I want to sleep.", None),
        ("안녕하세요?", "Hello?", None),
        ("Tom", "Tom", "copy"),
        ("12:30", "halb eins", "few_letters"),
        ("Ja", "This can never be a translation.", "length_ratio"),
        ("字" * 1001, "字" * 1000, "too_many_characters"),
    ],
)
def test_the_default_rules_keep_every_script_and_drop_the_rest(src: str, tgt: str, broken: str | None) -> None:
    for pair in (Pair(src, tgt), Pair(tgt, src)):
        kept, report = Cleaner(CleaningSection(), EN_DE).clean([pair])
        assert (kept, list(report.dropped)) == (([], [broken]) if broken else ([pair], []))


PAIRS = st.lists(
    st.builds(Pair, st.text("a1ü\u0308\u00a0\u200b& ", max_size=7), st.text("a1 \u00ad", max_size=5)), max_size=25
)
RULES: dict[str, Any] = {"max_length": 2, "max_characters": 5, "max_ratio": 3.0, "min_letters": 0.3, "copies": False}


@given(PAIRS, st.lists(st.integers(0, 25)))
@example([Pair("a\tu\u0308", "c&amp;e f"), *[Pair(" a  b", "c d ")] * 2, *[Pair("a b", " \u3000")] * 4], [3])
def test_every_pair_is_accounted_for_and_cleaned_once_for_all(raw: list[Pair], cuts: list[int]) -> None:
    kept, report = cleaner(**RULES).clean(raw)
    assert report.read == len(raw) == report.kept + sum(rule_count.pairs for rule_count in report.dropped.values())
    assert report.kept == len(kept)
    repaired = [Pair(*map(cleaner().normalizer, pair)) for pair in raw]
    steps = [{step for text in pair for step in cleaner().normalizer.explain(text)[1]} for pair in raw]
    verdicts = [verdict(pair, **RULES) for pair in raw]
    for name in report.changed.keys() | set().union(*steps):
        changes = [(old, new) for old, new, applied in zip(raw, repaired, steps, strict=True) if name in applied]
        assert report.changed[name] == RuleCount(len(changes), changes[:SAMPLES])
    for name in report.dropped.keys() | set(verdicts) - {None}:
        dropped = [(pair,) for pair, violated in zip(raw, verdicts, strict=True) if violated == name]
        assert report.dropped[name] == RuleCount(len(dropped), dropped[:SAMPLES])
    assert kept == [pair for pair, violated in zip(repaired, verdicts, strict=True) if violated is None]
    assert cleaner(**RULES).clean(kept) == (kept, CleaningReport(read=len(kept), kept=len(kept)))
    total = CleaningReport(0, 0)  # chunks of a corpus add up to it
    for start, end in itertools.pairwise([0, *sorted(cuts), len(raw)]):
        total.add(cleaner(**RULES).clean(raw[start:end])[1])
    assert total == report


def test_a_large_loss_is_explained_by_its_main_rule() -> None:
    judge = cleaner(min_length=2, max_length=3)
    pairs = [Pair("a b", "c d")] * 3 + [Pair("a", "b")] * 2 + [Pair("a b c d", "e f")]
    _, report = judge.clean(pairs)
    assert report.explain_loss() == ""
    _, report = judge.clean([*pairs, Pair("a", "")])
    assert report.explain_loss() == (
        "cleaning kept 3 of 7 pairs (too_short dropped 2): see data.cleaning and data.columns"
    )
    _, report = judge.clean([])
    assert report.explain_loss() == ""


def test_text_is_repaired_as_the_config_says() -> None:
    chosen = {"unicode": "nfkc", "control_characters": False, "html_entities": False, "quotes": True, "dashes": True}
    assert Cleaner(CleaningSection(**chosen), EN_DE).normalizer.settings == chosen
