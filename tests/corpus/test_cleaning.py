import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.corpus import Pair
from nmt.corpus.cleaning import CleaningReport, clean, clean_line


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("Hallo!", "Hallo!"),
        ("  Hallo \t Welt\r\n", "Hallo Welt"),
        ("Hallo\u00a0\u2009\u3000Welt\u2028!\u0085", "Hallo Welt !"),
        ("u\u0308ber", "über"),
        ("\u212b", "\u00c5"),
        ("\u2000\u2001", ""),
        ("", ""),
        ("ﬁ ½", "ﬁ ½"),  # NFC, not NFKC: compatibility characters stay
    ],
)
def test_one_line(raw: str, cleaned: str) -> None:
    assert clean_line(raw) == cleaned


@given(st.text())
def test_a_clean_line_is_normal_single_spaced_and_stays_so(text: str) -> None:
    cleaned = clean_line(text)
    assert unicodedata.is_normalized("NFC", cleaned)
    assert cleaned == " ".join(cleaned.split())
    assert clean_line(cleaned) == cleaned


def test_every_rule_is_counted() -> None:
    raw = [
        Pair("a b", "c d"),
        Pair(" a  b", "c d "),  # whitespace, then a duplicate
        Pair("a u\u0308", "c d"),  # normalised
        Pair("a\tu\u0308", "c e"),  # normalised and whitespace
        Pair("a b", " \u3000"),  # whitespace, then empty
        Pair("", "c d"),
        Pair("a", "c d"),
        Pair("a b", "c d e f"),
        Pair("a", "c d e f"),  # too short comes first
        Pair("a b c", "d e f"),  # just short enough
    ]
    kept, report = clean(iter(raw), min_length=2, max_length=3)
    assert kept == [Pair("a b", "c d"), Pair("a ü", "c d"), Pair("a ü", "c e"), Pair("a b c", "d e f")]
    assert report == CleaningReport(
        read=10, normalised=2, whitespace=3, empty=2, too_short=2, too_long=1, duplicate=1, kept=4
    )


def test_by_default_a_hundred_words_are_kept() -> None:
    kept, report = clean([Pair("a " * 100, "b"), Pair("a " * 101, "b"), Pair("b", "a " * 101)])
    assert len(kept) == 1
    assert (report.too_long, report.too_short) == (2, 0)


def test_nothing_in_nothing_out() -> None:
    assert clean([]) == ([], CleaningReport(0, 0, 0, 0, 0, 0, 0, 0))


@given(st.lists(st.builds(Pair, st.text("a ü\u0308\u00a0", max_size=6), st.text("b ", max_size=4))))
def test_every_pair_is_accounted_for(raw: list[Pair]) -> None:
    kept, report = clean(raw, min_length=1, max_length=2)
    dropped = report.empty + report.too_short + report.too_long + report.duplicate
    assert report.read == len(raw) == dropped + report.kept
    assert report.kept == len(kept) == len(set(kept))
    again, second = clean(kept, min_length=1, max_length=2)
    assert again == kept
    assert (second.normalised, second.whitespace) == (0, 0)
