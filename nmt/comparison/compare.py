"""Comparing configs: from a comparison to trained and evaluated cells, tables and pictures."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.comparison.cell import RESULT, read_result
from nmt.comparison.pictures import draw_pictures
from nmt.comparison.plan import CELLS, DATA, Cell, check_cell, describe_cell, make_cells, write_cell
from nmt.comparison.results import Row, make_rows
from nmt.comparison.runner import check_launcher, run_cells
from nmt.comparison.tables import as_csv, make_sections
from nmt.config import Comparison
from nmt.dataset import MARKER as DATA_MARKER
from nmt.errors import ConfigError, DataError
from nmt.files import check_file, write_json, write_text
from nmt.replacement import locked
from nmt.workflow.preprocess import preprocess
from nmt.workflow.report import Section, format_markdown

log = logging.getLogger(__name__)

MARKER = "comparison.json"
TABLE_MARKDOWN, TABLE_CSV, TABLE_JSON = "table.md", "table.csv", "table.json"


@dataclass(frozen=True)
class ComparisonResult:
    """What a comparison found.

    Attributes:
        path: Its folder.
        rows: One for each config with a finished cell.
        failed: Why cells failed, by name and seed.
    """

    path: Path
    rows: Sequence[Row]
    failed: Mapping[str, str]

    @property
    def sections(self) -> list[Section]:
        """The tables."""
        return make_sections(self.rows) if self.rows else []


def compare(
    comparison: Comparison,
    output: Path,
    *,
    data: Path | None = None,
    split: str = "test",
    jobs: int = 1,
    launcher: str | None = None,
) -> ComparisonResult:
    """Preprocess once, train and evaluate every cell that has no result yet, and write tables and pictures.

    Args:
        comparison: What to compare.
        output: Folder for everything; one of the same comparison is continued.
        data: Data directory of all cells; None preprocesses into `output`.
        split: Split to evaluate on.
        jobs: Cells that run at once.
        launcher: Command of a shell with `{command}` in it, the command of a cell, and perhaps `{name}`; None runs
            cells on this machine.

    Raises:
        RunInterrupted: A signal asked for the end; the same call continues.
        NmtError: A config, the data or the folder cannot be used.
    """
    folders = {output / CELLS / cell.key: cell for cell in make_cells(comparison)}
    if launcher is not None:
        check_launcher(launcher)
    _check_folder(output)
    directories = _find_data(list(folders.values()), output, data)
    facts = {
        folder: describe_cell(cell, os.path.relpath(directories[cell.data_name], folder), split)
        for folder, cell in folders.items()
    }
    with locked(output):
        new = [folder for folder, cell in folders.items() if not check_cell(folder, cell, facts[folder])]
        output.mkdir(parents=True, exist_ok=True)
        write_json(output / MARKER, comparison.model_dump(mode="json"))
        for cell in folders.values():
            if not (directories[cell.data_name] / DATA_MARKER).is_file():
                preprocess(cell.config, directories[cell.data_name])
        for folder in new:
            write_cell(folder, folders[folder], facts[folder])
        failed = run_cells(folders, jobs=jobs, launcher=launcher)
        finished = {folder: read_result(folder) for folder in folders if (folder / RESULT).exists()}
        rows = make_rows(finished)
        if rows:
            _write_tables(rows, output)
    by_name = {f"{folders[folder].name}, seed {folders[folder].seed}": reason for folder, reason in failed.items()}
    return ComparisonResult(output, rows, by_name)


def _check_folder(output: Path) -> None:
    """Refuse a folder with anything but a comparison.

    Raises:
        DataError: It has something else.
    """
    if output.exists() and not output.is_dir():
        raise DataError(f"{output}: is a file; give a folder with --output")
    if output.is_dir() and not (output / MARKER).is_file() and any(output.glob("[!.]*")):
        raise DataError(f"{output}: contains other files (no {MARKER}); choose another --output")
    for name in (CELLS, DATA, MARKER, TABLE_MARKDOWN, TABLE_CSV, TABLE_JSON):
        check_file(output / name, output)


def _find_data(cells: Sequence[Cell], output: Path, data: Path | None) -> dict[str, Path]:
    """The data directory of each distinct combination of `data` and `text` settings, which need not exist yet.

    Raises:
        ConfigError: There are several, but one directory was given.
        DataError: What was given is not a data directory.
    """
    names = dict.fromkeys(cell.data_name for cell in cells)
    if data is None:
        return {name: output / DATA / name for name in names}
    if len(names) > 1:
        raise ConfigError(f"--data {data}: the cells differ in data or text settings; leave --data out")
    if not (data / DATA_MARKER).is_file():
        raise DataError(f"{data}: is not a data directory (no {DATA_MARKER}); create it with nmt preprocess")
    return dict.fromkeys(names, data)


def _write_tables(rows: Sequence[Row], output: Path) -> None:
    draw_pictures(rows, output)
    write_json(output / TABLE_JSON, [row.as_json() for row in rows])
    write_text(output / TABLE_CSV, as_csv(rows))
    write_text(output / TABLE_MARKDOWN, format_markdown("Comparison", make_sections(rows), output))
    log.info(f"tables: {output / TABLE_MARKDOWN}, {TABLE_CSV}, {TABLE_JSON}")
