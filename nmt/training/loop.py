"""The training loop: a generator of events; its caller validates, logs, saves and draws."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.config import Config, TrainSection
from nmt.corpus.batch_source import AHEAD, BatchSource, make_ahead, open_batches
from nmt.corpus.batching import Batch, epoch_generator, plan_batches
from nmt.corpus.dataset import EncodedPairs
from nmt.corpus.noise import Noise, no_noise
from nmt.models.seq2seq import Seq2Seq
from nmt.system.device import autocast
from nmt.system.errors import TrainingError, when_out_of_memory
from nmt.training.checkpoint_schema import Progress
from nmt.training.consistency import with_consistency
from nmt.training.distributed import SINGLE, Workers
from nmt.training.loss_scale import NoLossScale, make_loss_scale
from nmt.training.optimizers import make_optimizer, update_weights
from nmt.training.ranking import is_at_floor, rank
from nmt.training.schedules import LearningRateSchedule, draw_choices
from nmt.training.state import Model, TrainState, average_weights
from nmt.training.update_graph import PaddedTask, Shapes, UpdateGraphs, make_recorder

Scores = Mapping[str, float]
LESS_MEMORY = "lower train.batch.size or the sizes under model"
"""How a training needs less memory."""
UNSCALED = NoLossScale()


@dataclass
class Event:
    """Something that happens in a run: after so many updates, in an epoch that counts from 1."""

    update: int
    epoch: int


@dataclass
class Reported(Event):
    """Means since the last report, without skipped updates."""

    loss: float
    gradient_norm: float
    learning_rate: float
    tokens_per_second: float


@dataclass
class Skipped(Event):
    """An update was skipped, as its loss or gradient was not finite; yielded at the next report."""


@dataclass
class ValidationDue(Event):
    """The model is to be validated; the caller gives its scores to `take_scores` before it goes on."""


@dataclass
class Updated(Event):
    """One update is over, after its other events: a checkpoint may be written here."""


@dataclass
class Stopped(Event):
    """The run is over."""

    reason: str


class Step(NamedTuple):
    """Result of one update; scalars on the model's device.

    Attributes:
        loss: Summed loss of this process's part.
        norm: Gradient norm before clipping.
        tokens: Target tokens of all processes.
        skipped: 1 if a loss or the gradient was not finite and nothing was updated, otherwise 0.
    """

    loss: Tensor
    norm: Tensor
    tokens: Tensor
    skipped: Tensor


def train_step(
    model: nn.Module,
    batches: Sequence[Batch],
    optimizer: torch.optim.Optimizer,
    config: TrainSection,
    update: int,
    workers: Workers = SINGLE,
    scale: NoLossScale = UNSCALED,
    tokens: Tensor | None = None,
) -> Step:
    """Update from one or more batches; the gradient is that of the mean over all their tokens in all processes.

    Args:
        model: In training mode; the result of `Workers.replicate`, given a model or the result of `with_consistency`.
        batches: Batches whose gradients are accumulated, this process's part of each.
        optimizer: From `make_optimizer`, with the learning rate already set.
        config: Loss, precision and clipping.
        update: Number of updates so far.
        workers: The processes that train the model.
        scale: Scaling of the loss, from `make_loss_scale`.
        tokens: Target tokens of all processes; None counts the positions of the batches.
    """
    device = optimizer.param_groups[0]["params"][0].device
    if tokens is None:
        tokens = workers.total(torch.full((), sum(batch.num_tokens for batch in batches), device=device))
    total = torch.zeros((), device=device)
    for number, batch in enumerate(batches, 1):
        on_device = batch.to(device)
        choose = draw_choices(config.teacher_forcing, update, on_device.tgt_in)
        with workers.synchronized(model, last=number == len(batches)):
            with autocast(device, config.precision):
                loss: Tensor = model(on_device, choose, config.label_smoothing)
            scale.scaled(loss).backward()  # type: ignore[no-untyped-call]
        total += loss.detach()
    bad_losses = workers.total((~total.isfinite()).float())
    divisor = tokens / workers.size  # the gradients are of a sum over tokens and a mean over processes
    norm, skipped = update_weights(optimizer, scale.scaled_divisor(divisor), config.optimizer.clip_norm, bad_losses)
    scale.update(skipped)
    return Step(total, norm, tokens, skipped)


Update = Callable[[Sequence[Batch], int], Step]
"""Updates a model from one or more batches, after a number of updates."""


def make_update(
    learner: nn.Module,
    optimizer: torch.optim.Optimizer,
    options: TrainSection,
    workers: Workers = SINGLE,
    scale: NoLossScale = UNSCALED,
) -> Update:
    """What a loop calls for each update: `train_step`, or recordings of it for padded batches if `graphs` is true.

    Args:
        learner: See `train_step`.
        optimizer: See `train_step`.
        options: The train section of the config.
        workers: See `train_step`.
        scale: See `train_step`.
    """

    def update(batches: Sequence[Batch], number: int) -> Step:
        return train_step(learner, batches, optimizer, options, number, workers, scale)

    if options.graphs is not True:
        return update
    assert isinstance(learner, Seq2Seq)  # the config is checked
    task = PaddedTask(learner)

    def padded_update(batch: Batch, tokens: Tensor) -> Step:
        return train_step(task, [batch], optimizer, options, 0, workers, scale, tokens)

    shapes = Shapes(learner.encoder.max_length, learner.decoder.max_length)
    graphs = UpdateGraphs(padded_update, optimizer, shapes, make_recorder(learner.device))

    def graphed_update(batches: Sequence[Batch], number: int) -> Step:
        (batch,) = batches
        return Step(*graphs(batch))

    return graphed_update


def start(model: Model, pairs: EncodedPairs, options: TrainSection, workers: Workers = SINGLE) -> TrainState[Model]:
    """The initial state of a run.

    Args:
        model: On its device.
        pairs: Training pairs.
        options: The train section of the config.
        workers: The processes that train it.
    """
    updates_per_epoch = count_epoch_updates(pairs, options)
    total = count_updates(options, updates_per_epoch)
    optimizer = make_optimizer(options.optimizer, model)
    rate = LearningRateSchedule(options.schedule, total)
    average = None if options.ema_decay is None else average_weights(model, options.ema_decay)
    learner = with_consistency(model, options.consistency)
    scale = make_loss_scale(options.precision, model.device)
    return TrainState(model, learner, optimizer, rate, workers, average, scale, updates_per_epoch, total)


def training_events(
    state: TrainState[Any], pairs: EncodedPairs, config: Config, noise: Noise = no_noise
) -> Iterator[Event]:
    """Train, and yield events.

    Args:
        state: State of the run, which is updated; its model is left in training mode.
        pairs: Training pairs.
        config: The whole config, of which `train` is used.
        noise: Noise on training pairs.

    Yields:
        The events of an update, then `Updated`; `Stopped` last.

    Raises:
        TrainingError: Too many updates in a row were skipped.
    """
    options = config.train
    every = options.validation.every or state.updates_per_epoch
    progress = state.progress
    device = state.model.device
    make = partial(_make_parts, open_batches(pairs, noise, device), state.workers)
    updates = make_ahead(make, _plan_from(progress, pairs, options), AHEAD if device.type == "cuda" else 0)
    update = make_update(state.replica, state.optimizer, options, state.workers, state.scale)
    state.model.train()
    while (reason := _reason_to_stop(state, options)) is None:
        state.meter.resume()
        with when_out_of_memory(LESS_MEMORY):
            planned, batches = next(updates)
        progress.epoch = planned.epoch
        progress.position = planned.position
        learning_rate = options.optimizer.learning_rate * state.rate.share(progress.update + 1)
        for parameters in state.optimizer.param_groups:
            parameters["lr"] = learning_rate
        with when_out_of_memory(LESS_MEMORY):
            step = update(batches, progress.update)
        progress.update += 1
        progress.position += 1
        if state.average:
            state.average.update_parameters(state.model)
        state.meter.add(*step)
        validating = progress.update % every == 0 or progress.update == state.total_updates
        if progress.update % options.log_every == 0 or validating:
            yield from _report(state, learning_rate, options.max_skipped)
        if validating:
            yield ValidationDue(progress.update, progress.epoch)
        yield Updated(progress.update, progress.epoch)
    yield Stopped(progress.update, progress.epoch, reason)


def take_scores(state: TrainState[Any], scores: Scores, metric: str) -> bool:
    """Take the scores of a validation into the progress of a run and into its schedule.

    Args:
        state: State of the run.
        scores: Loss and metrics by name.
        metric: The metric that chooses the best model.

    Returns:
        True if the model is the best so far.
    """
    state.progress.learnt = state.progress.learnt or scores["loss"] < state.model.uniform_loss
    improved = _improve(state.progress, scores, metric)
    state.rate.validated(improved)
    return improved


def check_learnt(state: TrainState[Any], run: Path, *, validated: bool) -> None:
    """Check that a finished run has learnt something.

    Without validation it suffices that the last update was not skipped: its loss was finite.

    Args:
        state: Its state.
        run: Its directory, for the message.
        validated: True if it had validation data.

    Raises:
        TrainingError: It has learnt nothing.
    """
    skipped = state.progress.skipped_in_row
    output = state.model.decoder.output
    advice = "lower train.optimizer.learning_rate"
    if skipped:
        updates = f"{skipped:,} update{'s' if skipped > 1 else ''}"
        problem = f"ended with {updates} skipped, as loss or gradient was not finite"
        raise TrainingError(f"{run}: {problem}; {advice} or set train.optimizer.clip_norm")
    if validated and not state.progress.learnt:
        guessing = f"{output.uniform_loss:.2f}, that of uniform guessing among {output.out_features:,} target words"
        problem = f"learnt nothing: no validation had a loss below {guessing}"
        raise TrainingError(f"{run}: {problem}; {advice} or train for more updates")


def count_epoch_updates(pairs: EncodedPairs, options: TrainSection) -> int:
    """Updates per epoch: the same in every epoch, as the sorted lengths are."""
    if options.batch.unit == "tokens":
        return len(plan_epoch(pairs, options, 1))
    return math.ceil(math.ceil(len(pairs) / options.batch.size) / options.batch.accumulate)  # without planning them


def count_updates(options: TrainSection, per_epoch: int) -> int:
    """Updates of a whole run, unless it stops early."""
    total = per_epoch * options.epochs
    return total if options.max_updates is None else min(total, options.max_updates)


def plan_epoch(pairs: EncodedPairs, options: TrainSection, epoch: int) -> list[list[NDArray[np.int64]]]:
    """The batches of each update of an epoch."""
    batch = options.batch
    lengths = (pairs.src.lengths, pairs.tgt.lengths)
    plan = plan_batches(*lengths, size=batch.size, unit=batch.unit, generator=epoch_generator(options.seed, epoch))
    return [plan[first : first + batch.accumulate] for first in range(0, len(plan), batch.accumulate)]


class Planned(NamedTuple):
    """An update that is to be made.

    Attributes:
        epoch: Its epoch, from 1.
        position: Updates before it in that epoch.
        groups: Indices of the pairs of each of its batches.
    """

    epoch: int
    position: int
    groups: list[NDArray[np.int64]]


def _plan_from(progress: Progress, pairs: EncodedPairs, options: TrainSection) -> Iterator[Planned]:
    """The updates from the current position, epoch after epoch."""
    epoch = progress.epoch
    position = progress.position
    while True:
        for place, groups in enumerate(plan_epoch(pairs, options, epoch)[position:], position):
            yield Planned(epoch, place, groups)
        epoch += 1
        position = 0


def _make_parts(source: BatchSource, workers: Workers, planned: Planned) -> list[Batch]:
    """This process's parts of the batches of an update; an empty part is a pair without positions to predict."""
    batches = []
    for indices in planned.groups:
        part = workers.part(indices)
        if len(part):
            batches.append(source(part, planned.epoch))
        else:
            batch = source(indices[:1], planned.epoch)
            batches.append(batch._replace(positions=batch.positions[:0]))
    return batches


