"""The pictures of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nmt.comparison.results import Row
from nmt.comparison.tables import CURVES, LENGTHS, SCORES, bins_of, lengths_of
from nmt.drawing.bars import draw_by_length, draw_scores, draw_training


def draw_pictures(rows: Sequence[Row], directory: Path) -> None:
    """Draw scores, the learning curve of the first seed, and BLEU and entropy by length.

    In pictures by length are the configs that share the test set of the first one.
    """
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
    bins = bins_of(rows[0])
    same = [row for row in rows if bins_of(row) == bins]
    bleu, entropy = ({row.name: lengths_of(row, key) for row in same} for key in ("bleu", "entropy"))
    draw_by_length(bins, bleu, entropy, directory / LENGTHS)
