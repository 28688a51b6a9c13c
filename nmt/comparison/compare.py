"""Comparing configs: from a comparison to trained and evaluated trials, tables and pictures."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.comparison.pictures import draw_pictures
from nmt.comparison.plan import Trial, make_trials
from nmt.comparison.results import Row, make_rows
from nmt.comparison.runner import check_launcher, run_trials
from nmt.comparison.summary import as_csv, make_sections
from nmt.comparison.trial import RESULT, check_trial_data, has_trial, read_result, write_trial
from nmt.config import ComparisonSection
from nmt.corpus.data_report import format_markdown
from nmt.corpus.dataset import MARKER as DATA_MARKER
from nmt.corpus.dataset import open_data, read_checksum
from nmt.corpus.prepare import write_data
from nmt.system.errors import ConfigError, DataError
from nmt.system.files import check_file, real_path, write_json, write_text
from nmt.system.outputs import check_not_inside, check_output
from nmt.system.replacement import locked
from nmt.system.tables import Section
from nmt.training.setup import with_text_of

log = logging.getLogger(__name__)

MARKER = "comparison.json"
TRIALS, DATA = "cells", "data"
TABLE_MARKDOWN, TABLE_CSV, TABLE_JSON = "table.md", "table.csv", "table.json"


@dataclass(frozen=True)
class ComparisonResult:
    """What a comparison results in.

    Attributes:
        path: Its folder.
        rows: One for each config with a finished trial.
        failed: Why trials failed, by name and seed.
    """

    path: Path
    rows: Sequence[Row]
    failed: Mapping[str, str]

    @property
    def sections(self) -> list[Section]:
        """The tables."""
        return make_sections(self.rows) if self.rows else []


def compare(
    comparison: ComparisonSection,
    output: Path,
    *,
    data: Path | None = None,
    split: str = "test",
    jobs: int = 1,
    launcher: str | None = None,
) -> ComparisonResult:
    """Preprocess once, train and evaluate every trial that has no result yet, and write tables and pictures.

    Args:
        comparison: What to compare.
        output: Folder for everything; one of the same comparison is continued.
        data: Data directory of all trials; None preprocesses into `output`.
        split: Split to evaluate on.
        jobs: Trials that run at once.
        launcher: Command of a shell with `{command}` in it, the command of a trial, and perhaps `{name}`; None runs
            trials on this machine.

    Raises:
        RunInterrupted: A signal asked for the end; the same call continues.
        NmtError: A config, the data or the folder cannot be used.
    """
    trials = {output / TRIALS / trial.key: trial for trial in make_trials(comparison)}
    if launcher is not None:
        check_launcher(launcher)
    _check_folder(output)
    directories = _find_data(list(trials.values()), output, data)
    with locked(output):
        new = [folder for folder, trial in trials.items() if not has_trial(folder, trial, split)]
        checksums = {name: _prepare_data(*prepared, split) for name, prepared in directories.items()}
        for folder, trial in trials.items():
            _, path = directories[trial.data_name]
            checksum = checksums[trial.data_name]
            if folder in new:
                relative = os.path.relpath(real_path(path), real_path(folder))
                write_trial(folder, trial, data=relative, data_checksum=checksum, split=split)
            else:
                check_trial_data(folder, checksum)
        write_json(output / MARKER, comparison.model_dump(mode="json"))
        try:
            failed = run_trials(trials, jobs=jobs, launcher=launcher)
        finally:
            rows = _write_tables(trials, output)
    others = sum(path.is_dir() for path in (output / TRIALS).iterdir()) - len(trials)
    if others > 0:
        log.info(f"{output / TRIALS}: has {others} more cells, which this comparison does not ask for")
    return ComparisonResult(output, rows, {trials[folder].title: reason for folder, reason in failed.items()})


def _check_folder(output: Path) -> None:
    """Refuse a folder with anything but a comparison, or inside another directory of nmt.

    Raises:
        DataError: It has something else, or is inside one.
    """
    check_output(output, MARKER, overwrite=True)
    check_not_inside(output)
    for name in (TRIALS, DATA, MARKER, TABLE_MARKDOWN, TABLE_CSV, TABLE_JSON):
        check_file(output / name, output)


def _find_data(trials: Sequence[Trial], output: Path, data: Path | None) -> dict[str, tuple[Trial, Path]]:
    """For each distinct combination of `data` and `text` settings, a trial with it and its data directory.

    Raises:
        ConfigError: There are several, but one directory was given.
        DataError: What was given is not a data directory.
    """
    first = {trial.data_name: trial for trial in reversed(trials)}
    if data is None:
        return {name: (trial, output / DATA / name) for name, trial in first.items()}
    if len(first) > 1:
        raise ConfigError(f"--data {data}: the cells differ in data or text settings; leave --data out")
    if not (data / DATA_MARKER).is_file():
        raise DataError(f"{data}: is not a data directory (no {DATA_MARKER}); create it with nmt preprocess")
    return {name: (trial, data) for name, trial in first.items()}


def _prepare_data(trial: Trial, directory: Path, split: str) -> str:
    """Preprocess if necessary, check the data of a trial, and return its checksum.

    Raises:
        ConfigError: It was preprocessed with other settings.
        DataError: It cannot be made, is damaged, or lacks the split.
    """
    if not (directory / DATA_MARKER).is_file():
        write_data(trial.config, directory)
    with_text_of(trial.config, open_data(directory))
    if not (directory / f"{split}.jsonl").is_file():
        raise DataError(f"{directory}: has no {split} split; choose another --split, or set data.split.{split}_size")
    return str(read_checksum(directory))


def _write_tables(trials: Mapping[Path, Trial], output: Path) -> list[Row]:
    """Write tables and pictures of what is finished; nothing if nothing is."""
    finished = {folder: read_result(folder) for folder in trials if (folder / RESULT).exists()}
    rows = make_rows(finished, {folder: trials[folder].name for folder in finished})
    if rows:
        draw_pictures(rows, output)
        write_json(output / TABLE_JSON, [row.as_json() for row in rows])
        write_text(output / TABLE_CSV, as_csv(rows))
        write_text(output / TABLE_MARKDOWN, format_markdown("Comparison", make_sections(rows), output))
        log.info(f"tables: {output / TABLE_MARKDOWN}, {TABLE_CSV}, {TABLE_JSON}")
    return rows
