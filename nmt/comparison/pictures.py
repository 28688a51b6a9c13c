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
    """Draw scores, learning curves, and BLEU and entropy by length."""
    _draw_scores(rows, directory / SCORES)
    _draw_training(rows, directory / CURVES)
    _draw_by_length(rows, directory / LENGTHS)


def _draw_scores(rows: Sequence[Row], path: Path) -> None:
    """Draw BLEU with intervals, a point for each seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 1.2 + 0.32 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for line, row in enumerate(rows):
        scores = [result["scores"]["bleu"] for result in row.results]
        offsets = [line + 0.16 * (number - (len(scores) - 1) / 2) for number in range(len(scores))]
        values = [score["value"] for score in scores]
        intervals = [score["confidence"] or 0.0 for score in scores]
        axes.errorbar(values, offsets, xerr=intervals, fmt="o", color="tab:blue", capsize=3, markersize=5)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set(xlabel="BLEU, with 95% intervals of a bootstrap over sentences")
    axes.grid(axis="x", alpha=0.3)
    save_figure(figure, path)


def _draw_by_length(rows: Sequence[Row], path: Path) -> None:
    """Draw BLEU and entropy of attention by source length, as Bahdanau et al. (2015, figure 2) draw BLEU.

    Only configs that share the test set of the first one are drawn.
    """
    from matplotlib.figure import Figure

    bins = bins_of(rows[0])
    same = [row for row in rows if bins_of(row) == bins]
    bleu = {row.name: lengths_of(row, "bleu") for row in same}
    entropy = {row.name: lengths_of(row, "entropy") for row in same}
    with_attention = {name: values for name, values in entropy.items() if any(value is not None for value in values)}

    # A panel for BLEU, and one for entropy if a config has attention; a config has one style in both.
    contents = {"BLEU": bleu}
    if with_attention:
        contents["entropy of attention (nats)"] = with_attention
    figure = Figure(figsize=(12 if with_attention else 7, 4.6), layout="constrained")
    panels = figure.subplots(1, len(contents), squeeze=False)[0]
    styles = dict(zip(bleu, _styles(), strict=False))
    labels = [f"{length_bin.name}\nn={length_bin.sentences:,}" for length_bin in bins]
    joined = [index for index, length_bin in enumerate(bins) if length_bin.joined]
    for axes, (title, lines) in zip(panels, contents.items(), strict=True):
        for name, values in lines.items():
            points = [(index, value) for index, value in enumerate(values) if value is not None]
            _draw_line(axes, points, name, styles[name])
        axes.set_xticks(range(len(bins)), labels, fontsize=8)
        if joined:  # the last bins
            axes.axvspan(joined[0] - 0.5, len(bins) - 0.5, color="0.93")
            where = (joined[0] - 0.45, 0.98)
            axes.annotate("joined test pairs", where, xycoords=("data", "axes fraction"), va="top", size=8)
        axes.set(xlabel="words of the source", title=title, xlim=(-0.5, len(bins) - 0.5))
        axes.grid(alpha=0.3)
    _add_legend(panels[0])
    save_figure(figure, path)


def _draw_line(axes: Axes, points: Sequence[tuple[float, float]], label: str, style: Mapping[str, Any]) -> None:
    """Draw a line through points, if there are any."""
    if points:
        axes.plot([x for x, _ in points], [y for _, y in points], label=label, **style)


def _draw_training(rows: Sequence[Row], path: Path) -> None:
    """Draw BLEU in validation of the first seed over the time of training."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.6), layout="constrained")
    axes = figure.subplots()
    for row, style in zip(rows, _styles(), strict=False):
        points = [(entry["seconds"] / 60, entry["bleu"]) for entry in row.results[0]["curve"] if "bleu" in entry]
        _draw_line(axes, points, row.name, style)
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
    if lines := axes.get_lines():
        axes.legend(fontsize=8 if len(lines) <= SMALL else 6)
