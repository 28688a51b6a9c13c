"""Attention heatmap: source across, target down, as in Bahdanau et al. (2015), figure 3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nmt.drawing.picture import save_figure
from nmt.system.errors import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EOS_LABEL = "⟨eos⟩"


def draw_heatmap(
    alignment: NDArray[np.float64], src_tokens: Sequence[str], tgt_tokens: Sequence[str], path: Path
) -> None:
    """Write attention weights as a picture; the arguments are those of `make_heatmap`."""
    save_figure(make_heatmap(alignment, src_tokens, tgt_tokens), path)


def make_heatmap(alignment: NDArray[np.float64], src_tokens: Sequence[str], tgt_tokens: Sequence[str]) -> Figure:
    """Draw attention weights.

    Args:
        alignment: Weights, [target tokens, source tokens].
        src_tokens: Labels of the columns, including EOS.
        tgt_tokens: Labels of the rows, including EOS if it was reached.
    """
    from matplotlib.figure import Figure

    rows, columns = alignment.shape
    assert (rows, columns) == (len(tgt_tokens), len(src_tokens))
    cell = 0.42 if max(rows, columns) <= 20 else 0.3
    longest = [max(map(len, labels)) * 0.085 for labels in (tgt_tokens, src_tokens)]
    size = (max(3.2, columns * cell + longest[0] + 1.4), max(2.4, rows * cell + longest[1] + 0.6))
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    image = axis.imshow(alignment, cmap="Greys", vmin=0, vmax=1, aspect="equal")
    axis.set_xticks(range(columns), _escape(src_tokens), rotation=60, ha="left", rotation_mode="anchor")
    axis.set_yticks(range(rows), _escape(tgt_tokens))
    axis.xaxis.tick_top()
    axis.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axis.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axis.grid(which="minor", color="0.85", linewidth=0.6)
    axis.tick_params(which="both", length=0)
    if max(rows, columns) <= 16:
        for (row, column), weight in np.ndenumerate(alignment):
            if weight >= 0.1:
                colour = "white" if weight > 0.5 else "black"
                axis.text(
                    column,
                    row,
                    f"{weight:.1f}".lstrip("0"),
                    ha="center",
                    va="center",
                    color=colour,
                    fontsize=7,
                )
    figure.colorbar(image, ax=axis, fraction=0.04, pad=0.02, label="attention weight")
    return figure


def _escape(tokens: Sequence[str]) -> list[str]:
    """Escape tokens: a dollar sign would start a formula, and the font has no control characters."""
    return [printable(token).replace("$", r"\$") for token in tokens]
