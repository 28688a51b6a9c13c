"""The pictures of a comparison: scores, learning curves, and scores and attention by length."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.comparison.results import Row
from nmt.comparison.summary import CURVES, LENGTHS, SCORES, bins_of, lengths_of
from nmt.drawing.picture import save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^vP*X<>"
SMALL = 10
"""Lines up to which a legend has letters of the usual size."""


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


def draw_scores(scores: Mapping[str, Sequence[tuple[float, float]]], path: Path) -> None:
    """Draw BLEU with intervals, a point for each seed.

    Args:
        scores: By config, BLEU of each seed and half of its 95% interval.
        path: Picture to write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 1.2 + 0.32 * len(scores)), layout="constrained")
    axes = figure.subplots()
    for line, points in enumerate(scores.values()):
        offsets = [line + 0.16 * (number - (len(points) - 1) / 2) for number in range(len(points))]
        values, intervals = zip(*points, strict=True) if points else ((), ())
        axes.errorbar(values, offsets, xerr=intervals, fmt="o", color="tab:blue", capsize=3, markersize=5)
    axes.set_yticks(range(len(scores)), list(scores))
    axes.set_ylim(len(scores) - 0.5, -0.5)
    axes.set(xlabel="BLEU, with 95% intervals of a bootstrap over sentences")
    axes.grid(axis="x", alpha=0.3)
    save_figure(figure, path)


def draw_by_length(
    bins: Sequence[tuple[str, int, bool]],
    bleu: Mapping[str, Sequence[float | None]],
    entropy: Mapping[str, Sequence[float | None]],
    path: Path,
) -> None:
    """Draw BLEU and entropy of attention by source length, as Bahdanau et al. (2015, figure 2) draw BLEU.

    Args:
        bins: Words of the sources, number of sentences, and whether these are test pairs that were joined.
        bleu: By config, BLEU of each bin; None is left out.
        entropy: By config, entropy of each bin in nats; None is left out.
        path: Picture to write.
    """
    from matplotlib.figure import Figure

    known = {name: values for name, values in entropy.items() if any(value is not None for value in values)}
    figure = Figure(figsize=(12 if known else 7, 4.6), layout="constrained")
    panels = figure.subplots(1, 2 if known else 1, squeeze=False)[0]
    styles = dict(zip(bleu, _styles(), strict=False))
    for axes, found, title in zip(panels, (bleu, known), ("BLEU", "entropy of attention (nats)"), strict=False):
        for name, values in found.items():
            style = styles[name]
            points = [(place, value) for place, value in enumerate(values) if value is not None]
            axes.plot(*zip(*points, strict=True), label=name, **style) if points else None
        axes.set_xticks(range(len(bins)), [f"{name}\nn={number:,}" for name, number, _ in bins], fontsize=8)
        first = next((place for place, each in enumerate(bins) if each[2]), None)
        if first is not None:
            axes.axvspan(first - 0.5, len(bins) - 0.5, color="0.93")
            axes.annotate(
                "joined test pairs", (first - 0.45, 0.98), xycoords=("data", "axes fraction"), va="top", size=8
            )
        axes.set(xlabel="words of the source", title=title, xlim=(-0.5, len(bins) - 0.5))
        axes.grid(alpha=0.3)
    _add_legend(panels[0])
    save_figure(figure, path)


def draw_training(curves: Mapping[str, Sequence[tuple[float, float]]], path: Path) -> None:
    """Draw BLEU in validation over the time of training.

    Args:
        curves: By config, minutes of training and validation, and BLEU.
        path: Picture to write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.6), layout="constrained")
    axes = figure.subplots()
    for (name, points), style in zip(curves.items(), _styles(), strict=False):
        if points:
            axes.plot(*zip(*points, strict=True), label=name, **style)
    axes.set(xlabel="minutes of training and validation", ylabel="validation BLEU, greedy search")
    axes.grid(alpha=0.3)
    _add_legend(axes)
    save_figure(figure, path)


def _styles() -> Iterator[dict[str, Any]]:
    """Styles of lines; the first 20 differ in colour, and neighbours differ in their marker too."""
    from matplotlib import colormaps

    colours = [*colormaps["tab10"].colors, *colormaps["Set2"].colors, "black", "0.5"]  # type: ignore[attr-defined]
    for colour, marker in zip(itertools.cycle(colours), itertools.cycle(MARKERS), strict=False):
        yield {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.2}


def _add_legend(axes: Axes) -> None:
    """Name the lines, if there are any."""
    lines, _ = axes.get_legend_handles_labels()
    if lines:
        axes.legend(fontsize=8 if len(lines) <= SMALL else 6)
