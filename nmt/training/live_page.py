"""The page of a run that shows attention as it emerges, for people who watch: `live.html`."""

import contextlib
import html
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from nmt.drawing.heatmap import EOS_LABEL, make_html_heatmap
from nmt.system.errors import DataError
from nmt.system.files import PACKAGE, read_text, write_text
from nmt.system.limits import MAX_TEXT_FILE
from nmt.training.metrics_log import METRICS
from nmt.translation.translation import Translation

PAGE = "live.html"
FOLLOW = "<script>if (Date.now() / 1000 < {until}) setTimeout(() => location.reload(), 2000)</script>\n"
"""Loads the page again every two seconds, so that a browser follows the run until it ends."""
PATIENCE = 3600
"""Seconds after a validation in which another is awaited: a run that was killed cannot say that it has ended."""
FRAME_STYLE = PACKAGE / "inspection" / "frame.css"
"""The style of all pages."""
STYLE = """body { max-width: 60rem }
h1 { font-size: 1.4rem; line-height: 1.3 }
h2 { font-size: 1rem; margin: 1.5rem 0 .3rem; overflow-wrap: anywhere }
svg { display: block; width: 100%; max-width: 30rem; height: auto }
svg text { font-size: 16px; fill: currentColor }
th { font-weight: 400; padding: .1rem .4rem }
td { min-width: 1.4rem; height: 1.6rem }
caption { display: none }
.curves, .heads { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem }
.curves svg { flex: 1 1 18rem }
.heads td { min-width: .9rem; height: 1.1rem }
.heads th { font-size: .8rem }
h3 { font-size: .9rem; margin: .3rem 0 }
"""
PAGE_TEXT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{follow}<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}: where it looks</h1>
<p>Each row is a word that the model writes, each column a source word.
The more a cell stands out, the more the model read that source word.</p>
<p>{sentence}</p>
<p>Entropy says how widely it reads for a word, in nats:
0 if it reads a single source word, ln n if it reads n of them alike.
Loss is minus the logarithm of the probability that it gives to a word of the reference, in nats:
ln n if it takes n words for equally likely.</p>
<div class="curves">{curves}</div>
{maps}
{heads}
</main>
</body>
</html>
"""
ACCENT = "var(--accent)"
# Sizes of the curve and of its margins, in pixels.
WIDTH = 440
HEIGHT = 210
LEFT = 48
TOP = 30
BOTTOM = 46


class LiveView(NamedTuple):
    """What a page shows besides attention to the source.

    Attributes:
        written: The model's own translation of each watched sentence.
        self_attention: How the words of the first of them read each other, layer by layer, [heads, S, S].
    """

    written: Sequence[str] = ()
    self_attention: Sequence[Tensor] = ()


NOTHING_MORE = LiveView()


class Curve(NamedTuple):
    """A line of a picture.

    Attributes:
        name: Its name in the legend.
        updates: When each value was measured.
        values: What was measured, at least 0.
        colour: Its colour, in CSS.
    """

    name: str
    updates: Sequence[int]
    values: Sequence[float]
    colour: str


def write_live_page(
    run: Path, history: Mapping[str, Any], references: Sequence[Translation], view: LiveView = NOTHING_MORE
) -> None:
    """Show the newest validation of a run, and how the loss and the entropy of attention fell until then.

    Args:
        run: The run directory.
        history: Content of `attention.json`.
        references: The watched references as the model read them last, with their alignments.
        view: What else there is to show.
    """
    validations = history["validations"]
    means = [sum(validation["entropy"]) / max(1, len(validation["entropy"])) for validation in validations]
    updates = [validation["update"] for validation in validations]
    now = f"{updates[-1]:,}"
    number = len(validations)
    sentence = f"Update {now}, validation {number}: entropy {means[-1]:.2f} nats, the mean over all words shown here."
    written: Sequence[str | None] = view.written or [None] * len(references)
    maps = (
        f'<h2 dir="auto">{html.escape(stored["source"])}</h2>\n'
        f"{_say_written(text)}"
        f'<div class="scroll" tabindex="0" role="region" aria-label="Heat map {position}">'
        f"{make_html_heatmap(*read.weights)}</div>"
        for position, (stored, read, text) in enumerate(zip(history["sentences"], references, written, strict=True), 1)
    )
    page = PAGE_TEXT.format(
        follow=FOLLOW.format(until=int(time.time()) + PATIENCE),
        title=f"{html.escape(run.name)} after {now} updates",
        style=read_text(FRAME_STYLE, MAX_TEXT_FILE) + STYLE,
        sentence=sentence,
        curves=_draw_losses(run) + _draw_curves("entropy", [Curve("entropy", updates, means, ACCENT)]),
        maps="\n".join(maps),
        heads=_show_heads(references[0], view.self_attention),
    )
    write_text(run / PAGE, page)


@contextlib.contextmanager
def following(run: Path) -> Iterator[None]:
    """Let browsers follow the page of a run in a block; afterwards, however the block ends, the page stays as it is."""
    try:
        yield
    finally:
        with contextlib.suppress(OSError, DataError):  # a page should not end a run
            if (run / PAGE).is_file():
                page = read_text(run / PAGE, MAX_TEXT_FILE, run)
                write_text(run / PAGE, re.sub(r"<script>.*?</script>\n", "", page, count=1))


def _say_written(text: str | None) -> str:
    """The model's own words above the map of the reference; nothing if they are not known."""
    if text is None:
        return ""
    words = f'<b dir="auto">{html.escape(text)}</b>' if text else "nothing"
    return f"<p>It writes: {words}<br>The map: how it reads the reference.</p>"


