from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from browser import Page, needs_chromium

from nmt.inspection.explain_command import Explanation
from nmt.translation.translation import Translation

TWO_HEADS = [[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0], [0.0, 0.02, 0.98]]]
"""The end of the sentence attends to that of the source."""


def translation(text: str, tokens: list[str], src_tokens: list[str], alignment: object) -> Translation:
    return Translation(text, tokens, src_tokens, alignment=None if alignment is None else torch.tensor(alignment))


def test_it_is_short_in_a_session_of_python() -> None:
    long = translation("Sie 'hat'", ["Sie"] * 50, ["She"] * 50, [[[0.1] * 51]] * 51)
    assert repr([long]) == """[<Translation "Sie 'hat'", score 0.0000>]"""


def test_a_notebook_shows_where_the_model_looked() -> None:
    """Source across, target down; the weights are means over heads."""
    shown = translation("<i>&", ["<i>&"], ['"s', "t\x1b"], TWO_HEADS)._repr_html_()
    text, frame = ElementTree.fromstring(f"<div>{shown}</div>")
    (table,) = frame
    assert (text.tag, text.text) == ("p", "<i>&")
    caption, header, *rows = table
    assert caption.text == "Attention: source across, target down"
    assert [cell.text for cell in header] == [None, '"s', "t\\x1b", "⟨eos⟩"]
    assert [row[0].text for row in rows] == ["<i>&", "⟨eos⟩"]
    assert [[cell.get("title") for cell in row[1:]] for row in rows] == [
        ['<i>&, "s: 0.75', "<i>&, t\\x1b: 0.25", "<i>&, ⟨eos⟩: 0.00"],
        ['⟨eos⟩, "s: 0.00', "⟨eos⟩, t\\x1b: 0.01", "⟨eos⟩, ⟨eos⟩: 0.99"],
    ]
    shades = [[(cell.get("style") or "").split("currentColor ")[1] for cell in row[1:]] for row in rows]
    percent = [["75%", "25%", "0%"], ["0%", "1%", "99%"]]
    assert shades == [[f"{share}, transparent)" for share in row] for row in percent]


def test_a_translation_that_was_cut_has_no_row_for_its_end() -> None:
    shown = translation("a", ["a"], ["b", "c"], TWO_HEADS[:1])._repr_html_()
    assert [row[0].text for row in ElementTree.fromstring(f"<div>{shown}</div>")[1][0][2:]] == ["a"]


@pytest.mark.parametrize("alignment", [None, [[[0.0, 0.0]]]])
def test_without_attention_a_notebook_shows_the_text(alignment: object) -> None:
    assert translation("a <b>", ["a"], ["x"], alignment)._repr_html_() == "<p>a &lt;b&gt;</p>"


def test_a_notebook_shows_a_map_for_each_sentence_up_to_a_megabyte() -> None:
    """The map of 100 sentences together was 133 MB."""
    words = [f"word{n}" for n in range(15)]
    weights = torch.eye(16).unsqueeze(1)
    sentence = Translation("A sentence.", words, words, alignment=weights)
    for number, drawn in ((3, 3), (200, None)):
        joined = Translation("text", words * number, words * number, alignment=None, sentences=[sentence] * number)
        shown = joined._repr_html_()
        assert len(shown) < 1.1e6
        if drawn is None:
            drawn = shown.count("<table")
            assert 20 < drawn < number
            assert f"<p>{drawn} of {number} sentences are drawn here; " in shown
        assert shown.count("<table") == drawn
        assert shown.count("<p>A sentence.</p>") == drawn


def test_a_map_that_is_too_large_by_itself_is_not_drawn() -> None:
    tokens = ["x" * 500] * 60
    shown = translation("a", tokens, tokens, [[[1.0] * 61]] * 61)._repr_html_()
    assert shown == "<p>a</p><p>The attention is not drawn here; `attention` is the array of a translation.</p>"


@needs_chromium
def test_in_a_notebook_a_wide_output_scrolls_by_itself(browser: Page, tmp_path: Path) -> None:
    """A map of 40 words made a page of 390 pixels 833 wide, and a line of an explanation made it 1078 wide."""
    words = [f"word{n}" for n in range(40)]
    wide = Translation("A sentence.", words, words, alignment=torch.eye(41).unsqueeze(1))
    outputs = wide._repr_html_() + Explanation("0.12 " * 300)._repr_html_()
    viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    path = tmp_path / "notebook.html"
    path.write_text(f'<!doctype html><meta charset="utf-8">{viewport}<link rel="icon" href="data:,">{outputs}', "utf-8")
    browser.open(path.as_uri(), 390)
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    scrolls = "[...document.querySelectorAll('div, pre')].map((frame) => frame.scrollWidth > frame.clientWidth)"
    assert browser.evaluate(scrolls) == [True, True]


def test_the_attention_is_an_array_to_draw() -> None:
    """Source across, target down: what `imshow` takes."""
    weights = translation("a", ["a"], ["b", "c"], TWO_HEADS).attention
    assert weights.shape == (2, 3)
    assert weights[0].tolist() == [0.75, 0.25, 0.0]
    with pytest.raises(ValueError, match="translate with `with_alignment=True`"):
        _ = translation("a", ["a"], ["b"], None).attention
