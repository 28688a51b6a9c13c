"""The results of a comparison: trials with the same config together, and what is significant between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from nmt.comparison.trial import CONFIG, HYPOTHESES, REFERENCES, RESULT
from nmt.config import read_config
from nmt.corpus.splitting import Example
from nmt.evaluation.metrics import ScoringRules, compare_systems
from nmt.evaluation.model_evaluation import MAX_TESTED
from nmt.system.errors import DataError

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
    """

    name: str
    results: Sequence[Result]
    p_values: Sequence[float | None]

    def values(self, *path: str) -> list[float]:
        """A number of each seed by its keys; those without it are left out."""
        found = (dig(result, path) for result in self.results)
        return [float(value) for value in found if value is not None]

    def mean(self, *path: str) -> float | None:
        """Mean over seeds; None without values."""
        values = self.values(*path)
        return mean(values) if values else None

    def deviation(self, *path: str) -> float | None:
        """Standard deviation over seeds (of the sample); None with fewer than two."""
        values = self.values(*path)
        return stdev(values) if len(values) > 1 else None

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"name": self.name, "p_values": list(self.p_values), "results": list(self.results)}


def dig(value: Any, path: Sequence[str]) -> Any:
    """A nested value by its keys; None if one of them is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def make_rows(finished: Mapping[Path, Result], names: Mapping[Path, str]) -> list[Row]:
    """Group finished trials by name, and test the significance of differences from the first one.

    Args:
        finished: Results by the folder of the trial, in order.
        names: Name of the config of each.
    """
    significant = _test(finished, names)
    rows = []
    for name in dict.fromkeys(names[folder] for folder in finished):
        folders = [folder for folder in finished if names[folder] == name]
        rows.append(Row(name, [finished[each] for each in folders], [significant.get(each) for each in folders]))
    return rows


def _test(finished: Mapping[Path, Result], names: Mapping[Path, str]) -> dict[Path, float | None]:
    """p-values in BLEU by paired bootstrap resampling, seed by seed, of test sets that are not too large for it."""
    found: dict[Path, float | None] = {}
    for baseline, others in _comparable(finished, names):
        config = read_config(baseline / CONFIG)
        rules = ScoringRules.for_text(config.text, config.data.languages[1])
        systems = [(str(folder), _lines(folder / HYPOTHESES)) for folder in (baseline, *others)]
        examples = [Example("", tuple(line.split("\t"))) for line in _lines(baseline / REFERENCES)]
        _, *compared = compare_systems(systems, examples, rules)["bleu"]
        found |= {folder: each.p_value for folder, each in zip(others, compared, strict=True)}
    return found


def _comparable(finished: Mapping[Path, Result], names: Mapping[Path, str]) -> Iterator[tuple[Path, list[Path]]]:
    """For each seed, the trial of the first config and the others on the same test set, scored in the same way."""
    first = next((names[folder] for folder in finished), None)
    for baseline, result in finished.items():
        if names[baseline] != first or result["sentences"] > MAX_TESTED:
            continue
        signature, references = dig(result, ("scores", "bleu", "signature")), _lines(baseline / REFERENCES)
        others = [
            folder
            for folder, other in finished.items()
            if other["seed"] == result["seed"]
            and folder != baseline
            and dig(other, ("scores", "bleu", "signature")) == signature
            and _lines(folder / REFERENCES) == references
        ]
        for folder in (baseline, *others):
            if len(_lines(folder / HYPOTHESES)) != len(references):
                raise DataError(f"{folder / HYPOTHESES}: is damaged; delete {folder / RESULT} to evaluate it again")
        if others:
            yield baseline, others


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n") if path.is_file() else []
