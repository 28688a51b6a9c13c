"""Words of which a vocabulary has no letter."""

import pytest

from nmt.text.unread import find_unread, list_letters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I am old", []),
        ("日本語", ["日本語"]),
        ("I am 日本 語, 日 old 本", ["日本 語", "日", "本"]),
        ("日a", []),
        ("ＡＭ ﬁ ILD", []),
        ("日1本_語", ["日", "本", "語"]),
        ("1 2 3 !", []),
    ],
)
def test_words_without_a_known_letter_are_found(text: str, expected: list[str]) -> None:
    letters = list_letters(["\u2581am", "old", "I", "12", "i"])
    assert letters == {"a", "m", "o", "l", "d", "I", "i"}
    assert [text[begin:end] for begin, end in find_unread(text, letters)] == expected
    assert find_unread(text, frozenset()) == []
