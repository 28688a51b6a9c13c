"""One cell of a comparison: training, evaluation and everything that is measured of them."""

from __future__ import annotations

import contextlib
import datetime
import logging
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nmt.comparison.plan import CELL, CONFIG, FORMAT_VERSION, read_cell, read_facts
from nmt.config import Config, read_config
from nmt.corpus.splitting import Example
from nmt.drawing.charts import read_metrics
from nmt.evaluation.attention_statistics import LengthAttention, mean_sharpness
from nmt.evaluation.breakdown import LengthScore, bleu_by_length
from nmt.evaluation.input_text import read_split
from nmt.evaluation.long_inputs import LENGTHS, MOST, measure_long_inputs
from nmt.evaluation.metrics import ScoringRules
from nmt.evaluation.model_evaluation import EvaluationFiles, ModelEvaluation, evaluate_model
from nmt.models.configs import load_config
from nmt.system.errors import DataError, NmtError, RunInterrupted, as_nmt_errors
from nmt.system.files import read_json, write_json, write_text
from nmt.system.limits import MIB
from nmt.system.memory import peak_memory
from nmt.system.progress import progress_bar
from nmt.system.replacement import locked
from nmt.system.version import __version__
from nmt.training.run import METRICS, train_run
from nmt.training.timing import measure_updates
from nmt.translation.translate import open_translator, within_memory
from nmt.translation.translator import Translator

log = logging.getLogger(__name__)

RUN = "run"
BUDGET = "budget.json"
TRAINING = "training.json"
RESULT = "result.json"
FAILURE = "failure.txt"
HYPOTHESES, REFERENCES = "hypotheses.txt", "references.txt"
ATTEMPTS = 5
TRAINING_KEYS = (
    *("parameters", "updates", "epochs", "tokens", "training_seconds", "total_seconds", "tokens_per_second"),
    *("peak_mib", "precision", "curve"),
)
RESULT_KEYS = (
    *("format_version", "name", "seed", "split", "sentences", "beam_size", "scores", "diagnosis", "teacher_forced"),
    *("attention", "sentences_per_second", "lengths", "finished", *TRAINING_KEYS),
)
TIMED = 1000
"""Sentences of which the speed of translation is measured."""


