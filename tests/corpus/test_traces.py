import json
import logging
import runpy
from pathlib import Path

import numpy as np
import pytest
import spacy.lang
from numpy.typing import NDArray

import nmt
from nmt.config import load_config
from nmt.corpus import Pair
from nmt.corpus.prepare import PreparedData
from nmt.corpus.sources import open_corpus
from nmt.corpus.traces import (
    MOST_RUNS,
    RUN,
    Run,
    Sample,
    TraceReport,
    find_mojibake,
    find_shift,
    find_unrelated,
    find_wrong_encoding,
    search_runs,
    take_runs,
)
from nmt.system.errors import DataError

pytestmark = pytest.mark.usefixtures("no_pictures")

SOURCES = [f"{'The old house number '[: 4 + n % 17]} {n} is very {'big and ' * (n * 7 % 5)}red." for n in range(200)]
TARGETS = [f"{'Das alte Haus Nummer '[: 4 + n % 17]} {n} ist sehr {'groß und ' * (n * 7 % 5)}rot." for n in range(200)]
PAIRS = [Pair(*pair) for pair in zip(SOURCES, TARGETS, strict=True)]


def search(pairs: list[Pair], *, tokenized: bool = False) -> list[TraceReport]:
    return list(search_runs("train", take_runs(pairs, most=MOST_RUNS), tokenized=tokenized))


def with_lines(*texts: str, times: int = 10) -> list[Pair]:
    """Ordinary pairs, with texts in place of some targets."""
    targets = [text for text in texts for _ in range(times)]
    return [Pair(src, tgt) for src, tgt in zip(SOURCES, [*targets, *TARGETS[len(targets) :]], strict=True)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("subword_nmt", "Das Kin@@ d schl@@ äft ."),
        ("subword_nmt", "Das Kin @@d schl @@äft"),
        ("subword_nmt", "Das Kin@@"),
        ("sentencepiece", "▁Das ▁Kind ▁schläft."),
        ("sentencepiece", "▁ Das ▁Kind"),
        ("joiners", "Das Kind schläft ￭."),
        ("joiners", "das￨C kind￨C schläft￨L"),
        ("joiners", "Das Kind schl ##ä ##ft."),
        ("joiners", "ein rot @-@ weißes Kleid"),
        ("joiners", "Das</w> Kin d</w>"),
        ("joiners", "The Ġchild Ġsleeps"),
        ("joiners", "Das Kind <0xE2><0x80>"),
        ("moses_escapes", "&quot; Das ist &apos; s &quot;"),
        ("moses_escapes", "a &#124; b"),
        ("moses_escapes", "a &#91; b &#93;"),
        ("tokenized", "Das Kind schläft ."),
        ("tokenized", "我 爱 你 们"),
        ("tokenized", "那 是 一 本 书 。"),
        ("sgml", '<seg id="1">Das ist es.</seg>'),
        ("sgml", '<doc docid="a" origlang="en">'),
        ("sgml", '<refset setid="x" trglang="de">'),
        ("sgml", "</hl>"),
        ("sgml", '<?xml version="1.0"?>'),
        ("iwslt", "<title>Ein Vortrag</title>"),
        ("iwslt", "<description>Rede: ...</description>"),
        ("iwslt", "<url>http://x.org</url>"),
        ("iwslt", "<speaker>A. B.</speaker>"),
        ("iwslt", "<talkid>12</talkid>"),
        ("iwslt", '<reviewer href="x">A B</reviewer>'),
        ("sentence_marks", "<s> Das ist es. </s>"),
        ("sentence_marks", "Das ist es.</s>"),
        ("sentence_marks", "[CLS] Das ist es. [SEP]"),
        ("sentence_marks", "Das ist es. <|endoftext|>"),
        ("sentence_marks", "Das ist es. <pad> <pad>"),
        ("html", "<p>Das ist es.</p>"),
        ("html", '<span class="a">Das</span> ist es.'),
        ("html", "Das ist<br/>es."),
        ("html", "<sentence>Das ist es.</sentence>"),
        ("backslash_escapes", r"gl\u00fccklich"),
        ("backslash_escapes", r"gl\xfccklich"),
        ("backslash_escapes", r"gl\xc3\xbccklich"),
        ("backslash_escapes", r"gl\303\274cklich"),
        ("backslash_escapes", r"Das ist es.\n"),
        ("backslash_escapes", r"Das ist es.\nUnd das."),
        ("backslash_escapes", r"Er sagte \"nein\"."),
        ("csv_quotes", '"""Das"", sagte er."'),
        ("csv_quotes", '"Er sagte ""nein"""'),
        ("unknown_word", "Das ist <unk> Haus."),
        ("unknown_word", "Das ist ⁇ Haus."),
        ("unknown_word", "[UNK] Haus"),
        ("unknown_word", "Das UNK Haus"),
        ("lost_characters", "gl\ufffdcklich"),
    ],
)
def test_what_another_tool_leaves_is_found(name: str, text: str) -> None:
    found = {trace.name: trace for trace in search(with_lines(text))}
    assert name in found
    trace = found[name]
    assert (trace.split, trace.src, trace.tgt, trace.pairs) == ("train", 0, 10, 200)
    message = str(trace)
    assert message.startswith("train: 10 of 200 target lines ")
    assert trace.example in message
    assert message.endswith(f": {trace.advice}")
    assert trace.example.strip(".")[:4] in text


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
@pytest.mark.parametrize(
    "text",
    [
        "glücklich",
        "Straße",
        "être à l’heure",
        "Привет, как дела",
        "日本語です",
        "žluťoučký kůň",
        "Ελλάδα",
        "a – b",
        "€ 5",
        "😀",
    ],
)
@pytest.mark.parametrize("times", [1, 2])
def test_utf_8_read_in_another_encoding_is_found(text: str, encoding: str, times: int) -> None:
    spoilt = text
    for _ in range(times):
        content = spoilt.encode()
        if encoding == "cp1252":  # as browsers have it: bytes without a character stay
            spoilt = "".join(bytes([b]).decode("cp1252", "ignore") or chr(b) for b in content)
        else:
            spoilt = content.decode("latin-1")
    assert find_mojibake(text) is None
    place = find_mojibake(spoilt)
    assert place is not None
    assert text[:place].isascii()
    assert "mojibake" in {trace.name for trace in search(with_lines(spoilt))}


