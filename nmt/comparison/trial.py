"""A trial of a comparison: its folder, its training and evaluation, and everything that is measured of them."""

import datetime
import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nmt.comparison.plan import Trial
from nmt.config import Config, differing_keys, dump_config, load_config, read_config
from nmt.corpus.dataset import has_repaired_references
from nmt.corpus.example import Example
from nmt.drawing.charts import read_metrics
from nmt.evaluation.attention_statistics import LengthAttention, mean_sharpness
from nmt.evaluation.breakdown import LengthScore, bleu_by_length
from nmt.evaluation.input_text import EvaluationSet, read_split
from nmt.evaluation.long_inputs import measure_long_inputs
from nmt.evaluation.metrics import ScoringRules
from nmt.evaluation.model_evaluation import Measures, ModelEvaluation, evaluate_model
from nmt.system.errors import DataError, NmtError, RunInterrupted, as_nmt_errors, name_differences
from nmt.system.files import read_json, write_json, write_text
from nmt.system.limits import MIB
from nmt.system.memory import peak_memory
from nmt.system.messages import Parameter
from nmt.system.replacement import locked
from nmt.system.version import __version__
from nmt.training.metrics_log import METRICS
from nmt.training.run import train
from nmt.training.timing import measure_updates
from nmt.translation.loading import LoadSettings, open_translator
from nmt.translation.sharpness import STEP_LABELS
from nmt.translation.stream import translate_texts
from nmt.translation.translator import Translator

log = logging.getLogger(__name__)

TRIAL = "cell.json"
CONFIG = "config.yaml"
RUN = "run"
BUDGET = "budget.json"
TRAINING = "training.json"
RESULT = "result.json"
FAILURE = "failure.txt"
HYPOTHESES = "hypotheses.txt"
REFERENCES = "references.txt"
FORMAT_VERSION = 1
TRAINING_KEYS = (
    *("precision", "environment", "parameters", "updates", "epochs", "tokens", "training_seconds", "total_seconds"),
    *("tokens_per_second", "peak_mib", "best_update", "curve"),
)
"""The stored record of a training."""
TIMED = 1000
"""Sentences of which the speed of translation is measured."""


