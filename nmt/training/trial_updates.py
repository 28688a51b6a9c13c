"""Trial updates and a trial validation before a long run: do they fit into memory, and how fast are they?"""

from __future__ import annotations

import contextlib
import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.config import Config, TrainSection
from nmt.corpus.batching import make_batch, pad
from nmt.corpus.dataset import DataDirectory, EncodedPairs, open_data
from nmt.corpus.noise import Noise, make_noise
from nmt.drawing.charts import draw_learning_curve
from nmt.evaluation.loss import evaluating, mean_loss
from nmt.evaluation.metrics import score_corpus
from nmt.evaluation.validator import Validator
from nmt.models.seq2seq import Seq2Seq
from nmt.search.search import greedy_search
from nmt.search.stepper import Seq2SeqStepper
from nmt.system.device import resolve_device
from nmt.system.limits import KERNELS_KEPT
from nmt.system.memory import (
    GAPS_LIMIT,
    GAPS_PER_UPDATE,
    KERNEL_SIZE,
    KERNELS_PER_BATCH,
    KERNELS_PER_STEP,
    Footprint,
    Trial,
    Trials,
    as_text,
    available_memory,
    peak_resident,
    state_size,
    trimmed_resident,
    try_sizes,
)
from nmt.system.progress import progress_bar
from nmt.training.averaging import WeightAverage
from nmt.training.findings import LOSS_TOLERANCE, SMALLER_BATCH, SMALLER_MODEL, Finding
from nmt.training.loop import plan_epoch, train_step
from nmt.training.run import METRICS
from nmt.training.schedules import LearningRate
from nmt.training.setup import (
    choose_precision,
    make_model,
    make_validator,
    outline,
    prepare,
    with_precision,
    with_text_of,
)
from nmt.training.state import make_optimizer

WARM_UP, TIMED = 3, 20  # updates
BATCH_SECONDS, TIMED_SECONDS, VALID_SECONDS = 30.0, 20.0, 10.0  # time limits of the trials
VALID_STEPS = 3  # of greedy search: memory does not grow with further ones


def check_updates(
    config: Config,
    data: DataDirectory,
    noise: Noise,
    new_model: Callable[[Config], Seq2Seq],
    device: torch.device,
    available: int,
) -> Iterator[Finding]:
    """Try the longest batch, ordinary updates and a validation, and estimate speed and memory of a run.

    Args:
        config: The whole config.
        data: Training and validation data.
        noise: Noise on training pairs.
        new_model: Builds the model.
        device: Device of the model.
        available: Bytes of memory on that device.
    """
    options, pairs, on_host = config.train, data.train, device.type != "cuda"
    validator = set_up_validation(config, data)  # stays in memory, as in a run
    libraries = trimmed_resident() if on_host else 0
    epoch = Epoch(pairs, options)
    room = available - libraries

    model = new_model(config)
    trials, weights, state = try_longest_batch(options, pairs, noise, epoch.longest, model, room)
    finding = describe_longest_batch(pairs, epoch.longest, trials, weights + state, room)
    yield finding
    if finding.ok is False:
        return
    of_shape = float(KERNELS_PER_BATCH * KERNEL_SIZE)
    if trials.complete:
        del model
        model, before = new_model(config), trimmed_resident()
        timing = make_updates(options, pairs, noise, epoch, model, TIMED, TIMED_SECONDS)
        yield from describe_updates(pairs, epoch, timing)
        of_shape = max(0, trimmed_resident() - before) / epoch.count_shapes(timing.updates)

    validation = try_validation(config, data.valid, model, room - weights - state)
    kernels, gaps = estimate_kernels(of_shape, epoch, validation.whole if len(data.valid) else 0)
    footprint = Footprint(
        libraries=libraries,
        data=sum(array.nbytes for side in (pairs.src, pairs.tgt) for array in (side.ids, side.offsets)) * on_host,
        weights=weights,
        optimizer=state,
        activations=max(0, trials.expect(trials.whole).memory - weights),
        validation=validation.expect(validation.whole).memory,
        kernels=kernels * on_host,
        gaps=gaps * on_host,
    )
    yield describe_memory(footprint, available)
    if not on_host:
        yield describe_host_memory(weights + state, available_memory(torch.device("cpu")))
    del validator


