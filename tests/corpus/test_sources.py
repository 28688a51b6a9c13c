import bz2
import gzip
import io
import itertools
import lzma
import random
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config import DataSection
from nmt.corpus import Pair, sources
from nmt.corpus import lines as lines_of_files
from nmt.corpus.sources import LineReport, Source, open_corpus, parse_chunk, read_pairs
from nmt.system.errors import DataError, printable
from nmt.system.limits import MAX_LINE

LONGEST = b"x" * MAX_LINE
Content = str | bytes
HELLO = [Pair("Hi.", "Hallo!"), Pair("Run!", "Lauf!")]
FORMATS = ["txt", "gz", "bz2", "xz", "zip"]
TABLE = "Hi.\tHallo!\nRun!\tLauf!\n"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def written(path: Path, data: Content) -> Path:
    content = data.encode() if isinstance(data, str) else data
    path.write_bytes(COMPRESS.get(path.suffix, bytes)(content))
    return path


def zipped(members: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, text in members.items():
            file.writestr(name, text)
    return buffer.getvalue()


def collect(source: Source) -> tuple[list[Pair], LineReport]:
    """Pairs and report, without malformed lines."""
    report, pairs = LineReport(0), []
    for chunk in source.chunks(report):
        found, lines = parse_chunk(chunk)
        pairs += found
        report.add(lines)
    return pairs, report


def read(*paths: Path, **options: Any) -> list[Pair]:
    return read_pairs(open_corpus(paths, DataSection(**options))["train"])


def refusal(*paths: Path, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        read(*paths, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", ["deu.txt", "deu.tsv", "deu", "deu.txt.gz", "deu.bz2", "deu.tsv.xz", "DEU.TXT.GZ"])
def test_a_tab_separated_file_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(COMPRESS.get(path.suffix.lower(), bytes)(TABLE.encode()))
    corpus = open_corpus([path])
    assert collect(corpus["train"]) == (HELLO, LineReport(read=2))
    assert list(corpus) == ["train"]
    assert str(corpus["train"]) == f"{path}: source in column 1, target in column 2"


@pytest.mark.parametrize(
    ("first", "is_header"),
    [
        ("English\tGerman", True),
        ("\ufeffen\tDE\r", True),
        ('"source"\t"target"\tCC-BY', True),
        (" src \ttgt", True),
        ("text_en\ttext_de", True),
        ("english_sentence\tgerman-sentence", True),
        ("eng\tdeu (text)", False),  # a name that a sentence may begin with must be the whole title
        ("English is hard.\tDeutsch ist schwer.", False),
        ("English\tEnglisch", False),
        ("x-en-1\tx-de-1\nx-en-2\tx-de-2", False),
        ("German\tGerman", False),  # one name twice, and names of other languages, could be a pair
        ("English", False),
        ("a\tb\tEN\tDE\nc\td\tEN\tDE", False),  # in every line: what the pair is written in
    ],
)
def test_a_header_is_no_pair(tmp_path: Path, caplog: pytest.LogCaptureFixture, first: str, is_header: bool) -> None:
    path = written(tmp_path / "a.tsv", f"{first}\n{TABLE}English\tGerman\nno pair\n")
    pairs, report = collect(open_corpus([path])["train"])
    assert pairs[-3:] == [*HELLO, Pair("English", "German")]
    lines = first.count("\n") + 1
    assert len(pairs) == 3 + (not is_header and "\t" in first) * lines
    assert report.places["too_few_columns"][-1] == f"{path}:{4 + lines}"  # the header is a line
    assert [message.startswith(f"{path}:1: ") for message in caplog.messages] == [True] * is_header


@pytest.mark.parametrize(
    ("header", "options", "columns"),
    [
        ("de\tEN", {}, [2, 1]),
        ("id\tenglish\tgerman", {}, [2, 3]),
        ("id\tenglish\tgerman", {"reverse": True}, [2, 3]),
        ("target\tsource\tid", {"columns": (2, 3)}, [2, 1]),
    ],
)
def test_a_header_that_has_the_languages_in_other_columns_is_refused(
    tmp_path: Path, header: str, options: dict[str, Any], columns: list[int]
) -> None:
    path = written(tmp_path / "a.tsv", f"{header}\nx\ty\tz\n")
    setting = f"`overrides={{'data.columns': {columns}}}`"
    assert refusal(path, **options) == f"{path}:1: source and target are columns {columns}: {setting}"
    assert read(path, **{**options, "columns": tuple(columns)}) == [
        Pair(*("xyz"[column - 1] for column in (reversed(columns) if options.get("reverse") else columns)))
    ]


QUOTED = [Pair("Hi, you.", 'Er sagt; "Hallo!"'), Pair("a b", "c"), Pair("Run!", "Lauf!")]


def test_a_first_line_of_csv_that_is_no_header_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "nmt")
    path = written(tmp_path / "a.csv", "Hi.;Hallo.\nRun!;Lauf!\n")
    assert read(path) == [Pair("Hi.", "Hallo."), Pair("Run!", "Lauf!")]
    assert caplog.messages[1:] == [
        f"{path}:1: names no languages: read like the lines below; if it is a header, delete it"
    ]


@pytest.mark.parametrize("suffix", [".csv", ".CSV", ".csv.gz"])
@pytest.mark.parametrize("separator", [";", ",", "\t"])
def test_csv_is_read_and_its_columns_are_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, separator: str, suffix: str
) -> None:
    caplog.set_level("INFO", "nmt")
    rows = ["id,en,de", '1,"Hi, you.","Er sagt; ""Hallo!"""', '2,"a\r\nb",c', "", "3,Run!,Lauf!", "4,short"]
    text = re.sub(r'(?<=[\w!"]),(?=[\w"])', separator, "\r\n".join(rows))
    path = written(tmp_path / f"pairs{suffix}", text)
    pairs, report = collect(open_corpus([path], DataSection(columns=(2, 3)))["train"])
    assert pairs == QUOTED
    assert caplog.messages[0] == f"{path}: columns 1 id, 2 en, 3 de"
    # The line breaks within a cell and between rows count, so that places are those of an editor.
    assert report == LineReport(6, 2, {"too_few_columns": 1}, {"too_few_columns": [f"{path}:7"]})


def test_what_separates_csv_is_in_most_of_its_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "Yes, yes, yes.;Ja, ja, ja.\nHi.;Hallo!\nRun!;Lauf!\n")
    assert read(path) == [Pair("Yes, yes, yes.", "Ja, ja, ja."), *HELLO]


