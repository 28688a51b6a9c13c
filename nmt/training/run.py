"""A whole training run, from top to bottom."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.corpus.prepare import find_prepared_data, warn_of_changed_sources, warn_of_other_parent
from nmt.system.errors import ConfigError, RunInterrupted, as_nmt_errors, when_out_of_memory
from nmt.system.files import AnyPath
from nmt.system.messages import Parameter
from nmt.system.surroundings import plain_torch

if TYPE_CHECKING:
    from nmt.config import Config, Overrides
    from nmt.training.distributed import Workers
    from nmt.training.run_records import RunOutcome

log = logging.getLogger(__name__)


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
    from nmt.system.device import fixed_order, resolve_device, restored_products
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
        fixed_order(settings.train.deterministic),
        restored_products(),
    ):
        if workers.is_first:
            warn_of_changed_sources(config, overrides, settings, folder)
            warn_of_other_parent(settings, folder)
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
        resuming: True if the run has a checkpoint to continue from.
    """
    from nmt.corpus.dataset import open_data
    from nmt.corpus.noise import make_noise
    from nmt.text.direction import Direction
    from nmt.training import loop, setup
    from nmt.training.board import check_board
    from nmt.training.directory import RunDirectory
    from nmt.training.interruption import STOP, Interruptions
    from nmt.training.metrics_log import MetricsLog
    from nmt.training.resume import call_to_resume, resume_run
    from nmt.training.run_log import RunLog
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

    # What is written: the run directory by the first process, and what it tells.
    progress = state.progress
    metric = config.train.validation.metric
    metrics = MetricsLog(output, origin.run_seconds if origin else 0.0)
    directory = RunDirectory(output, config, data, state, metrics)
    run_log = RunLog(output, metrics, progress.update, state.total_updates)
    interruptions = Interruptions(config.train.checkpoint)
    is_first = workers.is_first
    with directory.opened(origin), run_log.opened(shown=is_first, board=config.train.tensorboard):
        pairs = f"{len(data.train):,} training pairs {Direction.of(config.data)}"
        where = f"{workers.size} times {workers.device.type}" if workers.size > 1 else str(workers.device)
        log.info(
            f"{directory.parameters:,} parameters, {pairs}, {state.total_updates:,} updates on {where} in "
            f"{config.train.precision}, into {output}"
        )

        # All processes validate, write checkpoints and stop together; the first one tells of it.
        with interruptions.by_signals():
            for event in loop.training_events(state, data.train, config, noise):
                match event:
                    case loop.Reported() if is_first:
                        run_log.reported(event)
                    case loop.Skipped() if is_first:
                        run_log.skipped(event)
                    case loop.ValidationDue():
                        scores = setup.validate(validator, state)
                        improved = scores is not None and loop.take_scores(state, scores, metric)
                        if is_first:
                            run_log.validated(event, scores, validator, improved=improved)
                            directory.save_models(scores, validator.signatures, improved=improved)
                            run_log.draw()
                    case loop.Updated():
                        asked = workers.agree(event.update, interruptions.due(event.update))
                        # While updates are skipped, earlier checkpoints must not be rotated out.
                        if asked == STOP or (asked and not state.last_skipped):
                            directory.save_checkpoint()
                            interruptions.done()
                        if asked == STOP:
                            directory.save_model_of_a_stop(validated=validator.is_unseen)
                            raise RunInterrupted(
                                "{run}: stopped at update {update}, nothing is lost; resume with: {call}",
                                run=output,
                                update=f"{event.update:,}",
                                call=call_to_resume(output, data.path),
                            )
                        if is_first:
                            run_log.updated()
                    case loop.Stopped() if is_first:
                        run_log.stopped(event)

        # All updates are done, or validation has not improved for too long.
        if not state.last_skipped:
            directory.save_checkpoint()
        loop.check_learnt(state, output, validated=validator.is_unseen)
    best = "" if progress.best is None else f", best {metric} {progress.best:.2f} at update {progress.best_update:,}"
    log.info(f"run directory: {output} ({progress.update:,} updates in {progress.seconds:.0f} s of training{best})")
    return RunOutcome(
        output, progress.update, progress.epoch, metric, progress.best, progress.best_update, progress.seconds
    )
