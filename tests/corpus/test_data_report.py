import copy
import html
import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest
from conftest import Refusal, Terminal
from pydantic import TypeAdapter

from nmt.corpus import data_report
from nmt.corpus.data_report import data_sections, escape_markdown, find_warnings, show_change
from nmt.corpus.report_schema import DataReport
from nmt.system.files import read_json
from nmt.system.tables import Table
from nmt.system.terminal import write_sections

REPORT: dict[str, Any] = {
    "corpus": "corpus.tsv: source in column 1, target in column 2",
    "languages": ["en", "de"],
    "lines": {
        "read": 1234,
        "blank": 2,
        "malformed": {"not_utf8": 6, "too_few_columns": 1},
        "places": {"not_utf8": [f"corpus.tsv:{n}" for n in (3, 5, 7, 9, 11)], "too_few_columns": ["corpus.tsv:8"]},
    },
    "cleaning": {
        "read": 1225,
        "kept": 1220,
        "changed": {
            "control_characters": {"pairs": 12, "samples": [[["so", "al\u200bso"], ["so", "also"]]]},
            "html_entities": {"pairs": 1, "samples": [[["a &amp; b", "x"], ["a & b", "x"]]]},
        },
        "dropped": {"empty": {"pairs": 5, "samples": [[["", "nichts"]], [["two  blanks", " "]]]}},
    },
    "given_splits": False,
    "pairs": {"train": 1100, "valid": 70, "test": 50},
    "sources": {"train": 1000, "valid": 60, "test": 50},
    "components": 900,
    "largest_component": 31,
    "references": {"train": [930, 50, 12, 5, 2, 1], "valid": [50, 10], "test": [50]},
    "frequent": {"src": [["Hello.", 6], ["Bye.", 1]], "tgt": [["Hallo.", 1]]},
    "overlap": {
        "valid": {"sources": 0, "targets": 3, "examples": 60},
        "test": {"sources": 1, "targets": 0, "examples": 50},
    },
    "naive_overlap": {"sources": 20, "targets": 5, "examples": 50},
    "too_many_tokens": 4,
    "vocabulary": {"src": 1504, "tgt": 84},
    "distinct_tokens": {"src": 1500, "tgt": 80},
    "coverage": {"src": {"100": 0.5, "1000": 0.975, "1500": 1.0}, "tgt": {"80": 1.0}},
    "lengths": {
        "train": [[0, 96, 500, 500], [0, 1095, 0, 0, 0, 1]],
        "valid": [[0, 0, 70], [0, 0, 0, 70]],
        "test": [[0, 25, 0, 25], [0, 50]],
    },
    "tokens": {"train": [2596, 1100], "valid": [140, 210], "test": [100, 50]},
    "unknown_share": {"train": [1e-5, 1e-5], "valid": [0.0125, 0.0], "test": [0.0, 0.02]},
}

TEXT = """\
Corpus

  read from  corpus.tsv: source in column 1, target in column 2
  languages  en to de
  lines      1,234
  blank      2
  malformed  7
             6 not UTF-8: corpus.tsv:3, corpus.tsv:5, corpus.tsv:7, corpus.tsv:9, corpus.tsv:11, ...
             1 with too few columns: corpus.tsv:8

Cleaning

  1,225 pairs were read and 1,220 kept.

  rule                pairs were  pairs
  control characters  repaired       12
  html entities       repaired        1
  empty               dropped         5

  A pair counts under every rule that repaired it, and under the first that
  dropped it.

  Repaired: control characters, the first examples
  target   al\\u200bso
  becomes  also

  Repaired: html entities, the first examples
  source   a &amp; b
  becomes  a & b

  Dropped: empty, the first examples
  source  (nothing)
  target  nichts
  source  two \\u0020blanks
  target  \\u0020

Splits

  1,220 of the 1,220 clean pairs are in a split. Pairs that share a sentence,
  directly or through other pairs, are a group, and each group is in one split:
  900 groups of at most 31 pairs.

  split  pairs  sources  with 1 reference   2   3  4+
  train  1,100    1,000               930  50  12   8
  valid     70       60                50  10   0   0
  test      50       50                50   0   0   0

Sentence lengths

  split  side    tokens  mean  median  longest  unknown
  train  source   2,596   2.4       2        3    0.00%
  train  target   1,100   1.0       1        5    0.00%
  valid  source     140   2.0       2        2    1.25%
  valid  target     210   3.0       3        3    0.00%
  test   source     100   2.0       2        3    0.00%
  test   target      50   1.0       1        1    2.00%

  In tokens; a source counts once per reference.

  4 training pairs were dropped: a side has no token, or more than
  text.max_length.

Overlap with training

  split  sources  source is in training  a reference is in training
  valid       60               0 (0.0%)                    3 (5.0%)
  test        50               1 (2.0%)                    0 (0.0%)

  Sentences count as the same if their letters, with their marks, and digits
  agree, ignoring case.

  A random split of the same size would have leaked 40.0% of its sources and
  10.0% of its targets.

Vocabulary

  side    vocabulary  distinct tokens in training
  source       1,504                        1,500
  target          84                           80

  Share of the training text covered by the most frequent tokens
  most frequent tokens  source  target
                   100   50.0%  100.0%
                 1,000   97.5%  100.0%

Most frequent training sentences

  times  source
      6  Hello.

  No target sentence occurs twice.
"""


