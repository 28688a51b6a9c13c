import json
from pathlib import Path

import pytest
from matplotlib.image import imread

from nmt.drawing.charts import LearningCurve, draw_learning_curve, draw_lengths, longest_shown


@pytest.mark.parametrize(
    ("histogram", "length"),
    [
        ([0, 0, 7], 2),
        ([0, 999, 1], 1),  # 99.9% have one token
        ([0, 998, 2], 2),
        ([0, 998, *[0] * 50, 1, 1], 52),  # 99.8% have one token, 99.9% at most 52
        ([5], 0),
    ],
)
def test_nearly_all_sentences_are_shown(histogram: list[int], length: int) -> None:
    assert longest_shown(histogram) == length


NOTHING: list[list[int]] = [[], []]


@pytest.mark.parametrize(
    ("train", "valid", "test"),
    [
        ([[0, 2, 3], [0, 0, 1, 4]], [[0, 1], [0, 0, 0, 0, 0, 1]], [[1, 0, 1], [0, 2]]),
        ([[0, 1], [0, 0, 1]], NOTHING, NOTHING),
        ([[0, 5000, *[0] * 900, 1], [0, 5001]], [[0, 3], [0, 3]], NOTHING),
    ],
    ids=["three splits", "one pair", "a long tail"],
)
def test_lengths_are_a_picture(
    tmp_path: Path, train: list[list[int]], valid: list[list[int]], test: list[list[int]]
) -> None:
    path = tmp_path / "lengths.png"
    draw_lengths({"train": train, "valid": valid, "test": test}, path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["lengths.png"]
    height, width, _ = imread(path).shape
    assert width > 2 * height > 500


def test_without_matplotlib_nothing_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    draw_lengths({"train": [[0, 1], [0, 1]], "valid": NOTHING, "test": NOTHING}, tmp_path / "lengths.png")
    assert list(tmp_path.iterdir()) == []


TRAIN = [{"kind": "train", "update": update, "loss": 5 / update} for update in (10, 20, 30)]
VALID = [{"kind": "valid", "update": update, "loss": 6 / update} for update in (15, 30)]
SCORED = [{**entry, "bleu": 10.0 + index, "chrf": 30.0} for index, entry in enumerate(VALID)]


@pytest.mark.parametrize(
    ("entries", "panels"),
    [
        (TRAIN, 1),
        (VALID, 1),
        ([*TRAIN[:1], {"kind": "other", "update": 3}, {"kind": "train", "update": 20}], 1),
        ([], 1),
        (
            [
                TRAIN[0],
                {"kind": "skipped", "update": 5, "pairs": [1]},
                {"kind": "valid", "update": 8, "bleu": 1.0, "chrf": 2.0},
            ],
            2,
        ),
        ([*TRAIN, *SCORED], 2),
        ([*TRAIN, SCORED[0], VALID[1]], 2),  # a validation without scores is left out of their panel
        ([*TRAIN, VALID[0], SCORED[1]], 2),
        ([{**TRAIN[0], "gradient_norm": 2.0}, TRAIN[1]], 2),  # a norm that is not finite is not logged
        ([*({**entry, "gradient_norm": 0.5} for entry in TRAIN), *SCORED], 3),
    ],
)
def test_a_learning_curve_is_a_picture(tmp_path: Path, entries: list[dict[str, object]], panels: int) -> None:
    lines = [json.dumps(entry) + "\n" for entry in entries]
    (tmp_path / "metrics.jsonl").write_text("".join(lines), encoding="utf-8")
    draw_learning_curve(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["learning_curve.png", "metrics.jsonl"]
    height, width, _ = imread(tmp_path / "learning_curve.png").shape
    assert height > 300
    assert width == pytest.approx(130 * (0.5 + 3.6 * panels), rel=0.1)


def test_a_learning_curve_is_drawn_now_and_then_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"kind": "train", "update": 1, "loss": 2.0}) + "\n")
    picture = tmp_path / "learning_curve.png"
    curve = LearningCurve(tmp_path)
    curve.close()
    assert not picture.exists()  # nothing is new
    curve.update()
    assert not picture.exists()  # there was no time yet
    curve.close()
    picture.unlink()
    curve.close()
    assert not picture.exists()
    monkeypatch.setattr("nmt.drawing.charts.SECONDS", 0.0)
    curve.update()
    assert picture.exists()
