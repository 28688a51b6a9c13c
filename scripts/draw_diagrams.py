"""Draw the diagrams of docs/learn/model.md: in which order a decoder's step and a Transformer's layer compute.

Usage: python scripts/draw_diagrams.py [--output data/pictures]

They are narrow, for phones, and have a background of their own: a page may be light where the system is dark.
"""

import argparse
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from nmt.system.files import write_text

PICTURES = Path(__file__).parents[1] / "data/pictures"
WIDTH, LEFT, MIDDLE, RIGHT, PITCH, MARGIN = 444, 64, 212, 360, 76, 14
STYLE = """
svg { --paper: #ffffff; --ink: #1f2328; --line: #59636e; --work: #ddf4ff; --edge: #0969da; --value: #f6f8fa }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #f0f6fc; --line: #9198a1; --work: #12294a; --edge: #4493f8; --value: #161b22 }
}
.paper { fill: var(--paper) }
text { font: 13.5px system-ui, sans-serif; fill: var(--ink); text-anchor: middle }
.symbol { font-size: 16px; font-weight: 600 }
.low { font-size: 12px }
.value { fill: var(--value); stroke: var(--line) }
.work { fill: var(--work); stroke: var(--edge) }
.note { fill: none }
.arrow { fill: none; stroke: var(--line); stroke-width: 1.5; marker-end: url(#head) }
.dashed { stroke-dasharray: 5 4 }
.head { fill: var(--line) }
"""
HEAD = """<marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path class="head" d="M0 0L8 4L0 8z"/></marker>"""


class Box(NamedTuple):
    """Numbers ("value"), what computes them ("work"), or a word at an arrow ("note").

    Attributes:
        x: Horizontal centre.
        row: Vertical centre, in rows.
        kind: The class of its style.
        symbol: The first line, where `_` sets a subscript.
        text: The second line; without it the box is lower.
    """

    x: int
    row: float
    kind: str
    symbol: str
    text: str = ""

    @property
    def y(self) -> float:
        """Vertical centre."""
        return 56 + PITCH * self.row

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        if self.symbol == "+":
            return 28, 28
        return 140 if self.x == MIDDLE else 112, 48 if self.text else 32

    @property
    def top(self) -> float:
        """Upper edge."""
        return self.y - self.size[1] / 2

    @property
    def bottom(self) -> float:
        """Lower edge."""
        return self.y + self.size[1] / 2

    def side(self, x: float) -> float:
        """Left or right edge, whichever is on the side of x."""
        half = self.size[0] / 2
        return self.x - half if x < self.x else self.x + half


class Diagram(NamedTuple):
    """Boxes, and the paths of arrows."""

    title: str
    boxes: list[Box]
    arrows: list[str]
    dashed: tuple[str, ...] = ()


def connect(start: Box, end: Box, x: float | None = None, lower: float = 0) -> str:
    """The path of an arrow.

    Args:
        start: From its bottom if the arrow goes straight down, otherwise from its side.
        end: To its top or side.
        x: Where it passes by what is between the two; None if nothing is.
        lower: How much below the centre of a side it ends.
    """
    if x is None and start.x == end.x:
        return f"M{start.x} {start.bottom:g}V{end.top:g}"
    x = (start.x + end.x) / 2 if x is None else x
    begin = f"M{x:g} {start.bottom:g}" if x == start.x else f"M{start.side(x):g} {start.y:g}H{x:g}"
    return f"{begin}V{end.y + lower:g}H{end.side(x):g}"


def chain(boxes: list[Box]) -> list[str]:
    """Arrows down a column."""
    return [connect(*pair) for pair in pairwise(boxes)]


def draw_bahdanau() -> Diagram:
    """The order of `BahdanauCell`."""
    last, states = Box(LEFT, 0, "value", "s_i−1", "last state"), Box(RIGHT, 0, "value", "h_j", "encoder states")
    word = Box(RIGHT, 2, "value", "y_i−1", "last word")
    attend, context = (
        Box(MIDDLE, 0, "work", "1 attend", "query: last state"),
        Box(MIDDLE, 1, "value", "c_i", "context"),
    )
    update, state = Box(MIDDLE, 2, "work", "2 update", "GRU or LSTM"), Box(MIDDLE, 3, "value", "s_i", "new state")
    read, output = Box(MIDDLE, 4, "work", "3 read out", "softmax"), Box(MIDDLE, 5, "value", "y_i", "word")
    column = [attend, context, update, state, read, output]
    arrows = [connect(last, attend), connect(states, attend), connect(word, update), connect(last, update, LEFT)]
    arrows += [connect(word, read, RIGHT, -10), connect(context, read, WIDTH - MARGIN, 10)]
    return Diagram("Bahdanau's order: attend, then update", [*column, last, states, word], chain(column) + arrows)


