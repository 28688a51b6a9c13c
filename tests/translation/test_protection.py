"""Spans come back exactly once, whatever the model does; white space and unreadable text stay."""

import json
import pickle
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from conftest import GOLDEN_MODEL, Cli
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_translator import model_section

import nmt
from nmt.config import DecodeSection
from nmt.models.build import build_model
from nmt.text.placeholders import TERM_MARKS, make_placeholders
from nmt.text.processor import TextProcessor
from nmt.text.sentences import SentenceSplitter
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import EOS_ID, Vocabulary
from nmt.translation.markup import find_markup, place
from nmt.translation.protection import (
    Kept,
    Knowledge,
    Protection,
    choose_numbers,
    put_back,
    stand_in,
    stand_in_apart,
    take_out,
)
from nmt.translation.reader import Reader
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator
from nmt.translation.words import align_words

SPANS = [
    *("%1$s", "{name}", "{{person.name}}", "${x}", "%d", "https://example.org/path?a=1&b=2", "jane.doe@example.org"),
    *("@bob", "#tag", "🐶", "2012-02-11", "10:30", "4,914,729", "3961", "+49-30-1234567", "`a b`", "<x/>", "**"),
]
LINES = [
    "Hello %1$s, good to see you again!",
    "Visit https://example.org/path?a=1&b=2 now.",
    "We met on 2012-02-11 at 10:30.",
    "I have 4,914,729 dollars and 3 dogs.",
    "She ❤️ Tom and 🐶.",
    "{a}{b} and {c}",
    "Is {name} old? {name} is old.",
    "{name}",
    "{a}: {b}!",
    "THE {name} IS OLD.",
    "There were 3961 people at the party.",
    "My phone number is 778563.",
    "This person name is {{person.name}}.",
    "Write to jane.doe@example.org today.",
    "I am old. 😀 She sleeps.",
]


@pytest.fixture(scope="module")
def golden() -> Translator:
    return nmt.load(GOLDEN_MODEL, device="cpu", max_length=20)


def with_placeholders(
    number: int = 2,
    seed: int = 0,
    marks: Sequence[str] = (),
    protection: Protection | None = None,
    known_words: Sequence[str] = (),
    **options: object,
) -> Translator:
    """A model with random weights that has placeholders, and therefore copies none of itself."""
    words = ["the", "cat", "dog", "and", ".", "is", "old", "Is", "The", "I", "have", *make_placeholders(number), *marks]
    vocabulary = Vocabulary(words)
    processor = TextProcessor(
        WhitespaceTokenizer(), WhitespaceTokenizer(), vocabulary, vocabulary, known_words=frozenset(known_words)
    )
    torch.manual_seed(seed)
    model = build_model(model_section(), len(vocabulary), len(vocabulary)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1, 1)
    decode = DecodeSection(**{"beam_size": 3, "max_length": 12, **options})
    return Translator(
        model, processor, decode, splitter=SentenceSplitter("en", "de"), protection=protection or Protection()
    )


def test_inflected_terms_stand_beside_their_words_and_no_mark_is_written() -> None:
    protection = Protection(["old"], {"cat": "Katze", "dog": "Hund"}, ["cat"])
    translator = with_placeholders(marks=TERM_MARKS, protection=protection, max_length=8)
    text = "the cat and the dog is old 3"
    ((unit,),) = [passage.units for passage in translator.reader.read([text])]
    # A tokenizer of words leaves the marks at their words; the spans behind them have their stand-ins.
    expected = "the cat\u27e6=\u27e7 Katze\u27e6;\u27e7 and the \u27e61\u27e7 is \u27e62\u27e7 \u27e61\u27e7"
    assert unit.tokens == expected.split()
    found = translator.translate(text)
    assert all(found.text.count(part) == 1 for part in ("Hund", "old", "3"))
    assert not any(mark in found.text for mark in TERM_MARKS)
    assert found.text.count("Katze") == 1  # as it is, because the model wrote no form of it
    without_marks = with_placeholders(protection=protection, max_length=8)
    assert "Katze" in without_marks.translate(text).text  # as it is, where the model has no marks


def test_marks_that_a_user_writes_are_spans() -> None:
    translator = with_placeholders(marks=TERM_MARKS, max_length=8)
    text = "the cat\u27e6=\u27e7 x\u27e6;\u27e7 is old"
    found = translator.translate(text).text
    assert all(found.count(mark) == 1 for mark in TERM_MARKS)


def count(text: str, span: str) -> int:
    return text.count(span)


