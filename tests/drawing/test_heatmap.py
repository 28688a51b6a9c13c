import math
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.image import imread
from numpy.typing import NDArray

import nmt
from nmt.drawing import picture
from nmt.drawing.heatmap import EOS_LABEL, draw_sharpness, make_heatmap
from nmt.drawing.picture import save_figure
from nmt.system.errors import DataError


def random_alignment(rows: int, columns: int) -> NDArray[np.float64]:
    weights = np.random.default_rng(1).random((rows, columns)) ** 4
    return weights / weights.sum(axis=1, keepdims=True)


def draw(path: Path, src_tokens: list[str], tgt_tokens: list[str]) -> tuple[int, int]:
    """Height and width of the picture, which replaces another file and leaves nothing beside it."""
    path.write_text("not a picture", encoding="utf-8")
    save_figure(make_heatmap(random_alignment(len(tgt_tokens), len(src_tokens)), src_tokens, tgt_tokens), path)
    assert list(path.parent.iterdir()) == [path]
    height, width, _ = imread(path).shape
    return height, width


def test_heatmaps_grow_with_the_sentences(tmp_path: Path) -> None:
    small, large = (draw(tmp_path / "a.png", ["source"] * length, ["target"] * length) for length in (5, 20))
    assert min(small) > 150
    assert large[0] > 2 * small[0]
    assert large[1] > 2 * small[1]


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 12), (12, 1)])
def test_a_heatmap_may_be_narrow(tmp_path: Path, rows: int, columns: int) -> None:
    draw(tmp_path / "a.png", ["a"] * columns, ["b"] * rows)


def test_the_margin_is_beside_its_rows_and_apart_from_the_weights() -> None:
    """Read from the picture: what stands at which row and column."""
    figure = make_heatmap(np.array([[1.0, 0], [0, 1]]), ["a", "b"], ["c", "d"], {"one": ["5", "6"], "two": ["7", "8"]})
    axis = figure.axes[0]
    places = {text.get_position(): text.get_text() for text in axis.texts}
    assert places == {(0, 0): "1.0", (1, 1): "1.0", (2, 0): "5", (2, 1): "6", (3, 0): "7", (3, 1): "8"}
    assert [label.get_text() for label in axis.get_xticklabels()] == ["a", "b", "one", "two"]
    drawn = axis.images[0].get_array()
    assert drawn is not None
    assert np.isnan(np.ma.filled(drawn, np.nan)[:, 2:]).all()


def test_each_statistic_has_a_histogram_and_all_a_line_to_read_them(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    with matplotlib.rc_context({"svg.fonttype": "none"}):  # text stays text
        draw_sharpness({"first": [[0.1, 0.2]], "second": [[1, 3]], "third": [[0, 4]]}, "How to read it.", path)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))
    assert [text for text in texts if text.startswith(("mean", "How")) or text.endswith("of a step")] == [
        *("first of a step", "mean 0.15", "second of a step", "mean 2.00", "third of a step", "mean 2.00"),
        "How to read it.",
    ]


@pytest.mark.parametrize(
    "tokens",
    [
        ["für", "Größe", "ÄÖÜ", "«é»", EOS_LABEL],
        ["$", "$x$", "$5", "$\\frac{1}{2}$"],
        ["a^b", "_", "{", "\\"],
        ["", " ", "▁der", "%"],
        ["<b>", "&amp;", "#", '"'],
    ],
)
def test_tokens_are_plain_text(tmp_path: Path, tokens: list[str]) -> None:
    draw(tmp_path / "a.png", tokens, tokens)


@pytest.mark.parametrize(("name", "start"), [("a.PNG", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.svg", b"<?xml")])
def test_the_suffix_chooses_the_format(tmp_path: Path, name: str, start: bytes) -> None:
    save_figure(make_heatmap(random_alignment(2, 2), ["a", "b"], ["c", "d"]), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["a.doc", "a", "a.png.", "png"])
def test_an_unknown_suffix_is_refused_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"not a picture format; use one of .*pdf, .*png"):
        save_figure(make_heatmap(random_alignment(2, 2), ["a", "b"], ["c", "d"]), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


WITH_FONT = """
import logging, sys
from pathlib import Path
import numpy as np
from nmt.drawing.heatmap import make_heatmap
from nmt.drawing.picture import save_figure
logging.basicConfig()
save_figure(make_heatmap(np.eye(2), ["a", chr(0x65e5)], ["b", chr(0xf1234)]), Path(sys.argv[1]))
"""


def write_font(path: Path, *characters: int) -> None:
    """A font in which some characters are black squares, and which has no others."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    for point in ((0, 0), (0, 1000), (1000, 1000), (1000, 0)):
        (pen.moveTo if point == (0, 0) else pen.lineTo)(point)
    pen.closePath()
    names = {code: f"square{code:x}" for code in characters}
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", *names.values()])
    builder.setupCharacterMap(names)
    square = pen.glyph()
    builder.setupGlyf(dict.fromkeys([".notdef", *names.values()], square))
    builder.setupHorizontalMetrics(dict.fromkeys([".notdef", *names.values()], (1000, 0)))
    builder.setupHorizontalHeader(ascent=1000, descent=0)
    builder.setupNameTable({"familyName": "Squares", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)


@pytest.mark.parametrize("installed", [True, False])
def test_letters_that_the_usual_font_lacks_are_drawn_by_an_installed_one(tmp_path: Path, installed: bool) -> None:
    """A private character, as another font for Japanese may be installed; boxes were drawn, and nothing was said."""
    fonts = tmp_path / "home/fonts"
    fonts.mkdir(parents=True)
    if installed:
        write_font(fonts / "squares.ttf", 0x65E5, 0xF1234)
        (fonts / "damaged.ttf").write_bytes(b"no font")
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path / "home"), "MPLCONFIGDIR": str(tmp_path / "cache")}
    program = [sys.executable, "-c", WITH_FONT, tmp_path / "a.png"]
    said = subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stderr
    assert ("a.png: no installed font has " in said) is not installed
    assert (", drawn as boxes; install a font" in said) is not installed
    assert (tmp_path / "a.png").stat().st_size > 0


def test_weights_of_your_own_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "mine.png"
    nmt.heat_map(torch.eye(3)[:2], ["a", "b", "⟨eos⟩"], ["x", "y"], path)
    assert path.read_bytes().startswith(b"\x89PNG")
    nmt.heat_map([[0.5, 0.5]], ["a", "b"], ["x"], str(path))


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([[1.0, 0.0]], "a row for each of 2 target words and a column for each of 2 source words, found [1, 2]"),
        ([[1.0, 0.0], [3.0, -1.0]], "expected numbers from 0 to 1; these may be scores, before the softmax"),
        ([[1.0, 0.0], [math.nan, 1.0]], "expected numbers from 0 to 1"),
    ],
)
def test_weights_that_do_not_fit_are_not_drawn(weights: list[list[float]], expected: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape(expected)):
        nmt.heat_map(weights, ["a", "b"], ["x", "y"], tmp_path / "mine.png")
    assert not (tmp_path / "mine.png").exists()


def test_fonts_of_an_installed_package_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of matplotlib-fontja, whose code is not run."""
    package = tmp_path / "matplotlib_fontja"
    (package / "fonts").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    write_font(package / "fonts/own.ttf", 0xF4321)
    monkeypatch.syspath_prepend(tmp_path)
    picture._font_files.cache_clear()
    assert str(package / "fonts/own.ttf") in picture._font_files()
    picture._font_files.cache_clear()
