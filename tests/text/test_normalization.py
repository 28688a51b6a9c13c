import itertools
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.text.normalization import Normalizer

OFF: dict[str, Any] = {"unicode": "none", "control_characters": False, "html_entities": False}
SETTINGS = [
    {"unicode": form, "control_characters": control, "html_entities": entities, "quotes": quotes, "dashes": dashes}
    for form, control, entities, quotes, dashes in itertools.product(("nfc", "nfkc", "none"), *[(False, True)] * 4)
]
# Text in which the steps find work, and find it in each other's results.
AWKWARD = st.text(
    st.one_of(
        st.sampled_from("&#;amplt39xad0 \u00ad\u200b\u200d\u2028\u0085\x1c\u0308ué“’`«–‐ﬁ½＆；＃´\u037e\u0345"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=20,
) | st.lists(
    st.sampled_from(["&amp;", "&", "amp;", "#", "38;", "&#8203;", "&shy;", "&nbsp;", "&rdquo;", "\u200b", "＆", " "])
).map("".join)


@pytest.mark.parametrize(
    ("raw", "repaired"),
    [
        ("Hallo!", "Hallo!"),
        ("  Hallo \t Welt\r\n", "Hallo Welt"),
        ("Hallo\u00a0\u2009\u3000Welt\u2028!\u2029", "Hallo Welt !"),
        ("a\u2029b\x0bc\x0cd\x1ce\x1ff", "a b c d e f"),
        ("u\u0308ber", "über"),
        ("\u212b", "\u00c5"),
        ("\u2000\u2001", ""),
        ("", ""),
        ("ﬁ ½", "ﬁ ½"),  # NFC, not NFKC: compatibility characters stay
    ],
)
def test_by_default_text_is_composed_and_singly_spaced(raw: str, repaired: str) -> None:
    assert Normalizer()(raw) == repaired


@pytest.mark.parametrize(
    ("form", "repaired"), [("nfc", "\u00c5 ﬁ ½ ü １"), ("nfkc", "\u00c5 fi 1⁄2 ü 1"), ("none", "\u212b ﬁ ½ u\u0308 １")]
)
def test_unicode_forms(form: Any, repaired: str) -> None:
    assert Normalizer(unicode=form)("\u212b ﬁ ½ u\u0308 １") == repaired


@pytest.mark.parametrize(
    "invisible",
    [
        *("\x00", "\x01", "\x08", "\x0e", "\x1b", "\x7f", "\x81", "\x8d", "\x8f", "\x90", "\x9d"),
        *("\u00ad", "\u061c", "\u180e", "\u200b", "\u200e", "\u200f", "\u202a", "\u202e", "\u2060", "\u2066", "\u206f"),
        *("\ufeff", "\ufff9", "\ufffb"),
    ],
)
def test_invisible_characters_are_removed(invisible: str) -> None:
    assert Normalizer()(f"{invisible}Wör{invisible}{invisible}ter {invisible} hier") == "Wörter hier"
    assert Normalizer(control_characters=False)(f"Wör{invisible}ter") == f"Wör{invisible}ter"


DEFINED = [code for code in range(0x80, 0xA0) if bytes([code]).decode("cp1252", "ignore")]


@pytest.mark.parametrize("code", DEFINED)
@pytest.mark.parametrize("form", ["nfc", "nfkc", "none"])
def test_control_characters_of_windows_1252_are_its_characters(code: int, form: Any) -> None:
    assert len(DEFINED) == 27
    text = f"didn{chr(code)}t"
    repair = Normalizer(unicode=form)
    meant = bytes([code]).decode("cp1252")
    assert repair(text) == repair(f"didn&#{code};t") == Normalizer(unicode=form, html_entities=False)(f"didn{meant}t")
    assert repair(repair(text)) == repair(text)
    if form == "nfc":
        assert repair.explain(text) == (f"didn{meant}t", ("control_characters",))
    unchanged = "didn t" if code == 0x85 else text
    assert Normalizer(unicode=form, control_characters=False)(text) == unchanged


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",  # Persian: the non-joiner is spelling
        "क\u094d\u200dष",  # Hindi: the joiner chooses the form of the letter
        "👩\u200d👩\u200d👧 ❤\ufe0f 👍🏽",
        "🏴\U000e0067\U000e0062\U000e007f",
    ],
)
def test_joiners_and_selectors_stay(text: str) -> None:
    assert Normalizer()(text) == text


