"""Short inputs: the shipped file, and which translations are faults."""

from collections import Counter
from pathlib import Path

import pytest

from nmt.corpus.cleaning import find_numbers
from nmt.evaluation.short_inputs import (
    COLUMNS,
    Failure,
    ShortInput,
    find_short_inputs,
    find_violations,
    has_loop,
    judge_short_inputs,
    read_short_inputs,
)
from nmt.system.errors import DataError
from nmt.system.files import shipped
from nmt.text.direction import Direction

HEADER = "\t".join(COLUMNS)
SHIPPED = read_short_inputs(shipped("data/short_inputs/en-de.tsv"))


def test_a_third_of_each_category_is_to_tune_on() -> None:
    sizes = Counter(made.category for made in SHIPPED)
    scored = Counter(made.category for made in SHIPPED if made.scored)
    assert sizes == {
        **{"known words": 45, "unknown words": 30, "greetings": 24, "short phrases": 30, "questions": 24, "titles": 30},
        **{"all caps": 30, "numbers": 30, "unknown names": 27, "emoji": 15, "noise": 15},
    }
    assert {name: 3 * count for name, count in scored.items()} == {name: 2 * count for name, count in sizes.items()}
    assert find_short_inputs(Direction("en", "de")) == [made for made in SHIPPED if not made.scored]
    assert find_short_inputs(Direction("de", "en")) == []
    assert len({made.text for made in SHIPPED}) == len(SHIPPED)


@pytest.mark.parametrize(
    ("text", "scored"),
    # The last digits of `echo -n TEXT | sha256sum`, in decimal, divided by 3.
    [("Hello", True), ("ok", True), ("kitchen", False)],
)
def test_the_part_depends_on_the_text_alone(text: str, scored: bool) -> None:
    assert ShortInput("one", text).scored is ShortInput("other", text, "a", "b").scored is scored


def test_what_the_file_asks_for_can_be_given_and_missed() -> None:
    for made in SHIPPED:
        assert made.accepted or made.words or made.kept or made.plain or find_numbers(made.text)
        assert made.plain.casefold() in ("", made.text.casefold())
        assert all(part in made.text for part in made.kept.split())
        lists = made.accepted.split("|"), [group.split("|")[0] for group in made.words.split(" & ")]
        forms, words = ([form.replace("*", "") for form in forms] for forms in lists)
        assert not any("accepted" in rules(made, form) or "accepted" in rules(made, f"Ein {form}!") for form in forms)
        assert "words" not in rules(made, " ".join(words))
        wrong = {"accepted" if made.accepted else "", "words" if made.words else ""} - {""}
        assert {*rules(made, "das hier ist ganz und gar falsch")} >= wrong


def rules(made: ShortInput, output: str, plain: str = "", *, lowercase: bool = False) -> tuple[str, ...]:
    return find_violations(made, output, plain, lowercase=lowercase)


@pytest.mark.parametrize(
    ("text", "output", "expected"),
    [
        ("a b c", "a b c", False),
        ("Hello", "Hallo hallo!", True),
        ("Hello", "Hallo, hallo!", False),
        ("Hello, hello!", "Hallo, hallo, hallo, hallo!", True),
        ("bye bye", "tschüss tschüss", False),
        ("bye bye", "tschüss tschüss tschüss", True),
        ("x", "a b a b", True),
        ("x", "a b a", False),
        ("!!!", "!!!", False),
        ("!!!", "! ! !", False),
        ("!!!", "!!!!", True),
        ("😂", "😂😂", True),
        ("go go go", "a b c d a b c d", False),
    ],
)
def test_loops(text: str, output: str, expected: bool) -> None:
    assert has_loop(text, output) is expected


WORD = ShortInput("known words", "dog", accepted="Hund|großer Hund|Köter*")
GREETING = ShortInput("greetings", "bye", accepted="Auf Wiedersehen|Mach's gut|Ja bitte")
QUESTION = ShortInput("questions", "where is the hall", words="wo & *Halle|Saal")
NUMBER = ShortInput("numbers", "It is 2:30.")
NAME = ShortInput("unknown names", "I am Bostilda.", kept="Bostilda")
HEART = ShortInput("emoji", "I love it ❤️😊", kept="❤ 😊")
CAPITALS = ShortInput("all caps", "I SEE HIM.", plain="I see him.")


