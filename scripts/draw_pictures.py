"""Draw the pictures of the top README: the explorer, a report, the emergence of alignment, and what attention is for.

Usage: python scripts/draw_pictures.py [--model runs/demo] [--output data/pictures] [--chromium chromium]

The model is that of `make demo`; its run has watched a few sentences (`train.watch`). Pages are photographed by a
headless Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import nmt
from nmt.explorer.encoding import from_bytes
from nmt.files import read_json
from nmt.visualize.picture import save_figure
from nmt.workflow.watch import read_attention

MECHANISMS = Path(__file__).parent / "experiments/comparisons/mechanisms"
BOTTLENECK = {
    "general-1": "attention, general score",
    "additive-bahdanau-s-order-1": "attention, additive score, Bahdanau's order",
    "none-1": "no attention: one fixed context",
}
"""Cells of the picture with their labels."""
FRAMES = 4
PLACE = "#t=4"


def main() -> None:
    """Draw all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("runs/demo"), help="run directory")
    parser.add_argument("--output", type=Path, default=Path("data/pictures"), help="folder for the pictures")
    parser.add_argument("--chromium", default="chromium", help="headless browser")
    arguments = parser.parse_args()
    if shutil.which(arguments.chromium) is None:
        parser.exit(1, f"error: {arguments.chromium}: no such program; give a Chromium with --chromium\n")
    facts = read_attention(arguments.model)
    longest = max(range(len(facts["sentences"])), key=lambda number: len(facts["sentences"][number]["src"]))
    draw_emergence(facts, longest, arguments.output / "emergence.png")
    draw_bottleneck(arguments.output / "bottleneck.png")
    with tempfile.TemporaryDirectory() as folder:
        page, report = Path(folder, "page.html"), Path(folder, "report.html")
        nmt.explore(model=arguments.model, split="test", sample=12, output=page)
        nmt.report(arguments.model, split="test", output=report)
        photograph(arguments.chromium, f"{page.as_uri()}{PLACE}", (1180, 860), arguments.output / "explorer.png")
        photograph(arguments.chromium, report.as_uri(), (1000, 860), arguments.output / "report.png")


def draw_emergence(facts: dict[str, Any], number: int, path: Path) -> None:
    """Draw the attention of a watched sentence at several validations, from the first to the last."""
    sentence, validations = facts["sentences"][number], facts["validations"]
    places = sorted(set(np.geomspace(1, len(validations), FRAMES).round().astype(int) - 1))
    src, tgt = ([*sentence[side], "⟨eos⟩"] for side in ("src", "tgt"))
    figure = Figure(figsize=(3.2 * len(places), 3.6), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(places), sharey=True))
    for axes, place in zip(panels, places, strict=True):
        found = validations[place]
        weights = from_bytes(found["weights"][number], (len(tgt), -1, len(src))).mean(dim=1)
        axes.imshow(weights.numpy(), cmap="Greys", vmin=0, vmax=1)
        axes.set_xticks(range(len(src)), src, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
        axes.set_yticks(range(len(tgt)), tgt, fontsize=8)
        axes.set_title(f"update {found['update']:,}\nentropy {found['entropy'][number]:.2f} nats", fontsize=9)
    save_figure(figure, path)


def draw_bottleneck(path: Path) -> None:
    """Draw BLEU by source length with and without attention, from the stored comparison of mechanisms."""
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.subplots()
    for (name, label), style in zip(BOTTLENECK.items(), ("o-", "D--", "s:"), strict=True):
        found = read_json(MECHANISMS / f"{name}.json")
        bins = [each for each in found["lengths"] if not each["joined"]]
        axes.plot([each["bleu"] for each in bins], style, label=label)
        axes.set_xticks(range(len(bins)), [f"{each['name']}\nn={each['sentences']}" for each in bins])
    axes.set(xlabel="words of the source", ylabel="BLEU", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")
    save_figure(figure, path)


def photograph(browser: str, url: str, size: tuple[int, int], path: Path) -> None:
    """Write a screenshot of the top of a page."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={size[0]},{size[1]}"]
    command = [browser, *options, f"--screenshot={path.resolve()}", "--virtual-time-budget=3000", url]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
