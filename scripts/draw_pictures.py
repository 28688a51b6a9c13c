"""Draw the pictures of the READMEs, or list those that no longer show what a config gives today.

Usage: python scripts/draw_pictures.py --commit COMMIT [--real RUN] [--transformer RUN] [--model RUN]
       python scripts/draw_pictures.py --check

The learning curve and the attention of a sentence are those of README's four commands; the exported page has the model
of `tatoeba_transformer`; the report and the emergence of alignment are those of `make demo`, whose run has watched a
few sentences (`train.watch`). Each of these pictures holds the config, commit and scores of its run as PNG text. What
attention is for comes from the stored comparison of mechanisms, BLEU over pairs from the ledger. Pages are
photographed by a headless Chromium.
"""

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from experiments.ledger import read_results
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import nmt
from nmt.config import (
    Config,
    automatic_keys,
    differing_keys,
    dump_config,
    load_config,
    parse_config,
    read_config,
    resolve_auto,
    value_at,
)
from nmt.drawing.picture import save_figure
from nmt.models.lookup import MARKER
from nmt.system.encoding import from_bytes
from nmt.system.errors import ConfigError, NmtError
from nmt.system.files import read_json
from nmt.training.attention_history import read_attention
from nmt.translation.alignment import draw_attention

SENTENCE = "Yesterday I saw him at the station."
BOTTLENECK_PICTURE, AMOUNTS_PICTURE = "bottleneck.png", "amounts.png"
OF_CALL: dict[str, Any] = {"data.source": [], "data.licence": None, "train.precision": "auto", "train.threads": None}
"""Values that the command line or the machine of a run decides, not its recipe."""

MECHANISMS = Path(__file__).parent / "experiments/comparisons/mechanisms"
BOTTLENECK = {
    "general-1": "attention, general score",
    "additive-bahdanau-s-order-1": "attention, additive score, Bahdanau's order",
    "none-1": "no attention: one fixed context",
}
"""Cells of the picture with their labels."""
AMOUNTS = {
    "Multi30k": {
        1000: ("multi30k_amounts", "1,000 pairs, constant rate", "1,000 pairs"),
        3000: ("multi30k_amounts", "3,000 pairs, constant rate", "3,000 pairs"),
        10_000: ("multi30k_amounts", "10,000 pairs, constant rate", "10,000 pairs"),
        29_000: ("multi30k_amounts", "29,000 pairs, constant rate, 9 epochs", "29,000 pairs, constant rate"),
    },
    "Tatoeba": {
        5000: ("tatoeba_amounts", "5,000 pairs, constant rate", "5,000 pairs, constant rate"),
        20_000: ("tatoeba_small", "fixed norms, dropout 0.5, constant rate", "fixed norms, dropout 0.5, constant rate"),
        162_000: ("tatoeba", "copies in other forms", ""),
    },
}
"""By corpus and pairs an experiment, its cell, and the cell whose data OpenNMT-py got; "": those of the first."""
FRAMES = 4


