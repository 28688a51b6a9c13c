"""Where a line has several sentences, and where a long sentence may be cut."""

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.text.normalization import INVISIBLE
from nmt.text.sentences import SentenceSplitter, is_title, split_tokens, untitle


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["Dr. Smith came.", "He left."]),
        ("en", ["The U.S. Army came.", "OK...", "So?", "2 men"]),
        ("en", ['"Are you old?" he asked.', "Yes."]),
        ("en", ["He left.", '"I am here."', "(Why?)", "Yes!"]),
        ("en", ["He said (really!) no.", "Version 1.5 is at example.org, e.g. This one"]),
        ("de", ["Am 3. Oktober war z. B. Feiertag.", "Wirklich?!", "»Ja.«", "Nr. 5."]),
        ("en", ["It is 5 p.m.", "She sleeps."]),
        ("en", ["We met in the U.S.", "She is old."]),
        ("en", ["Tom works for Acme Inc.", "He is old."]),
        ("en", ["This is plan B.", "It is old.", "So do I.", "Tom came."]),
        ("en", ["He lives in Washington D.C.", "She lives in Boston."]),
        ("en", ["Tom J. Smith and J. F. Kennedy came.", "Don't go."]),
        ("en", ["I booked it for 10:30.", "It is almost 11.", "Go!"]),
        ("de", ["Ich kam um 7.", "Tom schlief.", "Der 2. Weltkrieg begann."]),
        ("de", ["Wir aßen Brot, Kuchen usw.", "Dann kam Dr. Bell.", "Das ist Vitamin C.", "Er weiß es."]),
        ("en", ["It is No. 5.", "She was no. 1 in school.", "See Fig. 3 and vol. 2.", "Turn to p. 12 now."]),
        ("en", ["Read pp. 3-5.", "Sec. 4 is long.", "(Art. 5 and Ch. 2)"]),
        ("en", ["Did he say no.", "I think so.", "He said no.", "Tom left.", "Wait a sec.", "(Two!)"]),
        ("en", ["The answer is no. 5 people came."]),  # a number goes with the abbreviation
        (
            "en",
            ["I live on Elm St.", "It is quiet.", "He met us in St. Louis.", "She lives in Park Ave.", "It is old."],
        ),
        (
            "de",
            [
                "Das ist Nr. 7 hier.",
                "Siehe S. 12, Abs. 3.",
                "Kap. 2 ist lang.",
                "Er ist von seiner Art.",
                "Er ist alt.",
            ],
        ),
        ("de", ["Nenne mir die Nr.", "Sie ist lang.", "In Bd. Musik fehlt es."]),
        ("fr", ["Voir p. 5 et no. 7.", "Il a dit no.", "Paul partit."]),
        ("tr", ["Bkz. vol. 3.", "Tom geldi."]),
        ("es", ["Hola.", "¿Qué tal?", "¡Bien!"]),
        ("zh", ["你好。", "你是谁？", "“我。”", "他走了"]),
        ("el", ["Ναι.", "Όχι."]),
        ("ru", ["Да.", "Нет…", "Да."]),
        ("tlh", ["Dr.", "No.", "HIja'"]),  # no language that spaCy knows
        ("en", ["See you!", "🥂🎆", "Bye", "☕"]),
        ("en", ["👍🏽 👩‍🚀", "Well done"]),
        ("en", ["I ❤️ you 3 times", "😍!"]),  # between words it stays
        ("en", ["🥂"]),
        ("en", ["- Hello!", "- Good morning."]),  # two speakers of a subtitle
        ("de", ["Kommst du?", "\u2013 Nein."]),
        ("en", ["He came. - and left"]),
        ("en", ["one sentence. and its end"]),
        ("en", ["..."]),
        ("en", [". . . ! ? ."]),
        ("en", [""]),
    ],
)
def test_sentences(language: str, sentences: list[str]) -> None:
    for blank in (" ", " \t\u00a0"):
        line = blank.join(sentences)
        if language == "zh":
            line = line.replace(blank, "")
        assert SentenceSplitter(language)(line) == sentences


