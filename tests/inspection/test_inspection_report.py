"""nmt report: one HTML file with everything that an evaluation says."""

import base64
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import Page, needs_chromium
from conftest import Cli, Project, few_trials

import nmt
from nmt.drawing.heatmap import make_html_heatmap
from nmt.evaluation.attention_statistics import LABELS
from nmt.inspection.report_blocks import Chapter, Figure, Preformatted, Sentence, mark_words, render
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


@pytest.mark.usefixtures("no_significance")
def test_the_report_says_what_the_evaluation_does_in_one_file(here: Project, cli: Cli) -> None:
    assert cli("train", "--config", here.config, "--output", "runs/other", "--set", "train.epochs=1").code == 0
    outcome = cli("report", "--model", here.run, "--against", "runs/other", "--output", "report.html")
    assert outcome.code == 0, outcome.err
    report = Path("report.html").read_text(encoding="utf-8")
    found = nmt.evaluate(here.run, against="runs/other", attention=True, short_inputs=False)
    text = Reader(report).text
    for score in found.scores.values():
        assert f"{score.value:.2f}" in text
        assert score.signature in text.partition("Signatures, which say how each score was computed, ")[2]
    assert str(found.diagnosis) in text
    assert f"other: {found.seen}." in text
    for name, label in LABELS.items():
        assert f"{label}{getattr(found.attention[0], name)}" in text
    for name in ("reversal", "other"):
        assert f"Learning curve of {name}" in text
    assert "train.epochs (1 in other, 8 in reversal)" in text
    assert "reversal instead of other" in text
    assert "Data: vocabulary" in text

    # One file without scripts or paths.
    reader = Reader(report)
    assert "script" not in reader.tags
    assert "default-src &#39;none&#39;" in report
    loaded = [value or "" for name, value in reader.attributes if name in ("src", "href")]
    assert all(url.startswith(("data:", "#")) for url in loaded)
    assert str(here.root) not in reader.text.split("source:")[0]
    pictures = re.findall(r"data:image/png;base64,([^\"]+)", report)
    assert len(pictures) == text.count("Learning curve of ")
    assert all(base64.b64decode(each).startswith(b"\x89PNG") for each in pictures)
    assert "nan" not in text.split()
    assert len(report) < 5_000_000


def judged(report: str) -> tuple[int, int]:
    """How many short inputs pass, and of how many."""
    passed, of = re.findall(r"short inputs: (\d+) of (\d+) \(", report)[0]
    return int(passed), int(of)


@pytest.mark.usefixtures("no_significance")
def test_a_notebook_and_python_show_where_the_report_is(project: Project, tmp_path: Path) -> None:
    """It was a PosixPath."""
    written = nmt.Run(project.run).report(output=tmp_path / "my report.html")
    assert written == tmp_path / "my report.html"
    assert written.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert repr(written) == f"<Report {tmp_path}/my report.html: open it in a browser>"
    shown = written._repr_html_()  # type: ignore[attr-defined]
    assert f'<a href="{tmp_path}/my%20report.html" target="_blank">{tmp_path}/my report.html</a>' in shown


@pytest.mark.usefixtures("no_significance")
def test_two_sentences_and_the_date_are_on_top(here: Project, cli: Cli) -> None:
    run = shutil.copytree(here.run, Path("runs/short"))
    config = (run / "best/config.yaml").read_text(encoding="utf-8")
    shorter = re.sub(r"max_length: \d+", "max_length: 3", config)  # so that it makes errors
    assert shorter != config
    (run / "best/config.yaml").write_text(shorter, encoding="utf-8")
    state = json.loads((run / "run.json").read_text(encoding="utf-8"))
    (run / "run.json").write_text(json.dumps({**state, "time": "2024-02-29T23:59:59+0000"}), encoding="utf-8")
    found = nmt.evaluate(run)
    references = [json.loads(line)["references"] for line in (here.data / "test.jsonl").read_text("utf-8").splitlines()]
    exact = sum(text in expected for text, expected in zip(found.hypotheses, references, strict=True))
    assert 0 < exact < len(references)
    pairs = json.loads((run / "best/model.json").read_text(encoding="utf-8"))["data"]["pairs"]
    words = ("hardly usable", "hard to understand", "clear in gist, but faulty", "understandable", "good", "very good")
    html = nmt.report(run, output="report.html", overwrite=True).read_text(encoding="utf-8")
    short = judged(html)
    assert 2 * short[0] < short[1]
    assert re.findall('<p class="lead">(.*?)</p>', html) == [
        "short is a recurrent model that learned to translate English to German from sentences and their translations: "
        f"{pairs:,} pairs of corpus.tsv. By a rule of thumb, its own translations of {len(references)} new sentences "
        f"(test) are {words[min(5, int(found.bleu // 10))]}: {found.bleu:.1f} of 100 BLEU, and {exact} are word for "
        "word the expected ones. Those are sentences like the ones that it learned from. It translates other text "
        f"badly: of {short[1]} short inputs, {short[0]} are without a visible error.",
        "Trained on 2024-02-29.",
    ]
    assert html == nmt.report(run, output="again.html").read_text(encoding="utf-8")
    stop = {"state": "stopped", "updates": 1234, "total_updates": 5000}
    (run / "run.json").write_text(json.dumps({**state, **stop}), encoding="utf-8")
    html = nmt.report(run, output="report.html", overwrite=True).read_text(encoding="utf-8")
    assert "word for word the expected ones. Its training has not finished: update 1,234 of 5,000. Those" in html
    note = "runs/short/best: its training has not finished: update 1,234 of 5,000\n"
    assert note in cli("evaluate", "--model", run, "--no-short-inputs").err
    assert note not in cli("evaluate", "--model", here.run, "--against", run, "--no-short-inputs").err


