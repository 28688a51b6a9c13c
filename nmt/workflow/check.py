"""What a careful person checks before a long run; nothing is written."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from nmt.batching import make_batch, plan_batches
from nmt.config import Config, OptimizerSection, TeacherForcingSection, TrainSection
from nmt.dataset import DataDirectory, EncodedPairs, Sequences, open_data
from nmt.decoding.search import greedy_search
from nmt.errors import DataError, is_out_of_memory
from nmt.files import read_json
from nmt.model.seq2seq import Seq2Seq
from nmt.noise import Noise, make_noise
from nmt.text.vocabulary import UNK_ID
from nmt.training.loop import mean_loss, plan_epoch, train_step
from nmt.training.schedules import LearningRate
from nmt.training.state import make_optimizer
from nmt.workflow.report import REPORT
from nmt.workflow.setup import make_model, prepare, with_text_of

LOSS_TOLERANCE = 0.5  # nats a token
LOSS_SAMPLE = 512  # pairs
WARM_UP, TIMED = 3, 20  # updates
OVERFIT_PAIRS, OVERFIT_UPDATES, OVERFIT_RATE, OVERFIT_LOSS = 16, 200, 0.003, 0.1
SHOWN = 2  # decoded pairs
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
"""Parts of a model by the beginning of a weight's name; the first that fits counts."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: What was looked at.
        ok: Whether it is fine; None where there is nothing to judge.
        text: What was found and, where it is not fine, what to do.
    """

    name: str
    ok: bool | None
    text: str


def check(config: Config, data_directory: Path) -> Iterator[Finding]:
    """Look at the data, build the model and try it out.

    Args:
        config: The whole config; its text settings must be those of the data.
        data_directory: What `nmt preprocess` wrote.

    Yields:
        Findings, each as soon as it is known.

    Raises:
        NmtError: The data, the config or the device cannot be used.
    """
    data = open_data(data_directory)
    data.check_ids()
    config = with_text_of(config, data)
    device = prepare(config)
    noise = make_noise(config.train, data)
    available = available_memory(device)

    def fresh(config: Config) -> Seq2Seq:
        """The model as a run with this config would begin with it."""
        torch.manual_seed(config.train.seed)
        return make_model(config, data).to(device).train()

    yield from describe_data(data)
    steps: dict[str, Callable[[], Iterator[Finding]]] = {
        "parameters": lambda: describe_parameters(fresh(config)),
        "initial loss": lambda: check_initial_loss(config, data, fresh(config)),
        "one batch overfits": lambda: check_overfitting(config, data, fresh),
        "longest batch": lambda: check_updates(config, data.train, noise, fresh, available),
    }
    for name, step in steps.items():
        try:
            yield from step()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            yield Finding(name, False, "out of memory; lower train.batch.size or the sizes under model")


def describe_data(data: DataDirectory) -> Iterator[Finding]:
    """What the data is like, from its ids and from the report of `nmt preprocess` as far as there is one."""
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
    left_out = _count(report, "too_many_tokens")
    if left_out is not None:
        share = left_out / (left_out + len(data.train))
        advice = "; raise text.max_length" if share > TOO_LONG_LIMIT else ""
        yield Finding(
            "too long",
            not advice,
            f"{left_out:,} training pairs ({share:.1%}) left out: too many tokens, or none{advice}",
        )
    if len(data.valid) == 0:
        yield Finding("validation data", None, "none: the last model of the run is kept, whatever it is worth")
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
            advice = "; scores will flatter, see data.split" if found / examples > OVERLAP_LIMIT else ""
            yield Finding(
                f"{split} overlap", not advice, f"{found:,} of {examples:,} sources are in training too{advice}"
            )


def _count(report: Any, *keys: str) -> int | None:
    """A number deep in a report, or None where there is none."""
    for key in keys:
        report = report.get(key) if isinstance(report, dict) else None
    return report if isinstance(report, int) else None


def count_parameters(model: Seq2Seq) -> Counter[str]:
    """Weights of each part; what several parts share counts for the first."""
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        counts[next(part for prefix, part in PARTS.items() if name.startswith(f"{prefix}."))] += parameter.numel()
    return counts


def describe_parameters(model: Seq2Seq) -> Iterator[Finding]:
    """Number of weights, by part."""
    counts = count_parameters(model)
    parts = [
        f"{part} {format(counts[part], ',') if counts[part] else 'none of its own'}"
        for part in dict.fromkeys(PARTS.values())
    ]
    yield Finding("parameters", None, f"{counts.total():,}: {', '.join(parts)}")


def check_initial_loss(config: Config, data: DataDirectory, model: Seq2Seq) -> Iterator[Finding]:
    """A fresh model should guess about evenly among all words; one that was trained before, better."""
    generator = np.random.default_rng(config.train.seed)
    sample = _select(data.train, generator.permutation(len(data.train))[:LOSS_SAMPLE])
    loss, size = mean_loss(model, sample), len(data.tgt_vocabulary)
    text = (
        f"{loss:.2f} nats a token over {len(sample):,} pairs; guessing evenly costs ln {size:,} = {math.log(size):.2f}"
    )
    if config.train.init_from is not None:
        ok = loss < math.log(size)
        advice = "; the weights of train.init_from are no help"
    else:
        ok = abs(loss - math.log(size)) < LOSS_TOLERANCE
        advice = f", more than {LOSS_TOLERANCE} away; see model.initialization"
    yield Finding("initial loss", ok, text if ok else text + advice)


def check_overfitting(config: Config, data: DataDirectory, fresh: Callable[[Config], Seq2Seq]) -> Iterator[Finding]:
    """A model that can learn anything learns a few pairs by heart, and then translates them as they are."""
    options = config.train.model_copy(
        update={
            "optimizer": OptimizerSection(learning_rate=OVERFIT_RATE),
            "teacher_forcing": TeacherForcingSection(),
            "label_smoothing": 0.0,
        }
    )
    without_dropout = config.model.model_copy(update={"dropout": 0.0})
    model = fresh(config.model_copy(update={"model": without_dropout}))
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
    advice = f", above {OVERFIT_LOSS}: the model cannot learn them by heart; see the sizes and parts under model"
    yield Finding("one batch overfits", ok, text if ok else text + advice)

    found = greedy_search(
        model.eval(), batch.src.to(model.device), batch.src_lengths, max_length=config.decode.max_length
    )
    same = [hypothesis.ids == pairs.tgt[index].tolist() for index, hypothesis in enumerate(found)]
    text = f"{sum(same)} of these {len(pairs)} sources come out as their references"
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
    """Indices of pairs of median length whose sources differ, so that each has one right answer."""
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
    config: Config, pairs: EncodedPairs, noise: Noise, fresh: Callable[[Config], Seq2Seq], available: int | None
) -> Iterator[Finding]:
    """Try the longest batch of the first epoch; where it fits, time ordinary updates."""
    groups = plan_epoch(pairs, config.train, 1)
    plan = list(itertools.chain.from_iterable(groups))
    findings = list(check_longest_batch(config.train, pairs, noise, plan, fresh(config), available))
    yield from findings
    if all(finding.ok is not False for finding in findings):
        yield from time_updates(config.train, pairs, noise, groups, fresh(config))


def check_longest_batch(
    options: TrainSection,
    pairs: EncodedPairs,
    noise: Noise,
    plan: list[NDArray[np.int64]],
    model: Seq2Seq,
    available: int | None,
) -> Iterator[Finding]:
    """One update on the batch with the most padded tokens, and the memory it takes.

    A processor's memory is often promised and then refused by ending the process, so an eighth of the batch is tried
    first; where that already says that the whole is too much, the whole is not tried.

    Args:
        options: How to train.
        pairs: Training pairs.
        noise: What is done to each training pair.
        plan: The batches of an epoch.
        model: Its weights are changed.
        available: Bytes of memory; None if unknown.
    """
    optimizer = make_optimizer(options.optimizer, model)

    def padded(indices: NDArray[np.int64]) -> int:
        return int(len(indices) * (pairs.src.lengths[indices].max() + pairs.tgt.lengths[indices].max() + 2))

    def update(indices: NDArray[np.int64]) -> None:
        # The second batch of an update finds the gradients of the first in memory.
        batches = [make_batch(pairs, indices, noise)] * min(2, options.batch.accumulate)
        train_step(model, batches, optimizer, options, 0)

    def activations(indices: NDArray[np.int64]) -> int:
        return peak_growth(lambda: update(indices), model.device) - weights

    longest = max(plan, key=padded)
    part = longest[-math.ceil(len(longest) / 8) :]
    update(part)  # makes the optimiser's state
    weights = sum(parameter.nbytes for parameter in model.parameters())
    state = state_size(optimizer)
    fixed = 2 * weights + state
    what = (
        f"{len(longest):,} sentences of at most {pairs.src.lengths[longest].max():,} source and "
        f"{pairs.tgt.lengths[longest].max():,} target tokens"
    )
    estimate = fixed + activations(part) * padded(longest) // padded(part)
    if available is not None and estimate > available:
        yield Finding(
            "longest batch",
            False,
            f"{what} would take an estimated {_bytes(estimate)}, {_bytes(available)} are available; lower "
            "train.batch.size",
        )
        return
    peak = activations(longest)
    yield Finding("longest batch", True, f"{what}: forward and backward went through")
    yield Finding(
        "memory",
        available is None or fixed + peak <= available,
        f"an estimated {_bytes(fixed + peak)} of {_bytes(available)} available: weights and gradients "
        f"{_bytes(weights)} each, optimiser {_bytes(state)}, activations {_bytes(peak)} (torch's own count "
        "at the peak of the longest batch); libraries and validation come on top",
    )


def state_size(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of what an optimiser remembers of each weight; 0 before its first update."""
    values = itertools.chain.from_iterable(values.values() for values in optimizer.state.values())
    return sum(value.nbytes for value in values if torch.is_tensor(value))


