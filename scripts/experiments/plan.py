"""What an experiment consists of."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from nmt.config.messages import find_problems
from nmt.config.sections import Section, Seed
from nmt.config.tree import dotted
from nmt.system.errors import ConfigError

Texts = tuple[str, ...]
Seeds = Annotated[tuple[Seed, ...], Field(min_length=1)]


class CellTable(Section):
    """A cell in a file: one training for each of its seeds."""

    name: Annotated[str, Field(pattern="[A-Za-z0-9]")]
    seeds: Seeds | None = None
    settings: Texts = ()
    models: Texts = ()
    teachers: Texts = ()
    init_from: str = ""


class ExperimentTable(Section):
    """The file of an experiment; what is common to all cells stands above them."""

    config: str
    source: Texts = ()
    seeds: Seeds = (1,)
    settings: Texts = ()
    cells: Annotated[tuple[CellTable, ...], Field(min_length=1)]


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
        ConfigError: The file is missing or wrong; one line per problem.
    """
    values: dict[str, Any] = {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        found = ExperimentTable.model_validate(values)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not an experiment ({type(error).__name__}: {error})") from None
    except ValidationError as error:
        problems = find_problems(error, values, ExperimentTable)
        raise ConfigError(*(f"{path}: {dotted(place)}: {message}" for place, message, _ in problems)) from None
    cells = tuple(
        Cell(path.stem, cell.name, seed, (*found.settings, *cell.settings), cell.models, cell.teachers, cell.init_from)
        for cell in found.cells
        for seed in cell.seeds or found.seeds
    )
    repeated = [key for key, number in Counter(cell.key for cell in cells).items() if number > 1]
    if repeated:
        raise ConfigError(f"{path}: several cells have the key {repeated[0]}; give them names or seeds that differ")
    return Experiment(path.stem, found.config, found.source, cells)