def parse_report(content: object) -> DataReport:
    return TypeAdapter(DataReport).validate_python(content)


def changed(**parts: Any) -> dict[str, Any]:
    return {**copy.deepcopy(REPORT), **parts}


def text_of(report: dict[str, Any]) -> str:
    """The report as a wide terminal shows it, without spaces at the ends of lines."""
    file = Terminal()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", "200")
        write_sections(data_sections(parse_report(report)), file)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def test_a_report_as_text() -> None:
    assert text_of(REPORT) == TEXT


def test_given_splits_have_no_groups() -> None:
    report = changed(given_splits=True, components=0, largest_component=0)
    del report["naive_overlap"]
    text = text_of(report)
    assert "The corpus has ready-made splits, which were used as they are;" in text
    assert "group" not in text
    assert "random split" not in text
    assert "data.drop_overlap=true would drop these training pairs." in text
    assert "overlap: data.drop_overlap=true would drop these training pairs" in [
        *data_report.summarise(parse_report(report))
    ]
    text = text_of({**report, "dropped_overlap": 17})
    assert "17 training pairs were dropped because valid or test share them." in text
    assert "would drop" not in text


def test_the_pairs_of_a_test_set_of_another_file_are_not_of_the_corpus() -> None:
    report = changed(dropped_overlap=50)
    del report["naive_overlap"]
    assert "1,170 of the 1,220 clean pairs are in a split." in text_of(report)


@pytest.mark.parametrize("absent", [("test",), ("valid", "test")])
def test_absent_splits_are_reported(absent: tuple[str, ...]) -> None:
    report = changed()
    for name in absent:
        report["pairs"][name] = report["sources"][name] = 0
        report["references"][name] = []
        report["lengths"][name] = [[], []]
        report["tokens"][name] = [0, 0]
        report["unknown_share"][name] = [0.0, 0.0]
        del report["overlap"][name]
    text = text_of(report)
    for name in ("train", "valid", "test"):
        assert (f"There is no {name} split." in text) is (name in absent)
        assert bool(re.search(f"^  {name} ", text, re.MULTILINE)) is (name not in absent)
    assert ("neither a valid nor a test split" in text) is (len(absent) == 2)


def test_a_corpus_of_an_odd_name_is_reported_in_one_line() -> None:
    first, *more = data_report.summarise(parse_report(changed(corpus="a\x1b[2J\n.tsv: two columns")))
    assert first == "a\\x1b[2J\\n.tsv: two columns: 1,234 lines"
    places = ", ".join(f"corpus.tsv:{number}" for number in (3, 5, 7, 9, 11))
    assert more[:2] == [f"skipped: 6 not UTF-8: {places}, ...", "skipped: 1 with too few columns: corpus.tsv:8"]


@pytest.mark.parametrize(("tokenizer", "reused"), [("subword", False), ("spacy", False), ("subword", True)])
def test_unknown_pieces_in_validation_cause_a_warning(tokenizer: str, reused: bool) -> None:
    shares = {**REPORT["unknown_share"], "train": [0.001, 0.001], "valid": [0.02, 0.183]}
    pairs, sizes = {"train": 3001, "valid": 9, "test": 9}, {"src": 6000, "tgt": 5900}
    report = changed(unknown_share=shares, tokenizer=tokenizer, reused=reused, pairs=pairs, vocabulary=sizes)
    warnings = find_warnings(parse_report(report))
    expected = (
        "18.3% of the target tokens in validation are unknown: training text lacks these pieces; "
        "use fewer: set text.subword.vocabulary_size=1500"
    )
    assert warnings == ([expected] if tokenizer == "subword" and not reused else [])