def estimate_kernels(of_shape: float, epoch: Epoch, valid_rows: int) -> tuple[int, int]:
    """Memory of oneDNN's kernels, and of the gaps in the heap if its cache is too small for them, in bytes.

    Args:
        of_shape: Bytes of kernels per batch shape.
        epoch: The batches.
        valid_rows: Sentences per batch in validation; 0 without validation.
    """
    # As translations end one by one, there are steps for nearly every number of rows up to a batch.
    kernels = of_shape * epoch.count_shapes(epoch.total_updates) + KERNELS_PER_STEP * KERNEL_SIZE * valid_rows
    kept = min(KERNELS_KEPT * KERNEL_SIZE, round(kernels))
    gaps = min(GAPS_PER_UPDATE * epoch.total_updates, GAPS_LIMIT) if kept < kernels else 0
    return kept, gaps


class Epoch:
    """The batches of the first epoch; those of later epochs have the same shapes.

    Attributes:
        groups: The batches of each update.
        total_updates: Updates of the whole run.
        longest: The batch with the most padded tokens.
    """

    def __init__(self, pairs: EncodedPairs, options: TrainSection) -> None:
        self.groups = plan_epoch(pairs, options, 1)
        self.options = options
        batches = list(itertools.chain.from_iterable(self.groups))
        src, tgt = pairs.src.lengths, pairs.tgt.lengths
        self._shapes = np.array([(len(batch), src[batch].max(), tgt[batch].max()) for batch in batches])
        padded = self._shapes[:, 0] * (self._shapes[:, 1:].sum(axis=1) + 2)
        self.longest = batches[int(padded.argmax())]
        self.total_updates = int(min(len(self.groups) * options.epochs, options.max_updates or math.inf))

    def count_shapes(self, updates: int) -> int:
        """Number of distinct batch shapes (sentences, longest source, longest target) in the first updates."""
        return len(np.unique(self._shapes[: updates * self.options.batch.accumulate], axis=0))


def set_up_validation(config: Config, data: DataDirectory) -> Validator | None:
    """Load and use everything that scores text and draws the learning curve, so that it is in memory as in a run."""
    _, validator = make_validator(config, data, outline(config, data))
    if validator is not None and validator.translator is not None:
        example = validator.examples[0]
        processor = validator.translator.processor
        tokens = next(iter(processor.tokenize_source([example.src])))
        processor.tgt_tokenizer.detokenize(tokens)
        score_corpus([example], [example.src], validator.rules)
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory() as folder:
        (Path(folder) / METRICS).touch()
        draw_learning_curve(Path(folder))
    return validator