@pytest.mark.parametrize(("cell", "line"), [('"open', 2), ('"closed" too early', 2)])
def test_quotation_marks_that_do_not_match_are_located(tmp_path: Path, cell: str, line: int) -> None:
    path = written(tmp_path / "a.csv", f"Hi.;Hallo!\n{cell};b\nRun!;Lauf!\n")
    message = refusal(path)
    assert message.startswith(f"{path}:{line}: not CSV (")
    assert message.endswith("); quote cells as RFC 4180 has it")


def test_csv_under_another_name_is_refused(tmp_path: Path) -> None:
    assert "only one column in 2 lines" in (message := refusal(written(tmp_path / "a.txt", "Hi.;Hallo!\nRun!;Lauf!\n")))
    assert "name a file with other separators .csv" in message


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("reverse", [False, True])
def test_what_two_files_have_before_their_languages_is_enough(tmp_path: Path, suffix: str, reverse: bool) -> None:
    texts = {"en": "Hi.\nRun!\n", "de": "Hallo!\nLauf!\n", "fr": "non\n"}
    for name, text in texts.items():
        written(tmp_path / f"corpus.{name}{suffix}", text)
    expected = [Pair(*pair[::-1]) for pair in HELLO] if reverse else HELLO
    assert read(tmp_path / "corpus", reverse=reverse) == expected
    splits = open_corpus([tmp_path / "corpus"] * 3)
    assert [read_pairs(source) for source in splits.values()] == [HELLO] * 3
    assert list(splits) == ["train", "valid", "test"]
    assert refusal(tmp_path / "corpus", tgt_language="nl") == (
        f"{tmp_path}/corpus: no such file, with or without .en and .nl"
    )
    written(tmp_path / "corpus", TABLE)  # a file of the whole name comes first
    assert str(open_corpus([tmp_path / "corpus"])["train"]).startswith(f"{tmp_path}/corpus: source in")


def test_a_zip_is_read_without_hidden_files_and_those_about_the_data(tmp_path: Path) -> None:
    others = ("_about.txt", "__MACOSX/deu.txt", ".DS_Store", "a/.hidden/b.txt", "LICENSE", "a/README.md", "Licence.txt")
    members = {**dict.fromkeys(others, "x"), "deu.txt": "Hi.\tHallo!\tCC-BY\nRun!\tLauf!\tCC-BY\n"}
    assert read(written(tmp_path / "deu-eng.zip", zipped(members))) == HELLO


def test_other_columns_can_be_named_and_short_lines_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "ids.tsv", "1\tHallo!\t2\tHi.\n3\tkurz\n\n4\tLauf!\t5\tRun!")
    pairs, report = collect(open_corpus([path], DataSection(columns=(4, 2)))["train"])
    assert pairs == HELLO
    assert report == LineReport(4, 1, {"too_few_columns": 1}, {"too_few_columns": [f"{path}:2"]})


