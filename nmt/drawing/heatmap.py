"""Attention weights drawn: as a heat map, in a notebook, in a terminal, and how sharp they are over many steps."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nmt.drawing.picture import save_figure
from nmt.system.errors import DataError, as_nmt_errors, printable
from nmt.system.files import AnyPath

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EOS_LABEL = "⟨eos⟩"
SHADES = " ░▒▓█"
"""From no weight to all of it."""
BINS = 40
ROUNDING = 1e-3
"""By which a sum of weights in half precision may exceed 1."""
UPWARDS = "writing-mode: vertical-rl; transform: rotate(180deg); vertical-align: bottom; text-align: left"
RULED = "border-bottom: 1px solid rgb(128 128 128 / 0.3)"
SHADE = "background: color-mix(in srgb, currentColor {:.0%}, transparent)"
"""Styles of a heat map in HTML."""


@as_nmt_errors()
def heat_map(weights: Any, source: Sequence[str], target: Sequence[str], path: AnyPath) -> None:
    """Draw attention weights of your own: source across, target down.

    Args:
        weights: [target words, source words]: a tensor, an array or lists.
        source: Words of the source, with its end if it has a column.
        target: Words of the translation, with its end if it has a row.
        path: Picture to write, such as kissed.png; an earlier one is replaced.

    Raises:
        DataError: Words and weights do not fit, a weight is not between 0 and 1, or the file is not a picture's.
    """
    if hasattr(weights, "detach"):
        weights = weights.detach().cpu().double()
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.shape != (len(target), len(source)):
        raise DataError(
            f"weights: expected a row for each of {len(target)} target words and a column for each of {len(source)} "
            f"source words, found {list(numbers.shape)}; does the end of a sentence have its own?"
        )
    if not ((numbers >= 0) & (numbers <= 1 + ROUNDING)).all():
        raise DataError("weights: expected numbers from 0 to 1; these may be scores, before the softmax")
    save_figure(make_heatmap(numbers, source, target), Path(path))


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
    row_labels = list(tgt_tokens)
    column_labels = [*src_tokens, *margin]
    rows = len(row_labels)
    columns = len(column_labels)

    # The figure grows with its squares and the length of its labels, all in inches.
    side = 0.42 if max(alignment.shape) <= 20 else 0.3
    label_width = 0.085 * max(map(len, row_labels))
    label_height = 0.085 * max(map(len, column_labels))
    width = max(3.2, columns * side + label_width + 1.4)
    height = max(2.4, rows * side + label_height + 0.6)
    figure = Figure(figsize=(width, height), layout="constrained")
    axis = figure.subplots()

    # The margin has no weights: NaN is not coloured.
    padded = np.pad(alignment, ((0, 0), (0, len(margin))), constant_values=np.nan)
    image = axis.imshow(padded, cmap="Greys", vmin=0, vmax=1, aspect="equal")
    axis.set_xticks(range(columns), _escape(column_labels), rotation=60, ha="left", rotation_mode="anchor")
    axis.set_yticks(range(rows), _escape(row_labels))
    axis.xaxis.tick_top()
    axis.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axis.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axis.grid(which="minor", color="0.85", linewidth=0.6)
    axis.tick_params(which="both", length=0)
    # A small map has its larger weights as numbers, too.
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
    """Weights as a table in HTML, without a script, in the colour of the text; each cell has its weight as a tooltip.

    Args:
        weights: Between 0 and 1, [rows, columns].
        columns: Names of the columns, which are written upwards.
        rows: Names of the rows.
    """
    columns = [html.escape(printable(name)) for name in columns]
    rows = [html.escape(printable(name)) for name in rows]
    titles = [f'<th style="{UPWARDS}">{name}</th>' for name in columns]
    lines = ["<td></td>" + "".join(titles)]
    for name, row in zip(rows, weights, strict=True):
        cells = [f'<th style="text-align: right">{name}</th>']
        for column, weight in zip(columns, row, strict=True):
            cells.append(f'<td title="{name}, {column}: {weight:.2f}" style="{SHADE.format(weight)}"></td>')
        lines.append("".join(cells))
    caption = "<caption>Attention: source across, target down</caption>"
    table = "".join(f'<tr style="{RULED}">{line}</tr>' for line in lines)
    return f'<table style="border-collapse: collapse; width: auto; color: inherit">{caption}{table}</table>'


def draw_shades(
    weights: Sequence[Sequence[float]], columns: Sequence[str], rows: Sequence[str], width: int
) -> list[str]:
    """Weights in a terminal, as shades under the tokens; if that is too wide, the largest weight of each row.

    Args:
        weights: Between 0 and 1, [rows, columns].
        columns: Names of the columns.
        rows: Names of the rows.
        width: Columns of the terminal.
    """
    columns = [printable(name) for name in columns]
    rows = [printable(name) for name in rows]
    margin = max(map(_width, rows), default=0)
    block_widths = [max(1, _width(name)) for name in columns]
    spaces = len(columns)
    lines: list[str] = []

    # Too wide: each row names the column of its largest weight.
    if margin + sum(block_widths) + spaces > width:
        for name, row in zip(rows, weights, strict=True):
            strongest = int(np.argmax(row))
            lines.append(f"{_padded(name, margin)} {columns[strongest]} {row[strongest]:.2f}")
        return lines

    lines.append(" ".join([_padded("", margin), *columns]).rstrip())
    for name, row in zip(rows, weights, strict=True):
        blocks = [_shade(weight) * block for weight, block in zip(row, block_widths, strict=True)]
        lines.append(" ".join([_padded(name, margin), *blocks]).rstrip())
    return lines


def _shade(weight: float) -> str:
    """The character for a weight between 0 and 1."""
    number = int(weight * len(SHADES))
    return SHADES[min(number, len(SHADES) - 1)]


def _width(text: str) -> int:
    """Columns of a terminal that a text takes: wide characters take two, combining marks none."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    marks = sum(unicodedata.category(character) in ("Mn", "Me") for character in text)
    return len(text) + wide - marks


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
    panels = figure.subplots(1, len(values))
    for axes, (name, heads) in zip(panels, values.items(), strict=True):
        several = len(heads) > 1
        style = "step" if several else "stepfilled"  # outlines of several heads can be told apart
        for number, of_steps in enumerate(heads, 1):
            mean = sum(of_steps) / len(of_steps)
            label = f"head {number}, mean {mean:.2f}" if several else f"mean {mean:.2f}"
            axes.hist(of_steps, bins=BINS, histtype=style, label=label, alpha=0.8)
        axes.set(xlabel=f"{name} of a step", ylabel="steps")
        axes.grid(alpha=0.3)
        axes.legend()
    save_figure(figure, path)
