"""nmt report: one HTML file with everything that an evaluation says."""

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import browsing, needs_chromium
from conftest import Cli, Project

import nmt
from nmt.inspection.report_blocks import Chapter, Picture, Preformatted, Sentence, mark_words, plain, render
from nmt.system.tables import Table


class Reader(HTMLParser):
    """Text of a page by tag, and its tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_says_what_the_evaluation_does_in_one_file(here: Project, cli: Cli) -> None:
    assert cli("train", "--config", here.config, "--output", "runs/other", "--set", "train.epochs=1").code == 0
    outcome = cli("report", "--model", here.run, "--against", "runs/other", "--output", "report.html")
    assert outcome.code == 0, outcome.err
    report = Path("report.html").read_text(encoding="utf-8")
    found = nmt.evaluate(here.run, against="runs/other", attention=True, short_inputs=False)
    text = Reader(report).text
    for score in found.scores.values():
        assert f"{score.value:.2f}" in text
        assert score.signature in text
    assert str(found.diagnosis) in text
    assert str(found.attention[0])[1:] in text
    for name in ("reversal", "other"):
        assert f"Learning curve of {name}" in text
    assert "train.epochs (1 in other, 8 in reversal)" in text
    assert "reversal instead of other" in text
    assert "Data: vocabulary" in text

    # One file without scripts or paths.
    reader = Reader(report)
    assert "script" not in reader.tags
    assert "default-src 'none'" in dict(reader.attributes).values() or "default-src 'none'" in report
    loaded = [value or "" for name, value in reader.attributes if name in ("src", "href")]
    assert all(url.startswith(("data:", "#")) for url in loaded)
    assert str(here.root) not in reader.text.split("source:")[0]
    pictures = re.findall(r"data:image/png;base64,([^\"]+)", report)
    assert len(pictures) >= 5
    assert all(base64.b64decode(each).startswith(b"\x89PNG") for each in pictures)
    assert len(report) < 5_000_000


def test_damaged_metadata_are_left_out(here: Project) -> None:
    damages: dict[str, dict[str, object]] = {
        "run.json": {"training_seconds": "abc", "updates": None, "tokens": {}},
        "best/model.json": {"parameters": "abc", "update": [1]},
        "environment.json": {"torch": "<script>"},
    }
    for file, values in damages.items():
        metadata = json.loads((here.run / file).read_text(encoding="utf-8"))
        (here.run / file).write_text(json.dumps({**metadata, **values}), encoding="utf-8")
    html = nmt.report(here.run, output="report.html").read_text(encoding="utf-8")
    assert "<script" not in html
    assert "abc" not in Reader(html).text


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a b c", "a x c", [("same", "a"), ("del", "b"), ("ins", "x"), ("same", "c")]),
        ("a b", "a b", [("same", "a b")]),
        ("", "a", [("ins", "a")]),
        ("a", "", [("del", "a")]),
        ("", "", []),
    ],
)
def test_differences_are_marked_by_word(before: str, after: str, expected: list[tuple[str, str]]) -> None:
    assert mark_words(before, after) == expected


HOSTILE = "<script>window.hit=1</script>\"'{{ 7*7 }}<img src=x onerror=window.hit=1>"


@needs_chromium
def test_text_cannot_run(tmp_path: Path) -> None:
    blocks = [
        HOSTILE,
        Table([HOSTILE], [[HOSTILE]], "l", HOSTILE),
        Picture(HOSTILE, b"\x89PNG"),
        Sentence(HOSTILE, HOSTILE, [(HOSTILE, plain(HOSTILE)), (HOSTILE, mark_words("a", HOSTILE))]),
        Preformatted(HOSTILE),
    ]
    path = tmp_path / "page.html"
    path.write_text(render(HOSTILE, [Chapter(HOSTILE, blocks)]), encoding="utf-8")
    with browsing() as page:
        page.open(path.as_uri(), 320)
        assert page.evaluate("window.hit") is None
        for tag in ("h1", "pre"):
            assert page.evaluate(f"document.querySelector('{tag}').textContent") == HOSTILE
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        assert page.problems == []


def test_a_model_without_its_run_and_data_still_has_a_report(here: Project) -> None:
    (here.run / "best").rename("model")
    (here.data / "test.jsonl").rename("test.jsonl")
    Path("in.txt").write_text("a b\nc d\n", encoding="utf-8")
    Path("out.txt").write_text("B A\nD C\n", encoding="utf-8")
    report = nmt.report("model", src="in.txt", ref="out.txt", output="report.html")
    assert "Report on model" in report.read_text(encoding="utf-8")