@pytest.mark.parametrize(
    ("data", "pairs"),
    [
        (b"\xef\xbb\xbfHi.\tHallo!\r\nRun!\tLauf!\r\n", HELLO),
        (b"Hi.\tHallo!\nRun!\tLauf!", HELLO),
        (b"Hi.\tHallo!\r\nRun!\tLauf!\r", HELLO),
        (b"Hi.\tHallo!\r\r\n", [Pair("Hi.", "Hallo!\r")]),
        (b"\n \nHi.\tHallo!\n\t\r\nRun!\tLauf!\n\n", [HELLO[0], Pair("", ""), HELLO[1]]),
        (b"Run!\tLauf!\na\0b\tc\0\n", [HELLO[1], Pair("a\0b", "c\0")]),
        ("a\u2028b\u0085c\x0cd\re\x1cf\tx\n".encode(), [Pair("a\u2028b\u0085c\x0cd\re\x1cf", "x")]),
        ("x\t\ufeffy\n".encode(), [Pair("x", "\ufeffy")]),  # a mark at the start of the file alone is none of its text
    ],
)
def test_only_line_feeds_end_lines(tmp_path: Path, data: bytes, pairs: list[Pair]) -> None:
    assert read(written(tmp_path / "a.txt", data)) == pairs


def test_parallel_files_are_read(tmp_path: Path) -> None:
    odd = "a\u2028b\u0085c\x0cd\re\x1cf\tg"
    src = written(tmp_path / "a.en", f"\ufeff{odd}\r\nRun!\r\n")
    tgt = written(tmp_path / "a.de.gz", "\ufeffHallo!\nLauf!")
    corpus = open_corpus([src, tgt])
    assert collect(corpus["train"]) == ([Pair(odd, "Hallo!"), HELLO[1]], LineReport(read=2))
    assert str(corpus["train"]) == f"{src} and {tgt}: parallel lines"


@pytest.mark.parametrize("names", [("train", "valid"), ("train", "valid", "test")])
@pytest.mark.parametrize("reverse", [False, True])
def test_given_splits_keep_their_names(tmp_path: Path, names: tuple[str, ...], reverse: bool) -> None:
    texts = {f"{name}.{end}": text for name in names for end, text in (("en", name), ("de", name.upper()))}
    paths = [written(tmp_path / name, f"{text}\n2") for name, text in texts.items()]
    corpus = open_corpus(paths, DataSection(first_lines=1, reverse=reverse))
    assert list(corpus) == list(names)
    for name, source in corpus.items():
        pair = Pair(name, name.upper())
        whole = [pair, Pair("2", "2")] if name != "train" else [pair]  # first_lines counts for training alone
        assert read_pairs(source) == [Pair(*p[::-1]) if reverse else p for p in whole]


@pytest.mark.parametrize("count", [0, 5, 7])
def test_other_numbers_of_files_are_refused(tmp_path: Path, count: int) -> None:
    message = refusal(*[tmp_path / "a"] * count)
    assert f"{count} files given" in message
    assert "1 (tab-separated text), 2 (source, target), 3 (" in message