@pytest.mark.parametrize("line", LINES)
def test_a_model_without_placeholders_keeps_each_span_once(golden: Translator, line: str) -> None:
    assert golden.reader.placeholders == []
    spans = Counter(line[span.begin : span.end] for span in Protection().find(line))
    for found in golden.translate(line, n_best=3, with_alignment=True):
        assert all(count(found.text, span) == number for span, number in spans.items())
        assert all(0 <= i < len(line.split()) for i, _ in align_words(line, found, golden.processor))


@example(words=["I", "https://example.org/path?a=1&b=2", "%1$s"])
@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from([*SPANS, "I", "am", "old", ".", "and", "dogs"]), min_size=1, max_size=8))
def test_spans_of_any_line_come_back(golden: Translator, words: list[str]) -> None:
    line = " ".join(words)
    spans = Counter(line[span.begin : span.end] for span in Protection().find(line))
    found = golden.translate(line).text
    again = Counter(found[span.begin : span.end] for span in Protection().find(found))
    assert again & spans == spans


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_placeholders_are_demanded_of_any_model(seed: int, beam_size: int) -> None:
    """More spans than placeholders too: then one stands for several."""
    model = with_placeholders(seed=seed, beam_size=beam_size, max_length=30)
    lines = ["the cat is {a} .", "Is {a} and {b} old", "the {a} and {b} and {c} and {d} .", "the cat is old ."]
    for line, ranked in zip(lines, model.translate(lines, n_best=beam_size), strict=True):
        spans = [line[span.begin : span.end] for span in Protection().find(line)]
        for found in ranked:
            assert sorted(re.findall(r"\{\w\}", found.text)) == spans
            assert "\u27e6" not in found.text
            assert "\u27e6" not in "".join([*found.tokens, *found.src_tokens])
    together, alone = model.translate(lines), [model.translate(line) for line in lines]
    assert [one.text for one in together] == [one.text for one in alone]


def test_a_model_with_placeholders_takes_over_the_names_that_it_does_not_know() -> None:
    model = with_placeholders(beam_size=2, max_length=20, known_words=["the", "cat", "is", "old", "and", "berlin"])
    (passage,) = model.reader.read(["The cat is Zelvandra and Berlin and the Novatrix-cat is \u27e61\u27e7 old"])
    (unit,) = passage.units
    assert [(span.text, span.kind) for span in unit.kept] == [
        ("Zelvandra", "name"),
        ("Novatrix", "name"),
        ("\u27e61\u27e7", "reserved"),
    ]
    lines = ["Zelvandra is old .", "the cat is O'Brien !", "The cat is old .", "Zelvandra"]
    found = [translation.text for translation in model.translate(lines)]
    assert [text.count("Zelvandra") for text in found] == [1, 0, 0, 1]
    assert found[1].count("O'Brien") == 1
    assert model.translate("Zelvandra").is_copied
    for unread in ({}, {"number": 0, "known_words": ["cat"]}):
        reader = with_placeholders(**unread).reader
        assert [unit.kept for unit in reader.read(["the cat is Zelvandra"])[0].units] == [()]


def test_a_term_has_its_translation_and_a_name_stays(golden: Translator) -> None:
    golden = golden.with_options(golden.options)
    golden.reader.protection = Protection(["old dog"], {"Tom": "THOMAS", "Tom Sawyer": "T. S."})
    found = golden.translate(["Tom is an old dog.", "I know TOM SAWYER.", "Tomorrow!"])
    assert ["THOMAS" in one.text for one in found] == [True, False, False]
    assert "old dog" in found[0].text
    assert "T. S." in found[1].text
    assert golden.translate("Tom").text == "THOMAS"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tell us of the US, us", ["Staaten"]),
        ("You may come in May.", ["Mai"]),
        ("YOU MAY COME TO THE US", ["MAI", "Staaten"]),
        ("Dogs: a dog, Dog, DOG", ["Hund", "Hund", "HUND"]),
        ("Go to Go and go", ["Los", "Los", "gehen"]),
        ("Apple Inc. or APPLE INC. but not apple inc.", ["Apple AG", "APPLE AG"]),
        ("I was at home (X) and At home (x).", ["zuhause", "zuhause"]),
    ],
)
def test_the_capitals_of_a_term_are_in_the_text_too(text: str, expected: list[str]) -> None:
    terms = {"US": "Staaten", "May": "Mai", "dog": "Hund", "Go": "Los", "go": "gehen", "Apple Inc.": "Apple AG"}
    found = Protection(terms=terms | {"at home (x)": "zuhause"}).find(text)
    assert [span.text for span in found if span.kind == "term"] == expected