UTF8_READ_IN = [
    ("WINDOWS-1251", "cp1251"),
    ("MACINTOSH", "mac_roman"),
    ("CP437", "cp437"),
    ("CP850", "cp850"),
    ("CP866", "cp866"),
    ("KOI8-R", "koi8_r"),
    ("WINDOWS-1250", "cp1250"),
    ("WINDOWS-1253", "cp1253"),
    ("CP874", "cp874"),
]


@pytest.mark.parametrize(("name", "encoding"), UTF8_READ_IN)
@pytest.mark.parametrize(
    "text", ["Привет, как дела", "glücklich und groß", "żółta łódź", "mąż", "«Être là», dit-il à l’hôte."]
)
def test_utf_8_read_in_any_encoding_is_found_and_its_encoding_named(text: str, name: str, encoding: str) -> None:
    # Bytes without a character stay, as control characters, or are lost.
    spoilt = "".join(bytes([b]).decode(encoding, "ignore") or chr(b) for b in text.encode())
    [trace] = [trace for trace in search(with_lines(spoilt)) if trace.name == "mojibake"]
    assert trace.tgt == 10
    assert str(trace).endswith(": reverse it (iconv -f UTF-8 -t " + trace.advice.split(" -t ")[1])
    encoded_alike = text.encode().decode("cp437") == text.encode().decode("cp850")
    if not encoded_alike:
        assert f"iconv -f UTF-8 -t {name})" in trace.advice
    assert find_mojibake(text.encode().decode(encoding, "ignore")) is not None