def choose_pairs(pairs: EncodedPairs, indices: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """Choose pairs of a batch, including its longest ones, so that they are padded like the whole batch."""
    src, tgt = pairs.src.lengths[indices], pairs.tgt.lengths[indices]
    even = np.linspace(0, len(indices) - 1, number).astype(np.int64)
    places = dict.fromkeys([int(src.argmax()), int(tgt.argmax()), *even.tolist(), *range(min(len(indices), number))])
    return indices[list(itertools.islice(places, number))]


def try_longest_batch(
    options: TrainSection,
    pairs: EncodedPairs,
    noise: Noise,
    longest: NDArray[np.int64],
    model: Seq2Seq,
    room: int,
) -> tuple[Trials, int, int]:
    """Try updates on more and more of the batch with the most padded tokens.

    Args:
        options: Training options.
        pairs: Training pairs.
        noise: Noise on training pairs.
        longest: The batch.
        model: The model, which is changed.
        room: Bytes of memory for everything.

    Returns:
        The trials, without the memory of weights and optimiser state; bytes of the weights; bytes of the state
        of the optimiser and of the average of the weights.
    """
    optimizer = make_optimizer(options.optimizer, model)

    def update(number: int) -> None:
        # With accumulation, the gradients of the first batch are in memory during the second.
        batches = [make_batch(pairs, choose_pairs(pairs, longest, number), noise)] * min(2, options.batch.accumulate)
        train_step(model, batches, optimizer, options, 0)

    update(1)  # creates the optimiser's state
    weights = sum(parameter.nbytes for parameter in model.parameters())
    state = state_size(optimizer) + WeightAverage(model, options.ema_decay).nbytes
    return try_sizes(update, len(longest), model.device, room - weights - state, BATCH_SECONDS), weights, state


def describe_longest_batch(
    pairs: EncodedPairs, longest: NDArray[np.int64], trials: Trials, fixed: int, room: int
) -> Finding:
    """Whether the longest batch succeeded or, if it was not tried completely, why.

    Args:
        pairs: Training pairs.
        longest: The batch.
        trials: The trials.
        fixed: Bytes of weights and optimiser state.
        room: Bytes of memory for everything.
    """
    name = "longest batch"
    what = (
        f"{len(longest):,} sentences of at most {pairs.src.lengths[longest].max():,} source and "
        f"{pairs.tgt.lengths[longest].max():,} target tokens"
    )
    whole, tried = trials.expect(trials.whole), f"extrapolated from {trials.done[-1].size:,} of them"
    if not trials.fits:
        advice = SMALLER_BATCH if len(longest) > 1 else SMALLER_MODEL
        needed = f"would take an estimated {as_text(fixed + whole.memory)}"
        reason = "" if trials.complete else f", {tried}"
        return Finding(name, False, f"{what} {needed}{reason}; {as_text(room)} are available; {advice}")
    if not trials.complete:
        return Finding(name, None, f"{what} were not tried: an update would take about {whole.seconds:,.0f} s, {tried}")
    return Finding(name, True, f"{what}: forward and backward succeeded")


@dataclass(frozen=True)
class Timing:
    """Losses and speed of ordinary updates.

    Attributes:
        losses: Loss of each update in nats per token.
        timed: Number of timed updates, the last ones.
        tokens: Target tokens of the timed updates.
        seconds: Time of the timed updates.
    """

    losses: list[float]
    timed: int
    tokens: int
    seconds: float

    @property
    def updates(self) -> int:
        """Number of updates."""
        return len(self.losses)


def make_updates(
    options: TrainSection,
    pairs: EncodedPairs,
    noise: Noise,
    epoch: Epoch,
    model: Seq2Seq,
    timed: int,
    limit: float,
) -> Timing:
    """Run a few ordinary updates; fewer if they take long.

    Args:
        options: Training options.
        pairs: Training pairs.
        noise: Noise on training pairs.
        epoch: The batches.
        model: The model, which is changed.
        timed: Number of timed updates.
        limit: Seconds after which no further update is made.
    """
    optimizer = make_optimizer(options.optimizer, model)
    rate = LearningRate(options.schedule, epoch.total_updates)
    losses: list[torch.Tensor] = []
    start, begin, warm, tokens = time.perf_counter(), 0.0, 0, 0
    with progress_bar(total=WARM_UP + timed, desc="timing updates", unit=" updates", leave=False) as bar:
        for update, group in enumerate(itertools.islice(itertools.cycle(epoch.groups), WARM_UP + timed)):
            spent = time.perf_counter() - start
            if update and not warm and (update == WARM_UP or spent > limit / 3):
                float(losses[-1])  # waits for the device
                begin, warm, tokens = time.perf_counter(), update, 0
            elif warm and spent > limit:
                break
            for parameters in optimizer.param_groups:
                parameters["lr"] = options.optimizer.learning_rate * rate.share(update + 1)
            batches = [make_batch(pairs, indices, noise) for indices in group]
            number = sum(batch.num_tokens for batch in batches)
            step = train_step(model, batches, optimizer, options, update)
            losses.append(step.loss / number)
            tokens += number
            bar.update()
        values = torch.stack(losses).tolist()
        return Timing(values, len(values) - warm, tokens, time.perf_counter() - begin)


def measure_updates(config: Config, data_directory: Path, limit: float) -> tuple[float, int]:
    """Measure the speed of training by up to 200 ordinary updates.

    Args:
        config: The whole config; its text settings must be those of the data.
        data_directory: Data directory written by `nmt preprocess`.
        limit: Seconds after which no further update is made.

    Returns:
        Seconds per update in the mean over an epoch, and updates per epoch.
    """
    device, data = resolve_device(config.train.device), open_data(data_directory)
    config = with_text_of(config, data)
    prepare(config)
    options = with_precision(config, choose_precision(config, device)).train
    epoch = Epoch(data.train, options)
    model = make_model(config, data).to(device)
    timing = make_updates(options, data.train, make_noise(options, data), epoch, model, 200, limit)
    tokens = (len(data.train.tgt.ids) + len(data.train)) / len(epoch.groups)  # with EOS, per update
    return tokens * timing.seconds / timing.tokens, len(epoch.groups)


def describe_updates(pairs: EncodedPairs, epoch: Epoch, timing: Timing) -> Iterator[Finding]:
    """Speed of ordinary updates, and whether the loss diverges."""
    losses, last = timing.losses, timing.losses[-5:]
    mean = sum(last) / len(last)
    ok = mean < losses[0] + LOSS_TOLERANCE
    text = f"loss {losses[0]:.2f} at the first, {mean:z.2f} over the last {len(last)} of {len(losses)}"
    advice = "; lower train.optimizer.learning_rate, or set train.optimizer.clip_norm or train.schedule.warmup"
    yield Finding("first updates", ok, text if ok else text + advice)
    speed, updates = timing.tokens / timing.seconds, len(epoch.groups)
    seconds = (len(pairs.tgt.ids) + len(pairs)) / speed
    yield Finding(
        "speed",
        None,
        f"{timing.timed} updates in {timing.seconds:.1f} s, {speed:,.0f} target tokens/s: {seconds / 60:.1f} minutes "
        f"per epoch of {updates:,} updates, {seconds * epoch.total_updates / updates / 3600:.2f} hours for all "
        f"{epoch.total_updates:,} updates, without validation",
    )


def try_validation(config: Config, valid: EncodedPairs, model: Seq2Seq, room: int) -> Trials:
    """Try scoring, and the first steps of translating, more and more of the longest validation sentences."""
    size = config.decode.batch_size
    order = np.argsort(-valid.src.lengths, kind="stable")

    def validate(number: int) -> None:
        mean_loss(model, valid.select(order[:number][:64]))
        sources = [valid.src[index] for index in order[:number]]
        lengths = torch.tensor([len(ids) + 1 for ids in sources])
        src = pad(sources, suffix=True).to(model.device)
        with evaluating(model):
            greedy_search(Seq2SeqStepper(model), src, lengths, max_length=min(VALID_STEPS, config.decode.max_length))

    if not len(valid):
        return Trials([Trial(1, 0, 0.0)], 1, True)
    return try_sizes(validate, min(size, len(valid)), model.device, room, VALID_SECONDS)


def describe_memory(footprint: Footprint, available: int) -> Finding:
    """Estimated peak memory of a run, and whether it is available."""
    parts = {
        "libraries": footprint.libraries,
        "data": footprint.data,
        "weights": footprint.weights,
        "gradients": footprint.weights,
        "optimiser": footprint.optimizer,
        "activations of the longest batch": footprint.activations,
        "validation": footprint.validation,
        "kernels for the shapes of batches": footprint.kernels,
        "gaps in the heap": footprint.gaps,
    }
    listed = ", ".join(f"{name} {as_text(size)}" for name, size in parts.items() if size)
    text = f"an estimated {as_text(footprint.total)} of {as_text(available)} available: {listed}"
    if footprint.needed <= available:
        return Finding("memory", True, text)
    too_much = footprint.validation > footprint.weights + footprint.activations
    advice = "lower decode.batch_size or the sizes under model" if too_much else SMALLER_BATCH
    return Finding("memory", False, f"{text}; {advice}")


def describe_host_memory(checkpoint: int, available: int) -> Finding:
    """Estimated host memory of a run on another device: that of this process, plus the copy for a checkpoint."""
    needed = peak_resident() + checkpoint
    text = f"an estimated {as_text(needed)} of {as_text(available)} available"
    return Finding("host memory", needed <= available, text)