def test_a_term_in_capitals_follows_the_target_language() -> None:
    (span,) = Protection(terms={"sign": "işaret i"}).find("SIGN", Knowledge(casing="tr"))
    assert span.text == "İŞARET İ"
    (span,) = Protection(terms={"sign": "işaret i"}, inflected=["sign"]).find("Sign", Knowledge(casing="tr"))
    assert (span.text, span.kind) == ("işaret i", "inflected")


@pytest.mark.parametrize(
    ("sentence", "written", "expected"),
    [
        ("Fast dogs run.", "\u27e61\u27e7 Hunde rennen.", "Flinke Hunde rennen."),
        ("fast dogs run", "\u27e61\u27e7 Hunde rennen", "flinke Hunde rennen"),
        ("\u201cFast dogs run.\u201d", "\u201e\u27e61\u27e7 Hunde rennen.\u201c", "\u201eFlinke Hunde rennen.\u201c"),
        ("The dogs run fast.", "Die Hunde rennen \u27e61\u27e7.", "Die Hunde rennen flinke."),
        ("We like Apple Inc.", "Wir m\u00f6gen \u27e61\u27e7.", "Wir m\u00f6gen Apple AG."),
        ("iPods run.", "\u27e61\u27e7 laufen.", "iPods laufen."),
    ],
)
def test_a_term_fits_its_place_in_the_translation(sentence: str, written: str, expected: str) -> None:
    terms = {"fast": "flinke", "Apple Inc.": "Apple AG.", "iPods": "iPods"}
    kept = Protection(terms=terms).find(sentence)
    translation = put_back(Translation(written, written.split(), sentence.split()), kept, ["\u27e61\u27e7"], sentence)
    assert translation is not None
    assert translation.text == expected


@pytest.mark.parametrize("word", ["日本語", "Привет, мир", "日本 語", "ﷺ"])
def test_words_that_a_model_cannot_read_stay_in_a_sentence_that_it_reads(golden: Translator, word: str) -> None:
    for model in (golden, with_placeholders(beam_size=2, max_length=20)):
        sentence = f"I have {word} and the cat ."
        found = model.translate(sentence)
        parts = word.split(", ")
        assert all(part in found.text for part in parts)
        assert (found.is_copied, found.unread) == (False, len(word.split()))
        without = model.with_options(model.options)
        without.reader = without.reader.with_protection(Protection())
        without.reader.known = Knowledge()
        assert not any(part in without.translate(sentence).text for part in parts)


def test_white_space_around_and_between_sentences_stays(golden: Translator) -> None:
    first, second = (golden.translate(line).text for line in ("I am old.", "She sleeps."))
    assert golden.translate("\t I am old.  She sleeps. \u00a0").text == f"\t {first}  {second} \u00a0"
    assert golden.translate("I am old. She sleeps.").text == f"{first} {second}"
    assert golden.translate(" \t").text == " \t"
    assert golden.translate("\u200b I am old. \ufeff").text == f"\u200b {first} \ufeff"
    assert golden.translate("\x01 I am old.\u200e She sleeps.").text == f" {first}\u200e {second}"
    assert golden.translate("I am old.\u2028\u2028She sleeps.\x0b").text == f"{first}  {second} "


@pytest.mark.parametrize("line", ["日本語", "مرحبا بالعالم", "Привет мир", "안녕하세요", "日本語 (東京)!"])
def test_text_that_the_model_cannot_read_is_copied_and_marked(golden: Translator, cli: Cli, line: str) -> None:
    found = golden.translate(line)
    assert (found.text, found.is_copied) == (line, True)
    assert found.unread > 0
    written = json.loads(cli("translate", "--model", GOLDEN_MODEL, "--format", "jsonl", line).out)
    assert (written["translations"][0]["text"], written["copied"]) == (line, True)
    assert written["unread_tokens"] == found.unread
    read = json.loads(cli("translate", "--model", GOLDEN_MODEL, "--format", "jsonl", "I am old.").out)
    assert (read["copied"], read["unread_tokens"]) == (False, 0)


@pytest.mark.parametrize(
    "line",
    [
        *("Привет {name}!", "Привет @me", "%s Привет", "Привет **мир**", "日本 {x} 3 😀 https://a.de", "Он 3"),
        *("{x} " * 300, "{x} " * 1100),
    ],
)
def test_a_copied_sentence_has_its_spans_once(golden: Translator, line: str) -> None:
    assert golden.translate(line).text == line
    assert with_placeholders().translate(line).text == line
    golden = golden.with_options(golden.options)
    golden.repairs = True
    assert golden.translate(line).text == line