def test_malformed_lines_are_counted_with_their_places(tmp_path: Path) -> None:
    lines = [b"a\tb"] * 20
    lines[1], lines[3], lines[4] = b"short", b"\xff\tb", b""
    for place in range(10, 17):
        lines[place] = b"a\t\xe9"
    path = written(tmp_path / "a.tsv", b"\n".join(lines))
    pairs, report = collect(open_corpus([path])["train"])
    assert pairs == [Pair("a", "b")] * 10
    assert (report.read, report.blank) == (20, 1)
    assert report.malformed == {"too_few_columns": 1, "not_utf8": 8}
    places = [f"{path}:{number}" for number in (4, 11, 12, 13, 14)]
    assert report.places == {"too_few_columns": [f"{path}:2"], "not_utf8": places}

    report.check(0.45)
    LineReport(read=10, blank=10).check(None)
    with pytest.raises(DataError) as caught:
        report.check(0.44)
    assert str(caught.value) == (
        f"9 of 20 lines are malformed: 1 with too few columns ({path}:2); 8 not UTF-8 ({', '.join(places)}, ...); "
        "convert it: iconv -f WINDOWS-1252 -t UTF-8, or raise data.max_malformed (0.44) above 0.45 to skip them"
    )


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.tsv.bz2", "a.tsv.xz", "a.zip"])
def test_a_line_longer_than_a_megabyte_is_skipped(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    lines = [b"1\ta", LONGEST[:-2] + b"\t2", LONGEST + b"\t3", b"4\td", LONGEST[1:] + "\tä".encode(), b"6\tf"]
    data = b"\n".join([*lines, LONGEST * 3 + b"\tend"])
    written(path, zipped({"a.tsv": data.decode()}) if name == "a.zip" else data)
    pairs, report = collect(open_corpus([path])["train"])
    assert pairs == [Pair("1", "a"), Pair("x" * (MAX_LINE - 2), "2"), Pair("4", "d"), Pair("6", "f")]
    places = [f"{path}:{number}" for number in (3, 5, 7)]
    assert report == LineReport(7, 0, {"too_long": 3}, {"too_long": places})
    assert read(path, first_lines=2) == pairs[:2]
    assert refusal(path) == (
        f"3 of 7 lines are malformed: 3 longer than 1 MB ({', '.join(places)}); write one sentence per line"
    )


@pytest.mark.parametrize(
    ("content", "longer"),
    [
        (LONGEST + b"\n", False),
        (LONGEST[1:] + b"\r\n", False),
        (LONGEST + b"\r\n", True),
        (LONGEST + b"x\n", True),
        (b"\xef\xbb\xbf" + LONGEST[2:], True),  # the mark counts
        (b"\xef\xbb\xbf" + LONGEST[3:], False),
    ],
)
def test_a_line_may_have_a_megabyte(tmp_path: Path, content: bytes, longer: bool) -> None:
    path = written(tmp_path / "a.txt", content)
    (line,) = lines_of_files.read_file_lines(path, None)
    assert (line == lines_of_files.TOO_LONG) == longer
    assert longer or line == content.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n") + b"\n"


@pytest.mark.parametrize("at", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("numbers", [(0,), (2,), (3,), (0, 1, 2, 3), (1, 2)])
@pytest.mark.parametrize(("line", "kind"), [(LONGEST + b"x", "too_long"), (b"\xe4\xf6", "not_utf8")])
def test_a_malformed_line_drops_its_parallel_line(
    tmp_path: Path, at: tuple[int, ...], numbers: tuple[int, ...], line: bytes, kind: str
) -> None:
    rows = [[str(number).encode(), str(number).encode()] for number in range(4)]
    for number, side in itertools.product(numbers, at):
        rows[number][side] = line
    sides = [b"\n".join(row[side] for row in rows) for side in (0, 1)]
    paths = [written(tmp_path / name, data) for name, data in zip(("a.en.gz", "a.de"), sides, strict=True)]
    pairs, report = collect(open_corpus(paths)["train"])
    assert pairs == [Pair(str(number), str(number)) for number in range(4) if number not in numbers]
    places = [f"{paths[at[0]]}:{number + 1}" for number in numbers]
    assert report == LineReport(4, 0, {kind: len(numbers)}, {kind: places})
    assert f"of 4 lines are malformed: {len(numbers)} {sources.KINDS[kind]} ({places[0]}" in refusal(*paths)


def test_long_lines_of_one_file_alone_are_counted(tmp_path: Path) -> None:
    paths = [written(tmp_path / "a.en", LONGEST * 2 + b"\n1\n2"), written(tmp_path / "a.de", LONGEST * 2)]
    assert ": 3 and 1 lines; " in refusal(*paths)


def test_strict_reading_allows_no_malformed_line(tmp_path: Path) -> None:
    none = written(tmp_path / "none.txt", "Grüß\tGott\n".encode("latin-1"))
    assert (
        refusal(none)
        == f"1 of 1 lines are malformed: 1 not UTF-8 ({none}:1); convert it: iconv -f WINDOWS-1252 -t UTF-8"
    )
    assert "1 not UTF-8" in refusal(none, written(tmp_path / "a.de", "Gott\n"))
    short = written(tmp_path / "short.txt", "Hi.\tHallo!\nRun!\n")
    assert refusal(short) == f"1 of 2 lines are malformed: 1 with too few columns ({short}:2); correct the file"


def changed(data: bytes, *places: tuple[int, int]) -> bytes:
    """An archive of one file in which fields of its two headers have other values."""
    content = bytearray(data)
    for signature, (place, value) in zip((b"PK\x03\x04", b"PK\x01\x02"), places, strict=True):
        content[content.index(signature) + place] = value
    return bytes(content)


LONG = b"".join(b"%d\t%d\n" % (number, number * number) for number in range(500))
STORED = zipped({"a.txt": "Hi.\tHallo!\n"})
ODD = "\\x1b[2J\\u202e\\n.txt"
ONE_NEEDED = "in the archive, exactly one is needed; unpack it and give the text file"
UNUSABLE = [  # name, content (None: missing; 0: a folder), message
    *(
        (f"{name}.{end}", None, "{}: no such file; check the path")
        for name in ("x", "a\0b", "\ud800")
        for end in FORMATS
    ),
    *((f"x.{end}", 0, "{}: is a folder and has no file; give a file") for end in FORMATS),
    *(
        ("a.txt", TABLE.encode(name), f"{{}}: looks like {name[:6]}; convert it: iconv -f {name[:6]} -t UTF-8")
        for name in ("UTF-16", "UTF-16-LE", "UTF-16-BE", "UTF-32", "UTF-32-BE")
    ),
    ("a.txt", b"\xfe\xff" + "日本\t日本\n".encode("utf-16-be"), "looks like UTF-16"),  # the mark is enough
    *(
        ("a.txt", content, "{}: is not text; give a file of lines of text, such as source<TAB>target")
        for content in (
            bytes(1000),
            struct.pack("<4sHH500i", b"\x7fELF", 2, 1, *range(500)),
            b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(5000),
            b"%PDF-1.7\n" + random.Random(2).randbytes(5000),
        )
    ),
    ("a.txt", b"a\tb\r" * MAX_LINE, "{}: lines end only in a carriage return"),
    ("a.txt", gzip.compress(b"a\tb\n"), "{}: contains compressed data"),
    ("a.gz", gzip.compress(gzip.compress(b"a\tb\n")), "{}: contains compressed data"),
    *(
        (f"a{end}", damaged, "{}: cannot be unpacked (")
        for end, pack in COMPRESS.items()
        for damaged in (b"plain text", pack(LONG)[:-12], pack(LONG)[:40] + b"?" * 30)
    ),
    ("page.zip", b"<html>", "{}: cannot be unpacked ("),
    ("a.zip", STORED.replace(b"Hallo", b"Holla"), "cannot be unpacked (Bad CRC-32"),
    ("a.zip", changed(STORED, (6, 1), (8, 1)), "{}: cannot be unpacked ("),  # encrypted
    ("a.zip", changed(STORED, (8, 99), (10, 99)), "{}: cannot be unpacked ("),  # a compression that is not known
    ("a.zip", changed(STORED, (4, 200), (6, 200)), "{}: cannot be unpacked (zip file version"),
    ("a.zip", zipped({}), f"{{}}: no data file {ONE_NEEDED}"),
    ("a.zip", zipped({"_about.txt": "x", "folder/": ""}), f"{{}}: no data file {ONE_NEEDED}"),
    ("a.zip", zipped({"a.txt": "x", "b/c.txt": "x"}), f"{{}}: 2 data files (a.txt, b/c.txt) {ONE_NEEDED}"),
    (
        "many.zip",
        zipped({f"{number}\x1b[2J\u202e\n.txt": "" for number in range(2_000)}),
        f"2,000 data files ({', '.join(f'{n}{ODD}' for n in range(5))} and 1,995 more) {ONE_NEEDED}",
    ),
    *(
        ("empty.txt", text.encode(), "{}: empty; give a file with lines of source<TAB>target")
        for text in ("", "\n", " \n\r\n\n", "\ufeff", "\ufeff\n")
    ),
]


@pytest.mark.parametrize(("name", "content", "message"), UNUSABLE, ids=map(str, range(len(UNUSABLE))))
def test_an_unusable_file_is_refused(tmp_path: Path, name: str, content: bytes | int | None, message: str) -> None:
    path = tmp_path / name
    if content == 0:
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    assert message.format(printable(str(path))) in refusal(path)
    assert content is not None or "no such file" in refusal(written(tmp_path / "a", "1\n"), path)


@pytest.mark.parametrize("suffix", [*COMPRESS, ".zip"])
def test_any_damage_is_read_or_refused(tmp_path: Path, suffix: str) -> None:
    content = zipped({"_about.txt": "x", "ä.txt": LONG.decode()}) if suffix == ".zip" else LONG
    path = written(tmp_path / f"a{suffix}", content)
    whole, chance = path.read_bytes(), random.Random(1)
    refusals = []
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(-200, min(100, len(data)))] = chance.randrange(256)
        path.write_bytes(data[: chance.choice([None, chance.randrange(len(data))])])
        try:
            read(path)
        except DataError as error:
            refusals.append(str(error))
    assert len(refusals) > 200
    assert not [message for message in refusals if "\n" in message]


@pytest.mark.parametrize("numbers", [(0, 3), (1, 2), (2, 5), (4, 3), (7, 2), (9, 8)])
def test_both_totals_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, int]) -> None:
    monkeypatch.setattr(lines_of_files, "BLOCK", 8)  # two lines of both
    paths = [written(tmp_path / f"{side}", "x\n" * number) for side, number in zip("ab", numbers, strict=True)]
    assert refusal(*paths) == (
        f"{paths[0]} and {paths[1]}: {numbers[0]} and {numbers[1]} lines; parallel files need one sentence per line "
        "and the same number of lines"
    )


