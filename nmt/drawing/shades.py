"""Attention weights in a terminal: a character for each weight."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from nmt.system.errors import printable

SHADES = " ░▒▓█"
"""From no weight to all of it."""


def draw_shades(
    weights: Sequence[Sequence[float]], columns: Sequence[str], rows: Sequence[str], width: int
) -> list[str]:
    """Weights as shades under what they are about; where that is too wide, the strongest of each row by name.

    Args:
        weights: Between 0 and 1, [rows, columns].
        columns: Names of the columns.
        rows: Names of the rows.
        width: Columns of the terminal.
    """
    columns, rows = [printable(name) for name in columns], [printable(name) for name in rows]
    margin = max(map(_cells, rows), default=0)
    lines = [[_padded("", margin), *columns]]
    for name, row in zip(rows, weights, strict=True):
        shades = [SHADES[min(len(SHADES) - 1, int(weight * len(SHADES)))] for weight in row]
        cells = [shade * max(1, _cells(title)) for shade, title in zip(shades, columns, strict=True)]
        lines.append([_padded(name, margin), *cells])
    if margin + sum(1 + max(1, _cells(name)) for name in columns) <= width:
        return [" ".join(line).rstrip() for line in lines]
    found = []
    for name, row in zip(rows, weights, strict=True):
        place = max(range(len(columns)), key=lambda column: row[column])
        found.append(f"{_padded(name, margin)} {columns[place]} {row[place]:.2f}")
    return found


def _cells(text: str) -> int:
    """Columns of a terminal that a text takes."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.category(character) in ("Mn", "Me") for character in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _cells(text))
