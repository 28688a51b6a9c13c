"""Output of the commands: messages on standard error, text and tables on standard output.

Control characters in them are escaped.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, TextIO

from nmt.system.messages import printable

if TYPE_CHECKING:
    from rich.table import Table as Grid

    from nmt.system.tables import ReportSection, Table

LINE = 80
"""Maximum width of running text, in columns."""


def write_message(line: str) -> None:
    """Write a line to standard error, above the progress bar if there is one; do nothing if the terminal is gone."""
    text = printable(line)
    with contextlib.suppress(OSError):
        if "tqdm" not in sys.modules:  # so there is no bar either
            print(text, file=sys.stderr, flush=True)
            return
        from tqdm import tqdm

        tqdm.write(text, file=sys.stderr)
        sys.stderr.flush()


WARNING = "WARNING: "
"""The beginning of a line that warns."""


class _Messages(logging.Handler):
    """Shows each message as a plain line, and marks warnings."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the message."""
        text = record.getMessage()
        write_message(WARNING + text if record.levelno >= logging.WARNING else text)


@contextlib.contextmanager
def showing_messages() -> Iterator[None]:
    """Show the library's log messages during the block."""
    logger = logging.getLogger("nmt")
    handler = _Messages()
    level = logger.level
    propagate = logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False  # so that no other handler shows them again
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def show_text(text: str, file: TextIO) -> None:
    """Write lines for a person to read."""
    file.writelines(f"{printable(line)}\n" for line in text.removesuffix("\n").split("\n"))


def write_sections(sections: Sequence[ReportSection], file: TextIO) -> None:
    """Write a report: paragraphs and tables under their titles."""
    for number, section in enumerate(sections):
        show_text(f"\n{section.title}" if number else section.title, file)
        for block in section.blocks:
            show_text("", file)
            if isinstance(block, str):
                show_text(textwrap.fill(block, LINE, initial_indent="  ", subsequent_indent="  "), file)
                continue
            if block.caption:
                show_text(f"  {block.caption}", file)
            write_table(block, file, indent=2)


def write_table(table: Table, file: TextIO, indent: int = 0) -> None:
    """Write a table: on a terminal in columns that fit it, otherwise one line per row with tabs between the cells.

    Args:
        table: The table; its caption is not written.
        file: Output.
        indent: Spaces before each line on a terminal.
    """
    if not file.isatty():
        rows = [table.header, *table.rows] if any(table.header) else table.rows
        file.writelines("\t".join(map(printable, row)) + "\n" for row in rows)
        return
    from rich.console import Console
    from rich.padding import Padding

    console = Console(file=file, highlight=False)
    console.print(Padding(_as_grid(table, console.width - indent), (0, 0, 0, indent), expand=False))


@contextlib.contextmanager
def live_table() -> Iterator[Callable[[Table], None]]:
    """Yield a function that shows a table on standard error, in place of the one before.

    Nothing is shown if standard error is not a terminal or the log level of `nmt` is above INFO.
    """
    if not (sys.stderr.isatty() and logging.getLogger("nmt").isEnabledFor(logging.INFO)):
        yield lambda table: None
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=sys.stderr, highlight=False), auto_refresh=False) as live:
        yield lambda table: live.update(_as_grid(table, live.console.width), refresh=True)


def _as_cell(text: str) -> str:
    """± as part of its number: rich breaks lines even at spaces that do not break."""
    return printable(text).replace(" ± ", " ±")


def _column_widths(table: Table, width: int) -> list[int]:
    """Widths of the first columns, as many as fit; the first of them get as much as their cells need."""
    from rich.cells import cell_len

    # Of each column, the width of its longest cell, and that of its longest part that is not broken.
    full = []
    least = []
    for column in zip(table.header, *table.rows, strict=True):
        cells = [_as_cell(cell) for cell in column]
        parts = cells if table.whole == "cells" else " ".join(cells).split()
        full.append(min(width, max(map(cell_len, cells))))
        least.append(min(width, max(map(cell_len, parts), default=0)))

    # With two spaces between columns, each ends here at least.
    ends = [end - 2 for end in accumulate(2 + needed for needed in least)]
    shown = sum(end <= width for end in ends)
    spare = width - ends[shown - 1]
    widths = []
    for wanted, needed in zip(full[:shown], least, strict=False):
        widths.append(needed + min(spare, wanted - needed))
        spare -= widths[-1] - needed
    return widths


def _as_grid(table: Table, width: int) -> Grid:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=any(table.header), header_style="")
    widths = _column_widths(table, width) if table.whole else [None] * len(table.header)
    for name, side, room in zip(table.header, table.alignment, widths, strict=False):
        grid.add_column(Text(printable(name)), justify="right" if side == "r" else "left", overflow="fold", width=room)
    for row in table.rows:
        grid.add_row(*(Text(_as_cell(cell)) for cell in row[: len(widths)]))
    return grid