@pytest.mark.parametrize("suffix", [".txt", *COMPRESS])
def test_empty_parallel_files_are_refused(tmp_path: Path, suffix: str) -> None:
    empty = written(tmp_path / f"empty{suffix}", "")
    assert refusal(empty, empty) == f"{empty} and {empty}: empty; give files with one sentence per line"


ENGLISH = "30\teng\tRun!\n4\teng\tHi.\n\n12\teng\tNobody links me.\n"
GERMAN = "77\tdeu\tLauf!\n1\tdeu\tHallo!\n5\tdeu\tRenn!\n"
LINKS = "1\t4\n4\t1000\n\n30\t77\n5\t30\n88\t99\n4\t30\n"


def export(folder: Path, src: Content = ENGLISH, tgt: Content = GERMAN, links: Content = LINKS) -> list[Path]:
    parts = {"eng.tsv.bz2": src, "deu.tsv": tgt, "links.csv": links}
    return [written(folder / name, data) for name, data in parts.items()]


def test_linked_sentences_are_pairs(tmp_path: Path) -> None:
    paths = export(tmp_path)
    corpus = open_corpus(paths)
    pairs, report = collect(corpus["train"])
    assert pairs == [Pair("Hi.", "Hallo!"), Pair("Run!", "Lauf!"), Pair("Run!", "Renn!")]  # in the order of the links
    assert report == LineReport(read=4 + 3 + 7, blank=2)
    assert list(corpus) == ["train"]
    assert str(corpus["train"]) == f"{paths[0]} and {paths[1]}: sentences, linked by {paths[2]}"
    assert read(*paths, reverse=True) == [Pair(*pair[::-1]) for pair in pairs]
    assert read(*paths, first_lines=4) == pairs[:2]


