"""Comparing configs: from a comparison to trained and evaluated trials, tables and pictures."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.system.errors import ConfigError, DataError, as_nmt_errors, check_at_least
from nmt.system.files import AnyPath, AnyPaths, as_names, real_path, write_json, write_text
from nmt.system.messages import Message, Parameter
from nmt.system.surroundings import plain_torch

if TYPE_CHECKING:
    from nmt.comparison.plan import Trial
    from nmt.comparison.results import Row
    from nmt.config import Config, Overrides
    from nmt.system.tables import ReportSection

log = logging.getLogger(__name__)

MARKER = "comparison.json"
TRIALS = "cells"
DATA = "data"
OUTSIDERS = "against"
PREPARED = Path("data/prepared")
"""Where `nmt preprocess` leaves data."""
TABLE_MARKDOWN = "table.md"
TABLE_CSV = "table.csv"
TABLE_JSON = "table.json"
TABLE_LATEX = "table.tex"


@dataclass(frozen=True)
class ComparisonResult:
    """The result of a comparison.

    Attributes:
        path: Its folder.
        rows: One for each config with a finished trial.
        failed: Why trials failed, by name and seed.
    """

    path: Path
    rows: Sequence[Row]
    failed: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<ComparisonResult {self.path}: configs {len(self.rows)}, failed trials {len(self.failed)}>"

    @property
    def sections(self) -> list[ReportSection]:
        """The tables."""
        from nmt.comparison.summary import comparison_sections

        return comparison_sections(self.rows, list(self.failed)) if self.rows else []


@as_nmt_errors()
@plain_torch()
def compare(
    comparison: AnyPaths = (),
    *,
    config: AnyPaths = (),
    variants: Mapping[str, Overrides] | None = None,
    vary: Mapping[str, Sequence[Any]] | Sequence[str] = (),
    overrides: Overrides = (),
    seeds: Sequence[int] = (),
    budget_minutes: float | None = None,
    source: AnyPaths = (),
    data: AnyPath | None = None,
    split: str = "test",
    jobs: int | None = None,
    launcher: str | None = None,
    against: AnyPaths = (),
    output: AnyPath | None = None,
) -> ComparisonResult:
    """Train configs, and compare scores, time and attention.

    The same command continues what was stopped, with Ctrl-C or otherwise, and skips what is finished.

    Example: nmt compare --config tatoeba_small --vary model.attention.score=additive,dot,general --budget-minutes 5

    Args:
        comparison: Comparison file, or the name of a shipped one; or several configs, or one to vary, as with `config`.
        config: Config to train; repeat it to compare several.
        variants: By name, values in place of the config's: `{"Luong": {"model.decoder.order": "luong"}}`.
        vary: Values to compare, in all combinations: `{"model.attention.score": ["dot", "general"]}`, or
            `["model.attention.score=dot,general"]`.
        overrides: Values in place of those of all configs.
        seeds: Train each config with these seeds. A single number at the command line is how many: 3 is 1,2,3.
        budget_minutes: Minutes of training for each; the number of updates is measured; None is the config's.
        source: Corpus instead of the configs' own, as for `preprocess`.
        data: Data directory; None is made once, inside `output`.
        split: Split to evaluate on: test or valid.
        jobs: Trainings at once; None is 1; with `launcher` all.
        launcher: Shell command that runs {command}, or hands it to a cluster: 'sbatch --wrap "{command}"'.
        against: Further rows of the tables: NAME=FILE, translations of the test set by any program, one per line; or
            NAME=CELL, the folder of a cell of an earlier comparison.
        output: Folder for everything; None is runs/comparisons/NAME.

    Raises:
        RunInterrupted: A signal asked for the end; the same call continues.
        NmtError: A config, the data or the folder cannot be used. If a cell fails, the others go on.
    """
    from nmt.comparison.outsiders import check_outsiders, read_outsiders
    from nmt.comparison.plan import make_trials
    from nmt.comparison.runner import run_trials
    from nmt.comparison.trial import check_trial_data, has_trial, write_trial
    from nmt.config import as_values
    from nmt.config.comparison import names_config, parse_varied, read_comparison
    from nmt.config.outputs import check_output
    from nmt.corpus.marker_schema import check_is_data
    from nmt.system.replacement import locked

    if split not in ("test", "valid"):
        raise ConfigError("{split}: must be test or valid", split=Parameter("split", split))
    check_at_least("jobs", jobs, 1)
    given = as_names(comparison)
    to_compare = vary or variants or seeds or config  # what makes a comparison of one config
    file = given[0] if len(given) == 1 and not (to_compare and names_config(given[0])) else None
    values = {
        "config": [*(given if file is None else ()), *as_names(config)],
        "settings": as_values(overrides),
        "variants": [{"name": name, "settings": as_values(settings)} for name, settings in (variants or {}).items()],
        "vary": vary if isinstance(vary, Mapping) else parse_varied(vary),
        "seeds": list(seeds),
        "budget_minutes": budget_minutes,
        "source": as_names(source),
    }
    wanted = read_comparison(file, values)
    name = Path(wanted.config[0] if file is None else file).stem
    if file is None and wanted.vary:
        name = "-".join([name, *wanted.vary])
    directory = Path("runs", "comparisons", name) if output is None else Path(output)
    outsiders = read_outsiders(as_names(against))
    trials = {directory / TRIALS / trial.key: trial for trial in make_trials(wanted)}
    if launcher is not None and "{command}" not in launcher:
        raise ConfigError(
            "{launcher}: has no {command}, which stands for the command of a cell",
            launcher=Parameter("launcher", launcher),
            command="{command}",
        )
    check_output(directory, MARKER, overwrite=True)
    if data is None:
        prepared = _find_prepared(list(trials.values()), directory / DATA, any_source=not wanted.source)
        places = {folder: prepared[trial.data_name] for folder, trial in trials.items()}
    else:
        places = dict.fromkeys(trials, Path(data))
    if data is not None:
        if len({trial.data_name for trial in trials.values()}) > 1:
            raise ConfigError(
                "{given}: the cells differ in data or text settings; leave {data} out",
                given=Parameter("data", data),
                data=Parameter("data"),
            )
        check_is_data(Path(data), "create it with nmt preprocess")
    with locked(directory):
        trials = _fit_to_data(trials, places)
        new = [folder for folder, trial in trials.items() if not has_trial(folder, trial, split)]
        checksums: dict[Path, str] = {}
        for folder, trial in trials.items():
            if (place := places[folder]) not in checksums:
                checksums[place] = _prepare_data(trial, place, split, directory)
                directory.mkdir(parents=True, exist_ok=True)
                write_json(directory / MARKER, wanted.model_dump(mode="json"))  # so that what is done stays ours
        trials = _fit_to_data(trials, places)
        for folder, trial in trials.items():
            checksum = checksums[places[folder]]
            if folder in new:
                relative = os.path.relpath(real_path(places[folder]), real_path(folder))
                write_trial(folder, trial, data=relative, data_checksum=checksum, split=split)
            else:
                check_trial_data(folder, checksum)
        check_outsiders(outsiders, trials, {place / f"{split}.jsonl" for place in places.values()})
        try:
            failed = run_trials(trials, jobs=jobs or (1 if launcher is None else sys.maxsize), launcher=launcher)
        finally:
            rows = _write_tables(trials, directory, outsiders)
    return ComparisonResult(directory, rows, {trials[folder].title: reason for folder, reason in failed.items()})


def _find_prepared(trials: Sequence[Trial], folder: Path, *, any_source: bool) -> dict[str, Path]:
    """The directories of data by name: one in a folder, else the one that `nmt preprocess` has left, else a new one.

    Args:
        trials: The trials.
        folder: Folder of the data of the comparison.
        any_source: True if a config's own data directory may be of another corpus than it names, as for `nmt train`.
    """
    from nmt.corpus.marker_schema import MARKER as DATA_MARKER

    places = {trial.data_name: folder / trial.data_name for trial in trials}
    for trial in trials:
        directory = trial.config.data_directory
        if (places[trial.data_name] / DATA_MARKER).is_file():
            continue
        differing = _differing_settings(directory, trial.config, any_source=any_source)
        others = (there for there in sorted(PREPARED.glob("*")) if _has_data_of(there, trial.config))
        fitting = directory if differing == [] else next(others, None)
        if fitting is not None:
            log.info(f"{trial.title}: uses the data in {fitting}")
            places[trial.data_name] = fitting
        elif differing:
            log.info(f"{trial.title}: new data, as those in {directory} have other settings: {', '.join(differing)}")
    return places


def _has_data_of(directory: Path, config: Config) -> bool:
    """True if a directory has data that was prepared with the settings of a config."""
    return _differing_settings(directory, config, any_source=False) == []


def _differing_settings(directory: Path, config: Config, *, any_source: bool) -> list[str] | None:
    """The settings of a config that the data in a directory was not prepared with; None where none can be used."""
    from nmt.config import differing_keys, read_config
    from nmt.corpus.dataset import open_data
    from nmt.corpus.marker_schema import CONFIG
    from nmt.corpus.marker_schema import MARKER as DATA_MARKER
    from nmt.corpus.prepare import fit_to_data

    if config.parent.run is not None or not (directory / DATA_MARKER).is_file():
        return None
    try:
        open_data(directory)
        made = read_config(directory / CONFIG)
        wanted = fit_to_data(config, directory)
    except (ConfigError, DataError):
        return None
    differing = [*differing_keys(made.data, wanted.data, "data."), *differing_keys(made.text, wanted.text, "text.")]
    allowed = {"data.directory", "data.workers", "data.licence", *(["data.source"] if any_source else [])}
    return [key for key in differing if key.split(" ")[0] not in allowed]


def _fit_to_data(trials: Mapping[Path, Trial], places: Mapping[Path, Path]) -> dict[Path, Trial]:
    """The trials with configs that fit their data, where it is there."""
    from nmt.corpus.marker_schema import MARKER as DATA_MARKER
    from nmt.corpus.prepare import fit_to_data

    return {
        folder: replace(trial, config=fit_to_data(trial.config, places[folder]))
        if (places[folder] / DATA_MARKER).is_file()
        else trial
        for folder, trial in trials.items()
    }


def _prepare_data(trial: Trial, directory: Path, split: str, output: Path) -> str:
    """Preprocess if necessary, check the data of a trial, and return its checksum.

    Args:
        trial: The trial.
        directory: Its data directory.
        split: Split to evaluate it on.
        output: Folder of the comparison.

    Raises:
        ConfigError: It was preprocessed with other settings.
        DataError: It cannot be made, is damaged, or lacks the split.
    """
    from nmt.corpus.dataset import open_data
    from nmt.corpus.marker_schema import MARKER as DATA_MARKER
    from nmt.corpus.marker_schema import combine_checksums
    from nmt.corpus.prepare import check_parent_of_data, fit_to_data, warn_of_other_parent, write_data
    from nmt.training.setup import with_text_of

    if not (directory / DATA_MARKER).is_file():
        write_data(trial.config, directory)
    else:
        _warn_of_changed_sources(directory, output)
    data = open_data(directory)
    check_parent_of_data(trial.config, directory)
    warn_of_other_parent(trial.config, directory)
    with_text_of(fit_to_data(trial.config, directory), data)
    if not (directory / f"{split}.jsonl").is_file():
        raise DataError(
            "{directory}: has no {name} split; choose another {split}, or set data.split.{name}_size",
            directory=directory,
            name=split,
            split=Parameter("split"),
        )
    return str(combine_checksums(data.checksums))


def _warn_of_changed_sources(directory: Path, output: Path) -> None:
    """Warn of data some of whose source files have changed since; that of a comparison stays as its cells need it."""
    from nmt.corpus.source_files import find_changed, warn_of_earlier_content

    changed = find_changed(directory)
    if not changed:
        return
    if directory.is_relative_to(output):
        advice = Message("choose another {output} to use the new content", output=Parameter("output"))
    else:
        advice = Message("preprocess again with {overwrite}", overwrite=Parameter("overwrite", True))
    warn_of_earlier_content(directory, changed, advice)


def _write_tables(trials: Mapping[Path, Trial], output: Path, outsiders: Mapping[str, Path]) -> list[Row]:
    """Write tables and pictures of the finished trials; nothing if none is finished."""
    from nmt.comparison.outsiders import make_outsider_results
    from nmt.comparison.pictures import draw_pictures
    from nmt.comparison.results import make_rows
    from nmt.comparison.summary import as_csv, as_latex, comparison_sections
    from nmt.comparison.trial import RESULT, read_record
    from nmt.corpus.data_report import format_markdown

    finished = {folder: read_record(folder / RESULT) for folder in trials if (folder / RESULT).exists()}
    named = {folder: {**result, "name": trials[folder].name} for folder, result in finished.items()}
    rows = make_rows(named | make_outsider_results(outsiders, named, output / OUTSIDERS)) if named else []
    if rows:
        missing = [trial.title for folder, trial in trials.items() if folder not in finished]
        draw_pictures(rows, output)
        write_json(output / TABLE_JSON, [row.as_json(rows[0]) for row in rows])
        write_text(output / TABLE_CSV, as_csv(rows))
        write_text(output / TABLE_LATEX, as_latex(rows, missing))
        write_text(output / TABLE_MARKDOWN, format_markdown("Comparison", comparison_sections(rows, missing), output))
        log.info(f"tables: {output / TABLE_MARKDOWN}, {TABLE_CSV}, {TABLE_JSON}, {TABLE_LATEX}")
    return rows