def run_cell(folder: Path) -> dict[str, Any]:
    """Train and evaluate a cell, or what of it is not done yet.

    Args:
        folder: The folder of the cell, written by `nmt compare`.

    Returns:
        Its result, which is also stored in `result.json`.

    Raises:
        RunInterrupted: Training was stopped by a signal; the next call resumes it.
        NmtError: The folder is not that of a cell, is in use, or the cell cannot be trained or evaluated.
    """
    if not (folder / CELL).is_file():
        raise DataError(f"{folder}: is not the folder of a cell (no {CELL}); nmt compare creates them")
    with _locked(folder):
        (folder / FAILURE).unlink(missing_ok=True)
        if (folder / RESULT).exists():
            return read_result(folder)
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


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a cell; tried several times, as `nmt compare` tries the lock itself to see whether a cell is at work."""
    with contextlib.ExitStack() as held:
        for attempt in range(ATTEMPTS):
            try:
                held.enter_context(locked(folder))
                break
            except DataError:
                if attempt == ATTEMPTS - 1:
                    raise
                time.sleep(0.2)
        yield


def read_result(folder: Path) -> dict[str, Any]:
    """The result of a cell.

    Raises:
        DataError: It is missing, damaged or of another version.
    """
    return read_facts(folder / RESULT, RESULT_KEYS)


def _run(folder: Path) -> dict[str, Any]:
    facts = read_cell(folder)
    data, config = (folder / facts["data"]).resolve(), read_config(folder / CONFIG)
    if not (folder / TRAINING).exists():
        config = _within_budget(config, data, facts["budget_minutes"], folder)
        train_run(config, data, folder / RUN, resume=True)
        write_json(folder / TRAINING, _describe_training(folder / RUN))
    training = read_facts(folder / TRAINING, TRAINING_KEYS)
    allowed = [config.model.attention.score]  # trusted, as the user's own config names it
    models, translator = open_translator([folder / RUN], config.train.device, {}, allowed)
    examples = read_split(data, facts["split"])
    files = EvaluationFiles(hypotheses=folder / HYPOTHESES, references=folder / REFERENCES)
    found = evaluate_model(models, translator, examples, what=facts["split"], files=files, attention=True)
    rules = ScoringRules.for_text(models[0].config.text, models[0].config.data.languages[1])
    return {
        "format_version": FORMAT_VERSION,
        **{key: facts[key] for key in ("name", "seed", "settings", "budget_minutes", "split")},
        "config": config.name,
        "system": f"nmt {__version__}",
        "finished": datetime.datetime.now(datetime.UTC).date().isoformat(),
        **training,
        **_describe_evaluation(found),
        "sentences_per_second": _measure_speed(translator, examples),
        "lengths": _describe_lengths(found, examples, translator, rules),
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
    budget = read_facts(folder / BUDGET, ("updates", "updates_per_epoch"))
    epochs = math.ceil(budget["updates"] / budget["updates_per_epoch"])
    return load_config(config, [f"train.epochs={epochs}", f"train.max_updates={budget['updates']}"])


def _describe_training(run: Path) -> dict[str, Any]:
    state, environment = read_json(run / "run.json"), read_json(run / "environment.json")
    trained = read_config(run / "config.yaml")
    curve = [
        {key: entry[key] for key in ("update", "seconds", "loss", "bleu") if key in entry}
        for entry in read_metrics((run / METRICS).read_bytes())
        if entry["kind"] == "valid"
    ]
    return {
        "precision": trained.train.precision,
        "environment": environment,
        "parameters": state["parameters"],
        "updates": state["updates"],
        "epochs": round(state["updates"] / state["updates_per_epoch"], 2),
        "tokens": state["tokens"],
        "training_seconds": state["training_seconds"],
        "total_seconds": state["total_seconds"],
        "tokens_per_second": state["tokens_per_second"],
        "peak_mib": round(peak_memory() / MIB),
        "best_update": state["best_update"],
        "curve": curve,
    }


def _describe_evaluation(found: ModelEvaluation) -> dict[str, Any]:
    kept = ("sentences", "references", "beam_size", "length_penalty", "scores", "diagnosis", "warnings")
    values = found.as_json()
    return {key: values[key] for key in (*kept, "teacher_forced", "free_running", "attention")}


def _measure_speed(translator: Translator, examples: Sequence[Example]) -> float:
    """Sentences translated per second, without the attention weights that evaluation records."""
    sources = [example.src for example in examples[:TIMED]]
    with (
        progress_bar(total=len(sources), unit=" sentences", desc="timing translation", leave=False) as bar,
        within_memory(translator.options, len(sources)),
    ):
        begin = time.perf_counter()
        translator.translate(sources, advance=bar.update)
        return round(len(sources) / (time.perf_counter() - begin), 1)


def _describe_lengths(
    found: ModelEvaluation, examples: Sequence[Example], translator: Translator, rules: ScoringRules
) -> list[dict[str, Any]]:
    """BLEU and attention by source length, and BLEU of joined inputs."""
    with (
        progress_bar(total=MOST * len(LENGTHS), unit=" inputs", desc="translating long inputs", leave=False) as bar,
        within_memory(translator.options, MOST),
    ):
        scores, attention = measure_long_inputs(translator, examples, rules, bar.update)
    return [
        *_rows(bleu_by_length(examples, found.hypotheses, rules), found.attention_by_length, joined=False),
        *_rows(scores, attention, joined=True),
    ]


def _rows(
    scores: Sequence[LengthScore], attention: Sequence[LengthAttention], *, joined: bool
) -> Iterator[dict[str, Any]]:
    for score, attended in zip(scores, attention, strict=True):
        entropy, maximum = mean_sharpness(attended.heads) or (None, None)
        yield {**vars(score), "joined": joined, "entropy": entropy, "maximum": maximum}
