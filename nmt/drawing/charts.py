"""Charts of numbers: learning curves and sentence lengths.

Without matplotlib, as on a bare GPU machine, nothing is drawn.
"""

import contextlib
import importlib.util
import json
import math
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from nmt.drawing.picture import save_figure
from nmt.system.files import read_bytes
from nmt.system.limits import MAX_TEXT_FILE

SHOWN = 0.999
"""Share of the training sentences of each side that the picture covers."""
SECONDS = 10.0
"""Least time between two pictures of a learning curve, each of which takes as long as many updates of a small model."""
COLOURS = {"train": "0.78", "valid": "tab:orange", "test": "tab:blue"}

Histogram = Sequence[int]
"""Number of sentences with no token, with one token, and so on."""


class LearningCurve:
    """The learning curve of a run, drawn as it goes on and, if there is anything new, when it ends.

    Args:
        run: Run directory.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self._drawn = time.monotonic()
        self._is_new = False

    def update(self) -> None:
        """Draw it if the last picture is old enough."""
        self._is_new = True
        if time.monotonic() >= self._drawn + SECONDS:
            self._draw()

    def close(self) -> None:
        """Draw the curve once more if it has grown since the last picture."""
        if self._is_new:
            self._draw()

    def _draw(self) -> None:
        draw_learning_curve(self._run)
        self._drawn = time.monotonic()
        self._is_new = False


def draw_learning_curve(run: Path) -> None:
    """Draw `metrics.jsonl` of a run into its `learning_curve.png`: losses, gradient norm, BLEU and chrF.

    Without matplotlib, as on a bare GPU machine, nothing is drawn.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return
    from matplotlib.figure import Figure

    entries = list(read_metrics(run / "metrics.jsonl"))
    train = [entry for entry in entries if entry["kind"] == "train"]
    valid = [entry for entry in entries if entry["kind"] == "valid"]
    norms = [entry for entry in train if "gradient_norm" in entry]
    scores = [entry for entry in valid if {"bleu", "chrf"} <= entry.keys()]

    # Panels from left to right: the loss, and, where they were logged, the gradient's norm and the scores.
    panels = 1
    if norms:
        panels += 1
    if scores:
        panels += 1
    figure = Figure(figsize=(0.5 + 3.6 * panels, 3.6), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]

    def plot(panel: int, rows: Sequence[Mapping[str, Any]], key: str, label: str, colour: str, **style: Any) -> None:
        updates = [row["update"] for row in rows]
        values = [row.get(key, math.nan) for row in rows]  # values that are not finite are not logged
        axes[panel].plot(updates, values, label=label, color=f"tab:{colour}", **style)

    plot(0, train, "loss", "training (with dropout, smoothing)", "blue", linewidth=1)
    if valid:
        plot(0, valid, "loss", "validation", "orange", marker=".")
    axes[0].set(xlabel="updates", ylabel="cross-entropy (nats per token)", title="Loss")
    if norms:
        plot(1, norms, "gradient_norm", "mean between two points", "red", linewidth=1)
        axes[1].set(xlabel="updates", ylabel="norm before clipping", title="Gradient", ylim=(0, None))
    if scores:
        plot(-1, scores, "bleu", "BLEU", "green", marker=".")
        plot(-1, scores, "chrf", "chrF", "purple", marker=".")
        best = max(scores, key=lambda row: row["bleu"])
        where = best["update"], best["bleu"]
        axes[-1].annotate(f"{best['bleu']:.1f}", where, xytext=(0, -14), textcoords="offset points", ha="center")
        axes[-1].set(xlabel="updates", ylabel="score", title="Validation, greedy search")
        axes[-1].margins(y=0.12)
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.legend()
    save_figure(figure, run / "learning_curve.png")


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of a log, skipping damaged lines, as a picture should not end a run.

    Raises:
        DataError: It is not a regular file in its folder, or too large.
        OSError: It cannot be read.
    """
    for line in read_bytes(path, MAX_TEXT_FILE, path.parent).decode("utf-8", "replace").splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry, dict) and {"kind", "update"} <= entry.keys():
                yield entry


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
    edges = [length - 0.5 for length in range(end + 2)]
    figure = Figure(figsize=(10, 3.6))
    panels = figure.subplots(1, 2, sharex=True, sharey=True, gridspec_kw={"wspace": 0.05})
    for side, (axes, name) in enumerate(zip(panels, ("Source", "Target"), strict=True)):
        for split, colour in COLOURS.items():
            histogram = lengths[split][side]
            total = sum(histogram)
            if not total:
                continue
            # A share for each length from 0 to `end`, which may be beyond the longest of this split.
            shares = [count / total for count in histogram[: end + 1]]
            shares += [0.0] * (end + 1 - len(shares))
            style = {"label": f"{split} ({total:,})", "color": colour, "fill": split == "train"}
            axes.stairs(shares, edges, linewidth=1.2, **style)
        longest = max(len(histograms[side]) for histograms in lengths.values()) - 1
        cut = f" (cut after {SHOWN:.1%}; the longest has {longest:,})" if longest > end else ""
        axes.set(title=name, xlabel=f"tokens{cut}", xlim=(-0.5, end + 0.5))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.legend(loc="upper right")
    panels[0].set_ylabel("share of the sentences")
    panels[0].yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    save_figure(figure, path)


def longest_shown(histogram: Histogram) -> int:
    """The smallest length, in tokens, that at least `SHOWN` of the sentences do not exceed."""
    return bisect_left(list(accumulate(histogram)), SHOWN * sum(histogram))
