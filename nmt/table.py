"""Tables as the commands and reports show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Rows of cells.

    Attributes:
        header: Title of each column; all may be empty.
        rows: Cells of each row.
        alignment: A letter for each column: l or r.
        caption: What the table shows.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    alignment: str
    caption: str = ""