@pytest.mark.parametrize("number", [150, 300])
def test_each_part_of_a_long_sentence_keeps_its_spans(golden: Translator, number: int) -> None:
    """More spans than there are numbers or placeholders to stand in for them, and none of these in the translation."""
    line = " ".join(f"the cat {{a{place}}} and the dog is {1000 + place}" for place in range(number))
    expected = [span.text for span in Protection().find(line)]
    assert len(expected) == 2 * number
    for model in (golden, with_placeholders()):
        found = model.translate(line)
        assert len(found.sentences) > 10
        assert Counter(span.text for span in Protection().find(found.text)) == Counter(expected)


def test_no_term_is_replaced_inside_an_address() -> None:
    text = "cat@house.org, https://cat.de/house, `cat`, #cat or a cat"
    found = Protection(terms={"cat": "Katze"}).find(text)
    assert [span.text for span in found] == ["cat@house.org", "https://cat.de/house", "`cat`", "#cat", "Katze"]


def test_a_model_with_placeholders_writes_none_of_its_own() -> None:
    """Neither with a given beginning nor where nothing is protected."""
    for seed in range(4):
        model = with_placeholders(seed=seed)
        (ranked,) = model.complete(["the cat is {a} ."], ["the"], n_best=3)
        model.reader.protection = None
        ranked += model.translate("the cat is {a} .", n_best=3)
        assert not any("\u27e6" in found.text for found in ranked)


def test_capitals_are_judged_by_the_sentence(golden: Translator) -> None:
    old, sleeps = (golden.translate(line).text for line in ("I am old.", "She sleeps."))
    assert golden.translate("I AM OLD. She sleeps.").text == f"{old.upper()} {sleeps}"
    assert golden.translate("I AM {Name}.").text.count("{Name}") == 1


def test_without_protection_or_splitting_text_is_read_as_it_is() -> None:
    line = "Visit https://example.org now.  I am old."
    for options in ({"protect": False}, {"split_sentences": False}):
        reader = nmt.load(GOLDEN_MODEL, device="cpu", **options).reader
        assert all(unit.kept == () for passage in reader.read([line]) for unit in passage.units)


def test_stand_ins_by_hand() -> None:
    sentence = "a {x} b {y}!"
    kept = [Kept(2, 5, "{x}", "braces"), Kept(8, 11, "{y}", "braces")]
    assert stand_in(sentence, kept, ["25", "30"]) == "a 25 b 30!"
    assert take_out(sentence, kept) == "a b !"
    assert "25" not in choose_numbers("it is 25", 3)
    numbers = ["25", "30"]
    src_tokens = ["▁a", "▁25", "▁b", "▁30", "!"]
    wrong = Translation("30 c 25d", ["▁30", "▁c", "▁25", "d"], src_tokens)
    assert put_back(wrong, kept, numbers, sentence) is None  # 25d is another word
    right = Translation("30 c 25!", ["▁30", "▁c", "▁2", "5", "!"], src_tokens)
    found = put_back(right, kept, numbers, sentence)
    assert found is not None
    assert (found.text, found.tokens) == ("{y} c {x}!", ["▁{y}", "▁c", "▁{x}", "", "!"])
    assert found.src_tokens == ["▁a", "▁{x}", "▁b", "▁{y}", "!"]
    assert put_back(Translation("30 c 25 25"), kept, ["25", "30"], sentence) is None


@pytest.mark.parametrize(
    ("sentence", "read", "written", "expected"),
    [
        ("About {n}cats", "About \u27e61\u27e7 cats", "Etwa \u27e61\u27e7 Katzen", "Etwa {n}Katzen"),
        ("I see x{n} and {n}{m}.", "I see x \u27e61\u27e7 and \u27e61\u27e7 \u27e62\u27e7.", None, None),
        ("{n}{m} cats", "\u27e61\u27e7 \u27e62\u27e7 cats", "\u27e61\u27e7 \u27e62\u27e7 Katzen", "{n}{m} Katzen"),
        ("{n}{m} cats", "\u27e61\u27e7 \u27e62\u27e7 cats", "\u27e61\u27e7 Katzen \u27e62\u27e7", "{n} Katzen {m}"),
        ("a {n} b", "a \u27e61\u27e7 b", "x\u27e61\u27e7y", "x {n} y"),
        ("({n}) b", "(\u27e61\u27e7) b", "(\u27e61\u27e7) y", "({n}) y"),
    ],
)
def test_a_stand_in_is_apart_from_words_and_its_span_is_not(
    sentence: str, read: str, written: str | None, expected: str | None
) -> None:
    kept = Protection().find(sentence)
    texts = {"{n}": "\u27e61\u27e7", "{m}": "\u27e62\u27e7"}
    symbols = [texts[span.text] for span in kept]
    assert stand_in_apart(sentence, kept, symbols) == read
    if written is not None:
        whole = put_back(Translation(written, written.split(), read.split()), kept, symbols, sentence)
        assert whole
        assert whole.text == expected


