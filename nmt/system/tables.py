"""Tables and sections of commands and reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Table:
    """Rows of cells.

    Attributes:
        header: Title of each column; all may be empty.
        rows: Cells of each row.
        alignment: One letter per column, l or r.
        caption: Title of the table.
        whole: The parts that a terminal does not break, leaving out the last columns if they do not fit; None breaks
            anything.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    alignment: str
    caption: str = ""
    whole: Literal["cells", "words"] | None = None


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
