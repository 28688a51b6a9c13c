"""The training loop: a generator of events; its caller validates, logs, saves and draws."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.batching import Batch, epoch_generator, iterate_batches, make_batch, plan_batches
from nmt.config import Config, OptimizerSection, TrainSection
from nmt.dataset import EncodedPairs
from nmt.errors import NmtError
from nmt.model.seq2seq import Seq2Seq
from nmt.noise import Noise, no_noise
from nmt.training.device import autocast
from nmt.training.schedules import LearningRate, draw_choices

Scores = Mapping[str, float]


@dataclass
class TrainState:
    """Where a run stands.

    Attributes:
        update: Updates made.
        epoch: Epoch under way, from 1.
        best: Best value of the chosen metric so far; None before the first validation.
        best_update: Update at which it was reached.
        waited: Validations since then.
        seconds: Time spent on updates, validation not counted.
        tokens: Target tokens trained on, without padding.
    """

    update: int = 0
    epoch: int = 0
    best: float | None = None
    best_update: int = 0
    waited: int = 0
    seconds: float = 0.0
    tokens: int = 0


@dataclass(frozen=True)
class Started:
    """The plan of the run: updates an epoch, and in all."""

    updates_per_epoch: int
    total_updates: int


@dataclass(frozen=True)
class Updated:
    """One update was made."""

    update: int
    epoch: int


@dataclass(frozen=True)
class Reported:
    """Means since the last report."""

    update: int
    epoch: int
    loss: float
    gradient_norm: float
    learning_rate: float
    tokens_per_second: float


@dataclass(frozen=True)
class Validated:
    """A validation was made; `improved` says whether its model is the best so far."""

    update: int
    epoch: int
    scores: Scores
    improved: bool


@dataclass(frozen=True)
class Stopped:
    """The run is over."""

    update: int
    epoch: int
    reason: str


Event = Started | Updated | Reported | Validated | Stopped


def make_optimizer(config: OptimizerSection, model: nn.Module) -> torch.optim.Optimizer:
    """The optimiser over all weights."""
    rate, decay = config.learning_rate, config.weight_decay
    if config.name == "sgd":
        return torch.optim.SGD(model.parameters(), lr=rate, momentum=config.momentum, weight_decay=decay)
    kind: type[torch.optim.Adam] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config.name]
    return kind(model.parameters(), lr=rate, betas=config.betas, eps=config.epsilon, weight_decay=decay, fused=True)


def cross_entropy(logits: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Summed cross-entropy in nats, with label smoothing (Szegedy et al., 2016): [N, V], [N] -> scalar."""
    return nn.functional.cross_entropy(logits.float(), targets, reduction="sum", label_smoothing=label_smoothing)


def train_step(
    model: Seq2Seq,
    batches: Sequence[Batch],
    optimizer: torch.optim.Optimizer,
    config: TrainSection,
    update: int,
) -> tuple[Tensor, Tensor]:
    """One update from one or more batches; the gradient is that of the mean over all their tokens.

    Args:
        model: In training mode.
        batches: Batches whose gradients are added up.
        optimizer: Its learning rates are set already.
        config: Loss, precision and clipping.
        update: Updates made so far.

    Returns:
        Summed loss and gradient norm before clipping, both scalars on the model's device.
    """
    num_tokens = sum(batch.num_tokens for batch in batches)
    total = torch.zeros((), device=model.device)
    for batch in batches:
        on_device = batch.to(model.device)
        choose = draw_choices(config.teacher_forcing, update, on_device.tgt_in)
        with autocast(model.device, config.precision):
            logits, targets, penalty = model(on_device, choose)
            loss = cross_entropy(logits, targets, config.label_smoothing) + penalty
        (loss / num_tokens).backward()
        total += loss.detach()
    limit = math.inf if config.optimizer.clip_norm is None else config.optimizer.clip_norm
    norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return total, norm


@torch.no_grad()
def mean_loss(model: Seq2Seq, pairs: EncodedPairs, batch_size: int = 64) -> float:
    """Cross-entropy of encoded pairs in nats a token, with the reference always fed; NaN without pairs."""
    plan = plan_batches(pairs.src.lengths, pairs.tgt.lengths, size=batch_size, unit="sentences")
    total, tokens = torch.zeros((), dtype=torch.float64), 0
    training = model.training
    model.eval()
    for batch in iterate_batches(pairs, plan):
        logits, targets, _ = model(batch.to(model.device))
        total += cross_entropy(logits, targets).cpu()
        tokens += batch.num_tokens
    model.train(training)
    return float(total) / tokens if tokens else math.nan


