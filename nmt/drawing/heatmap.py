"""Attention weights drawn: as a heat map, in a notebook, in a terminal, and how sharp they are over many steps."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nmt.drawing.picture import save_figure
from nmt.system.errors import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EOS_LABEL = "⟨eos⟩"
SHADES = " ░▒▓█"
"""From no weight to all of it."""
BINS = 40
UPWARDS = "writing-mode: vertical-rl; transform: rotate(180deg); vertical-align: bottom; text-align: left"
RULED = "border-bottom: 1px solid rgb(128 128 128 / 0.3)"
SHADE = "background: color-mix(in srgb, currentColor {:.0%}, transparent)"
"""Styles of a heat map in HTML."""


def make_heatmap(
    alignment: NDArray[np.float64],
    src_tokens: Sequence[str],
    tgt_tokens: Sequence[str],
    margin: Mapping[str, Sequence[str]] = {},
) -> Figure:
    """Draw attention weights: source across, target down, as in Bahdanau et al. (2015), figure 3.

    Args:
        alignment: Weights, [target tokens, source tokens].
        src_tokens: Labels of the columns, including EOS.
        tgt_tokens: Labels of the rows, including EOS if it was reached.
        margin: Columns of text to the right of the weights, by their name: a cell for each row.
    """
    from matplotlib.figure import Figure

    assert alignment.shape == (len(tgt_tokens), len(src_tokens))
    src_tokens = [*src_tokens, *margin]
    rows = len(tgt_tokens)
    columns = len(src_tokens)
    side = 0.42 if max(alignment.shape) <= 20 else 0.3  # inches of a square
    longest = [max(map(len, labels)) * 0.085 for labels in (tgt_tokens, src_tokens)]
    size = (max(3.2, columns * side + longest[0] + 1.4), max(2.4, rows * side + longest[1] + 0.6))
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    padded = np.pad(alignment, ((0, 0), (0, len(margin))), constant_values=np.nan)  # which is not coloured
    image = axis.imshow(padded, cmap="Greys", vmin=0, vmax=1, aspect="equal")
    axis.set_xticks(range(columns), _escape(src_tokens), rotation=60, ha="left", rotation_mode="anchor")
    axis.set_yticks(range(rows), _escape(tgt_tokens))
    axis.xaxis.tick_top()
    axis.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axis.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axis.grid(which="minor", color="0.85", linewidth=0.6)
    axis.tick_params(which="both", length=0)
    if max(alignment.shape) <= 16:
        for (row, column), weight in np.ndenumerate(alignment):
            if weight >= 0.1:
                text = f"{weight:.1f}".lstrip("0")
                colour = "white" if weight > 0.5 else "black"
                axis.text(column, row, text, ha="center", va="center", color=colour, fontsize=7)
    axis.axvline(alignment.shape[1] - 0.5, color="black", linewidth=0.8)
    for column, cells in enumerate(margin.values(), alignment.shape[1]):
        for row, text in enumerate(cells):
            axis.text(column, row, text, ha="center", va="center", fontsize=7, fontstyle="italic")
    figure.colorbar(image, ax=axis, fraction=0.04, pad=0.02, label="attention weight")
    return figure


def _escape(tokens: Sequence[str]) -> list[str]:
    """Escape tokens: a dollar sign would start a formula, and the font has no control characters."""
    return [printable(token).replace("$", r"\$") for token in tokens]


def make_html_heatmap(weights: Sequence[Sequence[float]], columns: Sequence[str], rows: Sequence[str]) -> str:
    """Weights as a table in HTML, without a script, in the colour of the text; a cell that is pointed at says its own.

    Args:
        weights: Between 0 and 1, [rows, columns].
        columns: Names of the columns, which are written upwards.
        rows: Names of the rows.
    """
    columns, rows = ([html.escape(printable(name)) for name in names] for names in (columns, rows))
    lines = ["<td></td>" + "".join(f'<th style="{UPWARDS}">{name}</th>' for name in columns)]
    for name, row in zip(rows, weights, strict=True):
        cells = (
            f'<td title="{name}, {column}: {weight:.2f}" style="{SHADE.format(weight)}"></td>'
            for column, weight in zip(columns, row, strict=True)
        )
        lines.append(f'<th style="text-align: right">{name}</th>' + "".join(cells))
    caption = "<caption>Attention: source across, target down</caption>"
    table = "".join(f'<tr style="{RULED}">{line}</tr>' for line in lines)
    return f'<table style="border-collapse: collapse; width: auto; color: inherit">{caption}{table}</table>'


def draw_shades(
    weights: Sequence[Sequence[float]], columns: Sequence[str], rows: Sequence[str], width: int
) -> list[str]:
    """Weights in a terminal, as shades under the tokens; where that is too wide, the strongest of each row by name.

    Args:
        weights: Between 0 and 1, [rows, columns].
        columns: Names of the columns.
        rows: Names of the rows.
        width: Columns of the terminal.
    """
    columns = [printable(name) for name in columns]
    rows = [printable(name) for name in rows]
    margin = max(map(_width, rows), default=0)
    if margin + sum(1 + max(1, _width(name)) for name in columns) > width:
        strongest = [int(np.argmax(row)) for row in weights]
        return [
            f"{_padded(name, margin)} {columns[column]} {row[column]:.2f}"
            for name, row, column in zip(rows, weights, strongest, strict=True)
        ]
    lines = [[_padded("", margin), *columns]]
    for name, row in zip(rows, weights, strict=True):
        shades = [SHADES[min(len(SHADES) - 1, int(weight * len(SHADES)))] for weight in row]
        blocks = [shade * max(1, _width(title)) for shade, title in zip(shades, columns, strict=True)]
        lines.append([_padded(name, margin), *blocks])
    return [" ".join(line).rstrip() for line in lines]


def _width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.category(character) in ("Mn", "Me") for character in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def draw_sharpness(values: Mapping[str, Sequence[Sequence[float]]], reading: str, path: Path) -> None:
    """Draw how statistics of attention are distributed over steps: a histogram each.

    Args:
        values: For each statistic, by its name, and each head, the value of each step.
        reading: How to read the histograms, to stand below them.
        path: Picture to write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * len(values), 3.8), layout="constrained")
    figure.supxlabel(reading, fontsize="small")
    for axes, (name, heads) in zip(figure.subplots(1, len(values)), values.items(), strict=True):
        for number, of_head in enumerate(heads, 1):
            mean = sum(of_head) / len(of_head)
            label = f"mean {mean:.2f}" if len(heads) == 1 else f"head {number}, mean {mean:.2f}"
            axes.hist(of_head, bins=BINS, histtype="stepfilled" if len(heads) == 1 else "step", label=label, alpha=0.8)
        axes.set(xlabel=f"{name} of a step", ylabel="steps")
        axes.grid(alpha=0.3)
        axes.legend()
    save_figure(figure, path)