@pytest.mark.parametrize(
    ("raw", "repaired"),
    [
        ("Tom &amp; Jerry", "Tom & Jerry"),
        ("&quot;Ja&quot; &#39;nein&#x27; &eacute;&#201;", "\"Ja\" 'nein' éÉ"),
        ("&amp;amp;amp;", "&"),
        ("a &" + "amp;" * 100_000 + " b", "a & b"),
        ("&amp;amp;lt;", "<"),
        ("&amp;lt;b&amp;gt;", "<b>"),
        ("a&nbsp;b&#160;&#x2028;c&#10;d", "a b c d"),
        ("a&shy;b&#8203;c&zwnj;d&lrm;", "abc\u200cd"),
        ("&am\u00adp;", "&"),
        ("&#1;a&#0;", "a\ufffd"),  # what browsers show
        ("&#xd800;", "\ufffd"),
        ("R&D, a & b; AT&T&", "R&D, a & b; AT&T&"),
        ("?a=1&section=2&copy=3", "?a=1&section=2&copy=3"),  # no semicolon, no entity
        ("&nothing; &;", "&nothing; &;"),
        ("&#" + "9" * 5000 + ";", "&#" + "9" * 5000 + ";"),
    ],
)
def test_entities_become_what_they_stand_for(raw: str, repaired: str) -> None:
    assert Normalizer()(raw) == repaired
    assert Normalizer(html_entities=False, control_characters=False)(raw) == " ".join(raw.split())


def test_quotes_and_dashes_stay_unless_asked_for() -> None:
    text = "“a” „b‟ «c» ″ 「d」『e』＂ ‘f’ ‚g‛ ‹h› ′ `i´ ‐‑‒–—― −﹘﹣－"
    assert Normalizer()(text) == text
    straight = '"a" "b" "c" " "d""e"" \'f\' \'g\' \'h\' \' \'i\''
    assert Normalizer(quotes=True)(text) == f"{straight} ‐‑‒–—― −﹘﹣－"
    assert Normalizer(quotes=True, dashes=True)(text) == f"{straight} ------ ----"
    assert Normalizer(dashes=True)("“1–2”") == "“1-2”"


@pytest.mark.parametrize(
    ("raw", "steps"),
    [
        ("plain ASCII text", set()),
        ("Ünïcödé & ½", set()),
        ("", set()),
        (" a", {"blanks"}),
        ("a\tb", {"blanks"}),
        ("u\u0308", {"unicode"}),
        ("a\u00adb", {"control_characters"}),
        ("&lt;", {"html_entities"}),
        ("&shy;", {"html_entities", "control_characters"}),
        ("&nbsp;u\u0308", {"html_entities", "blanks", "unicode"}),
        ("`", {"quotes"}),
        ("a—b", {"dashes"}),
        ("&ndash;", {"html_entities", "dashes"}),
    ],
)
def test_the_steps_that_changed_something_are_named(raw: str, steps: set[str]) -> None:
    normalizer = Normalizer(quotes=True, dashes=True)
    text, applied = normalizer.explain(raw)
    assert text == normalizer(raw)
    assert set(applied) == steps
    assert len(applied) == len(steps)


@given(AWKWARD, st.sampled_from(SETTINGS))
@example("&amp;#38;#38;", SETTINGS[0])
@example("＆amp；lt;", {**OFF, "unicode": "nfkc", "html_entities": True})
@example(" ´", {**OFF, "unicode": "nfkc", "quotes": True})
def test_mended_text_needs_no_repair(text: str, chosen: dict[str, Any]) -> None:
    normalizer = Normalizer(**chosen)
    repaired, applied = normalizer.explain(text)
    assert normalizer.explain(repaired) == (repaired, ())
    assert repaired == " ".join(repaired.split())
    assert bool(applied) == (repaired != text)
    if chosen["unicode"] != "none":
        assert unicodedata.is_normalized(chosen["unicode"].upper(), repaired)


@given(st.text("ab!'`-& ;&amp;\t~", max_size=8), st.sampled_from(SETTINGS))
def test_the_shortcut_for_plain_text_is_equivalent(text: str, chosen: dict[str, Any]) -> None:
    normalizer = Normalizer(**chosen)
    long_way = text
    for _ in range(len(text) + 1):
        for step in normalizer.steps.values():
            long_way = step(long_way)
    assert normalizer(text) == long_way


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
@pytest.mark.parametrize(
    "marks",
    ["\u0301\u0323", "\u0344\u0323", "\u0f73\u0f71", "\u0323" * 9 + "\uff9e" + "\u0301" * 9 + "\uff9f", "\u0bd7\u0323"],
)
def test_very_many_marks_are_fast(form: Any, marks: str) -> None:
    """To put half a million of them in order takes minutes."""
    normalizer = Normalizer(unicode=form)
    repaired = normalizer(f"a{marks * (500_000 // len(marks))} b")
    assert repaired[0] in "aáạ"
    assert repaired.endswith(" b")
    assert 3 < len(repaired) < 100
    assert normalizer(repaired) == repaired
    assert unicodedata.is_normalized(form.upper(), repaired)


def test_thirty_marks_in_a_row_stay() -> None:
    text = "1" + "\u0323" * 15 + "\u0308" * 15
    assert Normalizer()(f"{text} {text}!?…{text}{text}") == f"{text} {text}!?…{text}{text}"
    assert Normalizer()(f"({text}\u0308)") == f"({text})"
    assert Normalizer(unicode="none")(f"{text}\u0308") == f"{text}\u0308"
    assert Normalizer()("–" * 100 + "…" * 100) == "–" * 100 + "…" * 100