def train(
    model: Seq2Seq,
    pairs: EncodedPairs,
    config: Config,
    validate: Callable[[], Scores] | None,
    state: TrainState,
    noise: Noise = no_noise,
) -> Iterator[Event]:
    """Train, and tell what happens.

    Args:
        model: On its device; left in training mode.
        pairs: Training pairs.
        config: The whole config; `train` is what counts here.
        validate: Scores the model as it is; None where there is nothing to validate on.
        state: Where the run stands, kept up to date.
        noise: What is done to each training pair.

    Yields:
        `Started` first, `Stopped` last.

    Raises:
        NmtError: The loss is no longer a finite number.
    """
    options = config.train
    updates_per_epoch = len(plan_epoch(pairs, options, 1))
    total_updates = updates_per_epoch * options.epochs
    if options.max_updates is not None:
        total_updates = min(total_updates, options.max_updates)
    every = options.validation.every or updates_per_epoch
    optimizer = make_optimizer(options.optimizer, model)
    rate = LearningRate(options.schedule, total_updates)
    meter = _Meter(model.device)
    model.train()
    yield Started(updates_per_epoch, total_updates)
    while state.update < total_updates:
        state.epoch += 1
        for group in plan_epoch(pairs, options, state.epoch)[: total_updates - state.update]:
            meter.resume()
            learning_rate = options.optimizer.learning_rate * rate.share(state.update + 1)
            for parameters in optimizer.param_groups:
                parameters["lr"] = learning_rate
            batches = [make_batch(pairs, indices, noise, state.epoch) for indices in group]
            loss, norm = train_step(model, batches, optimizer, options, state.update)
            state.update += 1
            meter.add(loss, norm, sum(batch.num_tokens for batch in batches))
            yield Updated(state.update, state.epoch)
            validating = state.update % every == 0 or state.update == total_updates
            if state.update % options.log_every == 0 or validating:
                yield meter.report(state, learning_rate)
            if validating and validate is not None:
                scores = validate()
                model.train()
                improved = _improve(state, scores[options.validation.metric], options.validation.metric)
                rate.validated(improved)
                yield Validated(state.update, state.epoch, scores, improved)
                patience = options.validation.patience
                if patience is not None and state.waited >= patience:
                    reason = f"{options.validation.metric} has not improved for {state.waited} validations"
                    yield Stopped(state.update, state.epoch, reason)
                    return
    yield Stopped(state.update, state.epoch, "all updates are made")


def plan_epoch(pairs: EncodedPairs, options: TrainSection, epoch: int) -> list[list[NDArray[np.int64]]]:
    """The batches of each update of an epoch."""
    plan = plan_batches(
        pairs.src.lengths,
        pairs.tgt.lengths,
        size=options.batch.size,
        unit=options.batch.unit,
        generator=epoch_generator(options.seed, epoch),
    )
    return [plan[first : first + options.batch.accumulate] for first in range(0, len(plan), options.batch.accumulate)]


def _improve(state: TrainState, value: float, metric: str) -> bool:
    """Compare with the best so far; for the loss less is better, for all else more."""
    better = state.best is None or (value < state.best if metric == "loss" else value > state.best)
    if better:
        state.best, state.best_update, state.waited = value, state.update, 0
    else:
        state.waited += 1
    return better


class _Meter:
    """Sums since the last report; losses stay on the device until then."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._reset()

    def _reset(self) -> None:
        self._loss = torch.zeros((), device=self._device)
        self._norm = torch.zeros((), device=self._device)
        self._updates = self._tokens = 0
        self._seconds = 0.0

    def resume(self) -> None:
        """Begin an update."""
        self._begin = time.perf_counter()

    def add(self, loss: Tensor, norm: Tensor, tokens: int) -> None:
        """End an update."""
        self._loss += loss
        self._norm += norm
        self._updates += 1
        self._tokens += tokens
        self._seconds += time.perf_counter() - self._begin

    def report(self, state: TrainState, learning_rate: float) -> Reported:
        """Means since the last report, which also go into `state`.

        Raises:
            NmtError: The loss is no longer a finite number.
        """
        begin = time.perf_counter()
        loss, norm = (
            float(self._loss) / self._tokens,
            float(self._norm) / self._updates,
        )  # waits for the device
        self._seconds += time.perf_counter() - begin
        if not math.isfinite(loss):
            raise NmtError(
                f"update {state.update}: the loss is {loss}; lower train.optimizer.learning_rate or set "
                "train.optimizer.clip_norm"
            )
        state.seconds += self._seconds
        state.tokens += self._tokens
        speed = self._tokens / self._seconds
        self._reset()
        return Reported(state.update, state.epoch, loss, norm, learning_rate, speed)
