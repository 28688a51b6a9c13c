"""Tables of commands and reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Rows of cells.

    Attributes:
        header: Title of each column; all may be empty.
        rows: Cells of each row.
        alignment: One letter per column, l or r.
        caption: Title of the table.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    alignment: str
    caption: str = ""