@pytest.mark.usefixtures("no_significance")
def test_a_date_that_is_unknown_is_left_out(here: Project) -> None:
    state = json.loads((here.run / "run.json").read_text(encoding="utf-8"))
    (here.run / "run.json").write_text(json.dumps({**state, "time": None}), encoding="utf-8")
    assert "Trained on" not in nmt.report(here.run, output="report.html", overwrite=True).read_text(encoding="utf-8")


@pytest.mark.usefixtures("no_significance")
def test_damaged_metadata_are_left_out(here: Project) -> None:
    damages: dict[str, dict[str, object]] = {
        "run.json": {"training_seconds": "abc", "updates": None, "tokens": {}},
        "best/model.json": {"parameters": "abc", "update": [1]},
        "environment.json": {"torch": "<script>"},
    }
    for file, values in damages.items():
        metadata = json.loads((here.run / file).read_text(encoding="utf-8"))
        (here.run / file).write_text(json.dumps({**metadata, **values}), encoding="utf-8")
    html = nmt.report(here.run, output="report.html", overwrite=True).read_text(encoding="utf-8")
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
def test_text_cannot_run(browser: Page, tmp_path: Path) -> None:
    blocks = [
        HOSTILE,
        Table([HOSTILE], [[HOSTILE]], "l", HOSTILE),
        Figure.of_png(HOSTILE, b"\x89PNG"),
        Sentence(HOSTILE, HOSTILE, [(HOSTILE, mark_words(HOSTILE, HOSTILE)), (HOSTILE, mark_words("a", HOSTILE))]),
        Preformatted(HOSTILE),
        Figure(HOSTILE, make_html_heatmap([[1.0]], [HOSTILE], [HOSTILE])),
    ]
    path = tmp_path / "page.html"
    render(HOSTILE, [HOSTILE], [Chapter(HOSTILE, blocks)]).write(path)
    browser.open(path.as_uri(), 320)
    assert browser.evaluate("window.hit") is None
    for tag in ("h1", "pre"):
        assert browser.evaluate(f"document.querySelector('{tag}').textContent") == HOSTILE
    assert browser.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.usefixtures("no_significance")