def _show_heads(read: Translation, layers: Sequence[Tensor]) -> str:
    """Every head of self-attention in the encoder, over one sentence."""
    if not layers:
        return ""
    words = [*read.src_tokens, EOS_LABEL]
    maps = []
    for layer, heads in enumerate(layers, 1):
        for number, weights in enumerate(heads.tolist(), 1):
            name = f"layer {layer}, head {number}"
            table = make_html_heatmap(weights, words, words)
            region = f'class="scroll" tabindex="0" role="region" aria-label="Self-attention, {name}"'
            maps.append(f"<div><h3>{name}</h3><div {region}>{table}</div></div>")
    title = "How the words of the first sentence read each other: self-attention of the encoder"
    return f'<h2>{title}</h2>\n<div class="heads">{"".join(maps)}</div>'


def _draw_losses(run: Path) -> str:
    """The loss in training and in validation, as the log of the run has them; nothing without a log."""
    curves = []
    for kind, name, colour in (("train", "training", "currentColor"), ("valid", "validation", ACCENT)):
        lines = [line for line in _read_log(run) if line["kind"] == kind and "loss" in line]
        if lines:
            updates = [line["update"] for line in lines]
            losses = [line["loss"] for line in lines]
            curves.append(Curve(name, updates, losses, colour))
    return _draw_curves("loss", curves) if curves else ""


def _read_log(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's log that can be read."""
    lines = []
    with contextlib.suppress(DataError, OSError):  # a page should not end a run
        for line in read_text(run / METRICS, MAX_TEXT_FILE, run).splitlines():
            with contextlib.suppress(ValueError):
                lines.append(json.loads(line))
    return lines


def _draw_curves(measure: str, curves: Sequence[Curve]) -> str:
    """Values in nats over the updates of a run, a point for each that was measured."""
    most = max(0.1, *(value for curve in curves for value in curve.values))
    last = max(update for curve in curves for update in curve.updates)

    def place(update: float, share: float) -> tuple[float, float]:
        x = LEFT + update / last * (WIDTH - 2 * LEFT)
        return round(x, 1), round(TOP + (1 - share) * (HEIGHT - TOP - BOTTOM), 1)

    parts = []
    for share in (0.0, 0.5, 1.0):
        _, y = place(0, share)
        width = 0.4 if share else 1
        parts.append(f'<path d="M{LEFT} {y}H{WIDTH - LEFT}" stroke="currentColor" stroke-width="{width}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 5}" text-anchor="end">{share * most:.2f}</text>')
    for update in dict.fromkeys((0, last // 2, last)):
        x, _ = place(update, 0)
        parts.append(f'<text x="{x}" y="{HEIGHT - 28}" text-anchor="middle">{update:,}</text>')
    for curve in curves:
        points = [place(update, value / most) for update, value in zip(curve.updates, curve.values, strict=True)]
        line = " ".join(f"{x},{y}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{curve.colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="4" fill="{curve.colour}"/>' for x, y in points]
    names = " and ".join(curve.name for curve in curves)
    parts.append(f'<text x="0" y="14">{measure} (nats)</text>')
    if len(curves) > 1:
        for row, curve in enumerate(curves):
            parts.append(f'<circle cx="{WIDTH - 130}" cy="{9 + 20 * row}" r="4" fill="{curve.colour}"/>')
            parts.append(f'<text x="{WIDTH - 120}" y="{14 + 20 * row}">{curve.name}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">update of the training</text>')
    of_names = f" of {names}" if len(curves) > 1 else ""
    title = f"{measure}{of_names} over {len(curves[-1].updates)} validations"
    return f'<svg role="img" aria-label="{title}" viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg>'