@pytest.mark.parametrize(
    ("unseen", "needed", "advice"),
    [
        ([0.0, 0.05], 20, "training text lacks these pieces; use fewer: set text.subword.vocabulary_size=550"),
        ([0.0, 0.05], 1800, "training text lacks these pieces; use fewer: set text.subword.vocabulary_size=1800"),
        ([0.0, 0.05], 5000, "training text lacks these pieces; give more training text"),
        (
            [0.0, 0.15],
            20,
            "training text lacks characters of theirs, and fewer pieces do not help; give more training text",
        ),
    ],
)
def test_unknown_characters_are_not_removed_by_fewer_pieces(unseen: list[float], needed: int, advice: str) -> None:
    report = changed(unknown_share={**REPORT["unknown_share"], "train": [0.0, 0.0], "valid": [0.0, 0.183]})
    report |= {"tokenizer": "subword", "unseen_characters": unseen, "character_pieces": needed}
    report |= {"vocabulary": {"src": 3000, "tgt": 3000}}
    [warning] = find_warnings(parse_report(report))
    assert warning == f"18.3% of the target tokens in validation are unknown: {advice}"


@pytest.mark.parametrize("tokenizer", ["spacy", "whitespace", "subword"])
def test_unknown_words_that_training_lacks_cause_a_warning(tokenizer: str) -> None:
    """With a minimum count of 1 all training words are known, so nothing trains the vector of those that are not."""
    shares = {"train": [0.0, 0.0], "valid": [0.075, 0.01], "test": [0.07, 0.112]}
    report = changed(unknown_share=shares, tokenizer=tokenizer, reused=False)
    advice = "training has none, so nothing trains the vector of unknown words; "
    advice += "set text.tokenizer=subword, or text.vocabulary.min_count=2"
    expected = [f"7.5% of the source tokens in validation are unknown: {advice}"]
    expected += [f"11.2% of the target tokens in test are unknown: {advice}"]
    warnings = find_warnings(parse_report(report))
    assert warnings == expected or tokenizer == "subword"
    assert not any("min_count=2" in warning for warning in warnings) or tokenizer != "subword"
    shares["train"] = [0.01, 0.01]
    assert not any("min_count=2" in warning for warning in find_warnings(parse_report(report)))


REUSED = "tokens in training are unknown: the vocabulary is that of other text; set parent.pieces=own"
ADVICE = "lower text.vocabulary.min_count, raise text.vocabulary.max_size or use text.tokenizer: subword"


@pytest.mark.parametrize(
    ("shares", "reused", "warnings"),
    [
        ([0.2, 0.0], None, []),
        ([0.2001, 0.0], None, [f"20.0% of the source tokens in training are unknown: {ADVICE}"]),
        ([0.1, 0.995], False, [f"99.5% of the target tokens in training are unknown: {ADVICE}"]),
        ([0.3, 0.4], True, [f"{share} {REUSED}" for share in ("30.0% of the source", "40.0% of the target")]),
    ],
)
def test_many_unknown_tokens_cause_a_warning(shares: list[float], reused: bool | None, warnings: list[str]) -> None:
    report = changed(
        unknown_share={**REPORT["unknown_share"], "train": shares, "valid": [0.0, 0.0], "test": [0.0, 0.0]}
    )
    if reused is not None:
        report["reused"] = reused
    assert find_warnings(parse_report(report)) == warnings
    text = " ".join(text_of(report).split())
    assert text.count("WARNING") == len(warnings)
    assert all(f"WARNING: {warning}" in text for warning in warnings)


