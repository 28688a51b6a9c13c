"""Markdown tables, and how figures are written in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, without a line feed at its end."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def counts(values: Iterable[float]) -> str:
    """Figures without decimals: `1,204, 1,310`."""
    return ", ".join(f"{value:,.0f}" for value in values)


def ratio(value: float, others: Sequence[float | None]) -> str:
    """How many times each of the others a value is: `3.10 / 2.25`; a dash for one that was not measured."""
    return " / ".join("–" if other is None else f"{value / other:.2f}" for other in others)
