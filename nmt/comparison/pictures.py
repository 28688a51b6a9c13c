"""The pictures of a comparison."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from nmt.comparison.results import Row
from nmt.comparison.tables import lengths_of
from nmt.visualize.comparison import draw_by_length, draw_scores, draw_training

SCORES, CURVES, LENGTHS = "bleu.png", "curves.png", "lengths.png"


def draw_pictures(rows: Sequence[Row], directory: Path) -> None:
    """Draw scores, learning curves, and BLEU and entropy by length; without matplotlib, nothing.

    In pictures by length are the configs that share the test set of the first one.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return
    scores = {
        row.name: [
            (result["scores"]["bleu"]["value"], result["scores"]["bleu"]["confidence"] or 0.0) for result in row.results
        ]
        for row in rows
    }
    draw_scores(scores, directory / SCORES)
    curves = {
        row.name: [(each["seconds"] / 60, each["bleu"]) for each in row.results[0]["curve"] if "bleu" in each]
        for row in rows
    }
    draw_training(curves, directory / CURVES)
    bins = _bins(rows[0])
    same = [row for row in rows if _bins(row) == bins]
    bleu, entropy = ({row.name: lengths_of(row, key) for row in same} for key in ("bleu", "entropy"))
    draw_by_length(bins, bleu, entropy, directory / LENGTHS)


def _bins(row: Row) -> list[tuple[str, int, bool]]:
    return [(each["name"], each["sentences"], each["joined"]) for each in row.results[0]["lengths"]]