def draw_luong() -> Diagram:
    """The order of `LuongCell`."""
    last, word = Box(LEFT, 0, "value", "h_t−1", "last state"), Box(RIGHT, 0, "value", "y_t−1", "last word")
    states = Box(RIGHT, 2, "value", "h_j", "encoder states")
    update, state = Box(MIDDLE, 0, "work", "1 update", "GRU or LSTM"), Box(MIDDLE, 1, "value", "h_t", "new state")
    attend, context = Box(MIDDLE, 2, "work", "2 attend", "query: new state"), Box(MIDDLE, 3, "value", "c_t", "context")
    combine, vector = Box(MIDDLE, 4, "work", "3 combine", "tanh"), Box(MIDDLE, 5, "value", "h̃_t", "attentional vector")
    read, output = Box(MIDDLE, 6, "work", "4 read out", "softmax"), Box(MIDDLE, 7, "value", "y_t", "word")
    column = [update, state, attend, context, combine, vector, read, output]
    arrows = [connect(last, update), connect(word, update), connect(states, attend), connect(state, combine, LEFT)]
    edge = WIDTH - MARGIN
    feeding = f"M{vector.side(edge):g} {vector.y:g}H{edge}V{MARGIN}H{MIDDLE}V{update.top:g}"
    note = Box(RIGHT, 4.6, "note", "", "input feeding")
    return Diagram(
        "Luong's order: update, then attend", [*column, last, word, states, note], chain(column) + arrows, (feeding,)
    )


def draw_transformer() -> Diagram:
    """A decoder layer with `norm: pre`."""
    inputs = Box(MIDDLE, 0, "value", "x", "one for each word")
    column, arrows = [inputs], []
    sublayers = (
        ("self-attention", "to words so far"),
        ("attention", "to the source"),
        ("feed-forward", "each word alone"),
    )
    for number, sublayer in enumerate(sublayers):
        before, row = column[-1], 0.25 + 2.25 * number
        works = [Box(MIDDLE, row + 0.75, "work", "norm"), Box(MIDDLE, row + 1.5, "work", *sublayer)]
        column += [*works, Box(MIDDLE, row + 2.25, "work", "+")]
        arrows.append(f"M{MIDDLE} {before.bottom + 8:g}H{LEFT}V{column[-1].y:g}H{column[-1].side(LEFT):g}")
    column.append(Box(MIDDLE, column[-1].row + 0.75, "value", "x", "for the next layer"))
    states = Box(RIGHT, column[5].row, "value", "h_j", "encoder states")
    return Diagram(
        "A decoder layer of a Transformer, with pre-norm",
        [*column, states],
        [*chain(column), *arrows, connect(states, column[5])],
    )


DIAGRAMS = {
    "order_bahdanau.svg": draw_bahdanau,
    "order_luong.svg": draw_luong,
    "transformer_layer.svg": draw_transformer,
}


def render(diagram: Diagram) -> str:
    """A diagram as SVG."""
    height = max(box.bottom for box in diagram.boxes) + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" role="img">',
        f"<title>{escape(diagram.title)}</title>",
        f"<style>{STYLE}</style>",
        f"<defs>{HEAD}</defs>",
        f'<rect class="paper" width="{WIDTH}" height="{height:g}" rx="8"/>',
        *(f'<path class="arrow" d="{path}"/>' for path in diagram.arrows),
        *(f'<path class="arrow dashed" d="{path}"/>' for path in diagram.dashed),
        *map(render_box, diagram.boxes),
        "</svg>\n",
    ]
    return "\n".join(lines)


def render_box(box: Box) -> str:
    """A box as SVG."""
    (width, height), (base, _, low) = box.size, map(escape, box.symbol.partition("_"))
    place = f'x="{box.x - width / 2:g}" y="{box.top:g}" width="{width}" height="{height}"'
    symbol = f'{base}<tspan class="low" dy="4">{low}</tspan>' if low else base
    lines = [
        f'<rect class="{box.kind}" {place} rx="{14 if box.symbol == "+" else 6}"/>',
        f'<text class="symbol" x="{box.x}" y="{box.y - 4 if box.text else box.y + 6:g}">{symbol}</text>',
    ]
    if box.text:
        lines.append(f'<text x="{box.x}" y="{box.y + 16:g}">{escape(box.text)}</text>')
    return "\n".join(lines)


def main() -> None:
    """Write all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=PICTURES, help="folder of the pictures")
    output = parser.parse_args().output
    if not output.is_dir():
        parser.exit(1, f"error: {output}: no such folder; give that of the pictures with --output\n")
    for name, draw in DIAGRAMS.items():
        write_text(output / name, render(draw()))


if __name__ == "__main__":
    main()
