"""The page of a run that shows attention as it emerges, for people who watch: `live.html`."""

import contextlib
import html
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.drawing.heatmap import make_html_heatmap
from nmt.system.errors import DataError
from nmt.system.files import PACKAGE, read_text, write_text
from nmt.system.limits import MAX_TEXT_FILE
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
0 if it reads a single source word, ln n if it reads n of them alike.</p>
{curve}
{maps}
</main>
</body>
</html>
"""
# Sizes of the curve and of its margins, in pixels.
WIDTH = 440
HEIGHT = 210
LEFT = 48
TOP = 30
BOTTOM = 46


def write_live_page(run: Path, history: Mapping[str, Any], references: Sequence[Translation]) -> None:
    """Show the newest validation of a run, and how the entropy of attention fell until then.

    Args:
        run: The run directory.
        history: Content of `attention.json`.
        references: The watched references as the model read them last, with their alignments.
    """
    validations = history["validations"]
    means = [sum(validation["entropy"]) / max(1, len(validation["entropy"])) for validation in validations]
    updates = [validation["update"] for validation in validations]
    now = f"{updates[-1]:,}"
    number = len(validations)
    sentence = f"Update {now}, validation {number}: entropy {means[-1]:.2f} nats, the mean over all words shown here."
    maps = (
        f'<h2 dir="auto">{html.escape(stored["source"])}</h2>\n'
        f'<div class="scroll" tabindex="0" role="region" aria-label="Heat map {position}">'
        f"{make_html_heatmap(*read.weights)}</div>"
        for position, (stored, read) in enumerate(zip(history["sentences"], references, strict=True), 1)
    )
    page = PAGE_TEXT.format(
        follow=FOLLOW.format(until=int(time.time()) + PATIENCE),
        title=f"{html.escape(run.name)} after {now} updates",
        style=read_text(FRAME_STYLE, MAX_TEXT_FILE) + STYLE,
        sentence=sentence,
        curve=_draw_curve(updates, means),
        maps="\n".join(maps),
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


def _draw_curve(updates: Sequence[int], means: Sequence[float]) -> str:
    """Entropy over the updates of a run, a point for each validation."""
    most = max(0.1, *means)

    def place(update: float, share: float) -> tuple[float, float]:
        x = LEFT + update / updates[-1] * (WIDTH - 2 * LEFT)
        return round(x, 1), round(TOP + (1 - share) * (HEIGHT - TOP - BOTTOM), 1)

    points = [place(update, mean / most) for update, mean in zip(updates, means, strict=True)]
    parts = []
    for share in (0.0, 0.5, 1.0):
        _, y = place(0, share)
        width = 0.4 if share else 1
        parts.append(f'<path d="M{LEFT} {y}H{WIDTH - LEFT}" stroke="currentColor" stroke-width="{width}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 5}" text-anchor="end">{share * most:.2f}</text>')
    for update in dict.fromkeys((0, updates[-1] // 2, updates[-1])):
        x, _ = place(update, 0)
        parts.append(f'<text x="{x}" y="{HEIGHT - 28}" text-anchor="middle">{update:,}</text>')
    line = " ".join(f"{x},{y}" for x, y in points)
    parts.append(f'<polyline points="{line}" fill="none" stroke="var(--accent)" stroke-width="2.5"/>')
    parts += [f'<circle cx="{x}" cy="{y}" r="4.5" fill="var(--accent)"/>' for x, y in points]
    parts.append('<text x="0" y="14">entropy (nats)</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">update of the training</text>')
    title = f"Entropy of attention over {len(points)} validations"
    return f'<svg role="img" aria-label="{title}" viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg>'
