"""How sharp attention is over many steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nmt.drawing.picture import save_figure

BINS = 40


def draw_sharpness(entropy: Sequence[Sequence[float]], maximum: Sequence[Sequence[float]], path: Path) -> None:
    """Draw the distribution of the entropy and of the largest weight of attention over steps.

    Args:
        entropy: For each head, entropy of each step in nats.
        maximum: For each head, largest weight of each step.
        path: Picture to write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, values, name in zip(panels, (entropy, maximum), ("entropy (nats)", "largest weight"), strict=True):
        for number, of_head in enumerate(values, 1):
            mean = sum(of_head) / len(of_head)
            label = f"mean {mean:.2f}" if len(values) == 1 else f"head {number}, mean {mean:.2f}"
            axes.hist(of_head, bins=BINS, histtype="stepfilled" if len(values) == 1 else "step", label=label, alpha=0.8)
        axes.set(xlabel=f"{name} of a step", ylabel="steps")
        axes.grid(alpha=0.3)
        axes.legend()
    save_figure(figure, path)