def peak_growth(run: Callable[[], object], device: torch.device) -> int:
    """Bytes that torch holds at the peak of `run` beyond what it held before."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        return torch.cuda.max_memory_allocated(device) - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else the profiler writes about itself to standard error
    with torch.autograd.profiler.profile(profile_memory=True) as profiler:
        run()
    assert profiler.kineto_results is not None
    changes = [event.nbytes() for event in profiler.kineto_results.events() if event.name() == "[memory]"]
    return max(itertools.accumulate(changes), default=0)


def available_memory(device: torch.device) -> int | None:
    """Bytes that are free on a device, or None where the system does not tell."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        names = getattr(os, "sysconf_names", {})
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if "SC_PHYS_PAGES" in names else None


def _bytes(size: int | None) -> str:
    if size is None:
        return "an unknown amount"
    return f"{size / 2**20:,.1f} MiB" if size < 2**30 else f"{size / 2**30:,.1f} GiB"


def time_updates(
    options: TrainSection, pairs: EncodedPairs, noise: Noise, groups: list[list[NDArray[np.int64]]], model: Seq2Seq
) -> Iterator[Finding]:
    """Make a few ordinary updates: what they cost, and whether the loss stays in hand.

    Args:
        options: How to train.
        pairs: Training pairs.
        noise: What is done to each training pair.
        groups: The batches of each update of the first epoch.
        model: Its weights are changed.
    """
    total_updates = min(len(groups) * options.epochs, options.max_updates or math.inf)
    optimizer = make_optimizer(options.optimizer, model)
    rate = LearningRate(options.schedule, int(total_updates))
    losses: list[torch.Tensor] = []
    begin, tokens = 0.0, 0
    with _progress(WARM_UP + TIMED, "timing updates") as bar:
        for update, group in enumerate(itertools.islice(itertools.cycle(groups), WARM_UP + TIMED)):
            if update == WARM_UP:
                float(losses[-1])  # waits for the device
                begin, tokens = time.perf_counter(), 0
            for parameters in optimizer.param_groups:
                parameters["lr"] = options.optimizer.learning_rate * rate.share(update + 1)
            batches = [make_batch(pairs, indices, noise) for indices in group]
            number = sum(batch.num_tokens for batch in batches)
            step = train_step(model, batches, optimizer, options, update)
            losses.append(step.loss / number)
            tokens += number
            bar.update()
        first, last = float(losses[0]), float(torch.stack(losses[-5:]).mean())
        seconds = time.perf_counter() - begin
    ok = last < first + LOSS_TOLERANCE
    text = f"loss {first:.2f} at the first, {last:.2f} over the last 5 of {len(losses)}"
    advice = "; lower train.optimizer.learning_rate, or set train.optimizer.clip_norm or train.schedule.warmup"
    yield Finding("first updates", ok, text if ok else text + advice)
    speed = tokens / seconds
    epoch = (len(pairs.tgt.ids) + len(pairs)) / speed
    yield Finding(
        "speed",
        None,
        f"{TIMED} updates in {seconds:.1f} s, {speed:,.0f} target tokens/s: {epoch / 60:.1f} minutes an epoch of "
        f"{len(groups):,} updates, {epoch * total_updates / len(groups) / 3600:.2f} hours for all {total_updates:,} "
        "updates, validation not counted",
    )


def _progress(total: int, what: str) -> tqdm[NoReturn]:
    return tqdm(total=total, desc=what, unit=" updates", leave=False, disable=None)