@pytest.mark.parametrize(("name", "encoding"), [("GBK", "gbk"), ("CP932", "cp932"), ("BIG5", "big5")])
def test_utf_8_read_in_an_encoding_of_several_bytes_is_found(name: str, encoding: str) -> None:
    spoilt = "Привет, как дела".encode().decode(encoding, "replace")
    [trace] = [trace for trace in search(with_lines(spoilt)) if trace.name == "mojibake"]
    assert f"-t {name})" in trace.advice


@pytest.mark.parametrize("read_in", ["latin-1", "cp1252"])
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Привет, как дела?", "cp1251"),
        ("Привет, как дела?", "koi8_r"),
        ("Καλημέρα σας", "cp1253"),
        ("שלום לכולם", "cp1255"),
        ("こんにちは、元気ですか。", "shift_jis"),
        ("こんにちは、元気ですか。", "euc_jp"),
        ("我爱你们大家", "gbk"),
        ("안녕하세요 여러분", "euc_kr"),
        ("było i może", "cp1250"),
        ("Příliš mě to těší, řekl.", "cp1250"),
        ("Příliš mě to těší, řekl.", "iso8859_2"),
        ("değil, güneş", "cp1254"),
        ("über Münzen", "cp850"),
        ("über Münzen", "mac_roman"),
    ],
)
def test_text_of_another_encoding_read_as_latin_1_is_found(text: str, encoding: str, read_in: str) -> None:
    content = text.encode(encoding)
    spoilt = "".join(bytes([b]).decode(read_in, "ignore") or chr(b) for b in content)
    [trace] = search(with_lines(spoilt))
    assert trace.name == "wrong_encoding"
    assert "convert the original file from its own encoding" in str(trace)


@pytest.mark.parametrize("read_in", ["cp1251", "cp1253", "koi8_r", "cp866", "cp437"])
def test_latin_1_read_in_another_encoding_is_found(read_in: str) -> None:
    [trace] = search(with_lines("Die Münze war schön.".encode("latin-1").decode(read_in)))
    assert trace.name == "wrong_encoding"


def languages_of_spacy() -> list[str]:
    return sorted(path.parent.name for path in Path(spacy.lang.__file__).parent.glob("*/examples.py"))


@pytest.mark.parametrize("language", languages_of_spacy())
def test_sentences_and_words_of_no_language_look_spoilt(language: str) -> None:
    folder = Path(spacy.lang.__file__).parent / language  # whose package takes seconds to import
    texts = list(runpy.run_path(str(folder / "examples.py"))["sentences"])
    if (folder / "stop_words.py").exists():
        texts += sorted(runpy.run_path(str(folder / "stop_words.py"))["STOP_WORDS"])
    assert [text for text in texts if find_mojibake(text) is not None or find_wrong_encoding(text) is not None] == []


@pytest.mark.parametrize(
    "text",
    [
        "—Él está, “Él”… —Él",
        "¿Él? «É…»",
        "amanhã» yaptı» irmã»",
        "Ці люди",
        "Ја сам",
        "联通",
        "2√π, x√2",
        "H₂O, m³ 5°",
    ],
)
def test_marks_beside_letters_are_not_spoilt(text: str) -> None:
    assert find_mojibake(text) is None
    assert find_wrong_encoding(text) is None


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("mark", ['"', "'"])
def test_quotation_marks_around_nearly_all_lines_are_found(side: int, mark: str) -> None:
    def quoted(pair: Pair) -> Pair:
        sides = [f"{mark}{text}{mark}" if number == side else text for number, text in enumerate(pair)]
        return Pair(*sides)

    [trace] = search([*map(quoted, PAIRS[:190]), *PAIRS[190:]])
    assert str(trace).startswith(f"train: 190 of 200 {['source', 'target'][side]} lines are quoted as in CSV")
    assert "name a table .csv" in trace.advice
    assert search([*map(quoted, PAIRS[:100]), *PAIRS[100:]]) == []  # direct speech


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("https://tatoeba.org/{n}", "addresses"),
        ("www.example.org/a?b={n}", "addresses"),
        ("name{n}@example.org", "addresses"),
        ("image_{n}.jpg", "names of files"),
        ("A picture {n}.JPG", "names of files"),
        ("/data/audio/{n}", "names of files"),
        (r"C:\audio\{n}", "names of files"),
        ("sent-{n}", "ids"),
        ("{n}", "ids"),
        ("deu", "codes of languages"),
        ("pt-BR", "codes of languages"),
        ("CC BY 2.0 FR", "one and the same text"),
        ("\\N", "one and the same text"),
    ],
)
@pytest.mark.parametrize("side", [0, 1])
def test_a_side_that_is_no_text_is_named(line: str, kind: str, side: int) -> None:
    lines = [line.format(n=1000 + n * n) for n in range(180)]
    pairs = [Pair(*((text, tgt) if side == 0 else (src, text))) for text, (src, tgt) in zip(lines, PAIRS, strict=False)]
    found = {trace.name: trace for trace in search([*pairs, *PAIRS[180:]])}
    message = str(found["identifiers"])
    assert message.startswith(f"train: 180 of 200 {['source', 'target'][side]} lines are {kind}")
    assert lines[0] in message
    assert "data.columns" in message


