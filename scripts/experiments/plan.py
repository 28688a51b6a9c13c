"""What an experiment consists of."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.errors import ConfigError


@dataclass(frozen=True)
class Cell:
    """One training of an experiment.

    Attributes:
        experiment: Name of the experiment.
        name: Name of the cell.
        seed: Seed of training.
        overrides: `section.key=value` settings of the cell.
        models: Keys of other cells that translate together instead of a training.
        teachers: Keys of other cells, whose joint translations of the training sources are added to the training pairs
            (sequence-level distillation, Kim & Rush, 2016).
        init_from: Experiment and key of a finished cell, such as "tatoeba/22-epochs-1", whose weights and vocabularies
            the training starts from; empty for a new model.
    """

    experiment: str
    name: str
    seed: int
    overrides: tuple[str, ...]
    models: tuple[str, ...] = ()
    teachers: tuple[str, ...] = ()
    init_from: str = ""

    @property
    def key(self) -> str:
        """Name of its result and its folder: letters, digits, dots and hyphens."""
        return f"{re.sub(r'[^a-z0-9.]+', '-', self.name.lower()).strip('-')}-{self.seed}"

    @property
    def data_overrides(self) -> tuple[str, ...]:
        """The settings that preprocessing depends on."""
        return tuple(override for override in self.overrides if override.startswith(("data.", "text.")))


@dataclass(frozen=True)
class Experiment:
    """Several trainings on one corpus.

    Attributes:
        name: The name of its file.
        config: Config that all cells start from.
        source: Files of the corpus, relative to the folder of corpora; empty: those of the config.
        cells: The trainings.
    """

    name: str
    config: str
    source: tuple[str, ...]
    cells: tuple[Cell, ...]


def read_experiment(path: Path) -> Experiment:
    """Read an experiment.

    Raises:
        ConfigError: The file is missing or wrong.
    """
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        common = tuple(values.get("settings", []))
        seeds = values.get("seeds", [1])
        cells = tuple(
            Cell(
                path.stem,
                cell["name"],
                seed,
                (*common, *cell.get("settings", [])),
                tuple(cell.get("models", [])),
                tuple(cell.get("teachers", [])),
                cell.get("init_from", ""),
            )
            for cell in values["cells"]
            for seed in cell.get("seeds", seeds)
        )
        return Experiment(path.stem, values["config"], tuple(values.get("source", [])), cells)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ConfigError(f"{path}: is not an experiment ({type(error).__name__}: {error})") from None
