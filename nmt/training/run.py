"""Training a model on a data directory, into a run directory."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from nmt.config import Config, dump_config
from nmt.corpus.dataset import TEXT, DataDirectory, open_data
from nmt.corpus.noise import Noise, make_noise
from nmt.drawing.charts import draw_learning_curve
from nmt.evaluation.validator import Validator
from nmt.models.runs import BEST, MARKER, MODELS, Run, path_from, read_launch, read_state, write_state
from nmt.models.storage import MARKER as MODEL_MARKER
from nmt.models.storage import save_model
from nmt.system.device import describe_environment, resolve_device
from nmt.system.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    RunInterrupted,
    TrainingError,
    shorten,
    when_out_of_memory,
)
from nmt.system.files import append_text, check_file, naming, read_json, write_json, write_text
from nmt.system.limits import MIB
from nmt.system.outputs import RUN, check_directory
from nmt.system.progress import progress_bar
from nmt.system.replacement import clean_up, discard_earlier, locked, reading, replacing, set_aside
from nmt.training.board import FOLDER as BOARD
from nmt.training.board import check_board, open_board
from nmt.training.checkpoint import FOLDER as CHECKPOINTS
from nmt.training.checkpoint import (
    Checkpoint,
    clean_up_checkpoints,
    has_checkpoint,
    newest_checkpoint,
    without_checksum,
    write_checkpoint,
)
from nmt.training.distributed import Workers, join_workers, launch_id, was_restarted
from nmt.training.loop import Reported, Skipped, Started, Stopped, Updated, Validated, start, train
from nmt.training.ranking import rank
from nmt.training.requests import STOP, Requests, handling_signals
from nmt.training.resume import check_facts, command_to_resume, describe_changes
from nmt.training.run_text import check_text, check_written, copy_text
from nmt.training.setup import (
    choose_precision,
    describe_limits,
    make_model,
    make_validator,
    prepare,
    with_precision,
    with_text_of,
)
from nmt.training.state import TrainState, capture, restore
from nmt.training.watch import WATCHED, add_attention

log = logging.getLogger(__name__)

METRICS = "metrics.jsonl"
RUN_FILES = (
    MARKER,
    "config.yaml",
    "environment.json",
    METRICS,
    WATCHED,
    BOARD,
    BEST,
    MODELS,
    CHECKPOINTS,
    TEXT,
)
"""What a run directory may have."""


def train_run(
    config: Config,
    data_directory: Path,
    output: Path,
    *,
    overwrite: bool = False,
    resume: bool = False,
) -> Run:
    """Train a model into a self-contained run directory.

    The run directory has `run.json` (state and outcome), `config.yaml`, `environment.json`, `metrics.jsonl`,
    `learning_curve.png`, `checkpoints`, and `best`: the model directory of the best validation, or of the last update
    without validation.

    Args:
        config: The whole config; its text settings must be those of the data.
        data_directory: Data directory written by `nmt preprocess`.
        output: Run directory to write.
        overwrite: Replace an earlier run, which is deleted when the new one is finished.
        resume: Continue from the newest intact checkpoint in `output`, as if the run had never stopped; start a run if
            there is none.

    Returns:
        The outcome.

    Raises:
        RunInterrupted: The run was stopped by a signal and can be resumed.
        TrainingError: The run diverged, or learnt nothing.
        NmtError: The data, the config, the device or the output folder cannot be used.
    """
    if overwrite and resume:
        raise ConfigError("--overwrite starts a new run and --resume continues an earlier one: give only one of them")
    with join_workers(resolve_device(config.train.device)) as workers, contextlib.ExitStack() as held:

        def decide() -> bool:
            held.enter_context(locked(output))
            if read_state(output) == "finished":
                discard_earlier(output)
            held.enter_context(replacing(output))
            return _check_run(config, output, data_directory, overwrite, resume)

        if workers.is_first:
            held.enter_context(reading(data_directory, output))
        resuming = workers.decide_on_first(decide)
        run = _prepare_run(config, data_directory, output, resuming, workers)
        try:
            return run.resume() if resuming else run.begin()
        except TrainingError:
            if workers.is_first:
                raise
            raise TrainingError from None  # the first process shows the message
        except OSError as error:
            if (output / MARKER).exists():
                resume_with = f"resume with: {command_to_resume(output, data_directory)}"
                error.add_note(resume_with if has_checkpoint(output) else "run the command again with --overwrite")
            raise


def _check_run(config: Config, output: Path, data: Path, overwrite: bool, resume: bool) -> bool:
    """Whether there is something to resume; reject what must not be replaced or cannot be resumed.

    Raises:
        DataError: The folder contains something else, or a run that the user has to decide about.
    """
    state = read_state(output)
    resumable = has_checkpoint(output)
    parent = config.train.init_from
    needed = {"--data": data, "train.init_from": None if parent is None else Path(parent)}
    if resume or (was_restarted() and read_launch(output) == launch_id()):
        for name in RUN_FILES:
            check_file(output / name, output)
        if state is None and not resumable:
            check_directory(output, RUN, overwrite=False, needed=needed)
            log.info(f"{output}: no run to resume yet; starting one")
            return False
        if not resumable:
            if state == "finished":
                raise DataError(f"{output}: this run is finished and has no checkpoint to resume; use --overwrite")
            if state == "stopped" or len(without_checksum(output)) > 1:
                raise DataError(
                    f"{output}: its checkpoints, or their checksums (.sha256), are missing; restore them, or start "
                    "over with --overwrite"
                )
            log.info(f"{output}: no checkpoint yet; starting from scratch")
            check_directory(output, RUN, overwrite=True, needed=needed)
        return resumable
    if (resumable if state is None else state != "finished") and not overwrite:
        how = f"resume with: {command_to_resume(output, data)}; or" if resumable else "it has no checkpoint;"
        raise DataError(f"{output}: contains an unfinished run; {how} replace it with --overwrite")
    check_directory(output, RUN, overwrite=overwrite, needed=needed)
    return False


def _prepare_run(config: Config, data_directory: Path, output: Path, resume: bool, workers: Workers) -> _Run:
    check_board(config.train.tensorboard)
    data = open_data(data_directory)
    check_written(data, data.text)
    data.check_ids()
    config = with_text_of(config, data)
    prepare(config)
    run = output if resume else None
    precision = workers.decide_on_first(lambda: choose_precision(config, workers.device, run))
    config = with_precision(config, precision)
    noise = make_noise(config.train, data)
    with when_out_of_memory("lower the sizes under model"):
        model = make_model(config, data, resumed=resume).to(workers.device)
    if workers.rank:  # the same weights everywhere, but other random numbers
        torch.manual_seed(int(np.random.SeedSequence((config.train.seed, workers.rank)).generate_state(1)[0]))
    if limits := describe_limits(config, data):
        log.warning(limits)
    config, validator = make_validator(config, data, model)
    return _Run(config, data, noise, validator, start(model, data.train, config.train, workers), output)


@dataclass
class _Run:
    """One run: its inputs, its state and its output."""

    config: Config
    data: DataDirectory
    noise: Noise
    validator: Validator | None
    state: TrainState
    output: Path

    def __post_init__(self) -> None:
        self._writes = self.state.workers.is_first
        self._parameters = sum(parameter.numel() for parameter in self.state.model.parameters())
        self._begin = time.monotonic()
        self._last_checkpoint = -1

    def begin(self) -> Run:
        """Start a new run, replacing an existing one."""
        if self._writes:
            set_aside(self.output)
            self.output.resolve().mkdir(parents=True, exist_ok=True)
            self._describe()
            copy_text(self.config, self.data, self.output)
            append_text(self.output / METRICS, "")  # the learning curve reads it even if nothing is reported
        return self._train()

    def resume(self) -> Run:
        """Run the rest of the existing run."""
        checkpoint = newest_checkpoint(self.output)
        assert checkpoint is not None
        environment = describe_environment(self.state.workers.device)
        try:
            check_facts(checkpoint.facts)
            changes = describe_changes(checkpoint, self.config, self.data.checksums, environment)
        except (CheckpointError, ConfigError, DataError) as error:
            raise type(error)(f"{self.output}: {error}") from None
        update = checkpoint.facts["progress"]["update"]
        for line in changes:
            log.info(f"{self.output}: {line}")
        later = _saved_number(self.output / BEST, "update")
        if changes and later is not None and later > update:
            log.info(f"{self.output / BEST}: is of update {later:,.0f}, before the change, until there is a better one")
        try:
            as_before = restore(self.state, checkpoint)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            reason = shorten(f"{type(error).__name__}: {error}")
            raise CheckpointError(f"{self.output}: its checkpoint does not match the config ({reason})") from None
        if not as_before:
            log.info(f"{self.output}: resumed on other processes or devices: the rest will use other random numbers")
        self._begin -= checkpoint.facts["run_seconds"]
        self._last_checkpoint = update
        if self._writes:
            clean_up_checkpoints(self.output, update)
            self._clean_up_models(update)
            check_text(self.config, self.data, self.output)
            self._cut_metrics(checkpoint.facts["metrics_size"])
            self._describe()
        progress = self.state.progress
        log.info(f"{self.output}: resumed at update {update:,}, epoch {progress.epoch}")
        return self._train()

    def _clean_up_models(self, update: int) -> None:
        """Clean up after a killed process, and delete models of updates that will be repeated."""
        for folder in (self.output, self.output / MODELS):
            clean_up(folder)
        for path in (self.output / MODELS).glob("update-*"):
            if path.name > f"update-{update:09d}":
                shutil.rmtree(path)

    def _describe(self) -> None:
        self._write_state("running")
        write_text(self.output / "config.yaml", dump_config(self.config))
        write_json(self.output / "environment.json", describe_environment(self.state.workers.device))

    def _cut_metrics(self, size: int) -> None:
        """Remove from the log what will be logged again."""
        path = self.output / METRICS
        with naming(path), path.open("a+b") as file:
            there = file.tell()
            if there < size:
                log.warning(f"{path}: is shorter than at the checkpoint; some lines are lost")
            elif size and not _ends_in_entry(file, size):
                log.warning(f"{path}: has changed since the checkpoint; some lines are damaged or lost")
            file.truncate(min(size, there))

    def _write_state(self, state: str, **facts: Any) -> None:
        progress = self.state.progress
        summary = {
            "launch": launch_id(),
            "parameters": self._parameters,
            "updates": progress.update,
            "updates_per_epoch": self.state.updates_per_epoch,
            "total_updates": self.state.total_updates,
            "epochs": progress.epoch,
            "tokens": progress.tokens,
            "metric": self.config.train.validation.metric,
            "best": progress.best,
            "best_update": progress.best_update,
            "training_seconds": round(progress.seconds, 2),
            "total_seconds": round(time.monotonic() - self._begin, 2),
            "tokens_per_second": round(progress.tokens / progress.seconds, 1) if progress.seconds else None,
        }
        write_state(self.output, state, **facts, **summary)

    def _train(self) -> Run:
        """Train to the end, or until asked to stop, and record the outcome."""
        workers = self.state.workers
        where = f"{workers.size} times {workers.device.type}" if workers.size > 1 else str(workers.device)
        log.info(
            f"{self._parameters:,} parameters, {len(self.data.train):,} training pairs, on {where}, into {self.output}"
        )
        try:
            wanted = self.config.train.tensorboard and self._writes
            with open_board(self.output, self.state.progress.update, wanted=wanted) as self._board:
                finished = self._run_loop()
        except BaseException as error:
            failed = isinstance(error, TrainingError)
            if self._writes:
                with contextlib.suppress(OSError):
                    self._write_state("broken", reason=str(error) or type(error).__name__)
            elif failed:
                raise TrainingError from None  # the first process shows the message
            raise
        if self._writes:
            self._write_state("finished" if finished else "stopped")
        progress = self.state.progress
        if not finished:
            raise RunInterrupted(
                ""
                if not self._writes
                else f"{self.output}: stopped at update {progress.update:,}, nothing is lost; resume with: "
                f"{command_to_resume(self.output, self.data.path)}"
            )
        metric = self.config.train.validation.metric
        best = (
            "" if progress.best is None else f", best {metric} {progress.best:.2f} at update {progress.best_update:,}"
        )
        done = f"{progress.update:,} updates in {progress.seconds:.0f} s of training"
        log.info(f"run directory: {self.output} ({done}{best})")
        return Run(
            self.output,
            updates=progress.update,
            epochs=progress.epoch,
            metric=metric,
            best=progress.best,
            best_update=progress.best_update,
            seconds=progress.seconds,
        )

    def _run_loop(self) -> bool:
        """Run the loop; log, save and show its events. Returns whether it finished."""
        workers, validator = self.state.workers, self.validator
        requests = Requests(self.config.train.checkpoint)

        def validate() -> dict[str, float]:
            assert validator is not None
            with self.state.average.applied(), when_out_of_memory("lower decode.batch_size or the sizes under model"):
                scores = validator.validate(self.state.model) if workers.is_first else None
            shared: dict[str, float] = workers.broadcast(scores)
            return shared

        with (
            handling_signals(requests),
            progress_bar(unit=" updates", shown=self._writes, dynamic_ncols=True) as bar,
        ):
            for event in train(self.state, self.data.train, self.config, validate if validator else None, self.noise):
                match event:
                    case Started():
                        bar.total, bar.initial = event.total_updates, event.update
                        bar.update(event.update - bar.n)
                        bar.refresh()
                    case Reported():
                        self._log("train", vars(event))
                        bar.set_postfix_str(
                            f"epoch {event.epoch}, loss {event.loss:z.3f}, {event.tokens_per_second:,.0f} tok/s"
                        )
                    case Skipped():
                        self._log("skipped", vars(event))
                        log.warning(f"update {event.update}: skipped, its loss or gradient was not finite")
                    case Validated():
                        self._log("valid", {**vars(event), "scores": None, **event.scores})
                        self._show(event)
                        if self._writes:
                            self._keep(event)
                            self._draw()
                            self._watch(event.update)
                    case Updated():
                        bar.update()
                        asked = workers.agree(event.update, requests.due(event.update))
                        # While updates are skipped, earlier checkpoints must not be rotated out.
                        if asked == STOP or (asked and not self.state.last_skipped):
                            self._checkpoint()
                            requests.done()
                        if asked == STOP:
                            return False
                    case Stopped():
                        more = "; to continue, raise train.epochs, train.max_updates or train.validation.patience"
                        advice = more if event.update == bar.initial else ""
                        log.info(f"stopped at update {event.update:,}: {event.reason}{advice}")
        if not self.state.last_skipped:  # as above
            self._checkpoint()
        self._check_outcome()
        if validator is None and self._writes:
            self._save(self.output / BEST, {})
            self._draw()
        return True

    def _check_outcome(self) -> None:
        """Check that a finished run has learnt something.

        Without validation it suffices that the last update was not skipped: its loss was finite.

        Raises:
            TrainingError: It has not.
        """
        progress, model = self.state.progress, self.state.model
        advice = "lower train.optimizer.learning_rate"
        if progress.skipped_in_row:
            updates = f"{progress.skipped_in_row:,} update{'s' if progress.skipped_in_row > 1 else ''}"
            what = f"ended with {updates} skipped, as loss or gradient was not finite"
            advice += " or set train.optimizer.clip_norm"
        elif self.validator and not progress.learnt:
            what = (
                f"learnt nothing: no validation had a loss below {model.uniform_loss:.2f}, that of uniform guessing "
                f"among {model.decoder.output.out_features:,} target words"
            )
            advice += " or train for more updates"
        else:
            return
        raise TrainingError(f"{self.output}: {what}; {advice}")

    def _show(self, event: Validated) -> None:
        values = ", ".join(
            f"{name} {value:{'.2f' if abs(value) < 1e6 else '.3g'}}" for name, value in event.scores.items()
        )
        log.info(f"epoch {event.epoch}, update {event.update}: {values}{' (best)' if event.improved else ''}")
        if self.validator and self.validator.sample:
            source, translation, reference = self.validator.sample
            self._board.add_sample(event.update, source, translation, reference)
            for line in (source, f"-> {translation}", f"== {reference}"):
                log.info(f"    {line}")

    def _watch(self, update: int) -> None:
        if self.validator and self.validator.attention:
            add_attention(self.output, update, self.validator.watched, self.validator.attention)
            self._board.add_attention(update, self.validator.attention)

    def _keep(self, event: Validated) -> None:
        """Save the model if it is the best so far, or among the best ones to keep."""
        scores = dict(event.scores)
        if event.improved:
            self._save(self.output / BEST, scores)
        self._write_state("running")
        if self.config.train.checkpoint.keep_best > 1:
            self._keep_among_the_best(event)

    def _keep_among_the_best(self, event: Validated) -> None:
        """Save the model in `RUN/models` if it is one of the best, and delete those that no longer are."""
        scores, metric = dict(event.scores), self.config.train.validation.metric
        kept = self.config.train.checkpoint.keep_best
        place = self.output / MODELS / f"update-{event.update:09d}"
        ranks = {path: _rank_of(path, metric) for path in place.parent.glob("update-*") if path.name < place.name}
        if all(map(math.isfinite, scores.values())):
            ranks[place] = rank(metric, scores[metric], scores["loss"])
        # Of equal ones the earlier ones stay, as for the best model.
        best = sorted(sorted(ranks), key=lambda path: ranks[path], reverse=True)[:kept]
        if place in best:
            self._save(place, scores)
        for path in set(ranks) - set(best):
            shutil.rmtree(path, ignore_errors=True)

    def _save(self, directory: Path, scores: dict[str, float]) -> None:
        facts = {
            "update": self.state.progress.update,
            "epoch": self.state.progress.epoch,
            "scores": scores,
            "signatures": dict(self.validator.signatures) if self.validator else {},
            "data": {
                "identity": self.data.checksum,
                "path": path_from(self.output, self.data.path),
                "pairs": len(self.data.train),
            },
        }
        with self.state.average.applied():
            save_model(directory, self.config, self.state.model, self.output / TEXT, facts)

    def _checkpoint(self) -> None:
        """Write a checkpoint of the current state, unless there already is one."""
        update = self.state.progress.update
        if update == self._last_checkpoint:
            return
        captured = capture(self.state)
        if self._writes:
            path = self.output / METRICS
            with naming(path), path.open("rb") as file:
                os.fsync(file.fileno())
                size = file.seek(0, os.SEEK_END)
            facts = {
                **captured.facts,
                "config": dump_config(self.config),
                "data": dict(self.data.checksums),
                "environment": describe_environment(self.state.workers.device),
                "metrics_size": size,
                "run_seconds": time.monotonic() - self._begin,
            }
            keep = self.config.train.checkpoint.keep_last
            write_checkpoint(self.output, update, Checkpoint(captured.tensors, facts), keep)
            self._write_state("running")
        self._last_checkpoint = update

    def _draw(self) -> None:
        with naming(self.output / "learning_curve.png"):
            draw_learning_curve(self.output)

    def _log(self, kind: str, values: dict[str, Any]) -> None:
        """Append one JSON object to `metrics.jsonl`, without values that are not finite."""
        if not self._writes:
            return
        kept = {
            key: (float(f"{value:.7g}") if isinstance(value, float) else value)
            for key, value in values.items()
            if value is not None and not (isinstance(value, float) and not math.isfinite(value))
        }
        line = {"kind": kind, "seconds": round(time.monotonic() - self._begin, 2), **kept}
        append_text(self.output / METRICS, json.dumps(line) + "\n")
        self._board.add_values(kind, line)


def _ends_in_entry(log: BinaryIO, size: int) -> bool:
    """Whether the first `size` bytes of a log end in a complete line that is a JSON object."""
    log.seek(max(0, size - MIB))
    tail = log.read(min(size, MIB))
    try:
        return tail.endswith(b"\n") and isinstance(json.loads(tail[:-1].rpartition(b"\n")[2]), dict)
    except (ValueError, RecursionError):
        return False


def _rank_of(model: Path, metric: str) -> tuple[float, float]:
    """The rank of a saved model; a damaged one is the worst."""
    value = _saved_number(model, "scores", metric)
    if value is None:
        return -math.inf, -math.inf
    return rank(metric, value, _saved_number(model, "scores", "loss"))


def _saved_number(model: Path, *keys: str) -> float | None:
    """A number nested in the facts of a saved model; None if it cannot be read."""
    try:
        value = read_json(model / MODEL_MARKER)
        for key in keys:
            value = value[key]
        return float(value)
    except (DataError, OSError, ValueError, KeyError, TypeError):
        return None
