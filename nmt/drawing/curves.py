"""Learning curves."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nmt.drawing.picture import save_figure


def draw_learning_curve(run: Path) -> None:
    """Draw `metrics.jsonl` of a run into its `learning_curve.png`: losses, BLEU and chrF over updates.

    Without matplotlib, as on a bare GPU machine, nothing is drawn.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return
    from matplotlib.figure import Figure

    entries = list(read_metrics((run / "metrics.jsonl").read_bytes()))
    kinds: dict[str, list[dict[str, Any]]] = {
        kind: [entry for entry in entries if entry["kind"] == kind] for kind in ("train", "valid")
    }
    scores = [entry for entry in kinds["valid"] if {"bleu", "chrf"} <= entry.keys()]
    figure = Figure(figsize=(10 if scores else 5.5, 4), layout="constrained")
    axes = figure.subplots(1, 2 if scores else 1, squeeze=False)[0]
    train, valid = kinds["train"], kinds["valid"]
    updates: Callable[[list[dict[str, Any]]], list[int]] = lambda rows: [row["update"] for row in rows]  # noqa: E731
    losses = [row.get("loss", math.nan) for row in train]  # values that are not finite are not logged
    axes[0].plot(updates(train), losses, label="training (with dropout, smoothing)", color="tab:blue", linewidth=1)
    if valid:
        losses = [row.get("loss", math.nan) for row in valid]
        axes[0].plot(updates(valid), losses, label="validation", color="tab:orange", marker=".")
    axes[0].set(xlabel="updates", ylabel="cross-entropy (nats per token)", title="Loss")
    if scores:
        for key, label, colour in (("bleu", "BLEU", "tab:green"), ("chrf", "chrF", "tab:purple")):
            axes[1].plot(updates(scores), [row[key] for row in scores], label=label, color=colour, marker=".")
        best = max(scores, key=lambda row: row["bleu"])
        axes[1].annotate(
            f"{best['bleu']:.1f}",
            (best["update"], best["bleu"]),
            xytext=(0, -14),
            textcoords="offset points",
            ha="center",
        )
        axes[1].set(xlabel="updates", ylabel="score", title="Validation, greedy search")
        axes[1].margins(y=0.12)
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.legend()
    save_figure(figure, run / "learning_curve.png")


def read_metrics(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the entries of a log, skipping damaged lines, as a picture should not end a run."""
    for line in content.decode("utf-8", "replace").splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry, dict) and {"kind", "update"} <= entry.keys():
                yield entry