def test_what_is_quoted_throughout_is_reported_once() -> None:
    quoted = [Pair(*(f'"Say ""{text}""."' for text in pair)) for pair in PAIRS]
    assert [trace.name for trace in search(quoted)] == ["quoted"]
    marked = [Pair(*(f"<s> {text} </s>" for text in pair)) for pair in PAIRS]
    assert [trace.name for trace in search(marked)] == ["sentence_marks"]


def test_words_and_repeated_pairs_are_text() -> None:
    words = [
        Pair(f"{'abcdefghij'[n % 10]}at{'xyz'[n // 10]}", f"Ka{'tzpqrstuvw'[n % 10]}e{'xyz'[n // 10]}")
        for n in range(30)
    ]
    assert search(words) == []
    assert search([Pair("Yes.", "Ja.")] * 30) == []
    assert [trace.name for trace in search([Pair(src, "Ja.") for src, _ in PAIRS[:9]])] == []  # too few to judge


@pytest.mark.parametrize(
    "text",
    [
        "IRMÃ” disse.",
        "„Spaß…“, sagte er, „Gruß”",
        "Il dit : « Café…» et “olé…”",
        "Está»…",
        "À bientôt…",
        "CAFÉ” OLÉ»",
        "Ç’est ça…",
        "3 ×… 4",
        "Âge, Âme, São, João",
        "Ðe Þorn",
        "ÎLE, ÊTRE",
        "Ö… na ja",
    ],
)
def test_letters_before_marks_are_none(text: str) -> None:
    assert find_mojibake(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "C'est vrai ?",
        "यह घर है ।",
        "a@b.org, @@, #1 ##",
        "## Überschrift",
        "##Überschrift",
        "### Das ##",
        r"C:\\new\\test und $\\nu \\neq \\rho$",
        "Er sagte: „<3“ und <2de> Hallo.",
        "Ġorġ hu t-tifel ta' Ġwanni, u l-mara tiegħu.",
        'Er sagte "nein" und "ja".',
        "AT&amp;T, &amp;",
        "if a < b and c > d",
        "Der <b>Titel</b> ist da.",
        "Er kommt z. B. ...",
        "我爱你 iPhone 手机。",
        "UNKNOWN, JUNK",
        "a ... .",
    ],
)
def test_ordinary_text_has_no_trace(text: str) -> None:
    assert [trace.name for trace in search(with_lines(text, times=5))] == []


@pytest.mark.parametrize("text", ["Das Kind schläft .", "a &apos; b"])
def test_tokenised_text_may_be_declared(text: str) -> None:
    assert search(with_lines(text), tokenized=True) == []
    assert search(with_lines(text, times=1)) == []


def test_a_trace_of_both_sides_is_one_line() -> None:
    pairs = [Pair(f"▁Yes {n}", f"▁Ja {n}") for n in range(20)]
    [trace] = search(pairs)
    assert str(trace).startswith("train: 20 of 20 source and 20 of 20 target lines have the mark ▁ of SentencePiece")


