"""The cells of a comparison: one training of one config with one seed each."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config import ComparisonSection, Config, Overrides, as_settings, differing_keys, dump_config, read_config
from nmt.config.tree import in_one_line
from nmt.corpus.licence import with_sources
from nmt.models.configs import load_config
from nmt.system.errors import ConfigError, DataError
from nmt.system.files import read_json, write_json, write_text

CELL = "cell.json"
CONFIG = "config.yaml"
CELLS = "cells"
DATA = "data"
FORMAT_VERSION = 1
SECTIONS = ("data", "text", "model", "train", "decode")
LONGEST_KEY = 80
"""Characters of the name of a folder, without the seed."""


@dataclass(frozen=True)
class Cell:
    """One training of a comparison.

    Attributes:
        name: Name of its config, the same for all seeds.
        seed: Seed of training.
        settings: Values that are not those of the config file, as `section.key=value`.
        config: The whole config.
        budget_minutes: Training time, from which the number of updates follows; None is what the config says.
    """

    name: str
    seed: int
    settings: list[str]
    config: Config
    budget_minutes: float | None

    @property
    def title(self) -> str:
        """Name of its config, and the seed."""
        return f"{self.name}, seed {self.seed}"

    @property
    def key(self) -> str:
        """Name of its folder: letters, digits, dots, hyphens and underscores."""
        plain = re.sub(r"[^a-z0-9._]+", "-", self.name.lower()).strip("-.")
        if len(plain) > LONGEST_KEY or not self.name.isascii():  # so that different names have different folders
            digest = hashlib.sha256(self.name.encode()).hexdigest()[:8]
            plain = f"{plain[:LONGEST_KEY]}-{digest}".lstrip("-")
        return f"{plain}-{self.seed}"

    @property
    def data_name(self) -> str:
        """Name of the folder with its data, which cells with the same settings of `data` and `text` share."""
        data = self.config.data.model_dump(mode="json", exclude={"directory", "workers"})
        settings = json.dumps([data, self.config.text.model_dump(mode="json")], sort_keys=True)
        return hashlib.sha256(settings.encode()).hexdigest()[:8]


def make_cells(comparison: ComparisonSection) -> list[Cell]:
    """All cells: every config with every variant, all combinations of what varies, and every seed.

    Raises:
        ConfigError: A cell's config is wrong, or two cells have the same name.
    """
    _check_settings(comparison)
    common = list(as_settings(comparison.settings))
    if comparison.budget_minutes is not None:
        common.insert(0, "train.validation.patience=null")  # or the time would not be used
    cells = []
    for config in comparison.config:
        stem = Path(config).stem if config.endswith((".yaml", ".yml")) else config
        for variant, settings in _variants(comparison):
            for varied in _grid(comparison.vary):
                parts = [*([stem] if len(comparison.config) > 1 else []), *([variant] if variant else [])]
                name = ", ".join([*parts, *(label for label, _ in varied)]) or stem
                of_cell = [*common, *settings, *(setting for _, setting in varied)]
                cells += [_make_cell(comparison, name, config, of_cell, seed) for seed in comparison.seeds]
    _check_names(cells)
    return cells


def _check_settings(comparison: ComparisonSection) -> None:
    """Reject settings that a comparison decides itself.

    Raises:
        ConfigError: There are some.
    """
    variants = (key for variant in comparison.variants for key in variant.settings)
    given = {*comparison.vary, *comparison.settings, *variants}
    if "train.seed" in given:
        raise ConfigError("train.seed: give the seeds of a comparison with --seeds, or seeds in its file")
    if comparison.budget_minutes is not None and "train.epochs" in given:
        raise ConfigError("train.epochs: has no effect with budget_minutes, which decides it; leave one of them out")
    for seed in comparison.seeds:
        if comparison.seeds.count(seed) > 1:
            raise ConfigError(f"seeds: {seed} is given twice")


def _variants(comparison: ComparisonSection) -> Iterator[tuple[str, list[str]]]:
    """Name and settings of each variant."""
    if not comparison.variants:
        yield "", []
    for variant in comparison.variants:
        yield variant.name, as_settings(variant.settings)


def _grid(vary: Mapping[str, Sequence[Any]]) -> Iterator[list[tuple[str, str]]]:
    """All combinations of values: for each key, what it is called in the name of a cell, and the setting."""
    short = {key: _short(key) for key in vary}
    names = {key: name if list(short.values()).count(name) == 1 else key for key, name in short.items()}
    for values in itertools.product(*vary.values()):
        written = [(key, in_one_line(value)) for key, value in zip(vary, values, strict=True)]
        yield [(f"{names[key]}={value}", f"{key}={value}") for key, value in written]


def _short(key: str) -> str:
    """The last two parts of a key: `attention.score` of `model.attention.score`."""
    parts = [part for part in key.split(".") if part not in SECTIONS]
    return ".".join(parts[-2:]) or key


def _make_cell(comparison: ComparisonSection, name: str, config: str, settings: Overrides, seed: int) -> Cell:
    try:
        loaded = load_config(config, [*settings, f"train.seed={seed}"])
        if comparison.source:
            loaded = with_sources(loaded, comparison.source)
    except ConfigError as error:
        raise ConfigError(*(f"cell {name}: {line.removeprefix('--set ')}" for line in str(error).split("\n"))) from None
    if comparison.budget_minutes is not None and loaded.train.max_updates is not None:
        raise ConfigError(f"cell {name}: budget_minutes and train.max_updates both end training; leave one out")
    return Cell(name, seed, list(settings), loaded, comparison.budget_minutes)


def _check_names(cells: Sequence[Cell]) -> None:
    """Reject two cells with one folder.

    Raises:
        ConfigError: There are some.
    """
    found: dict[str, Cell] = {}
    for cell in cells:
        if cell.key in found:
            other = found[cell.key].name
            raise ConfigError(
                f"cells {other!r} and {cell.name!r}: would share the folder {cell.key}; change a value or a name"
            )
        found[cell.key] = cell


def describe_cell(cell: Cell, data: str, split: str) -> dict[str, Any]:
    """What is needed, besides the config, to train and evaluate a cell.

    Args:
        cell: The cell.
        data: Its data directory, relative to its folder.
        split: Split to evaluate it on.
    """
    return {
        "format_version": FORMAT_VERSION,
        "name": cell.name,
        "seed": cell.seed,
        "settings": cell.settings,
        "budget_minutes": cell.budget_minutes,
        "data": data,
        "split": split,
    }


def check_cell(folder: Path, cell: Cell, split: str) -> bool:
    """Whether a folder already has the cell.

    Args:
        folder: The folder of the cell.
        cell: The cell.
        split: Split to evaluate it on.

    Raises:
        DataError: The folder has a cell with other settings.
    """
    if not (folder / CELL).exists():
        return False
    there = read_cell(folder)
    differing = differing_keys(read_config(folder / CONFIG), cell.config)
    for name, here in (("budget_minutes", cell.budget_minutes), ("split", split)):
        if there[name] != here:
            differing.append(f"{name} ({there[name]!r} there, {here!r} here)")
    if differing:
        raise _other(folder, f"other settings: {', '.join(differing)}")
    return True


def check_cell_data(folder: Path, checksum: str) -> None:
    """Check that a cell that is there was made for the same data.

    Raises:
        DataError: It was made for other data.
    """
    if read_cell(folder)["data_checksum"] != checksum:
        raise _other(folder, "another data directory")


def _other(folder: Path, differing: str) -> DataError:
    return DataError(f"{folder}: was made with {differing}; choose another --output, or delete this folder")


def read_cell(folder: Path) -> dict[str, Any]:
    """The description of a cell.

    Raises:
        DataError: It is missing, damaged or of another version.
    """
    return read_facts(
        folder / CELL,
        ("format_version", "name", "seed", "settings", "budget_minutes", "data", "data_checksum", "split"),
    )


def read_facts(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """A JSON file of a cell.

    Args:
        path: The file.
        names: What it must have.

    Raises:
        DataError: It is missing, damaged or of another version.
    """
    facts = read_json(path)
    if isinstance(facts, dict) and facts.get("format_version", FORMAT_VERSION) != FORMAT_VERSION:
        raise DataError(f"{path}: is of another version; delete {path.parent} to make the cell again")
    if not isinstance(facts, dict) or not facts.keys() >= set(names):
        raise DataError(f"{path}: is damaged; delete {path.parent} to make the cell again")
    return facts


def write_cell(folder: Path, cell: Cell, facts: Mapping[str, Any], checksum: str) -> None:
    """Write a cell and its description into its folder, with the checksum of its data."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / CONFIG, dump_config(cell.config))
    write_json(folder / CELL, {**facts, "data_checksum": checksum})
