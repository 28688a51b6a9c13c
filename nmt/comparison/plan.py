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

from nmt.config import Comparison, Config, Overrides, as_settings, differing_keys, dump_config, read_config
from nmt.config.reading import in_one_line
from nmt.errors import ConfigError, DataError
from nmt.files import read_json, write_json, write_text
from nmt.workflow.configs import load_config
from nmt.workflow.preprocess import with_sources

CELL = "cell.json"
CONFIG = "config.yaml"
CELLS = "cells"
DATA = "data"
FORMAT_VERSION = 1
SECTIONS = ("data", "text", "model", "train", "decode")


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
    def key(self) -> str:
        """Name of its folder: letters, digits, dots, hyphens and underscores."""
        plain = re.sub(r"[^a-z0-9._]+", "-", self.name.lower()).strip("-.") or "cell"
        return f"{plain[:80]}-{self.seed}"

    @property
    def data_name(self) -> str:
        """Name of the folder with its data, which cells with the same settings of `data` and `text` share."""
        settings = {name: getattr(self.config, name).model_dump(mode="json") for name in ("data", "text")}
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        return f"{self.config.name}-{digest[:8]}"


def make_cells(comparison: Comparison) -> list[Cell]:
    """All cells: every config with every variant, all combinations of what varies, and every seed.

    Raises:
        ConfigError: A cell's config is wrong, or two cells have the same name.
    """
    varied_keys = [
        *comparison.vary,
        *comparison.settings,
        *(key for each in comparison.variants for key in each.settings),
    ]
    if "train.seed" in varied_keys:
        raise ConfigError("train.seed: give the seeds of a comparison with --seeds, or seeds in its file")
    common = list(as_settings(comparison.settings))
    if comparison.budget_minutes is not None:
        common.insert(0, "train.validation.patience=null")  # or the time would not be used
    cells = []
    for config in comparison.config:
        for variant, settings in _variants(comparison):
            for varied in _grid(comparison.vary):
                of_cell = [*common, *settings, *varied.values()]
                several = len(comparison.config) > 1
                stem = Path(config).stem if config.endswith((".yaml", ".yml")) else config
                name = ", ".join([*([stem] if several else []), *([variant] if variant else []), *varied]) or stem
                for seed in comparison.seeds:
                    cells.append(_make_cell(comparison, name, config, of_cell, seed))
    _check_names(cells)
    return cells


def _variants(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Name and settings of each variant."""
    if not comparison.variants:
        yield "", []
    for variant in comparison.variants:
        yield variant.name, as_settings(variant.settings)


def _grid(vary: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, str]]:
    """All combinations of values: the setting of each by what it is called in the name of a cell."""
    for values in itertools.product(*vary.values()):
        written = {key: in_one_line(value) for key, value in zip(vary, values, strict=True)}
        yield {f"{_short(key)}={value}": f"{key}={value}" for key, value in written.items()}


def _short(key: str) -> str:
    """The last two parts of a key: `attention.score` of `model.attention.score`."""
    parts = [part for part in key.split(".") if part not in SECTIONS]
    return ".".join(parts[-2:]) or key


def _make_cell(comparison: Comparison, name: str, config: str, settings: Overrides, seed: int) -> Cell:
    try:
        loaded = load_config(config, [*settings, f"train.seed={seed}"])
        if comparison.source:
            loaded = with_sources(loaded, comparison.source)
    except ConfigError as error:
        raise ConfigError(*(f"cell {name}: {line}" for line in str(error).split("\n"))) from None
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
            raise ConfigError(f"cells {other!r} and {cell.name!r}, seed {cell.seed}: have the same name; change one")
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


def check_cell(folder: Path, cell: Cell, facts: Mapping[str, Any]) -> bool:
    """Whether a folder already has the cell.

    Args:
        folder: The folder of the cell.
        cell: The cell.
        facts: Its description.

    Raises:
        DataError: The folder has a cell with other settings.
    """
    if not (folder / CELL).exists():
        return False
    there = read_json(folder / CELL)
    differing = differing_keys(read_config(folder / CONFIG), cell.config)
    for name in ("budget_minutes", "split"):
        if there.get(name) != facts[name]:
            differing.append(f"{name} ({there.get(name)!r} there, {facts[name]!r} here)")
    if differing:
        raise DataError(
            f"{folder}: was made with other settings: {', '.join(differing)}; choose another --output, or delete this "
            "folder"
        )
    return True


def write_cell(folder: Path, cell: Cell, facts: Mapping[str, Any]) -> None:
    """Write a cell and its description into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / CONFIG, dump_config(cell.config))
    write_json(folder / CELL, facts)