def test_the_detailed_export_and_both_directions_of_links_are_read(tmp_path: Path) -> None:
    detailed = "4\teng\tHi.\tCK\t2010-01-01 00:00:00\t\\N\r\n"
    paths = export(tmp_path, detailed, "\ufeff1\tdeu\tHallo\u2028!\tx\ty\n", "4\t1\r\n1\t4\r\n")
    assert read(*paths) == [Pair("Hi.", "Hallo\u2028!")] * 2


@pytest.mark.parametrize(
    ("part", "line", "kind"),
    [
        (0, b"9\teng", "too_few_columns"),
        (0, b"x9\teng\ta", "not_a_number"),
        (0, b"9" * 30 + b"\teng\ta", "not_a_number"),
        (0, b"9\teng\tgr\xfc\xdf", "not_utf8"),
        (2, b"1", "too_few_columns"),
        (2, b"9" * 5000 + b"\t4", "not_a_number"),
        (2, b"\xff\xff\x00\t4", "not_utf8"),
        (0, LONGEST + b"x", "too_long"),
    ],
)
def test_malformed_lines_of_an_export_are_located(tmp_path: Path, part: int, line: bytes, kind: str) -> None:
    parts = [ENGLISH.encode(), GERMAN.encode(), LINKS.encode()]
    first, rest = parts[part].split(b"\n", 1)
    parts[part] = b"\n".join([first, line, rest])
    paths = export(tmp_path, *parts)
    pairs, report = collect(open_corpus(paths)["train"])
    assert len(pairs) == 3
    assert report == LineReport(15, 2, {kind: 1}, {kind: [f"{paths[part]}:2"]})
    assert f"1 of 15 lines are malformed: 1 {sources.KINDS[kind]} ({paths[part]}:2)" in refusal(*paths)


def test_sentences_of_several_languages_are_refused(tmp_path: Path) -> None:
    paths = export(tmp_path, tgt=GERMAN + "8\tfra\tCours !\n")
    assert refusal(*paths) == f"{paths[1]}: sentences of 2 languages (deu, fra); give those of one language"


@pytest.mark.parametrize("empty", [{"links": "8\t9\n"}, {"links": ""}, {"src": ""}, {"tgt": ""}])
def test_links_without_sentences_are_refused(tmp_path: Path, empty: dict[str, str]) -> None:
    paths = export(tmp_path, **empty)
    assert refusal(*paths).startswith(
        f"{paths[2]}: links no sentence of {paths[0]} to one of {paths[1]}; give the sentences of the source, "
    )


CELL = st.binary(max_size=3).map(lambda cell: cell.replace(b"\n", b"").replace(b"\0", b"")) | st.sampled_from(
    [b"", b"a", b"\xc3\xa4", b"\xff", b"\r", b" ", "\u2028".encode()]
)


def collect_in_chunks(source: Source, block: int) -> tuple[list[Pair], LineReport]:
    """Read a source; chunks of another size change nothing."""
    whole = collect(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_of_files.in_blocks, "__defaults__", (block, None))
        assert collect(source) == whole
    return whole


