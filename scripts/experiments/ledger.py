"""The ledger: a small JSON file for each finished training."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from nmt.config import Config, Section
from nmt.config.tree import dotted
from nmt.system.errors import ConfigError
from nmt.system.files import read_json, write_json


@dataclass(frozen=True)
class Score:
    """A score of a corpus, and sacreBLEU's description of how it was computed."""

    value: float
    signature: str


Scores = dict[str, dict[str, Score]]
"""By split and metric."""

LEDGER = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Result:
    """One finished training and its scores.

    Attributes:
        experiment: Name of the experiment.
        cell: Name of the cell.
        seed: Seed of training.
        system: Program and version.
        config: Name of the config; empty for another program.
        settings: The whole config, see `settings_of`, or that of the other program.
        finished: Date.
        threads: CPU threads.
        beam_size: Hypotheses per sentence.
        precision: Number format of products.
        gflops: Rate of a matrix product in that format on that CPU, mean of before and after.
        parameters: Number of weights.
        epochs: Passes over the training split.
        updates: Number of updates.
        tokens: Target tokens seen, without padding.
        minutes: Time of training, without validation.
        total_minutes: Time of training with validation.
        peak_mib: Peak resident memory of training.
        scores: By split and metric, value and signature: {"valid": {"bleu": {"value": 38.1, "signature": "..."}}}.
        equal: Of 1,000 training sources, the number translated as in a reference; None with a validation split.
        alignment_error_rate: On the aligned pairs of the experiment; None without them.
        reading: Of the first of these, each word of the translation, the source word it reads most, and the weight.
        models: Of an ensemble, the keys of its cells.
        teachers: Keys of the cells whose translations were added to the training pairs.
        parent: Experiment and key of the cell whose weights and vocabularies the training started from.
        gpu: Name of the GPU that trained it, on which other trainings may have run; empty for the CPU.
        revision: Commit of this repository, with "-dirty" if files differed from it; empty where it is not known.
        torch: Version of torch; empty where it is not known.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    experiment: str
    cell: str
    seed: int
    system: str
    config: str
    settings: list[str]
    finished: str
    threads: int
    beam_size: int
    precision: str = "float32"
    gflops: float = 0
    parameters: int = 0
    epochs: float = 0
    updates: int = 0
    tokens: int = 0
    minutes: float = 0
    total_minutes: float = 0
    peak_mib: int = 0
    scores: Scores = field(default_factory=dict)
    equal: int | None = None
    alignment_error_rate: float | None = None
    reading: str = ""
    models: list[str] = field(default_factory=list)
    teachers: list[str] = field(default_factory=list)
    parent: str = ""
    gpu: str = ""
    revision: str = ""
    torch: str = ""

    @property
    def processor(self) -> str:
        """The GPU, or the number of CPU threads."""
        return self.gpu or str(self.threads)

    def bleu(self, split: str) -> float | None:
        """BLEU of a split; None if it was not scored."""
        found = self.scores.get(split, {}).get("bleu")
        return None if found is None else found.value


UNNAMED = {
    "": {"name"},
    "data.": {"source", "licence", "directory", "workers"},
    "train.": {"seed", "threads", "device"},
}
"""Keys that do not belong to a recipe, or that a result names elsewhere."""


def settings_of(config: Config) -> list[str]:
    """All values that are not the default of their key, as `section.key=value`, so that no later config changes them.

    Args:
        config: The whole config.
    """
    return list(_differing(config, Config(), ""))


def _differing(section: Section, default: Section, above: str) -> Iterator[str]:
    unnamed = UNNAMED.get(above, set())
    for name, value in section.model_dump(mode="json", exclude=unnamed).items():
        part, plain = getattr(section, name), getattr(default, name, ...)
        if isinstance(part, Section) and isinstance(plain, Section):
            yield from _differing(part, plain, f"{above}{name}.")
        elif part != type(section).model_fields[name].default or (part != plain and plain is not ...):
            yield f"{above}{name}={json.dumps(value)}"


def rounded(scores: Mapping[str, Any]) -> dict[str, Score]:
    """Value, to two decimals, and signature of each metric."""
    return {key: Score(round(each["value"], 2), each["signature"]) for key, each in scores.items()}


def path_of(experiment: str, key: str) -> Path:
    """File of a result."""
    return LEDGER / experiment / f"{key}.json"


def write_result(result: Result, key: str) -> Path:
    """Add a result to the ledger."""
    path = path_of(result.experiment, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, asdict(result))
    return path


def read_result(experiment: str, key: str) -> Result:
    """A result of the ledger.

    Raises:
        DataError: The file is missing or not JSON.
        ConfigError: It is not a result.
    """
    return _read(path_of(experiment, key))


def read_results(experiment: str) -> list[Result]:
    """All results of an experiment, by cell and seed; raises as `read_result` does."""
    return [_read(path) for path in sorted((LEDGER / experiment).glob("*.json"))]


def _read(path: Path) -> Result:
    try:
        return TypeAdapter(Result).validate_python(read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = dotted(tuple(map(str, first["loc"])))
        raise ConfigError(f"{path}: is not a result of the ledger ({place}: {first['msg']})") from None
