"""Tables and sections of commands and reports."""

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
        one_line: Whether a terminal shows a row on one line, without the last columns if they do not fit.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    alignment: str
    caption: str = ""
    one_line: bool = False


@dataclass(frozen=True)
class ReportSection:
    """A part of the report.

    Attributes:
        title: Heading.
        blocks: Paragraphs and tables.
        picture: File next to the report, which need not exist; may be empty.
    """

    title: str
    blocks: Sequence[str | Table]
    picture: str = ""
