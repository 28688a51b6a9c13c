from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.typing import NDArray

from nmt.drawing.heatmap import EOS_LABEL, make_heatmap
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
