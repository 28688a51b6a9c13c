"""A whole training run, from top to bottom."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.corpus.prepare import find_prepared_data
from nmt.system.errors import ConfigError, RunInterrupted, as_nmt_errors, when_out_of_memory
from nmt.system.files import AnyPath
from nmt.system.messages import Parameter
from nmt.system.surroundings import plain_torch

if TYPE_CHECKING:
    from nmt.config import Config, Overrides
    from nmt.evaluation.validator import Validator
    from nmt.training.board import Board
    from nmt.training.distributed import Workers
    from nmt.training.loop import Validated
    from nmt.training.run_records import RunOutcome

log = logging.getLogger(__name__)

BAR = "{percentage:3.0f}%|{bar:12}| {n_fmt}/{total_fmt}, {remaining} left{postfix}"
"""Progress of a run at a terminal, of a width that does not change; it fits 80 columns."""


@as_nmt_errors()
@plain_torch()
def train(
    config: str | Path | Config,
    *,
    data: AnyPath | None = None,
    output: AnyPath | None = None,
    overrides: Overrides = (),
    overwrite: bool = False,
    resume: bool = False,
) -> RunOutcome:
    """Train a model; the best one is stored in RUN/best.

    Ctrl-C, SIGTERM and a closed terminal stop it after a checkpoint, with exit code 75; --resume continues from there.
    SIGUSR1 writes a checkpoint. For several processes: torchrun --nproc-per-node N -m nmt train ...

    Example: nmt train --config tatoeba_small --set model.attention.score=additive --output runs/additive

    Args:
        config: Name of a shipped config, path of a YAML file, or a config.
        data: Data directory; None is the one nmt preprocess writes for this config.
        output: Run directory to write; None is runs/NAME.
        overrides: Values in place of the config's: `{"train.epochs": 3}` or `["train.epochs=3"]`.
        overwrite: Replace an earlier run.
        resume: Continue the run in `output` as if it had never stopped; start one if there is none.

    Raises:
        RunInterrupted: The run was stopped by a signal and can be resumed.
        TrainingError: The run diverged, or learnt nothing.
        NmtError: The config, the data, the device or the output folder cannot be used.

    Note:
        Seeds torch's random number generator. Signals are handled in the main thread, while training.
    """
    from nmt.system.device import resolve_device
    from nmt.training.directory import claimed
    from nmt.training.distributed import join_workers

    if overwrite and resume:
        raise ConfigError(
            "{overwrite} starts a new run and {resume} continues an earlier one: give only one of them",
            overwrite=Parameter("overwrite", True),
            resume=Parameter("resume", True),
        )
    settings, folder = find_prepared_data(config, overrides, data)
    run = settings.run_directory if output is None else Path(output)
    with (
        join_workers(resolve_device(settings.train.device)) as workers,
        claimed(run, settings, folder, workers, overwrite=overwrite, resume=resume) as resuming,
    ):
        return _train(settings, folder, run, workers, resuming=resuming)


def _train(config: Config, data_directory: Path, output: Path, workers: Workers, *, resuming: bool) -> RunOutcome:
    """Train a run from its beginning or its newest checkpoint to its end.

    The run directory has `run.json` (state and outcome), `config.yaml`, `environment.json`, `metrics.jsonl`,
    `learning_curve.png`, `checkpoints`, and `best`: the model directory of the best validation, or without
    validation of the last one that was due, or of the update at which the run was stopped.

    Args:
        config: The whole config; its text settings must be those of the data.
        data_directory: Data directory.
        output: Run directory, which no other command uses.
        workers: The processes of the run.
        resuming: Whether the run has a checkpoint to continue from.
    """
    from nmt.corpus.dataset import open_data
    from nmt.corpus.noise import make_noise
    from nmt.drawing.charts import LearningCurve
    from nmt.models.location import BEST
    from nmt.system.progress import ProgressLog, progress_bar
    from nmt.text.direction import Direction
    from nmt.training import loop, setup
    from nmt.training.board import FOLDER as BOARD
    from nmt.training.board import Board, check_board
    from nmt.training.directory import RunDirectory
    from nmt.training.interruption import STOP, Interruptions
    from nmt.training.live_page import following
    from nmt.training.metrics_log import MetricsLog
    from nmt.training.resume import call_to_resume, resume_run
    from nmt.training.run_records import RunOutcome
    from nmt.training.text_files import check_text

    # What is learnt from, and all that the config leaves open.
    check_board(config.train.tensorboard)
    data = open_data(data_directory)
    check_text(data.text, data.checksums, "preprocess again")
    data.check_ids()
    config = setup.resolve(config, data, workers, output if resuming else None)
    noise = make_noise(config.train, data)

    # What learns: model, optimiser, schedule, progress. A resumed run takes them from its newest checkpoint.
    notes: list[str] = []  # of a run that may be refused yet
    warnings: list[str] = []
    with when_out_of_memory("lower the sizes under model"):
        model = setup.make_model(config, data, resumed=resuming, say=notes.append).to(workers.device)
    workers.seed(config.train.seed)
    state = loop.start(model, data.train, config.train, workers)
    config, validator = setup.make_validator(config, data, state.result, warn=warnings.append)
    if workers.is_first and not resuming:
        parent = config.parent.run
        log.info(f"{output}: begins from {'new weights' if parent is None else f'the weights of {parent}'}")
    for note in notes:
        log.info(note)
    for warning in warnings:
        log.warning(warning)
    origin = resume_run(output, state, config, data) if resuming else None

    # What is written.
    metrics = MetricsLog(output, origin.run_seconds if origin else 0.0)
    directory = RunDirectory(output, config, data, state, metrics)
    board_folder = output / BOARD if config.train.tensorboard and workers.is_first else None
    interruptions = Interruptions(config.train.checkpoint)

    with (
        directory.opened(origin),
        following(output) if workers.is_first else contextlib.nullcontext(),
        contextlib.closing(Board(board_folder, state.progress.update)) as board,
        contextlib.closing(LearningCurve(output)) as curve,
    ):
        where = f"{workers.size} times {workers.device.type}" if workers.size > 1 else str(workers.device)
        total, before = state.total_updates, state.progress.update
        pairs = f"{len(data.train):,} training pairs {Direction.of(config.data)}"
        where += f" in {config.train.precision}"
        log.info(f"{directory.parameters:,} parameters, {pairs}, {total:,} updates on {where}, into {output}")
        lines = ProgressLog("update", total, before)
        style = {"bar_format": BAR, "dynamic_ncols": True, "smoothing": 0}
        bars = progress_bar(total=total, initial=before, shown=workers.is_first, **style)
        losses = []  # of the reports since the last validation
        with interruptions.by_signals(), bars as bar:
            for event in loop.training_events(state, data.train, config, noise):
                # All processes take part in validation, checkpoints and stops.
                match event:
                    case loop.ValidationDue():
                        event.scores = setup.validate(validator, state)
                    case loop.Updated():
                        asked = workers.agree(event.update, interruptions.due(event.update))
                        # While updates are skipped, earlier checkpoints must not be rotated out.
                        if asked == STOP or (asked and not state.last_skipped):
                            directory.save_checkpoint()
                            interruptions.done()
                        if asked == STOP:
                            if workers.is_first and not (validator.is_unseen or state.last_skipped):
                                directory.save_model(output / BEST, {}, {})
                            if not workers.is_first:
                                raise RunInterrupted("")
                            raise RunInterrupted(
                                "{run}: stopped at update {update}, nothing is lost; resume with: {call}",
                                run=output,
                                update=f"{event.update:,}",
                                call=call_to_resume(output, data.path),
                            )
                if not workers.is_first:
                    continue

                # The first process logs, stores the best model and draws.
                match event:
                    case loop.Reported():
                        board.add_values(metrics.write("train", vars(event)))
                        losses.append(event.loss)
                        measures = f"loss {event.loss:z.3f}, {event.tokens_per_second:,.0f} tokens/s"
                        bar.set_postfix_str(measures)
                        if bar.disable:
                            lines.report(event.update, metrics.seconds, measures)
                    case loop.Skipped():
                        board.add_values(metrics.write("skipped", vars(event)))
                        log.warning(f"update {event.update}: skipped, its loss or gradient was not finite")
                    case loop.ValidationDue(scores=None):
                        loss = sum(losses) / len(losses)
                        log.info(f"epoch {event.epoch}, update {event.update}: training loss {loss:z.2f}")
                        losses.clear()
                        _show_sentences(validator, event.update, output, board)
                        if not state.last_skipped:  # as above
                            directory.save_model(output / BEST, {}, {})
                        directory.record("running")
                        curve.update()
                    case loop.Validated():
                        losses.clear()
                        board.add_values(metrics.write("valid", {**vars(event), "scores": None, **event.scores}))
                        log.info(_describe_validation(event))
                        _show_sentences(validator, event.update, output, board)
                        if event.improved:
                            directory.save_model(output / BEST, event.scores, validator.signatures)
                        directory.record("running")
                        directory.keep_model(event.scores, validator.signatures)
                        curve.update()
                    case loop.Updated():
                        bar.update()
                    case loop.Stopped():
                        advice = "; to continue, raise train.epochs, train.max_updates or train.validation.patience"
                        what = f"stopped at update {event.update:,}: {event.reason}"
                        log.info(what + (advice if event.update == before else ""))

        # All updates are done, or validation has not improved for too long.
        if not state.last_skipped:  # as above
            directory.save_checkpoint()
        loop.check_learnt(state, output, validated=validator.is_unseen)
    progress, metric = state.progress, config.train.validation.metric
    best = "" if progress.best is None else f", best {metric} {progress.best:.2f} at update {progress.best_update:,}"
    log.info(f"run directory: {output} ({progress.update:,} updates in {progress.seconds:.0f} s of training{best})")
    counts = progress.update, progress.epoch
    return RunOutcome(output, *counts, metric, progress.best, progress.best_update, progress.seconds)


def _describe_validation(event: Validated) -> str:
    values = ", ".join(f"{name} {value:{'.2f' if abs(value) < 1e6 else '.3g'}}" for name, value in event.scores.items())
    return f"epoch {event.epoch}, update {event.update}: {values}{' (best)' if event.improved else ''}"


def _show_sentences(validator: Validator, update: int, output: Path, board: Board) -> None:
    """Show one sentence of a validation with its translation, and store the attention of those that are watched."""
    from nmt.training.attention_history import add_attention
    from nmt.training.live_page import PAGE

    if validator.sample:
        source, translation, reference = validator.sample
        board.add_sample(update, source, translation, reference)
        for line in (source, f"-> {translation}", f"== {reference}"):
            log.info(f"    {line}")
    if validator.attention:
        if not (output / PAGE).exists():
            log.info(f"live page: {output / PAGE}")
        add_attention(output, update, validator.watched, validator.attention)
        board.add_attention(update, validator.attention)
