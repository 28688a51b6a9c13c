"""Spans that a translation takes over."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.text.spans import PATTERN, find_spans, may_have_spans


def spans(text: str, *names: str) -> list[str]:
    return [text[span.begin : span.end] for span in find_spans(text, names)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello %1$s, good to see you again!", ["%1$s"]),
        ("%s, %d and %(name)s; %.2f, %-5d, %@", ["%s", "%d", "%(name)s", "%.2f", "%-5d", "%@"]),
        ("Hello %name%!", ["%name%"]),
        ("{name}, {{person.name}}, ${x}, {0}, $(y)", ["{name}", "{{person.name}}", "${x}", "{0}", "$(y)"]),
        ("<x/> and <b>old</b>, 3 < 5 and 7 > 2", ["<x/>", "<b>", "</b>", "3 < 5", "7 > 2"]),
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
        ("It costs $5.00, 1,000.50 or -3.5; 50% of 7.", ["$5.00", "1,000.50", "-3.5", "50%", "7"]),
        ("the 2nd, 1990s, 20-year-old and 5mal", ["20"]),
        ("-$5, US$ 7,50, €5, £1,299.99, 9 € and 99¢", ["-$5", "US$ 7,50", "€5", "£1,299.99", "9 €", "99¢"]),
        ("5kg, 4K, 3D, 10am, 7:30am, 0x1F, 6.02e23", ["5kg", "4K", "3D", "10am", "7:30am", "0x1F", "6.02e23"]),
        ("5°C, 20 °F, 5°, § 12 and 5‰", ["5°C", "20 °F", "5°", "§ 12", "5‰"]),
        ("550e8400-e29b-41d4-a716-446655440000!", ["550e8400-e29b-41d4-a716-446655440000"]),
        ("v2.0.0-rc.1, ISO-8859-1, 2024-W05", ["v2.0.0-rc.1", "ISO-8859-1", "2024-W05"]),
        ("14:00+02:00, (555) 123-4567, 12 000,50", ["14:00+02:00", "(555) 123-4567", "12 000,50"]),
        ("⏰, ⬅️ and ℹ️: Acme™ © 2020", ["⏰", "⬅️", "ℹ️", "™", "©", "2020"]),
        ("<0>a</0> <1/> $t(a.b) :name :smile: [%x%]", ["<0>", "</0>", "<1/>", "$t(a.b)", ":name", "[%x%]"]),
        ("{n, plural, other {{n} {x}}} %*d, %<price>.2f", ["{n, plural, other {{n} {x}}}", "%*d", "%<price>.2f"]),
        ("@a/b_c, @:m.h and @tom@x.social.", ["@a/b_c", "@:m.h", "@tom@x.social"]),
        ("a\\n and mailto:x@y.org, o'neil@z.com", ["\\n", "mailto:x@y.org", "o'neil@z.com"]),
        (" - [x] Buy | sell[^1]", ["- [x]", "|", "[^1]"]),
        ("12) [a][b] and ``c ` d``", ["12)", "[", "][b]", "``c ` d``"]),
        ("B2B, v1.2.3 and A4", ["B2B", "v1.2.3", "A4"]),
        ("{}, {a{b}c}, {{{x}}}, [[x]] and $name", ["{}", "{a{b}c}", "{{{x}}}", "[[x]]", "$name"]),
        ("{count, plural, one {# item} other {# items}}!", ["{count, plural, one {# item} other {# items}}"]),
        ("100%% of <%= x %> <!-- c -->", ["100", "%%", "<%= x %>", "<!-- c -->"]),
        ("*it* and _em_, 2 * 3", ["*", "*", "_", "_", "2 * 3"]),
        ("# Title", ["#"]),
        ("![alt](a.png)", ["![", "](a.png)"]),
        ("2020-01-02T10:00:00Z, +49 (0)30 123-4567", ["2020-01-02T10:00:00Z", "+49 (0)30 123-4567"]),
        ("3\u00a0000, -.5 and 1\ufe0f\u20e3", ["3\u00a0000", "-.5", "1\ufe0f\u20e3"]),
        ("100% discount and 5 % less", ["100%", "5 %"]),
        ("_@jane_ on __2012-02-11__", ["_", "@jane", "_", "__", "2012-02-11", "__"]),
        ("*{x}*, _https://a.b/c_, ***so***", ["*", "{x}", "*", "_", "https://a.b/c", "_", "***", "***"]),
        ("> > quoted", ["> >"]),
        ("> - item, not - one", ["> -"]),
        ("One.\\nTwo\\tthree, \\neq and C:\\new\\a.txt.", ["\\n", "\\t", "C:\\new\\a.txt"]),
        ("1e-5, R2-D2, C-3PO, 10.5km/h and 1_000", ["1e-5", "R2-D2", "C-3PO", "10.5km/h", "1_000"]),
        ("5,\u2013, \u20ac5\u2013\u20ac10, 5%-10%", ["5,\u2013", "\u20ac5\u2013\u20ac10", "5%-10%"]),
        ("< 5, \u00b12, ~5 and \u2248 7", ["< 5", "\u00b12", "~5", "\u2248 7"]),
        ("2^10, x=5, a + b = c and 3 + 4 = 7", ["2^10", "x=5", "a + b = c", "3 + 4 = 7"]),
        ("\u00bd, 5\u00bd, \u2167, x\u00b2 and house\u00b2", ["\u00bd", "5\u00bd", "\u2167", "x\u00b2", "\u00b2"]),
        ("git@a.org:b/c.git, tel:+49-30", ["git@a.org:b/c.git", "tel:+49-30"]),
        ('[a](http://b.c "T t") [![x](y)](z)', ["[", '](http://b.c "T t")', "[", "![", "](y)", "](z)"]),
        ("&nbsp;, \\1, @{x}, %5d and % d", ["&nbsp;", "\\1", "@{x}", "%5d", "% d"]),
        ("a \u2192 b, 50 % d and x = y", ["\u2192", "50 %", "x = y"]),
        ("max_length, __NAME__, ____, C++ and C#", ["max_length", "__NAME__", "____", "C++", "C#"]),
        ("/usr/bin, ~/a/b and --keep, and/or, - so", ["/usr/bin", "~/a/b", "--keep"]),
        ("old :), ;-) xD <3, a:b and (see 8)", [":)", ";-)", "xD", "<3", "8"]),
        ("mid-1990s and an A+", []),
        ("Ctrl+C at 5 - 6", ["Ctrl+C", "5 - 6"]),
        ("| a | b|c", ["|", "|"]),
        ("so.[1] And[^2]", ["[1]", "[^2]"]),
        ("no spans here", []),
        ("", []),
    ],
)
def test_spans(text: str, expected: list[str]) -> None:
    assert spans(text) == expected


def test_names_are_whole_words_and_the_longest_first() -> None:
    text = "Acme Pro and Acme, not Acmeville, acme or {Acme}."
    assert spans(text, "Acme", "Acme Pro") == ["Acme Pro", "Acme", "{Acme}"]


def test_a_name_is_put_over_the_spans_that_it_contains() -> None:
    text = "Windows 11 and 7-Eleven on 11:30, www.eleven.org"
    found = ["Windows 11", "7-Eleven", "11:30", "www.eleven.org"]
    assert spans(text, "Windows 11", "7-Eleven", "30", "eleven") == found


@given(st.text() | st.text(alphabet="a1 .,%{}$<>@#*`🐶❤️+-:/()[]"))
def test_spans_are_in_order_and_apart(text: str) -> None:
    found = find_spans(text, ["a1"])
    assert all(span.begin < span.end for span in found)
    assert all(before.end <= after.begin for before, after in itertools.pairwise(found))


@given(st.text(alphabet="wWaxXdD\u00e9 ,.!?;'\"\u2019-:", max_size=12))
def test_plain_words_have_no_spans(text: str) -> None:
    assert may_have_spans(text) or not PATTERN.search(text)


def test_most_sentences_are_plain_words() -> None:
    assert not may_have_spans('I don\u2019t know \u00c9mile, Jr. "He" is old!')
    assert all(map(may_have_spans, ("at www.a.b", "so xD", "a b-c", "5", "a/b", "\u00d7", "\u65e5", "a\tb")))


@pytest.mark.parametrize(
    "part",
    [
        "{",
        "%",
        "<a",
        "@",
        "1.",
        "a@",
        "[](",
        "`",
        "www.",
        "http://a.",
        "1,",
        "🐶",
        "a-",
        "((",
        "{a",
        "{a}",
        "5 000 ",
        "1-",
        "``",
        "[a",
        "$a",
        "a:",
        *("_", "a_", "a=", "A+", "/a", "\\\\a", "1 - ", "[1]", "*a", "*http://a", "[![a](", "> ", "x\u00b2", "a1-"),
    ],
)
def test_long_texts_take_little_time(part: str) -> None:
    begin = time.process_time()
    find_spans(part * (20_000 // len(part)))
    assert time.process_time() - begin < 5