def test_an_example_is_short_and_printable() -> None:
    [trace] = search(with_lines("x" * 900 + " gl\ufffdck \x1b[2J\u202e" + "y" * 50))
    assert trace.name == "lost_characters"
    assert len(trace.example) < 90
    assert trace.example.isprintable()
    assert "\ufffd" in trace.example


@pytest.mark.parametrize("lines", [-10, -7, -4, -3, -1, 1, 2, 5, 10])
def test_a_shifted_side_is_found(lines: int) -> None:
    begin = max(0, lines)
    targets = [*(["Nichts."] * begin), *TARGETS[max(0, -lines) :]]
    pairs = [Pair(*pair) for pair in zip(SOURCES, targets, strict=False)]
    [trace] = search(pairs)
    plural = "s" if abs(lines) > 1 else ""
    where = f"{abs(lines)} line{plural} {'down' if lines > 0 else 'up'}"
    assert str(trace).startswith(f"train: the target looks shifted by {where} against the source (their lengths")
    assert search(PAIRS) == []


def random_lengths(number: int, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).integers(2, 40, number).astype(float)


@pytest.mark.parametrize("number", [200, 300, 5000])
def test_sides_that_have_nothing_to_do_with_each_other_are_found(number: int) -> None:
    lengths = random_lengths(number, 3).astype(int)
    others = np.random.default_rng(4).permutation(lengths)
    pairs = [Pair("ab " * src, "cde " * tgt) for src, tgt in zip(lengths, others, strict=True)]
    [trace] = search(pairs)
    assert trace.name == "unrelated"
    start = "train: source and target lines do not look like translations of one another (their lengths correlate by "
    assert str(trace).startswith(start)


def test_a_low_correlation_is_not_enough_to_be_unrelated() -> None:
    src, noise = random_lengths(4000, 5), random_lengths(4000, 6)
    related = np.log1p(np.stack([src, 0.5 * src + noise], axis=1))
    assert 0.3 < np.corrcoef(related.T)[0, 1] < 0.6
    assert find_unrelated([related]) is None
    unrelated = np.log1p(np.stack([src, noise], axis=1))
    assert find_unrelated([unrelated]) == pytest.approx(np.corrcoef(unrelated.T)[0, 1])
    assert find_unrelated([unrelated[:199]]) is None  # too few
    assert find_unrelated([np.log1p(np.stack([20 + src / 20, noise], axis=1))]) is None  # hardly any variation
    assert find_unrelated([]) is None


def test_a_shift_from_some_line_on_is_located() -> None:
    chance = np.random.default_rng(1)
    lengths = chance.integers(2, 40, 2000)
    sources, targets = ([word * n for n in lengths] for word in ("ab ", "cde "))
    del targets[1500]
    pairs = [Pair(*pair) for pair in zip(sources, targets, strict=False)]
    [trace] = search(pairs)
    assert "shifted by 1 line up against the source in 4 of 16 places, first near line 1,537" in str(trace)


def test_no_order_of_lines_is_a_shift() -> None:
    chance = np.random.default_rng(2)
    lengths = chance.integers(2, 40, 2000)
    for order in (lengths, np.sort(lengths), np.sort(lengths)[::-1], np.repeat(lengths[:200], 10)):
        noise = chance.integers(0, 4, len(order))
        assert find_shift([np.log1p(np.stack([order * 3, order * 4 + noise], axis=1).astype(float))]) is None
    unrelated = np.log1p(chance.integers(1, 200, (5000, 2)).astype(float))
    assert find_shift([unrelated]) is None
    assert find_shift([np.ones((500, 2))]) is None
    assert find_shift([]) is None


def test_a_sample_is_evenly_spaced_and_bounded() -> None:
    sample = Sample()
    for chunk in range(50):
        first = chunk * 1000 + 1
        sample.add(take_runs([Pair(str(first + n), "x" * 5000) for n in range(1000)], first, most=4))
    assert MOST_RUNS / 2 < len(sample.runs) <= MOST_RUNS
    firsts = [run.first_line for run in sample.runs]
    assert firsts == sorted(firsts)
    assert firsts[0] == 1
    assert firsts[-1] > 45_000
    assert all(run.pairs[0].src == str(run.first_line) for run in sample.runs)
    assert {len(pair.tgt) for run in sample.runs for pair in run.pairs} == {1000}
    assert take_runs(PAIRS) == [Run(1, PAIRS[:RUN]), Run(RUN + 1, PAIRS[RUN:])]