@given(st.lists(st.lists(CELL, max_size=3), max_size=15), st.booleans(), st.integers(1, 30))
def test_tables_and_parallel_files_are_the_same_in_any_chunks(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[bytes]], ended: bool, block: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    lines = [b"safe\tstart", *map(b"\t".join, rows)]
    table = written(folder / "chunked.tsv", b"\n".join(lines) + b"\n" * ended)
    pairs, report = collect_in_chunks(open_corpus([table])["train"], block)
    assert report.read == len(pairs) + report.blank + sum(report.malformed.values())
    assert report.read == len(lines) - (not ended and lines[-1] == b"")
    sides = [[b"safe", *(b"".join(row[side:]) for row in rows)] for side in (0, 1)]
    paths = [
        written(folder / f"chunked.{name}", b"".join(line + b"\n" for line in side))
        for name, side in zip("ab", sides, strict=True)
    ]
    pairs, report = collect_in_chunks(open_corpus(paths)["train"], block)
    assert report.read == len(lines) == len(pairs) + sum(report.malformed.values())


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(5, 15)), max_size=20), st.integers(1, 40))
def test_exports_are_the_same_in_any_chunks(
    tmp_path_factory: pytest.TempPathFactory, linked: list[tuple[int, int]], block: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    english = "".join(f"{number}\teng\te{number}\n" for number in (3, 1, 4, 2))
    german = "".join(f"{number}\tdeu\td{number}\n" for number in (12, 10, 11))
    paths = export(folder, english, german, "".join(f"{a}\t{b}\n" for a, b in linked))
    pairs, report = collect_in_chunks(open_corpus(paths)["train"], block)
    assert pairs == [Pair(f"e{a}", f"d{b}") for a, b in linked if 1 <= a <= 4 and 10 <= b <= 12]
    assert report == LineReport(read=7 + len(linked))


def rows_of(number: int, *odd: str) -> str:
    """Pairs, of which some have another number of columns."""
    return "".join(f"{row}\n" for row in [*(f"This is {n}.\tDas ist {n}." for n in range(number)), *odd])


@pytest.mark.parametrize(
    ("odd", "wrong"),
    [
        (["This is\tmine.\tDas ist meins."], 1),
        (["Mine.\tDas ist\tmeins.", "a\tb\tc\td"], 2),
        (["Mine.\tMeins.\t"], 0),  # an empty cell at the end
        (["Mine.\tMeins.\t \t\r"], 0),
        (["Mine.\tMeins.\tnote"] * 30, 0),  # a further column that many rows have
    ],
)
def test_a_tab_within_a_sentence_makes_a_line_malformed(tmp_path: Path, odd: list[str], wrong: int) -> None:
    path = written(tmp_path / "a.tsv", rows_of(100, *odd))
    pairs, report = collect(open_corpus([path])["train"])
    assert report.malformed == ({"more_columns": wrong} if wrong else {})
    assert report.places.get("more_columns", []) == [f"{path}:{101 + n}" for n in range(wrong)]
    assert len(pairs) == 100 + len(odd) - wrong
    if wrong:
        message = refusal(path)
        assert f"{wrong} with more columns than most ({path}:101" in message
        assert "remove separators within sentences, or name every column in a first line" in message


def test_every_column_that_a_header_names_is_allowed(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "en\tde\tnote\n" + rows_of(100, "Mine.\tMeins.\tof a thing"))
    assert read(path)[-1] == Pair("Mine.", "Meins.")


def test_columns_that_only_some_rows_lack_are_counted(tmp_path: Path) -> None:
    text = rows_of(100).replace("\n", "\tCC-BY\n") + "Mine.\tMeins.\n"
    path = written(tmp_path / "a.tsv", text)
    pairs, report = collect(open_corpus([path])["train"])
    assert len(pairs) == 101
    assert report.malformed == {}
    assert report.doubtful == {"fewer_columns": 1}
    assert list(report.locate_doubtful()) == [("1 with fewer columns than most", f"{path}:101")]


def test_columns_that_many_rows_have_and_many_lack_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path / "a.tsv", rows_of(60, *["Mine.\tMeins.\tnote"] * 40))
    assert len(read(path)) == 100
    [message] = caplog.messages
    start = f"{path}: 40 of the first 100 rows have more columns than the others (2), such as line 61"
    assert message.startswith(f"{start} (Mine. | Meins. | note), whose further columns are not read: remove separators")


def test_a_row_with_more_columns_is_numbered_below_a_header(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path / "a.tsv", "en\tde\n" + rows_of(60, *["Mine,\t\x1b[2Jwell.\tMeins."] * 40))
    read(path)
    message = caplog.messages[-1]
    assert "such as line 62 (Mine, | " in message
    assert message.isprintable()