@given(st.text() | st.text(alphabet="aA1.!?…。) \"'«\t\u2028☕🥂"))
def test_nothing_of_a_line_is_lost(line: str) -> None:
    found = SentenceSplitter("en")(line)
    assert "".join(INVISIBLE.sub("", "".join(found)).split()) == "".join(INVISIBLE.sub("", line).split())
    assert len(found) == 1 or all(sentence == sentence.strip() != "" for sentence in found)
    assert all(SentenceSplitter("en")(sentence) == [sentence] for sentence in found)


def test_no_sentence_ends_inside_a_span() -> None:
    line = "See `a. B` here. Now go."
    assert SentenceSplitter("en").find(line) == [(0, 7), (8, 16), (17, 24)]
    assert SentenceSplitter("en").find(line, [(4, 10)]) == [(0, 16), (17, 24)]


@pytest.mark.parametrize(
    "part", ["!", ".", "a. ", "Ab. ", "...)", ". ", "a", '."', '. "((', "。", " ", "🥂", "🥂 ", "🥂 a"]
)
def test_long_lines_take_little_time(part: str) -> None:
    begin = time.process_time()
    SentenceSplitter("en")(part * (100_000 // len(part)) + ". B")
    assert time.process_time() - begin < 5  # a quadratic search would take minutes


@pytest.mark.parametrize(
    ("tgt_language", "glue"),
    [("de", " "), ("zh", ""), ("zh-TW", ""), ("cmn", ""), ("jpn", ""), ("ja", ""), ("th", " "), ("", " ")],
)
def test_what_stands_between_translations(tgt_language: str, glue: str) -> None:
    assert SentenceSplitter("en", tgt_language).glue == glue


def test_spacy_is_imported_for_full_stops_alone() -> None:
    program = (
        "import sys; from nmt.text.sentences import SentenceSplitter\n"
        "split = SentenceSplitter('en')\n"
        "assert split('He is old.') == ['He is old.'] and len(split('Is he? No! Why... So')) == 4\n"
        "assert split('Version 1.5 of it. and so on') and 'spacy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@given(st.lists(st.sampled_from(["▁a", "b", ",", "▁,", "▁—", "c"])), st.integers(1, 9), st.booleans())
def test_parts_of_a_long_sentence(tokens: list[str], limit: int, subwords: bool) -> None:
    parts = list(split_tokens(tokens, limit, subwords=subwords))
    assert [token for part in parts for token in part] == tokens
    assert all(len(part) <= limit for part in parts)
    assert all(2 * len(part) >= limit for part in parts[:-1])


def test_a_part_ends_at_a_pause_or_between_words() -> None:
    words = ["a", "b", ",", "c", "d", "e", "f", "g"]
    assert list(split_tokens(words, 5, subwords=False)) == [["a", "b", ","], ["c", "d", "e", "f", "g"]]
    pieces = ["▁a", "b", ",", "c", "▁d", "e", "f", "g"]
    assert list(split_tokens(pieces, 5, subwords=True)) == [["▁a", "b", ",", "c"], ["▁d", "e", "f", "g"]]
    assert list(split_tokens(["▁a", *"bcdef"], 5, subwords=True)) == [["▁a", *"bcde"], ["f"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The History of Our Village", True),
        ("Farmers Hope for Rain", True),
        ("Tom Loves Mary.", False),
        ("Tom loves Mary Jones", False),
        ("Good Morning", False),
        ("Hello", False),
        ("", False),
        ("Ist das Haus von Anna Meier?", True),
        ("Who Let the White Dogs Out?", True),
        ("12 34 56", False),
    ],
)
def test_titles(text: str, expected: bool) -> None:
    assert is_title(text) is expected


def test_a_title_keeps_capitals_of_words_that_are_no_more_frequent_without() -> None:
    frequent = {
        "history": 1.0,
        "our": 2.0,
        "Our": 3.0,
        "Tom": 4.0,
        "tom": 5.0,
        "i": 7.0,
        "I": 6.0,
        "may": 8.0,
        "May": 8.0,
    }

    def rarity(word: str) -> tuple[float, ...]:
        return (frequent.get(word, 100.0),)

    found = untitle("Our History: I'm Tom McDonald, May Is Our USA!", rarity)
    assert found == "Our history: I'm Tom McDonald, May Is our USA!"