@pytest.mark.parametrize(
    ("made", "output", "plain", "expected"),
    [
        (WORD, "Hund", "", ()),
        (WORD, "der Hund.", "", ()),
        (WORD, "GROSSER HUND", "", ()),
        (WORD, "Kötern", "", ()),
        (WORD, "Hunde", "", ("accepted",)),
        (WORD, "Hund Sie", "", ("accepted",)),
        (WORD, "ein lieber Hund", "", ("accepted",)),
        (WORD, "Hund Hund", "", ("repetition",)),
        (WORD, "", "", ("empty", "accepted")),
        (GREETING, "auf Wiedersehen!", "", ()),
        (GREETING, "Mach’s gut", "", ()),
        (GREETING, "Ja, bitte!", "", ()),
        (GREETING, "Wiedersehen", "", ("accepted",)),
        (QUESTION, "Wo ist die Turnhalle?", "", ()),
        (QUESTION, "Wo ist der Saal", "", ()),
        (QUESTION, "Wo ist die Hallenbar?", "", ("words",)),
        (QUESTION, "Der Saal ist hier", "", ("words",)),
        (ShortInput("noise", "asdf", accepted="*"), "Asdf", "", ()),
        (ShortInput("noise", "asdf", accepted="*"), "Das ist es", "", ("accepted",)),
        (ShortInput("noise", "///", accepted="*"), "///", "", ()),
        (ShortInput("short phrases", "Hi"), "Du, es ist so ?", "", ("length",)),
        (ShortInput("short phrases", "Hello"), "Donaudampfschiffahrtsgesellschaft", "", ("length",)),
        (ShortInput("all caps", "WHAT IS THAT FOR?"), "Hä?", "", ("length",)),
        (NUMBER, "Es ist 2.30 Uhr.", "", ()),
        (NUMBER, "Es ist 3.20 Uhr.", "", ("digits",)),
        (ShortInput("titles", "One Dog"), "1 Hund", "", ()),
        (NAME, "Ich bin Bostildas.", "", ()),
        (NAME, "Ich bin Boston.", "", ("kept",)),
        (NAME, "Ich bin bostilda.", "", ("kept",)),
        (HEART, "Ich mag es ❤😊", "", ()),
        (HEART, "Ich mag es ❤", "", ("kept",)),
        (CAPITALS, "ICH SEHE IHN.", "Ich sehe ihn.", ()),
        (CAPITALS, "Ich sah sie.", "Ich sehe ihn.", ("drift",)),
        (ShortInput("titles", "I See Him", plain="I see him"), "ich sehe ihn", "Ich sehe ihn.", ("beginning",)),
    ],
)
def test_rules(made: ShortInput, output: str, plain: str, expected: tuple[str, ...]) -> None:
    assert rules(made, output, plain) == expected


def test_case_is_not_judged_in_a_lowercase_model() -> None:
    title = ShortInput("titles", "I See Tomara", kept="Tomara", plain="I see Tomara")
    assert rules(title, "ich sehe tomara", "ich sehe tomara .", lowercase=True) == ()
    assert rules(title, "ich sehe tomara", lowercase=False) == ("kept", "beginning")


def test_inputs_and_plain_forms_are_translated_once() -> None:
    asked = []

    def translate(texts: list[str]) -> list[str]:
        asked.extend(texts)
        return ["Hund Hund" if text == "dog" else "Ich sehe ihn." for text in texts]

    result = judge_short_inputs([WORD, CAPITALS, ShortInput("short phrases", "I see him.")], translate)
    assert asked == ["dog", "I SEE HIM.", "I see him."]
    assert result.failures == [Failure("known words", "dog", "Hund Hund", ("repetition",))]
    assert str(result) == "short inputs: 2 of 3 (known words 0/1, all caps 1/1, short phrases 1/1)"
    assert result.as_json()["categories"]["all caps"] == {"passed": 1, "of": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: must name the columns category, input, accepted, words, kept, plain, with tabs between them"),
        ("category\tinput\n", ":1: must name the columns category, input, accepted, words, kept, plain, with tabs"),
        (f"{HEADER}\na\tb\n", ":2: must have 6 columns, of which the first two are not empty"),
        (f"{HEADER}\na\tb\t\t\t\t\na\t\t\t\t\t\n", ":3: must have 6 columns"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_short_inputs(path)
    assert str(caught.value).startswith(f"{path}{message}")
