"""What an experiment consists of."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from nmt.config.fields import Section, Seed
from nmt.config.messages import find_problems
from nmt.config.tree import dotted
from nmt.system.errors import ConfigError

Texts = tuple[str, ...]
Seeds = Annotated[tuple[Seed, ...], Field(min_length=1)]


class CellTable(Section):
    """A cell in a file: one training for each of its seeds.

    Attributes:
        name: Name of the cell.
        seeds: Seeds of training; None: those of the experiment.
        settings: `section.key=value` settings.
        models: Keys of other cells that translate together instead of a training.
        teachers: Keys of other cells, whose joint translations of the training sources are added to the training pairs
            (sequence-level distillation, Kim & Rush, 2016).
        parent: Experiment and key of a finished cell, such as "tatoeba/22-epochs-1", whose weights and vocabularies
            the training starts from; empty for a new model.
    """

    name: Annotated[str, Field(pattern="[A-Za-z0-9]")]
    seeds: Seeds | None = None
    settings: Texts = ()
    models: Texts = ()
    teachers: Texts = ()
    parent: str = ""


class ExperimentTable(Section):
    """The file of an experiment; what is common to all cells stands above them.

    Attributes:
        config: Config that all cells start from.
        source: Files of the corpus, relative to the folder of corpora; empty: those of the config.
        seeds: Seeds of cells without their own.
        settings: Settings of all cells.
        links: A file beside the experiment with pairs whose words people have aligned: source, tab, target, tab, links
            such as 0-0 of words between spaces. The alignment error rate of each model is measured on it, and the first
            source is translated, to see where each word reads. Empty: none.
        cells: The trainings.
    """

    config: str
    source: Texts = ()
    seeds: Seeds = (1,)
    settings: Texts = ()
    links: str = ""
    cells: Annotated[tuple[CellTable, ...], Field(min_length=1)]


class Cell(CellTable):
    """One training of an experiment; its settings are those of all cells, then its own."""

    seed: Seed

    @property
    def key(self) -> str:
        """Name of its result and its folder: letters, digits, dots and hyphens."""
        return f"{re.sub(r'[^a-z0-9.]+', '-', self.name.lower()).strip('-')}-{self.seed}"

    @property
    def data_settings(self) -> Texts:
        """The settings that preprocessing depends on."""
        return tuple(setting for setting in self.settings if setting.startswith(("data.", "text.", "parent=")))


class Experiment(ExperimentTable):
    """Several trainings on one corpus, by the name of their file."""

    name: str
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
        raise ConfigError(*(f"{path}: {dotted(place)}: {message}" for place, message in problems)) from None
    cells = tuple(
        Cell(**{**dict(cell), "seed": seed, "settings": (*found.settings, *cell.settings)})
        for cell in found.cells
        for seed in cell.seeds or found.seeds
    )
    repeated = [key for key, number in Counter(cell.key for cell in cells).items() if number > 1]
    if repeated:
        raise ConfigError(f"{path}: several cells have the key {repeated[0]}; give them names or seeds that differ")
    return Experiment(**{**dict(found), "name": path.stem, "cells": cells})
