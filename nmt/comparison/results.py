"""The results of a comparison: trials with the same config together, and the significance of their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from nmt.comparison.trial import CONFIG, HYPOTHESES, REFERENCES
from nmt.config import read_config
from nmt.corpus.example import Example
from nmt.evaluation.metrics import ScoringRules, compare_systems
from nmt.evaluation.model_evaluation import MAX_TESTED
from nmt.evaluation.several_seeds import MeanDifference, compare_over_seeds
from nmt.system.files import check_file, read_text
from nmt.system.limits import MAX_TEXT_FILE

Result = Mapping[str, Any]
"""Content of a trial's `result.json`."""


@dataclass(frozen=True)
class Row:
    """One config with all its seeds.

    Attributes:
        name: Its name.
        results: The result of each seed.
        p_values: For each seed, the probability of its difference in BLEU from the first config with the same seed if
            both were equally good; None for the first, and where test sets or scoring differ.
        over_seeds: The mean difference over all seeds, and its probability; None with fewer than two to compare.
    """

    name: str
    results: Sequence[Result]
    p_values: Sequence[float | None]
    over_seeds: MeanDifference | None = None

    def values(self, *path: str) -> list[float]:
        """A number of each seed by its keys; those without it are left out."""
        values = (dig(result, path) for result in self.results)
        return [float(value) for value in values if value is not None]

    def mean(self, *path: str) -> float | None:
        """Mean over seeds; None without values."""
        values = self.values(*path)
        return mean(values) if values else None

    def deviation(self, *path: str) -> float | None:
        """Standard deviation over seeds (of the sample); None with fewer than two, and of translations in a file."""
        values = self.values(*path)
        is_trained = any(result["updates"] is not None for result in self.results)
        return stdev(values) if len(values) > 1 and is_trained else None

    def differences(self, first: Row) -> list[float | None]:
        """For each seed, its BLEU minus that of the first config with the same seed; None where p is."""
        bleu = ("scores", "bleu", "value")
        baselines = {result["seed"]: dig(result, bleu) for result in first.results}
        return [
            None if p is None else dig(result, bleu) - baselines[result["seed"]]
            for result, p in zip(self.results, self.p_values, strict=True)
        ]

    def as_json(self, first: Row) -> dict[str, Any]:
        """As plain values, with the differences from the first config."""
        tests = {"p_values": list(self.p_values), "differences": self.differences(first)}
        over_seeds = None if self.over_seeds is None else self.over_seeds._asdict()
        return {"name": self.name, **tests, "over_seeds": over_seeds, "results": list(self.results)}


def dig(value: Any, path: Sequence[str]) -> Any:
    """A nested value by its keys; None if one of them is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def make_rows(finished: Mapping[Path, Result]) -> list[Row]:
    """Group finished trials by name, and test the significance of differences from the first one.

    Args:
        finished: Results by the folder of the trial, in order.
    """
    tests = _test(finished)
    by_name: dict[str, list[Path]] = {}
    for folder, result in finished.items():
        by_name.setdefault(result["name"], []).append(folder)
    rows = []
    for name, folders in by_name.items():
        results = [finished[folder] for folder in folders]
        p_values = [tests[folder].p_value if folder in tests else None for folder in folders]
        over_seeds = _test_over_seeds([(folder, tests[folder]) for folder in folders if folder in tests])
        rows.append(Row(name, results, p_values, over_seeds))
    return rows


class _SeedTest(NamedTuple):
    """A paired test of a trial and the baseline with the same seed."""

    baseline: Path
    p_value: float | None


def _test(finished: Mapping[Path, Result]) -> dict[Path, _SeedTest]:
    """p-values in BLEU by paired bootstrap resampling, seed by seed, of test sets that are not too large for it."""
    tests: dict[Path, _SeedTest] = {}
    first = next((result["name"] for result in finished.values()), None)
    test_sets = {folder: _test_set(folder, result) for folder, result in finished.items()}
    for baseline, result in finished.items():
        if result["name"] != first or result["sentences"] > MAX_TESTED:
            continue
        others = [folder for folder in finished if folder != baseline and test_sets[folder] == test_sets[baseline]]
        if not others:
            continue
        examples, rules = _test_examples(baseline)
        systems = [(str(folder), _lines(folder / HYPOTHESES)) for folder in (baseline, *others)]
        comparisons = compare_systems(systems, examples, rules)["bleu"]
        for folder, comparison in zip(others, comparisons[1:], strict=True):  # without the baseline
            tests[folder] = _SeedTest(baseline, comparison.p_value)
    return tests


def _test_over_seeds(seeds: Sequence[tuple[Path, _SeedTest]]) -> MeanDifference | None:
    """The mean difference of trials of one config from the baseline, which have one test set."""
    test_sets = {tuple(_lines(folder / REFERENCES)) for folder, _ in seeds}
    if len({test.baseline for _, test in seeds}) < 2 or len(test_sets) > 1:
        return None
    pairs = [(_lines(folder / HYPOTHESES), _lines(test.baseline / HYPOTHESES)) for folder, test in seeds]
    return compare_over_seeds(pairs, *_test_examples(seeds[0][1].baseline))


def _test_examples(baseline: Path) -> tuple[list[Example], ScoringRules]:
    """The test set of a trial, without its sources, and how it is scored."""
    config = read_config(baseline / CONFIG)
    examples = [Example("", tuple(line.split("\t"))) for line in _lines(baseline / REFERENCES)]
    return examples, ScoringRules.for_config(config)


def _test_set(folder: Path, result: Result) -> tuple[int, str, list[str]]:
    """The properties that compared translations share: seed, how text is scored, and references."""
    return result["seed"], result["scores"]["bleu"]["signature"], _lines(folder / REFERENCES)


def _lines(path: Path) -> list[str]:
    if not check_file(path, path.parent).exists():
        return []
    return read_text(path, MAX_TEXT_FILE, path.parent).removesuffix("\n").split("\n")
