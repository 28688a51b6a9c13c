"""Checks before a long run; nothing is written."""

from __future__ import annotations

import contextlib
import itertools
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.batching import make_batch, pad, plan_batches
from nmt.config import Config, OptimizerSection, TeacherForcingSection, TrainSection
from nmt.dataset import DataDirectory, EncodedPairs, Sequences, open_data
from nmt.decoding.search import greedy_search
from nmt.decoding.stepper import Seq2SeqStepper
from nmt.errors import DataError, OutOfMemory, when_out_of_memory
from nmt.evaluation.evaluate import Validator
from nmt.evaluation.loss import evaluating, mean_loss
from nmt.evaluation.metrics import score_corpus
from nmt.files import read_json
from nmt.model.seq2seq import Seq2Seq, build_model
from nmt.noise import Noise, make_noise
from nmt.progress import Bar, progress_bar
from nmt.text.vocabulary import UNK_ID
from nmt.training.device import resolve_device
from nmt.training.loop import plan_epoch, train_step
from nmt.training.schedules import LearningRate
from nmt.training.state import make_optimizer
from nmt.visualize.curves import draw_learning_curve
from nmt.workflow.memory import (
    GAPS_LIMIT,
    GAPS_PER_UPDATE,
    KERNEL_SIZE,
    KERNELS_KEPT,
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
from nmt.workflow.report import REPORT
from nmt.workflow.setup import make_model, make_validator, prepare, with_text_of
from nmt.workflow.train import METRICS

LOSS_TOLERANCE = 0.5  # nats per token
LOSS_SAMPLE = 512  # pairs
WARM_UP, TIMED = 3, 20  # updates
BATCH_SECONDS, TIMED_SECONDS, VALID_SECONDS = 30.0, 20.0, 10.0  # time limits of the trials
OVERFIT_PAIRS, OVERFIT_UPDATES, OVERFIT_RATE, OVERFIT_LOSS = 16, 200, 0.003, 0.1
SHOWN = 2  # decoded pairs
VALID_STEPS = 3  # of greedy search: memory does not grow with further ones
UNKNOWN_LIMIT, TOO_LONG_LIMIT, OVERLAP_LIMIT = 0.1, 0.1, 0.01  # shares

PARTS = {
    "encoder.embedding": "source embedding",
    "decoder.embedding": "target embedding",
    "encoder": "encoder",
    "decoder.cell.attention": "attention",
    "decoder.cell.output": "output",
    "decoder.output": "output",
    "decoder": "decoder",
}
"""Parts of a model by the prefix of a weight's name; the first match counts."""


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes:
        name: Name of the check.
        ok: Whether it passed; None if it only informs.
        text: What was found and, if it failed, what to do.
    """

    name: str
    ok: bool | None
    text: str


SMALLER_MODEL = "lower the sizes under model"
SMALLER_BATCH = "lower train.batch.size or the sizes under model"


def check(config: Config, data_directory: Path) -> Iterator[Finding]:
    """Check the data, build the model and try it out.

    Args:
        config: The whole config; its text settings must be those of the data.
        data_directory: Data directory written by `nmt preprocess`.

    Yields:
        Findings, as soon as each is known.

    Raises:
        NmtError: The data, the config or the device cannot be used.
    """
    data = open_data(data_directory)
    data.check_ids()
    config = with_text_of(config, data)
    device = resolve_device(config.train.device)
    prepare(config)
    noise = make_noise(config.train, data)
    available = available_memory(device)

    def new_model(config: Config) -> Seq2Seq:
        """The initial model of a run with this config."""
        torch.manual_seed(config.train.seed)
        with when_out_of_memory(SMALLER_MODEL):
            return make_model(config, data).to(device).train()

    yield from describe_data(data)
    sizes = describe_parameters(config, outline(config, data), available)
    yield sizes
    if sizes.ok is False:
        return
    steps: dict[str, tuple[Callable[[], Iterator[Finding]], str]] = {
        "initial loss": (lambda: check_initial_loss(config, data, new_model(config)), SMALLER_MODEL),
        "one batch overfits": (lambda: check_overfitting(config, data, new_model), SMALLER_MODEL),
        "longest batch": (lambda: check_updates(config, data, noise, new_model, device, available), SMALLER_BATCH),
    }
    for name, (step, advice) in steps.items():
        problem = None
        try:
            with when_out_of_memory(advice):
                yield from step()
        except OutOfMemory as error:
            problem = Finding(name, False, str(error))
        if problem:  # yielded only now, when the memory of the step is free
            yield problem


def describe_data(data: DataDirectory) -> Iterator[Finding]:
    """Describe the data, from its ids and, if available, the report of `nmt preprocess`."""
    src, tgt = data.train.src.lengths, data.train.tgt.lengths
    yield Finding(
        "training data",
        None,
        f"{len(data.train):,} pairs, median {np.median(src):.0f} source and {np.median(tgt):.0f} target tokens; the "
        f"longest source has {src.max():,}, the longest target {tgt.max():,}",
    )
    try:
        report = read_json(data.path / REPORT)
    except DataError:
        report = None
    dropped = _count(report, "too_many_tokens")
    if dropped is not None:
        share = dropped / (dropped + len(data.train))
        advice = "; raise text.max_length" if share > TOO_LONG_LIMIT else ""
        yield Finding(
            "too long",
            not advice,
            f"{dropped:,} training pairs ({share:.1%}) dropped: too many tokens, or none{advice}",
        )
    if len(data.valid) == 0:
        yield Finding("validation data", None, "none: the last model of the run is kept, however good it is")
    else:
        shares = [float(np.mean(side.ids == UNK_ID)) for side in (data.valid.src, data.valid.tgt)]
        advice = "; use subwords or a larger vocabulary (text)" if max(shares) > UNKNOWN_LIMIT else ""
        yield Finding(
            "validation data",
            not advice,
            f"{len(data.valid):,} pairs; {shares[0]:.2%} of source and {shares[1]:.2%} of target tokens are "
            f"unknown{advice}",
        )
    for split in ("valid", "test"):
        examples, found = (_count(report, "overlap", split, key) for key in ("examples", "sources"))
        if examples and found is not None:
            advice = "; scores will be too high, see data.split" if found / examples > OVERLAP_LIMIT else ""
            yield Finding(
                f"{split} overlap", not advice, f"{found:,} of {examples:,} sources are in training too{advice}"
            )


def _count(report: Any, *keys: str) -> int | None:
    """A number nested in a report; None if there is none."""
    for key in keys:
        report = report.get(key) if isinstance(report, dict) else None
    return report if isinstance(report, int) else None


def count_parameters(model: Seq2Seq) -> Counter[str]:
    """Number of weights of each part; shared weights count for the first."""
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        counts[next(part for prefix, part in PARTS.items() if name.startswith(f"{prefix}."))] += parameter.numel()
    return counts


def outline(config: Config, data: DataDirectory) -> Seq2Seq:
    """The model on the meta device, which takes no memory."""
    with torch.device("meta"):
        return build_model(config.model, len(data.src_vocabulary), len(data.tgt_vocabulary))


def describe_parameters(config: Config, model: Seq2Seq, available: int) -> Finding:
    """Number of weights, by part, and whether memory suffices to train them.

    Args:
        config: The whole config.
        model: The model; may be on the meta device.
        available: Bytes of memory.
    """
    counts = count_parameters(model)
    parts = [
        f"{part} {format(counts[part], ',') if counts[part] else 'none of its own'}"
        for part in dict.fromkeys(PARTS.values())
    ]
    text = f"{counts.total():,}: {', '.join(parts)}"
    optimizer = config.train.optimizer
    copies = 2 + (bool(optimizer.momentum) if optimizer.name == "sgd" else 2)  # weights, gradients, optimiser
    size = copies * sum(parameter.nbytes for parameter in model.parameters())
    if size <= available:
        return Finding("parameters", None, text)
    problem = f"with gradients and optimiser they take {as_text(size)}, {as_text(available)} are available"
    return Finding("parameters", False, f"{text}; {problem}; {SMALLER_MODEL}")


def check_initial_loss(config: Config, data: DataDirectory, model: Seq2Seq) -> Iterator[Finding]:
    """The initial loss should be near that of uniform guessing, or lower with `train.init_from`."""
    generator = np.random.default_rng(config.train.seed)
    sample = _select(data.train, generator.permutation(len(data.train))[:LOSS_SAMPLE])
    loss, size = mean_loss(model, sample), len(data.tgt_vocabulary)
    text = (
        f"{loss:.2f} nats per token over {len(sample):,} pairs; uniform guessing has ln {size:,} = {math.log(size):.2f}"
    )
    if config.train.init_from is not None:
        ok = loss < math.log(size)
        advice = "; the weights of train.init_from do not help"
    else:
        ok = abs(loss - math.log(size)) < LOSS_TOLERANCE
        advice = f", more than {LOSS_TOLERANCE} away; see model.initialization"
    yield Finding("initial loss", ok, text if ok else text + advice)


def check_overfitting(config: Config, data: DataDirectory, new_model: Callable[[Config], Seq2Seq]) -> Iterator[Finding]:
    """A working model overfits a few pairs, and then translates them exactly."""
    options = config.train.model_copy(
        update={
            "optimizer": OptimizerSection(learning_rate=OVERFIT_RATE),
            "teacher_forcing": TeacherForcingSection(),
            "label_smoothing": 0.0,
        }
    )
    without_dropout = config.model.model_copy(update={"dropout": 0.0})
    model = new_model(config.model_copy(update={"model": without_dropout}))
    optimizer = make_optimizer(options.optimizer, model)
    pairs = _select(data.train, typical_pairs(data.train, OVERFIT_PAIRS))
    batch = make_batch(pairs, np.arange(len(pairs)))
    loss, update = mean_loss(model, pairs), 0
    with _progress(OVERFIT_UPDATES, "overfitting one batch") as bar:
        while update < OVERFIT_UPDATES and not loss < OVERFIT_LOSS:
            train_step(model, [batch], optimizer, options, update)
            loss = mean_loss(model, pairs)
            update += 1
            bar.update()
    ok = loss < OVERFIT_LOSS
    text = f"{len(pairs)} pairs of median length: loss {loss:.2f} after {update} updates of Adam at {OVERFIT_RATE}"
    advice = f", above {OVERFIT_LOSS}: the model cannot overfit them; see the sizes and parts under model"
    yield Finding("one batch overfits", ok, text if ok else text + advice)

    stepper = Seq2SeqStepper(model.eval())
    found = greedy_search(stepper, batch.src.to(model.device), batch.src_lengths, max_length=config.decode.max_length)
    same = [hypothesis.ids == pairs.tgt[index].tolist() for index, hypothesis in enumerate(found)]
    text = f"{sum(same)} of these {len(pairs)} sources are translated exactly"
    yield Finding("decoding", sum(same) >= len(pairs) / 2, text)
    for index, hypothesis in enumerate(found[:SHOWN]):
        source = " ".join(data.src_vocabulary.decode(pairs.src[index]))
        translation, reference = (
            " ".join(data.tgt_vocabulary.decode(ids)) for ids in (hypothesis.ids, pairs.tgt[index])
        )
        yield Finding("sample", same[index] or None, f"{source} -> {translation} (reference: {reference})")


def _select(pairs: EncodedPairs, indices: NDArray[np.int64]) -> EncodedPairs:
    return EncodedPairs(*(Sequences.pack(side[index].tolist() for index in indices) for side in (pairs.src, pairs.tgt)))


def typical_pairs(pairs: EncodedPairs, number: int) -> NDArray[np.int64]:
    """Indices of pairs of median length with different sources, so that each has one correct translation."""
    plan = plan_batches(pairs.src.lengths, pairs.tgt.lengths, size=number, unit="sentences")
    order = np.concatenate(plan)
    middle = len(order) // 2
    distinct: dict[bytes, int] = {}
    for index in itertools.chain(order[middle:], order[:middle][::-1]):
        distinct.setdefault(pairs.src[index].tobytes(), index)
        if len(distinct) == number:
            break
    return np.array(list(distinct.values()), dtype=np.int64)


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
        timing = make_updates(options, pairs, noise, epoch, model)
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
        score_corpus([example.src], [example.references], validator.rules)
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
        The trials, without the memory of weights and optimiser state; bytes of the weights; bytes of the state.
    """
    optimizer = make_optimizer(options.optimizer, model)

    def update(number: int) -> None:
        # With accumulation, the gradients of the first batch are in memory during the second.
        batches = [make_batch(pairs, choose_pairs(pairs, longest, number), noise)] * min(2, options.batch.accumulate)
        train_step(model, batches, optimizer, options, 0)

    update(1)  # creates the optimiser's state
    weights, state = sum(parameter.nbytes for parameter in model.parameters()), state_size(optimizer)
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


def make_updates(options: TrainSection, pairs: EncodedPairs, noise: Noise, epoch: Epoch, model: Seq2Seq) -> Timing:
    """Run a few ordinary updates; fewer if they take long.

    Args:
        options: Training options.
        pairs: Training pairs.
        noise: Noise on training pairs.
        epoch: The batches.
        model: The model, which is changed.
    """
    optimizer = make_optimizer(options.optimizer, model)
    rate = LearningRate(options.schedule, epoch.total_updates)
    losses: list[torch.Tensor] = []
    start, begin, warm, tokens = time.perf_counter(), 0.0, 0, 0
    with _progress(WARM_UP + TIMED, "timing updates") as bar:
        for update, group in enumerate(itertools.islice(itertools.cycle(epoch.groups), WARM_UP + TIMED)):
            spent = time.perf_counter() - start
            if update and not warm and (update == WARM_UP or spent > TIMED_SECONDS / 3):
                float(losses[-1])  # waits for the device
                begin, warm, tokens = time.perf_counter(), update, 0
            elif warm and spent > TIMED_SECONDS:
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


def describe_updates(pairs: EncodedPairs, epoch: Epoch, timing: Timing) -> Iterator[Finding]:
    """Speed of ordinary updates, and whether the loss diverges."""
    losses, last = timing.losses, timing.losses[-5:]
    mean = sum(last) / len(last)
    ok = mean < losses[0] + LOSS_TOLERANCE
    text = f"loss {losses[0]:.2f} at the first, {mean:.2f} over the last {len(last)} of {len(losses)}"
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
        mean_loss(model, _select(valid, order[:number][:64]))
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


def _progress(total: int, what: str) -> Bar:
    return progress_bar(total=total, desc=what, unit=" updates", leave=False)