def write_trial(folder: Path, trial: Trial, *, data: str, data_checksum: str, split: str) -> None:
    """Write the files that are needed to train and evaluate a trial.

    Args:
        folder: Its folder.
        trial: The trial.
        data: Its data directory, relative to its folder.
        data_checksum: Checksum of the data.
        split: Split to evaluate it on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / CONFIG, dump_config(trial.config))
    choices = {key: getattr(trial, key) for key in ("name", "seed", "settings", "budget_minutes")}
    data_values = {"data": data, "split": split, "data_checksum": data_checksum}
    write_json(folder / TRIAL, {"format_version": FORMAT_VERSION, **choices, **data_values})


def has_trial(folder: Path, trial: Trial, split: str) -> bool:
    """True if a folder already has a trial.

    Raises:
        DataError: The folder has a trial with other settings.
    """
    if not (folder / TRIAL).exists():
        return False
    stored = read_record(folder / TRIAL)
    differing = differing_keys(read_config(folder / CONFIG), trial.config)
    differing += name_differences(
        [
            ("budget_minutes", stored["budget_minutes"], trial.budget_minutes),
            ("split", stored["split"], split),
        ]
    )
    if differing:
        raise _other(folder, f"other settings: {', '.join(differing)}")
    return True


def check_trial_data(folder: Path, checksum: str) -> None:
    """Check that a trial that is there was made for the same data.

    Raises:
        DataError: It was made for other data.
    """
    if read_record(folder / TRIAL)["data_checksum"] != checksum:
        raise _other(folder, "another data directory")


def _other(folder: Path, differing: str) -> DataError:
    return DataError(
        "{folder}: was made with {differing}; choose another {output}, or delete this folder",
        folder=folder,
        differing=differing,
        output=Parameter("output"),
    )


def read_record(path: Path) -> dict[str, Any]:
    """A JSON file of a trial: its description, its budget, its training or its result.

    Raises:
        DataError: It is missing, damaged or of another version.
    """
    values = read_json(path)
    if not isinstance(values, dict) or values.get("format_version", FORMAT_VERSION) != FORMAT_VERSION:
        raise DataError(f"{path}: is damaged or of another version; delete {path.parent} to make the cell again")
    return values


def run_trial(folder: Path) -> dict[str, Any]:
    """Train and evaluate a trial, or do the part that is not done yet.

    Args:
        folder: The folder of the trial, written by `nmt compare`.

    Returns:
        Its result, which is also stored in `result.json`.

    Raises:
        RunInterrupted: Training was stopped by a signal; the next call resumes it.
        NmtError: The folder is not that of a trial, is in use, or the trial cannot be trained or evaluated.
    """
    if not (folder / TRIAL).is_file():
        raise DataError(f"{folder}: is not the folder of a cell (no {TRIAL}); nmt compare creates them")
    with locked(folder, timeout=1):  # nmt compare tries the lock itself, to see whether a trial is at work
        (folder / FAILURE).unlink(missing_ok=True)
        if (folder / RESULT).exists():
            return read_record(folder / RESULT)
        try:
            with as_nmt_errors():
                result = _run(folder)
        except RunInterrupted as stop:
            raise RunInterrupted(f"{folder}: stopped; nmt compare continues it") from stop
        except Exception as error:
            write_text(folder / FAILURE, f"{error if isinstance(error, NmtError) else repr(error)}\n")
            raise
        write_json(folder / RESULT, result)
        return result


def _run(folder: Path) -> dict[str, Any]:
    trial = read_record(folder / TRIAL)
    data = (folder / trial["data"]).resolve()
    config = read_config(folder / CONFIG)
    if not (folder / TRAINING).exists():
        config = _within_budget(config, data, trial["budget_minutes"], folder)
        train(config, data=data, output=folder / RUN, resume=True)
        write_json(folder / TRAINING, _describe_training(folder / RUN))
    training = read_record(folder / TRAINING)
    allowed = [config.model.attention.score]  # trusted, as the user's own config names it
    models, translator = open_translator([folder / RUN], LoadSettings(config.train.device, allowed))
    examples = read_split(data, trial["split"])
    files = {"hypotheses": folder / HYPOTHESES, "references": folder / REFERENCES}
    text = EvaluationSet(trial["split"], examples, has_repaired_references(data))
    evaluation = evaluate_model(models, translator, text, Measures(attention=True), files=files)
    rules = ScoringRules.for_config(models[0].config)
    return {
        "format_version": FORMAT_VERSION,
        **{key: trial[key] for key in ("name", "seed", "settings", "budget_minutes", "split")},
        "config": config.name,
        "system": f"nmt {__version__}",
        "finished": datetime.datetime.now(datetime.UTC).date().isoformat(),
        **training,
        **_describe_evaluation(evaluation),
        "sentences_per_second": _measure_speed(translator, examples),
        "lengths": _describe_lengths(evaluation, examples, translator, rules),
    }


def _within_budget(config: Config, data: Path, minutes: float | None, folder: Path) -> Config:
    """The config with a number of updates that takes the given time; it is measured once."""
    if minutes is None:
        return config
    if not (folder / BUDGET).exists():
        seconds, per_epoch = measure_updates(config, data, min(20.0, 60 * minutes / 10))
        seconds = round(seconds, 5)  # as it is stored, so that the number of updates follows from the file
        updates = max(1, round(60 * minutes / seconds))
        write_json(folder / BUDGET, {"updates": updates, "updates_per_epoch": per_epoch, "seconds": seconds})
        log.info(f"{folder}: {updates:,} updates fit into {minutes:g} minutes, at {seconds:.3f} s each")
    budget = read_record(folder / BUDGET)
    epochs = math.ceil(budget["updates"] / budget["updates_per_epoch"])
    return load_config(config, [f"train.epochs={epochs}", f"train.max_updates={budget['updates']}"])


def _describe_training(run: Path) -> dict[str, Any]:
    state = read_json(run / "run.json")
    values = {
        **state,
        "precision": read_config(run / "config.yaml").train.precision,
        "environment": read_json(run / "environment.json"),
        "epochs": round(state["updates"] / state["updates_per_epoch"], 2),
        "peak_mib": round(peak_memory() / MIB),
        "curve": [
            {key: entry[key] for key in ("update", "seconds", "loss", "bleu") if key in entry}
            for entry in read_metrics(run / METRICS)
            if entry["kind"] == "valid"
        ],
    }
    return {key: values[key] for key in TRAINING_KEYS}


def _describe_evaluation(evaluation: ModelEvaluation) -> dict[str, Any]:
    values = evaluation.as_json()
    copied = ("sentences", "references", "beam_size", "length_penalty", "scores", "diagnosis", "warnings")
    return {key: values[key] for key in (*copied, "teacher_forced", "free_running", "attention")}


def _measure_speed(translator: Translator, examples: Sequence[Example]) -> float:
    """Sentences translated per second, without the attention weights that evaluation records."""
    begin = time.perf_counter()
    translated = translate_texts(translator, [example.src for example in examples[:TIMED]], "timing translation")
    return round(len(translated) / (time.perf_counter() - begin), 1)


def _describe_lengths(
    evaluation: ModelEvaluation, examples: Sequence[Example], translator: Translator, rules: ScoringRules
) -> list[dict[str, Any]]:
    """BLEU and attention by source length, and of joined inputs."""
    whole = bleu_by_length(examples, evaluation.hypotheses, rules), evaluation.attention_by_length
    joined = measure_long_inputs(translator, examples, rules)
    return [*_describe_bins(*whole, joined=False), *_describe_bins(*joined, joined=True)]


def _describe_bins(
    scores: Sequence[LengthScore], attention: Sequence[LengthAttention], *, joined: bool
) -> Iterator[dict[str, Any]]:
    for score, attended in zip(scores, attention, strict=True):
        yield {**asdict(score), "joined": joined, **dict.fromkeys(STEP_LABELS), **mean_sharpness(attended.heads)}
