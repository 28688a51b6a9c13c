"""Spans that a translation takes over."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.text.spans import find_spans


def spans(text: str, *names: str) -> list[str]:
    return [text[span.begin : span.end] for span in find_spans(text, names)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello %1$s, good to see you again!", ["%1$s"]),
        ("%s, %d and %(name)s; %.2f, %-5d, %@", ["%s", "%d", "%(name)s", "%.2f", "%-5d", "%@"]),
        ("Hello %name%!", ["%name%"]),
        ("{name}, {{person.name}}, ${x}, {0}, $(y)", ["{name}", "{{person.name}}", "${x}", "{0}", "$(y)"]),
        ("<x/> and <b>old</b>, 3 < 5 and 7 > 2", ["<x/>", "<b>", "</b>", "3", "5", "7", "2"]),
        ("Visit https://example.org/path?a=1&b=2 now.", ["https://example.org/path?a=1&b=2"]),
        ("See (http://a.b/c_(d)), or www.x.com.", ["http://a.b/c_(d)", "www.x.com"]),
        ("Write to jane.doe@example.org.", ["jane.doe@example.org"]),
        ("I know @bob, #tag and a#b.", ["@bob", "#tag"]),
        ("**bold** and `a b` and [link](http://a.b)", ["**", "**", "`a b`", "[", "](http://a.b)"]),
        ("I love 🐶 dogs, ❤️ and 👨‍👩‍👧.", ["🐶", "❤️", "👨‍👩‍👧"]),
        ("We met on 2012-02-11 at 10:30.", ["2012-02-11", "10:30"]),
        ("Call +49-30-1234567, or 778563.", ["+49-30-1234567", "778563"]),
        ("+49-30-1234567 2012-02-11 ok", ["+49-30-1234567", "2012-02-11"]),
        ("+49 (30) 123 45 67 10:30", ["+49 (30) 123 45 67", "10:30"]),
        ("It costs $5.00, 1,000.50 or -3.5; 50% of 7.", ["5.00", "1,000.50", "-3.5", "50", "7"]),
        ("the 2nd, 3D, 1990s and 10am", []),
        ("B2B, v1.2.3 and A4", ["B2B", "v1.2.3", "A4"]),
        ("{}, {a{b}c}, {{{x}}}, [[x]] and $name", ["{}", "{a{b}c}", "{{{x}}}", "[[x]]", "$name"]),
        ("{count, plural, one {# item} other {# items}}!", ["{count, plural, one {# item} other {# items}}"]),
        ("100%% of <%= x %> <!-- c -->", ["100", "%%", "<%= x %>", "<!-- c -->"]),
        ("*it* and _em_, 2 * 3", ["*", "*", "_", "_", "2", "3"]),
        ("# Title", ["#"]),
        ("![alt](a.png)", ["![", "](a.png)"]),
        ("2020-01-02T10:00:00Z, +49 (0)30 123-4567", ["2020-01-02T10:00:00Z", "+49 (0)30 123-4567"]),
        ("3\u00a0000, -.5 and 1\ufe0f\u20e3", ["3\u00a0000", "-.5", "1\ufe0f\u20e3"]),
        ("100% discount and 5 % less", ["100", "5"]),
        ("no spans here", []),
        ("", []),
    ],
)
def test_spans(text: str, expected: list[str]) -> None:
    assert spans(text) == expected


def test_names_are_whole_words_and_the_longest_first() -> None:
    text = "Acme Pro and Acme, not Acmeville, acme or {Acme}."
    assert spans(text, "Acme", "Acme Pro") == ["Acme Pro", "Acme", "{Acme}"]


@given(st.text() | st.text(alphabet="a1 .,%{}$<>@#*`🐶❤️+-:/()[]"))
def test_spans_are_in_order_and_apart(text: str) -> None:
    found = find_spans(text, ["a1"])
    assert all(span.begin < span.end for span in found)
    assert all(before.end <= after.begin for before, after in itertools.pairwise(found))


@pytest.mark.parametrize(
    "part", ["{", "%", "<a", "@", "1.", "a@", "[](", "`", "www.", "http://a.", "1,", "🐶", "a-", "(("]
)
def test_long_texts_take_little_time(part: str) -> None:
    begin = time.process_time()
    find_spans(part * (20_000 // len(part)))
    assert time.process_time() - begin < 5
