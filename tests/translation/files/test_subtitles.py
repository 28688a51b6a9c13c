"""Subtitles: sentences that go on in the next line or cue, tags, settings and what is no cue."""

import pysubs2
import pytest
from file_samples import SAMPLES, changed_lines, read, shout, texts, write

from nmt.system.errors import DataError


def test_a_sentence_goes_on_in_the_next_cue() -> None:
    document = read("srt")
    sentences = ["She is reading a book in the house.", "I am old.", "Do you know?", "12"]
    assert texts(document) == sentences
    before = SAMPLES["srt"].decode()
    expected = before.replace("\r\na book</i> in", "\r\nA BOOK</i> IN").replace("She is reading", "SHE IS READING")
    for text in ("the house.", "I am old.", "Do ", "you", " know?"):
        expected = expected.replace(text, text.upper())
    assert shout(document) == expected


def test_a_translation_is_divided_in_proportion() -> None:
    cues = "1\n00:00:01,000 --> 00:00:02,000\none two three\n\n2\n00:00:02,100 --> 00:00:03,000\nfour\n"
    (text,) = texts(read("srt", cues))
    assert text == "one two three four"
    parts = [
        line
        for translation in ("aaa bbb ccc ddd", "a b cccccccccccccccc d", "a", "彼女は本を読む")
        for line in changed_lines(cues, write(read("srt", cues), lambda _, new=translation: new).decode())
    ]
    # 13 of 18 characters are in the first cue: so are 5 of 7 without spaces.
    assert parts == ["aaa bbb ccc", "ddd", "a b cccccccccccccccc", "d", "a", "彼女は本を", "読む"]


@pytest.mark.parametrize(
    ("first", "second", "gap", "goes_on"),
    [
        ("She sleeps.", "I am old.", 0, False),
        ("She sleeps", "and I am old.", 0, True),
        ("She sleeps", "and I am old.", 3, False),
        ("She sleeps", "- I am old.", 0, False),
        ("She said “no.”", "I am old.", 0, False),
        ("12", "I am old.", 0, False),
        ("a" * 200, "and b", 0, False),
    ],
)
def test_a_sentence_goes_on_unless_a_mark_a_dash_or_a_pause_ends_it(
    first: str, second: str, gap: int, goes_on: bool
) -> None:
    cues = f"WEBVTT\n\n00:01.000 --> 00:02.000\n{first}\n\n00:0{2 + gap}.500 --> 00:09.000\n{second}\n"
    assert (len(texts(read("vtt", cues))) == 1 and first != "12") is goes_on


def test_settings_notes_and_styles_stay() -> None:
    assert texts(read("vtt")) == ["I am & stay old.", "\ue000 sleeps"]
    before = SAMPLES["vtt"].decode()
    expected = before.replace(">am<", ">AM<").replace("stay", "STAY").replace(">old<", ">OLD<")
    expected = expected.replace("sleeps", "SLEEPS")
    assert shout(read("vtt")) == expected
    assert "&lt;i&gt; --&gt;" in write(read("vtt"), lambda text: "<i> -->").decode()


def test_another_reader_sees_the_same_cues() -> None:
    before = pysubs2.SSAFile.from_string(SAMPLES["srt"].decode("utf-8-sig"), format_="srt")
    after = pysubs2.SSAFile.from_string(shout(read("srt")).lstrip("\ufeff"), format_="srt")
    assert [(cue.start, cue.end) for cue in after] == [(cue.start, cue.end) for cue in before]
    assert [cue.plaintext for cue in after] == [cue.plaintext.upper() for cue in before]


@pytest.mark.parametrize(
    ("sample", "content", "problem"),
    [
        ("srt", b"I am old.\n", "a.srt: has no line with times, such as 00:00:01,000 --> 00:00:02,500"),
        ("srt", b"1\n00:00:01,000 --> 00:00:02,000\nIch m\xf6chte\n", "a.srt:3: is not UTF-8"),
        ("srt", b"PK\x03\x04\0\0", "a.srt:1: has NUL characters"),
        ("vtt", SAMPLES["srt"], "a.vtt:1: does not begin with WEBVTT"),
    ],
)
def test_other_files_are_refused(sample: str, content: bytes, problem: str) -> None:
    with pytest.raises(DataError, match="^" + problem):
        read(sample, content)