def main() -> None:
    """Draw all of them, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=Path, default=Path("runs/tatoeba_small"), help="run of README's four commands")
    parser.add_argument("--transformer", type=Path, default=Path("runs/tatoeba_transformer"), help="run of that config")
    parser.add_argument("--model", type=Path, default=Path("runs/demo"), help="run of make demo")
    parser.add_argument("--commit", help="commit that the runs were trained at")
    parser.add_argument("--output", type=Path, default=Path("data/pictures"), help="folder of the pictures")
    parser.add_argument("--chromium", default="chromium", help="headless browser")
    parser.add_argument("--check", action="store_true", help="list pictures whose config has changed since; draw none")
    arguments = parser.parse_args()
    if not arguments.output.is_dir():
        parser.exit(1, f"error: {arguments.output}: no such folder; give that of the pictures with --output\n")
    if arguments.check:
        stale = list(find_stale(arguments.output))
        print(*stale, sep="\n", end="\n" if stale else "")
        parser.exit(bool(stale))
    if not arguments.commit:
        parser.exit(1, "error: give the commit that the runs were trained at with --commit\n")
    if shutil.which(arguments.chromium) is None:
        parser.exit(1, f"error: {arguments.chromium}: no such program; give a Chromium with --chromium\n")
    try:
        runs = arguments.real, arguments.transformer, arguments.model
        draw_all(*runs, arguments.output, arguments.chromium, arguments.commit)
    except NmtError as error:
        parser.exit(1, f"error: {error}\n")


def draw_all(real: Path, transformer: Path, demo: Path, output: Path, chromium: str, commit: str) -> None:
    """Draw all pictures.

    Args:
        real: Run of README's four commands.
        transformer: Run of `tatoeba_transformer`.
        demo: Run of `make demo`.
        output: Folder for the pictures.
        chromium: Headless browser.
        commit: Commit that they were trained at.
    """
    translation = draw_attention(nmt.load(real), SENTENCE, output / "attention.png").text
    metadata = {"commit": commit, **describe_run(real), "translation": f"{SENTENCE} -> {translation}"}
    shutil.copyfile(real / "learning_curve.png", output / "learning_curve.png")
    for name in ("attention.png", "learning_curve.png"):
        stamp(output / name, metadata)
    draw_bottleneck(output / BOTTLENECK_PICTURE)
    draw_amounts(output / AMOUNTS_PICTURE)
    watched = read_attention(demo)
    longest = max(range(len(watched["sentences"])), key=lambda number: len(watched["sentences"][number]["src"]))
    draw_emergence(watched, longest, output / "emergence.png")
    with tempfile.TemporaryDirectory() as folder:
        page, report = nmt.export(transformer, to="html", output=Path(folder, "page.html")), Path(folder, "report.html")
        nmt.report(demo, split="test", output=report)
        photograph(chromium, f"{page.as_uri()}#q={SENTENCE}", (1400, 785), output / "page.png")
        photograph(chromium, report.as_uri(), (1000, 950), output / "report.png")
    stamp(output / "page.png", {"commit": commit, **describe_run(transformer)})
    metadata = {"commit": commit, **describe_run(demo)}
    for name in ("emergence.png", "report.png"):
        stamp(output / name, metadata)


def describe_run(run: Path) -> dict[str, str]:
    """What the pictures of a run hold: its config, its best score in validation, and that of its test set."""
    config, state = read_config(run / "config.yaml"), read_json(run / MARKER)
    return {
        "config": dump_config(without_call(config)),
        "valid": f"{state['metric']} {state['best']:.2f}",
        "test": f"BLEU {nmt.evaluate(run, short_inputs=False).bleu:.2f}",
    }


def without_call(config: Config) -> Config:
    """A config as it would be without command line and machine."""
    return load_config(config, OF_CALL)


def stamp(path: Path, metadata: Mapping[str, str]) -> None:
    """Store text in an opaque PNG of at most 256 colours, in place of what it has."""
    info = PngInfo()
    for name, value in metadata.items():
        info.add_text(name, value, zip=len(value) > 100)
    with Image.open(path) as image:
        opaque = image.convert("RGB").quantize(dither=Image.Dither.NONE)
    opaque.save(path, pnginfo=info, optimize=True)


def find_stale(folder: Path) -> Iterator[str]:
    """Yield a line for each picture of a run whose config has changed since."""
    for path in sorted(folder.glob("*.png")):
        if path.name in (BOTTLENECK_PICTURE, AMOUNTS_PICTURE):  # of stored figures
            continue
        try:
            with Image.open(path) as image:
                stored = without_call(parse_config(image.info["config"], "its config"))
            today = without_call(load_config(stored.name))
            today = resolve_auto(today, {key: value_at(stored, key) for key in automatic_keys(today)})
            changed = differing_keys(stored, today)
        except KeyError:
            changed = ["does not say what config it shows"]
        except (ConfigError, OSError) as error:
            changed = str(error).splitlines()
        if changed:
            yield f"{path}: {', '.join(changed)}"


def draw_emergence(metadata: dict[str, Any], number: int, path: Path) -> None:
    """Draw the attention of a watched sentence at several validations, from the first to the last."""
    sentence, validations = metadata["sentences"][number], metadata["validations"]
    indices = sorted(set(np.geomspace(1, len(validations), FRAMES).round().astype(int) - 1))
    src, tgt = ([*sentence[side], "⟨eos⟩"] for side in ("src", "tgt"))
    figure = Figure(figsize=(3.2 * len(indices), 3.6), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(indices), sharey=True))
    for axes, index in zip(panels, indices, strict=True):
        validation = validations[index]
        weights = from_bytes(validation["weights"][number], (len(tgt), -1, len(src))).mean(dim=1)
        axes.imshow(weights.numpy(), cmap="Greys", vmin=0, vmax=1)
        axes.set_xticks(range(len(src)), src, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
        axes.set_yticks(range(len(tgt)), tgt, fontsize=8)
        axes.set_title(f"update {validation['update']:,}\nentropy {validation['entropy'][number]:.2f} nats", fontsize=9)
    save_figure(figure, path)


def draw_bottleneck(path: Path) -> None:
    """Draw BLEU by source length with and without attention, from the stored comparison of mechanisms."""
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.subplots()
    for (name, label), style in zip(BOTTLENECK.items(), ("o-", "D--", "s:"), strict=True):
        result = read_json(MECHANISMS / f"{name}.json")
        bins = [part for part in result["lengths"] if not part["joined"]]
        axes.plot([part["bleu"] for part in bins], style, label=label)
        axes.set_xticks(range(len(bins)), [f"{part['name']}\nn={part['sentences']}" for part in bins])
    axes.set(xlabel="words of the source", ylabel="BLEU", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")
    save_figure(figure, path)


def draw_amounts(path: Path) -> None:
    """Draw BLEU on test over the number of training pairs."""
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    axes = figure.subplots()
    for (corpus, amounts), marker in zip(AMOUNTS.items(), "os", strict=True):
        ours, theirs = zip(*(scores_of(*cells) for cells in amounts.values()), strict=True)
        axes.plot([*amounts], ours, f"C0{marker}-", label=f"nmt, {corpus}")
        axes.plot([*amounts], theirs, f"C1{marker}--", label=f"OpenNMT-py, {corpus}")
    ticks = sorted({pairs for amounts in AMOUNTS.values() for pairs in amounts})
    axes.set(xscale="log", xlabel="training pairs", ylabel="BLEU on test", ylim=(0, None))
    axes.set_xticks(ticks, [f"{pairs:,}" for pairs in ticks], fontsize=7)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    save_figure(figure, path)


def scores_of(experiment: str, cell: str, data_of: str) -> tuple[float, float]:
    """BLEU on test: the mean over the seeds of a cell, and that of OpenNMT-py's run with the best BLEU on valid."""
    tested = [result for result in read_results(experiment) if "test" in result.scores]
    ours = [result.bleu("test") or 0.0 for result in tested if result.cell == cell]
    peer = f"{data_of}, OpenNMT-py".removeprefix(", ")
    theirs = {
        result.bleu("valid") or 0.0: result.bleu("test") or 0.0 for result in tested if result.cell.startswith(peer)
    }
    return sum(ours) / len(ours), theirs[max(theirs)]


def photograph(browser: str, url: str, size: tuple[int, int], path: Path) -> None:
    """Write a screenshot of the top of a page."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={size[0]},{size[1]}"]
    mouse = "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"
    command = [browser, *options, mouse, f"--screenshot={path.resolve()}", "--virtual-time-budget=3000", url]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
