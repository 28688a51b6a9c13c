import json
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nmt.drawing.curves import draw_learning_curve
from nmt.drawing.heatmap import EOS_LABEL, draw_heatmap
from nmt.system.errors import DataError


def png_size(path: Path) -> tuple[int, int]:
    """Width and height from the header of a PNG file, which must be whole."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert content[12:16] == b"IHDR"
    assert content[-8:-4] == b"IEND"
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def random_alignment(rows: int, columns: int) -> NDArray[np.float64]:
    weights = np.random.default_rng(1).random((rows, columns)) ** 4
    return weights / weights.sum(axis=1, keepdims=True)


def test_a_heatmap_is_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    draw_heatmap(random_alignment(3, 4), ["I", "am", "old", EOS_LABEL], ["Ich", "bin", "alt"], path)
    width, height = png_size(path)
    assert width > 200
    assert height > 150
    assert names(tmp_path) == ["a.png"]


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 12), (12, 1)])
def test_a_heatmap_may_be_narrow(tmp_path: Path, rows: int, columns: int) -> None:
    draw_heatmap(random_alignment(rows, columns), ["a"] * columns, ["b"] * rows, tmp_path / "a.png")
    png_size(tmp_path / "a.png")


def test_heatmaps_grow_with_the_sentences(tmp_path: Path) -> None:
    sizes = {}
    for length in (5, 40):
        path = tmp_path / f"{length}.png"
        draw_heatmap(random_alignment(length, length), ["source"] * length, ["target"] * length, path)
        sizes[length] = png_size(path)
    assert sizes[40][0] > 2 * sizes[5][0]
    assert sizes[40][1] > 2 * sizes[5][1]


@pytest.mark.parametrize(
    "tokens",
    [
        ["für", "Größe", "ÄÖÜ", "«é»"],
        ["$", "$x$", "$5", "$\\frac{1}{2}$"],
        ["a^b", "_", "{", "\\"],
        ["", " ", "▁der", "%"],
        ["<b>", "&amp;", "#", '"'],
    ],
)
def test_tokens_are_plain_text(tmp_path: Path, tokens: list[str]) -> None:
    draw_heatmap(random_alignment(4, 4), tokens, tokens, tmp_path / "a.png")
    png_size(tmp_path / "a.png")


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.PNG", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.svg", b"<?xml")]
)
def test_the_suffix_chooses_the_format(tmp_path: Path, name: str, start: bytes) -> None:
    draw_heatmap(random_alignment(2, 2), ["a", "b"], ["c", "d"], tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["a.doc", "a", "a.png.", "png"])
def test_an_unknown_suffix_is_refused_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"not a picture format; use one of .*pdf, .*png"):
        draw_heatmap(random_alignment(2, 2), ["a", "b"], ["c", "d"], tmp_path / name)
    assert names(tmp_path) == []


def test_a_picture_replaces_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_text("not a picture", encoding="utf-8")
    draw_heatmap(random_alignment(2, 2), ["a", "b"], ["c", "d"], path)
    png_size(path)


TRAIN = [{"kind": "train", "update": update, "loss": 5 / update} for update in (10, 20, 30)]
VALID = [{"kind": "valid", "update": update, "loss": 6 / update} for update in (15, 30)]
SCORED = [{**entry, "bleu": 10.0 + index, "chrf": 30.0} for index, entry in enumerate(VALID)]


def draw(run: Path, entries: list[dict[str, object]]) -> tuple[int, int]:
    lines = [json.dumps(entry) + "\n" for entry in entries]
    (run / "metrics.jsonl").write_text("".join(lines), encoding="utf-8")
    draw_learning_curve(run)
    assert names(run) == ["learning_curve.png", "metrics.jsonl"]
    return png_size(run / "learning_curve.png")


@pytest.mark.parametrize(
    "entries",
    [TRAIN, [*TRAIN, *VALID], VALID, TRAIN[:1], [*TRAIN, {"kind": "other", "update": 3}], []],
    ids=["training", "losses", "validation", "one update", "other kinds", "nothing"],
)
def test_a_learning_curve_is_a_picture(tmp_path: Path, entries: list[dict[str, object]]) -> None:
    width, height = draw(tmp_path, entries)
    assert width > 400
    assert height > 300


def test_validations_without_scores_are_left_out_of_their_panel(tmp_path: Path) -> None:
    draw(tmp_path, [*TRAIN, SCORED[0], VALID[1]])
    draw(tmp_path, [*TRAIN, VALID[0], SCORED[1]])


def test_scores_have_a_panel_of_their_own(tmp_path: Path) -> None:
    losses, _ = draw(tmp_path, [*TRAIN, *VALID])
    scored, _ = draw(tmp_path, [*TRAIN, *SCORED])
    assert scored > 1.5 * losses
    draw(tmp_path, [*TRAIN, *SCORED[:1]])