def _reason_to_stop(state: TrainState[Any], options: TrainSection) -> str | None:
    patience = options.validation.patience
    if patience is not None and state.progress.waited >= patience:
        return f"{options.validation.metric} has not improved for {state.progress.waited} validations"
    if state.progress.update >= state.total_updates:
        return f"all {state.total_updates:,} updates are done"
    return None


def _improve(progress: Progress, scores: Scores, metric: str) -> bool:
    """Compare with the best so far, see `rank`; a model whose scores are not finite is never better.

    Patience does not count while the best score is at the metric's floor, where it says nothing about progress.
    """
    better = all(map(math.isfinite, scores.values())) and (
        progress.best is None
        or rank(metric, scores[metric], scores["loss"]) > rank(metric, progress.best, progress.best_loss)
    )
    if better:
        progress.best = scores[metric]
        progress.best_loss = scores["loss"]
        progress.best_update = progress.update
    waiting = not better and (progress.best is None or not is_at_floor(metric, progress.best))
    progress.waited = progress.waited + 1 if waiting else 0
    return better


def _report(state: TrainState[Any], learning_rate: float, max_skipped: int) -> Iterator[Reported | Skipped]:
    """Read the sums since the last report from the device, and reset them.

    Raises:
        TrainingError: Too many updates in a row were skipped.
    """
    begin = time.perf_counter()
    meter = state.meter
    progress = state.progress
    loss = float(state.workers.total(meter.sums[0].clone()))  # waits for the device
    norm = float(meter.sums[1])
    tokens, updates = meter.counts.tolist()
    skipped = torch.stack(meter.skipped).tolist()
    seconds = meter.seconds + time.perf_counter() - begin
    meter.reset()
    progress.seconds += seconds
    progress.tokens += tokens
    for update, flag in enumerate(skipped, progress.update - len(skipped) + 1):
        progress.skipped_in_row = progress.skipped_in_row + 1 if flag else 0
        if flag:
            yield Skipped(update, (update - 1) // state.updates_per_epoch + 1)
            if progress.skipped_in_row > max_skipped:
                times = f"for {progress.skipped_in_row} updates in a row, which were skipped"
                advice = "lower train.optimizer.learning_rate or set train.optimizer.clip_norm"
                problem = f"update {update}: loss or gradient not finite {times}"
                raise TrainingError(f"{problem}; {advice}; weights and checkpoints are unchanged")
    mean_loss, mean_norm = (loss / tokens, norm / updates) if updates else (math.nan, math.nan)
    yield Reported(progress.update, progress.epoch, mean_loss, mean_norm, learning_rate, tokens / seconds)