def test_markup_opens_before_it_closes_and_stands_at_its_words() -> None:
    """The words change places: the second one of the translation is linked to the first one of the source."""
    processor = with_placeholders().processor
    alignment = torch.zeros(3, 1, 3)
    alignment[0, 0, 1] = alignment[1, 0, 0] = alignment[2, 0, 2] = 1
    translation = Translation("alt Katze", ["alt", "Katze"], ["cat", "old"], alignment=alignment)
    for sentence, expected in [
        ("<b>cat</b> old", "alt <b>Katze</b>"),
        ("cat **old**", "**alt** Katze"),
        ("[cat](x) old", "alt [Katze](x)"),
        ("<i>cat **old**</i>", "<i>**alt** Katze</i>"),
        ("cat <br>old</br>", "<br>alt</br> Katze"),
    ]:
        kept = Protection().find(sentence)
        assert find_markup(kept) == set(kept)
        found = place(translation, sentence, kept, processor)
        assert [found.text.count(span.text) for span in kept] == [sentence.count(span.text) for span in kept]
        assert found.text == expected


def test_markup_stands_outside_of_spans_and_keeps_the_attention_of_the_words() -> None:
    """The attention is wrong for the spans; equal spans belong together all the same."""
    processor = with_placeholders().processor
    alignment = torch.zeros(4, 2, 4)
    alignment[0, 0, 1] = alignment[1, 0, 1] = alignment[2, 0, 1] = 1
    translation = Translation("{x} alt {y}.", ["{x}", "alt", "{y}."], ["{x}", "old", "{y}"], alignment=alignment)
    for sentence, expected in [
        ("<b>{x}</b> old {y}", "<b>{x}</b> alt {y}."),
        ("{x} old **{y}**", "{x} alt **{y}**."),
        ("*{x}* **old** {y}", "*{x}* **alt** {y}."),
        ("| {x} | old | {y} |", "| {x} | alt | {y} |."),
        ("{x} [1] old {y}", "{x} [1] alt {y}."),
    ]:
        kept = Protection().find(sentence)
        markup = [span for span in kept if span in find_markup(kept)]
        written = [span.text for span in kept if span not in markup]
        found = place(translation, sentence, markup, processor, written)
        assert found.text == expected
        assert "".join(found.tokens) == expected.replace(" ", "")
        assert "".join(found.src_tokens) == sentence.replace(" ", "")
        assert found.alignment is not None
        assert found.alignment.shape == (len(found.tokens) + 1, 2, len(found.src_tokens) + 1)
        assert float(found.alignment.sum()) >= 3
        marks = [number for number, token in enumerate(found.tokens) if token in {span.text for span in markup}]
        assert len(marks) == len(markup)
        assert not found.alignment[marks].any()


