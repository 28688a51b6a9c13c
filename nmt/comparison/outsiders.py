"""Systems in a comparison that it does not train: translations of any program, and cells of an earlier comparison."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.comparison.results import Result
from nmt.comparison.trial import CONFIG, FORMAT_VERSION, HYPOTHESES, REFERENCES, RESULT, TRAINING_KEYS, read_record
from nmt.config import read_config
from nmt.corpus.cleaning import make_text_normalizer
from nmt.corpus.example import Example, read_examples
from nmt.evaluation.diagnostics import read_system
from nmt.evaluation.metrics import METRICS, RESAMPLES, ScoringRules, length_ratio, score_corpus
from nmt.evaluation.model_evaluation import MAX_TESTED
from nmt.system.errors import ConfigError, DataError
from nmt.system.files import write_json, write_text
from nmt.system.messages import Parameter
from nmt.translation.input import read_text

if TYPE_CHECKING:
    from nmt.comparison.plan import Trial


def read_outsiders(given: Sequence[str]) -> dict[str, Path]:
    """The files and cells of `NAME=PATH`, by name.

    Raises:
        ConfigError: One is not written so, or a name is given twice.
        DataError: A file or the result of a cell is not there.
    """
    outsiders: dict[str, Path] = {}
    for text in given:
        argument = Parameter("against", text)
        name, equals, place = text.partition("=")
        if not (name.strip() and equals and place):
            raise ConfigError("{given}: expected NAME=FILE or NAME=CELL", given=argument)
        if name in outsiders:
            raise ConfigError("{given}: the name {name} is given twice; choose another", given=argument, name=name)
        path = Path(place)
        if not path.exists():
            raise DataError("{given}: {path} does not exist; check the path", given=argument, path=path)
        if path.is_dir() and not (path / RESULT).is_file():
            raise DataError(
                "{given}: {path} is not a finished cell (no {result}); give a folder of cells/",
                given=argument,
                path=path,
                result=RESULT,
            )
        outsiders[name] = path
    return outsiders


def check_outsiders(outsiders: Mapping[str, Path], trials: Mapping[Path, Trial], tests: Collection[Path]) -> None:
    """Refuse systems that could not stand in the tables, before anything is trained.

    Args:
        outsiders: Files and cells, by name.
        trials: The trials, by folder.
        tests: Files of the test sets of the trials.

    Raises:
        ConfigError: One has the name of a trial.
        DataError: A cell or a file cannot be read, or a file has another number of lines than every test set.
    """
    taken = {trial.name for trial in trials.values()}
    sizes = {len(read_examples(path)) for path in tests} if outsiders else set()
    for name, path in outsiders.items():
        if name in taken:
            given = Parameter("against", f"{name}={path}")
            raise ConfigError("{given}: a cell has this name; choose another", given=given)
        if path.is_dir():
            read_record(path / RESULT)
        elif (lines := len(read_text(path))) not in sizes:
            sentences = " or ".join(f"{size:,}" for size in sorted(sizes))
            raise DataError(
                f"{path}: has {lines:,} lines, and the test set {sentences} sentences; give one line for each"
            )


def make_outsider_results(
    outsiders: Mapping[str, Path], finished: Mapping[Path, Result], folder: Path
) -> dict[Path, Result]:
    """Results of files and cells as of trials; translations are scored on the first test set with as many sentences.

    The translations of a file have a result for each seed of the config with this test set, as they are compared with
    each.

    Args:
        outsiders: Files and cells, by name.
        finished: Results of trials, by folder.
        folder: Gets a folder with the translations of each file.
    """
    results: dict[Path, Result] = {}
    for name, path in outsiders.items():
        if path.is_dir():
            results[path] = {**read_record(path / RESULT), "name": name}
            continue
        lines = read_text(path)
        fitting = [trial for trial, result in finished.items() if result["sentences"] == len(lines)]
        if not fitting:
            continue  # the trials with this test set have failed
        trial = fitting[0]
        first = finished[trial]["name"]
        baselines = [baseline for baseline in fitting if finished[baseline]["name"] == first]
        config = read_config(trial / CONFIG)
        # The signature of the trial tells whether its references were repaired.
        repaired = ScoringRules.is_signed_as_repaired(finished[trial]["scores"]["bleu"]["signature"])
        rules = ScoringRules.for_config(config, repaired=repaired)
        examples = [Example("", tuple(line.split("\t"))) for line in read_text(trial / REFERENCES)]
        normalizer = make_text_normalizer(config.data.cleaning)
        hypotheses = [" ".join(line.split()) for line in read_system(path, lines, examples, normalizer, rules)]
        scored = _score(name, hypotheses, examples, rules, finished[trial])
        for baseline in baselines:
            place = folder / baseline.name / _folder_name(name, results)
            place.mkdir(parents=True, exist_ok=True)
            _write_lines(place / HYPOTHESES, hypotheses)
            for file in (REFERENCES, CONFIG):
                shutil.copyfile(baseline / file, place / file)
            results[place] = {**scored, "seed": finished[baseline]["seed"]}
            write_json(place / RESULT, results[place])
    return results


def _folder_name(name: str, taken: Collection[Path]) -> str:
    """A name for a folder, which need not resemble that of a system; a number makes it unique."""
    plain = "".join(character if character.isalnum() else "-" for character in name).strip("-")[:40]
    return f"{len(taken) + 1}-{plain}"


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    write_text(path, "".join(f"{line}\n" for line in lines))


def _score(
    name: str, hypotheses: Sequence[str], examples: Sequence[Example], rules: ScoringRules, result: Result
) -> dict[str, Any]:
    """The result of translations on the test set of a trial, without all that only a training has."""
    resamples = RESAMPLES if len(examples) <= MAX_TESTED else 1
    scores = score_corpus(examples, hypotheses, rules, list(METRICS), resamples)
    return {
        "format_version": FORMAT_VERSION,
        **dict.fromkeys(TRAINING_KEYS),
        **{key: result.get(key) for key in ("seed", "split", "config", "sentences", "references")},
        "name": name,
        "settings": [],
        "curve": [],
        "scores": {key: asdict(score) for key, score in scores.items()},
        "diagnosis": {"length_ratio": length_ratio(examples, hypotheses, rules)},
        "teacher_forced": {},
        "attention": [],
        "lengths": [],
    }
