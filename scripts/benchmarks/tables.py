"""Markdown tables and number formats."""

from collections.abc import Iterable, Sequence


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, without a trailing line feed."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def counts(values: Iterable[float]) -> str:
    """Numbers without decimals: `1,204, 1,310`."""
    return ", ".join(f"{value:,.0f}" for value in values)


def ratio(value: float, others: Sequence[float | None]) -> str:
    """Ratios of a value to others: `3.10 / 2.25`; a dash for those not measured."""
    return " / ".join("–" if other is None else f"{value / other:.2f}" for other in others)
