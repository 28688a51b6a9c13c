"""The trials of a comparison: trainings of one config with one seed, which its option and its folder call cells."""

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config import Config, Overrides, as_settings, load_config
from nmt.config.comparison import ComparisonSection
from nmt.config.tree import in_one_line
from nmt.corpus.licence import with_sources
from nmt.system.errors import ConfigError
from nmt.system.messages import Message, Parameter

SECTIONS = ("data", "text", "model", "train", "decode")
LONGEST_KEY = 80
"""Characters of the name of a folder, without the seed."""


@dataclass(frozen=True)
class Trial:
    """One training of a comparison.

    Attributes:
        name: Name of its config, the same for all seeds.
        seed: Seed of training.
        settings: Values that are not those of the config file, as `section.key=value`.
        config: The whole config.
        budget_minutes: Training time, from which the number of updates follows; None is as in the config.
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
        """Name of the folder with its data, which trials with the same settings of data, text and pieces share."""
        data = self.config.data.model_dump(mode="json", exclude={"directory", "workers"})
        parent = self.config.parent.run if self.config.parent.pieces == "same" else None
        settings = json.dumps([data, self.config.text.model_dump(mode="json"), parent], sort_keys=True)
        return hashlib.sha256(settings.encode()).hexdigest()[:8]


def make_trials(comparison: ComparisonSection) -> list[Trial]:
    """All trials: every config with every variant, all combinations of the values that vary, and every seed.

    Raises:
        ConfigError: The configs of trials are wrong, one line for each problem with the first trial that has it; or two
            trials have the same name.
    """
    _check_settings(comparison)
    common = list(as_settings(comparison.settings))
    if comparison.budget_minutes is not None:
        common.insert(0, "train.validation.patience=null")  # or the time would not be used
    variants = [(variant.name, as_settings(variant.settings)) for variant in comparison.variants] or [("", [])]
    trials: list[Trial] = []
    problems: dict[str, Message] = {}
    for config in comparison.config:
        stem = Path(config).stem if config.endswith((".yaml", ".yml")) else config
        for variant, settings in variants:
            for varied in _grid(comparison.vary):
                parts = [*([stem] if len(comparison.config) > 1 else []), *([variant] if variant else [])]
                name = ", ".join([*parts, *(label for label, _ in varied)]) or stem
                of_trial = [*common, *settings, *(setting for _, setting in varied)]
                try:
                    trials += [_make_trial(comparison, name, config, of_trial, seed) for seed in comparison.seeds]
                except ConfigError as error:
                    for problem in _without_origin(error):
                        of_cell = Message("cell {name}: {problem}", name=name, problem=problem)
                        problems.setdefault(str(problem), of_cell)
    if problems:
        raise ConfigError(*problems.values())
    _check_names(trials)
    return trials


def _check_settings(comparison: ComparisonSection) -> None:
    """Reject settings that a comparison decides itself.

    Raises:
        ConfigError: There are some.
    """
    variants = (key for variant in comparison.variants for key in variant.settings)
    set_keys = {*comparison.vary, *comparison.settings, *variants}
    if "train.seed" in set_keys:
        raise ConfigError(
            "train.seed: give the seeds of a comparison with {seeds}, or seeds in its file", seeds=Parameter("seeds")
        )
    if comparison.budget_minutes is not None and "train.epochs" in set_keys:
        raise ConfigError("train.epochs: has no effect with budget_minutes, which decides it; leave one of them out")
    for seed in comparison.seeds:
        if comparison.seeds.count(seed) > 1:
            raise ConfigError(f"seeds: {seed} is given twice")


def _grid(vary: Mapping[str, Sequence[Any]]) -> Iterator[list[tuple[str, str]]]:
    """All combinations of values: for each key, its part of the name of a trial, and the setting."""
    short = {key: _short(key) for key in vary}
    names = {key: name if list(short.values()).count(name) == 1 else key for key, name in short.items()}
    for values in itertools.product(*vary.values()):
        written = [(key, in_one_line(value)) for key, value in zip(vary, values, strict=True)]
        yield [(f"{names[key]}={value}", f"{key}={value}") for key, value in written]


def _short(key: str) -> str:
    """The last two parts of a key: `attention.score` of `model.attention.score`."""
    parts = [part for part in key.split(".") if part not in SECTIONS]
    return ".".join(parts[-2:]) or key


def _make_trial(comparison: ComparisonSection, name: str, config: str, settings: Overrides, seed: int) -> Trial:
    loaded = load_config(config, [*settings, f"train.seed={seed}"])
    if comparison.source:
        loaded = with_sources(loaded, comparison.source)
    if comparison.budget_minutes is not None and loaded.train.max_updates is not None:
        raise ConfigError("budget_minutes and train.max_updates both end training; leave one out")
    return Trial(name, seed, list(settings), loaded, comparison.budget_minutes)


def _without_origin(error: ConfigError) -> list[Any]:
    """The problems of a trial's config, without the mark of an override, which means nothing here."""
    return [problem.values.get("problem", problem) for problem in error.problems]


def _check_names(trials: Sequence[Trial]) -> None:
    """Reject two trials with one folder.

    Raises:
        ConfigError: There are some.
    """
    by_key: dict[str, Trial] = {}
    for trial in trials:
        known = by_key.setdefault(trial.key, trial)
        if known is not trial:
            raise ConfigError(
                f"cells {known.name!r} and {trial.name!r}: would share the folder {trial.key}; change a value or a name"
            )
