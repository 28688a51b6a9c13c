"""Picture of sentence lengths."""

from __future__ import annotations

import importlib.util
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from nmt.drawing.picture import save_figure

SHOWN = 0.999
"""Share of the training sentences of each side that the picture covers."""
COLOURS = {"train": "0.78", "valid": "tab:orange", "test": "tab:blue"}

Histogram = Sequence[int]
"""Number of sentences with no token, with one token, and so on."""


def draw_lengths(lengths: Mapping[str, Sequence[Histogram]], path: Path) -> None:
    """Draw the distribution of sentence lengths of each split, with the source on the left and the target on the right.

    The few longest are cut off. Without matplotlib, as on a bare GPU machine, nothing is drawn.

    Args:
        lengths: Source and target histogram of each split; train is required, empty splits are skipped.
        path: Picture to write.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    end = max(map(longest_shown, lengths["train"]))
    figure = Figure(figsize=(10, 3.6))
    both = figure.subplots(1, 2, sharex=True, sharey=True, gridspec_kw={"wspace": 0.05})
    for axes, side, name in zip(both, (0, 1), ("Source", "Target"), strict=True):
        for split, colour in COLOURS.items():
            histogram = lengths[split][side]
            if not sum(histogram):
                continue
            axes.stairs(
                _shares(histogram, end),
                [length - 0.5 for length in range(end + 2)],
                label=f"{split} ({sum(histogram):,})",
                color=colour,
                fill=split == "train",
                linewidth=1.2,
            )
        longest = max(len(histograms[side]) for histograms in lengths.values()) - 1
        cut = f" (cut after {SHOWN:.1%}; the longest has {longest:,})" if longest > end else ""
        axes.set(title=name, xlabel=f"tokens{cut}", xlim=(-0.5, end + 0.5))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.legend()
    both[0].set_ylabel("share of the sentences")
    both[0].yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    save_figure(figure, path)


def longest_shown(histogram: Histogram) -> int:
    """The smallest length, in tokens, that at least `SHOWN` of the sentences do not exceed."""
    return bisect_left(list(accumulate(histogram)), SHOWN * sum(histogram))


def _shares(histogram: Histogram, end: int) -> list[float]:
    """Shares of the sentences with 0, 1, ..., `end` tokens."""
    total = sum(histogram)
    shares = [count / total for count in histogram[: end + 1]]
    return shares + [0.0] * (end + 1 - len(shares))