def prepare(tmp_path: Path, splits: dict[str, list[Pair]], *settings: str) -> PreparedData:
    files = []
    for name, pairs in splits.items():
        for side in (0, 1):
            path = tmp_path / f"{name}.{['en', 'de'][side]}"
            path.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
            files.append(str(path))
    overrides = ["data.src_language=en", "data.tgt_language=de", "text.tokenizer=whitespace", *settings]
    return nmt.preprocess("base", source=files, output=tmp_path / "out", overrides=overrides, overwrite=True)


SPLITS = {"train": PAIRS[:150], "valid": PAIRS[150:175], "test": PAIRS[175:]}


def test_every_split_is_searched_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    splits = {name: [Pair(f"{pair.src} <unk>", pair.tgt) for pair in pairs] for name, pairs in SPLITS.items()}
    report = prepare(tmp_path, splits).report
    warnings = [message for message in caplog.messages if " source lines have " in message]
    assert [message.split(" have")[0] for message in warnings] == [
        f"{name}: {n} of {n} source lines" for name, n in (("train", 150), ("valid", 25), ("test", 25))
    ]
    assert [(trace["split"], trace["name"], trace["src"]) for trace in report["traces"]] == [
        ("train", "unknown_word", 150),
        ("valid", "unknown_word", 25),
        ("test", "unknown_word", 25),
    ]
    assert json.loads((tmp_path / "out/report.json").read_text("utf-8"))["traces"] == report["traces"]
    assert "WARNING: train: 150 of 150 source lines have a mark" in (tmp_path / "out/report.md").read_text("utf-8")


def test_clean_text_has_no_traces_in_its_report(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    report = prepare(tmp_path, SPLITS).report
    assert "traces" not in report
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [message for message in warnings if "tokens in validation are unknown" not in message] == []


@pytest.mark.parametrize("split", SPLITS)
def test_a_file_of_markup_is_refused(tmp_path: Path, split: str) -> None:
    marked = [Pair(f'<seg id="{n}">{src}</seg>', tgt) for n, (src, tgt) in enumerate(SPLITS[split])]
    with pytest.raises(DataError, match=f"{split}: .* are markup of a test set, not sentences .*<seg>"):
        prepare(tmp_path, {**SPLITS, split: [Pair("<srcset>", "x"), *marked]})
    assert not (tmp_path / "out").exists()


def test_pairs_without_a_reference_are_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    valid = [*SPLITS["valid"], Pair("", ""), Pair("Hi.", "\u200b")]
    test = [Pair("Where is it?", " "), Pair("", "Wo ist es?"), *SPLITS["test"]]
    report = prepare(tmp_path, {**SPLITS, "valid": valid, "test": test}).report
    assert report["pairs"] == {"train": 150, "valid": 25, "test": 26}
    assert [message for message in caplog.messages if "empty" in message] == [
        "valid: 2 of 27 target lines are empty: these pairs are left out",
        "test: 1 of 27 target lines are empty: these pairs are left out",
        "test: 1 of 27 source lines are empty, and their targets are not: delete these pairs",
    ]
    assert len((tmp_path / "out/test.jsonl").read_text("utf-8").splitlines()) == 26


def test_traces_are_named_where_preparing_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataError):
        prepare(tmp_path, {**SPLITS, "train": [Pair("▁ 1", "▁ 2")] * 50})
    assert any("train: 50 of 50 source" in message for message in caplog.messages)


def test_the_bundled_sample_has_no_trace(tmp_path: Path) -> None:
    config = load_config("base", ["data.src_language=en", "data.tgt_language=de"])
    lines = Path("data/sample/deu.txt").read_text("utf-8").split("\n")[:-1]
    path = tmp_path / "sample.tsv"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert open_corpus([path], config.data)
    assert search([Pair(*line.split("\t")[:2]) for line in lines]) == []