def test_a_model_without_its_run_and_data_still_has_a_report(here: Project) -> None:
    (here.run / "best").rename("model")
    (here.data / "test.jsonl").rename("test.jsonl")
    Path("in.txt").write_text("a b\nc d\n", encoding="utf-8")
    Path("out.txt").write_text("B A\nD C\n", encoding="utf-8")
    report = nmt.report("model", src="in.txt", ref="out.txt", output="report.html")
    assert "Report on model" in report.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page_of_two(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on a model that is compared with a copy of itself."""
    folder = tmp_path_factory.mktemp("report")
    shutil.copytree(project.run, folder / "other")
    with few_trials():
        return nmt.report(project.run, against=folder / "other", data=project.data, output=folder / "report.html")


@pytest.fixture
def page(browser: Page) -> Iterator[Page]:
    """The browser, which is used in the light and on a screen when the test is over."""
    yield browser
    browser.call("Emulation.setEmulatedMedia", media="", features=[])


def show(page: Page, path: Path, width: int, scheme: str = "light", media: str = "") -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.call("Emulation.setEmulatedMedia", media=media, features=features)
    page.open(path.as_uri(), width)


@needs_chromium
def test_every_text_is_legible_in_the_light_and_in_the_dark(page: Page, page_of_two: Path) -> None:
    backs = []
    for scheme, width in itertools.product(("light", "dark"), (1400, 360)):
        show(page, page_of_two, width, scheme)
        backs.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        texts = page.read_legibility()
        assert len(texts) > 300
        assert [text for text in texts if (text["contrast"] or 21) < 4.5] == []
        assert [text for text in texts if text["size"] < 11] == []
    assert len({*backs}) == 2


WIDER = """[...document.querySelectorAll("table, img, pre")].filter(block => {
  const box = block.closest(".scroll, pre").getBoundingClientRect();
  return box.right > innerWidth || block.getBoundingClientRect().right > box.right + SCROLLED;
}).length"""


@needs_chromium
def test_tables_scroll_inside_their_boxes_on_a_phone(page: Page, page_of_two: Path) -> None:
    show(page, page_of_two, 360)
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate(WIDER.replace("SCROLLED", "1e9")) == 0
    assert page.evaluate(WIDER.replace("SCROLLED", "1")) > 0
    ends = "[...document.querySelectorAll('caption')].map(caption => caption.getBoundingClientRect().right)"
    assert max(page.evaluate(ends)) < 360  # a definition is read without scrolling
    scrolling = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth)"
        ".map(box => (box.scrollLeft = 1e6, box.scrollLeft))"
    )
    assert len(scrolling) > 2
    assert min(scrolling) > 0
    first = "[...document.querySelectorAll('figure')].map(figure => figure.firstElementChild.tagName)"
    assert {*page.evaluate(first)} == {"FIGCAPTION"}


@needs_chromium
def test_it_is_read_by_keyboard_and_screen_reader(page: Page, page_of_two: Path) -> None:
    show(page, page_of_two, 360)
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert page.evaluate("[...document.body.children].map(part => part.tagName)") == ["MAIN"]
    assert page.evaluate("[...document.querySelectorAll('th')].filter(cell => !cell.textContent.trim()).length") == 0
    assert page.evaluate("document.querySelectorAll('thead td').length") > 0
    scrolling = """[...document.querySelectorAll("*")].filter(box => box.scrollWidth > box.clientWidth
      && /auto|scroll/.test(getComputedStyle(box).overflowX) && box !== document.documentElement)"""
    assert page.evaluate(f"{scrolling}.length") > 2
    assert page.evaluate(f"{scrolling}.filter(box => box.tabIndex < 0 || !box.ariaLabel || !box.role).length") == 0
    page.evaluate(f"{scrolling}[0].focus()")
    for _ in range(3):
        page.press("ArrowRight", 39)
    page.wait_for(f"{scrolling}[0].scrollLeft > 0")


@needs_chromium
def test_the_config_is_folded_on_the_screen_and_open_in_print(page: Page, page_of_two: Path) -> None:
    shown = "document.querySelector('pre').checkVisibility()"
    show(page, page_of_two, 718)
    assert page.evaluate(shown) is False
    titles = page.evaluate("[...document.querySelectorAll('details:not([open]) h2')].map(title => title.textContent)")
    assert titles[0] == "Config"
    assert all(title.startswith("Data") for title in titles[1:])
    page.evaluate("document.querySelector('details:not([open]) summary').click()")
    page.wait_for(shown)

    show(page, page_of_two, 718, media="print")  # A4 between margins of a centimetre
    assert page.evaluate("document.querySelector('pre').closest('details').open") is False
    assert page.evaluate(shown) is True
    assert page.evaluate("document.querySelector('nav').getBoundingClientRect().height") == 0
    assert page.evaluate(WIDER.replace("SCROLLED", "1")) == 0
    pdf = base64.b64decode(page.call("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF")


@needs_chromium
def test_a_weight_has_one_colour_in_all_maps(page: Page, page_of_two: Path, project: Project) -> None:
    cells = """[...document.querySelectorAll("figure:has(table)")].map(map => [
      map.querySelector("figcaption").textContent, [...map.querySelector("table").rows].slice(1).map(row =>
        [...row.querySelectorAll("td")].map(cell => [
          parseFloat(cell.title.split(": ").pop()), getComputedStyle(cell).backgroundColor,
        ]))])"""
    translator = nmt.Run(project.run).translator()
    for scheme in ("light", "dark"):
        show(page, page_of_two, 1400, scheme)
        (_, (legend,)), *maps = page.evaluate(cells)
        assert [weight for weight, *_ in legend] == [tenths / 10 for tenths in range(11)]
        assert len(maps) == 3
        colours: dict[float, str] = {}
        for weight, colour in itertools.chain(legend, *itertools.chain(*(rows for _, rows in maps))):
            assert colours.setdefault(weight, colour) == colour
        shades = [re.search(r"/ ([\d.]+)\)$", colours[weight]) for weight in sorted(colours)]
        opacities = [float(shade[1]) if shade else 1.0 for shade in shades]
        assert opacities == sorted(opacities)
        assert len({*(colour for *_, colour in legend)}) == 11
    for caption, rows in maps:
        source, _, text = caption.partition(" → ")
        (translation,) = translator.translate([source], with_alignment=True)
        assert translation.text == text
        assert translation.alignment is not None
        expected = translation.alignment.double().mean(dim=1).tolist()
        assert [[weight for weight, *_ in row] for row in rows] == [pytest.approx(row, abs=6e-3) for row in expected]