@pytest.mark.parametrize("values", [[3], [1, 2], [0, 5, 5, 5], [2, 2, 7, 9], [4, 1, 1, 0, 6]])
def test_mean_and_median(values: list[int]) -> None:
    histogram = [values.count(value) for value in range(max(values) + 1)]
    assert data_report.mean_and_median(histogram) == (statistics.mean(values), statistics.median(values))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Grüße, 你好, नमस्ते", "Grüße, 你好, नमस्ते"),
        ("a\u00a0b\u202fc\u3000d", "a\\u00a0b\\u202fc\\u3000d"),
        ("\ufeffa\u200b\u00ad\u202e", "\\ufeffa\\u200b\\u00ad\\u202e"),
        ("\x1b[31mred\t\n", "\\u001b[31mred\\u0009\\u000a"),
        ("\U000e0041", "\\U000e0041"),
        (" a  b ", "\\u0020a \\u0020b\\u0020"),
    ],
)
def test_invisible_characters_are_escaped(text: str, shown: str) -> None:
    assert data_report.make_visible(text) == shown


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("fu\u0308r Köln", "für Köln", ("fu\\u0308r Köln", "für Köln")),  # two code points became one
        ("5 \u212b", "5 Å", ("5 \\u212b", "5 Å")),
        ("„So!“", '"So!"', ("\\u201eSo!\\u201c", '"So!"')),
        ("a  b ", "a b", ("a \\u0020b\\u0020", "a b")),
        ("\u200b", "", ("\\u200b", "(nothing)")),
        ("&nbsp;", "", ("&nbsp;", "(nothing)")),
    ],
)
def test_before_and_after_differ_visibly(before: str, after: str, shown: tuple[str, str]) -> None:
    assert show_change(before, after) == shown


def test_long_sentences_are_shown_where_they_change() -> None:
    before, after = show_change("ä" * 500 + "\u200b" + "ö" * 500, "ä" * 500 + "ö" * 500)
    half = data_report.EXCERPT // 2
    assert before == "…" + "ä" * half + "\\u200b" + "ö" * (half - 1) + "…"
    assert after == "…" + "ä" * half + "ö" * half + "…"
    assert show_change("x" * 500, "x" * 500 + "y") == ("…" + "x" * half, "…" + "x" * half + "y")
    assert show_change("x" * 500 + " ", "x" * 500) == ("…" + "x" * half + "\\u0020", "…" + "x" * half)
    cut = [data_report.excerpt("x" * length) for length in (0, data_report.EXCERPT, data_report.EXCERPT + 1)]
    assert cut == ["(nothing)", "x" * data_report.EXCERPT, "x" * (data_report.EXCERPT - 1) + "…"]


def test_markdown_shows_text_unchanged() -> None:
    text = "a|b `c` <b>d</b> &amp; *e* _f_ [g](h) ~i~ $j$ \\u200b"
    escaped = escape_markdown(text)
    # Markdown takes a backslash before punctuation away, HTML turns entities into characters.
    assert html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escaped)) == text
    assert not re.search(r"(?<!\\)[|`*_\[\]~$]|[<>]|&(?!lt;|gt;|amp;)", escaped)


def test_a_report_is_written_for_programs_and_for_people(tmp_path: Path) -> None:
    data_report.write_report(tmp_path, parse_report(REPORT))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lengths.png", "report.json", "report.md"]
    assert read_json(tmp_path / "report.json") == {
        **REPORT,
        "reused": False,
        "tokenizer": "",
        "copies": 0,
        "warnings": [],
    }
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "![Sentence lengths](lengths.png)" in markdown
    assert "| target | al\\\\u200bso |" in markdown
    # Every cell of the text is a cell of the Markdown.
    cells = {cell.strip() for line in markdown.splitlines() for cell in line.split("|")}
    for section in data_sections(parse_report(REPORT)):
        for block in section.blocks:
            if isinstance(block, Table):
                assert {escape_markdown(cell) for row in block.rows for cell in row} <= cells


DAMAGED = "damaged, or written by another version ("
PARTS = sorted(REPORT.keys() - {"given_splits"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "missing"),
        (b"{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[]", DAMAGED),
        (b"{}", DAMAGED),
        *(
            (json.dumps(changed(**{part: value})).encode(), DAMAGED)
            for part in PARTS
            for value in ([1], {"train": "x"})
        ),
    ],
)
def test_a_damaged_report_is_one_line(tmp_path: Path, refusal: Refusal, content: bytes | None, message: str) -> None:
    (tmp_path / "data.json").write_text("{}", encoding="utf-8")
    if content is not None:
        (tmp_path / "report.json").write_bytes(content)
    assert refusal("data", tmp_path).startswith(f"{tmp_path}/report.json: {message}")


@pytest.mark.parametrize(("directory", "what"), [("nowhere", "does not exist"), (".", "is not a data directory")])
def test_only_a_data_directory_has_a_report(refusal: Refusal, directory: str, what: str) -> None:
    assert refusal("data", directory).startswith(f"{directory}: {what} (no data.json)")