@pytest.mark.parametrize(
    ("row", "columns", "advice"),
    [
        ("{n}\tThis is {n}.\t2{n}\tDas ist {n}.", (1, 2), "`overrides={'data.columns': [2, 4]}`"),
        ("{n}\tThis is {n}.\t2{n}\tDas ist {n}.", (2, 3), "`overrides={'data.columns': [2, 4]}`"),
        ("1.2{n}\tThis is {n}.\tDas ist {n}.", (1, 2), "`overrides={'data.columns': [2, 3]}`"),
        ("1.5e-0{n}\tThis is {n}.\tDas ist {n}.", (1, 2), "`overrides={'data.columns': [2, 3]}`"),
        ("2021-01-0{n}\tThis is {n}.\tDas ist {n}.\ten", (1, 2), "set data.columns to the columns of the sentences"),
    ],
)
def test_columns_of_numbers_are_no_sentences(tmp_path: Path, row: str, columns: tuple[int, int], advice: str) -> None:
    path = written(tmp_path / "a.tsv", "".join(row.format(n=n) + "\n" for n in range(9)))
    message = refusal(path, columns=columns)
    wrong = next(column for column in columns if not re.search("[A-Z]", row.split("\t")[column - 1]))
    assert message.startswith(f"{path}: column {wrong} has numbers in place of sentences (")
    assert message.endswith(f": {advice}")
    unchecked = {"min_letters": 0.0}  # a corpus of numbers is wanted
    assert len(read(path, columns=columns, cleaning=unchecked)) == 9


@pytest.mark.parametrize("closed", [True, False])
def test_a_cell_of_csv_that_spans_many_lines_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, closed: bool
) -> None:
    lines = [f"This is {n}.;Das ist {n}." for n in range(40)]
    lines[4] = f'"{lines[4]}'
    lines[24] = f'end";{lines[24]}' if closed else f'{lines[24]}"'
    path = written(tmp_path / "a.csv", "\n".join(lines) + "\n")
    pairs, report = collect(open_corpus([path])["train"])
    assert len(pairs) < 40
    assert report.doubtful == {"long_cell": 1}
    [message] = [message for message in caplog.messages if "spans" in message]
    assert message.startswith(f"{path}:5: one row spans 21 lines, up to line 25: ")
    assert report.places["long_cell"] == [f"{path}:5 (21 lines)"]


def test_empty_cells_are_no_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "Hi.\tHallo!\n" + "\t\n" * 20 + "Run!\tLauf!\n")
    pairs, _ = collect(open_corpus([path])["train"])
    assert pairs[0] == Pair("Hi.", "Hallo!")


def test_a_cell_of_csv_of_a_few_lines_is_none_of_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path / "a.csv", '"one\ntwo\nthree";"eins\nzwei\ndrei"\n')
    assert read(path) == [Pair("one two three", "eins zwei drei")]
    assert caplog.messages == []


def test_a_folder_names_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("target.txt", "source.txt", ".DS_Store", "_about.txt"):
        written(folder / name, "Hi.\n")
    files = f"{folder}/source.txt, {folder}/target.txt"
    assert refusal(folder) == f"{folder}: is a folder; give its two files, source and target: {files}"
    written(folder / "third.txt", "Hi.\n")
    assert refusal(folder).endswith(f"give one of its files, or two, source and target: {files}, {folder}/third.txt")


@pytest.mark.parametrize(
    "header", ["Englisch;Deutsch", "anglais;allemand", "Quelltext;Zieltext", "\u82f1\u8a9e;\u30c9\u30a4\u30c4\u8a9e"]
)
def test_a_header_in_another_language_is_no_pair(tmp_path: Path, caplog: pytest.LogCaptureFixture, header: str) -> None:
    rows = [f"This is sentence {n}.;Das ist Satz {n}." for n in range(20)]
    path = written(tmp_path / "a.csv", "\n".join([header, *rows]) + "\n")
    assert read(path) == [Pair(*row.split(";")) for row in rows]
    assert "looks like a header, as the lines below have sentences: skipped" in caplog.text


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("Hi.;Hallo.", ["This is a dog.;Das ist ein Hund."] * 9),  # a sentence
        ("dog;Hund", ["cat;Katze", "house;Haus"] * 9),  # a list of words
        ("dog;Hund", ["This is a dog.;Das ist ein Hund."] * 3),  # too few to tell
        ("dog;Das ist ein Hund.", ["This is a dog.;Das ist ein Hund."] * 9),
    ],
)
def test_a_pair_of_words_is_no_header(tmp_path: Path, first: str, rest: list[str]) -> None:
    path = written(tmp_path / "a.csv", "\n".join([first, *rest]) + "\n")
    assert read(path)[0] == Pair(*first.split(";"))
    plain = written(tmp_path / "a.tsv", "\n".join([first, *rest]).replace(";", "\t") + "\n")
    assert read(plain)[0] == Pair(*first.split(";"))