def test_no_mark_is_put_into_a_span_of_several_words() -> None:
    processor = with_placeholders().processor
    alignment = torch.zeros(4, 1, 4)
    alignment[0, 0, 1] = alignment[1, 0, 0] = alignment[2, 0, 2] = 1
    translation = Translation("{a b} alt", ["{a", "b}", "alt"], ["{a", "b}", "old"], alignment=alignment)
    for sentence, expected in [("{a [1] b} old", "{a b} [1] alt"), ("{a **b}** old", "**{a b}** alt")]:
        kept = [Kept(match.start(), match.end(), match[0], "marks") for match in re.finditer(r"\[1\]|\*\*", sentence)]
        assert place(translation, sentence, kept, processor, ["{a b}"]).text == expected


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("I am old.\\nShe sleeps.", ["I am old.", "\\n", "She sleeps."]),
        ("I am old<br>She sleeps", ["I am old", "<br>", "She sleeps"]),
        ("<p>I am old</p><p>She sleeps</p>", ["<p>", "I am old", "</p>", "<p>", "She sleeps", "</p>"]),
        ("| I am old | She sleeps |", ["|", "I am old", "|", "She sleeps", "|"]),
        ("**I am old.** _She_ sleeps.", ["**I am old.**", "_She_ sleeps."]),
        ("<b>I am old.</b> <i>She</i> sleeps.", ["<b>I am old.</b>", "<i>She</i> sleeps."]),
        ("I am old. ____ sleeps.", ["I am old.", "____ sleeps."]),
        ("I am old.* *she sleeps*.", ["I am old.* *she sleeps*."]),
        ("I am old.[1] She sleeps.[^2]", ["I am old.[1]", "She sleeps.[^2]"]),
        ("I am old \U0001f600\U0001f600", ["I am old", "\U0001f600\U0001f600"]),
    ],
)
def test_what_breaks_a_line_ends_a_sentence(golden: Translator, line: str, parts: list[str]) -> None:
    (passage,) = golden.reader.read([line])
    assert [unit.sentence for unit in passage.units] == parts
    texts = [golden.translate(part).text for part in parts]
    place = 0
    expected = ""
    for part, text in zip(parts, texts, strict=True):
        begin = line.index(part, place)
        expected += line[place:begin] + text
        place = begin + len(part)
    assert golden.translate(line).text == expected


def test_a_tag_that_closes_nothing_is_no_markup() -> None:
    kept = Protection().find("Hello <name>, <i>I</b> am <x/> here</i>.")
    assert [span.text for span in kept if span in find_markup(kept)] == ["<i>", "</i>"]
    kept = Protection().find("Hello <name>, <i>I <b>am</b></i> <br/>.")
    assert [span.text for span in kept if span in find_markup(kept)] == ["<i>", "<b>", "</b>", "</i>"]


@pytest.mark.parametrize("number", [0, 2])
def test_a_translation_that_fills_its_limit_is_read_again_without_spans(number: int) -> None:
    """A model that never ends writes what it was made to write, up to the limit."""
    translator = with_placeholders(number, beam_size=2, max_length=9, max_length_ratio=50)
    with torch.no_grad():
        translator.model.decoder.output.bias[EOS_ID] = -1e9
    found = translator.translate("the cat is {a} old .")
    assert found.text.count("{a}") == 1
    (passage,) = translator.reader.read(["the cat is {a} old ."])
    again = translator.reader.read_again(passage.units[0])
    assert again.way == "without"
    assert found.text.replace("{a}", "").split() == translator.translate("the cat is old .").text.split()


def test_a_lost_space_beside_a_placeholder_is_restored() -> None:
    kept = [Kept(6, 9, "{x}", "braces")]
    found = put_back(Translation("Hallo\u27e61\u27e7du"), kept, ["\u27e61\u27e7"], "Hello {x} you")
    assert found is not None
    assert found.text == "Hallo {x} du"
    kept = [Kept(0, 3, "{x}", "braces"), Kept(4, 8, "%1$s", "format")]
    beside = put_back(Translation("\u27e61\u27e7\u27e62\u27e7"), kept, ["\u27e61\u27e7", "\u27e62\u27e7"], "{x} %1$s")
    assert beside is not None
    assert beside.text == "{x} %1$s"


@pytest.mark.parametrize(
    ("option", "content", "problem"),
    [
        ("--glossary", "", "has no entries"),
        ("--keep", "", "has no names"),
        ("--glossary", None, "cannot be read"),
    ],
)
def test_a_bad_file_is_one_line(cli: Cli, tmp_path: Path, option: str, content: str | None, problem: str) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content)
    found = cli("translate", "I am old.", "--model", GOLDEN_MODEL, option, file)
    assert found.code == 1
    assert found.err.count("\n") == 1
    assert str(file) in found.err


def test_a_glossary_needs_protected_spans(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    file.write_text("old\tbetagt\n")
    command = ["translate", "I am old.", "--model", GOLDEN_MODEL, "--glossary", file]
    assert "betagt" in cli(*command).out
    found = cli(*command, "--no-protect")
    assert (found.code, found.out) == (1, "")
    assert found.err == f"nmt: error: --glossary {file}: needs --protect; set it to true\n"


def test_a_reader_is_the_same_after_pickling(golden: Translator) -> None:
    reader: Reader = pickle.loads(pickle.dumps(golden.reader))
    line = "Visit https://example.org now.  It is 5 p.m. She sleeps."
    assert reader.read([line]) == golden.reader.read([line])
