"""What a training process takes of memory: measured on this process, after it has done once what training does."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psutil
import torch

KERNEL_SIZE, KERNELS_KEPT = round(0.53 * 2**20), 1024
"""Bytes of what oneDNN makes for a product of a shape not met before, as measured on six models of 0.1 to 29 million
weights, and how many of these it keeps.
"""
KERNELS_PER_BATCH, KERNELS_PER_STEP = 10, 4
"""How many a shape of batch needs (9 to 13 as measured), and a step of greedy search on a number of rows."""
GAPS_PER_UPDATE, GAPS_LIMIT = round(0.9 * 2**20), 1100 * 2**20
"""How much glibc's heap grows, although nothing more is held, where more kernels are needed than are kept: as they are
thrown away and made again while tensors come and go, gaps are left between them.

Measured on seven models: 375 to 790 MiB after 600 updates, 785 to 1,144 after 1,000; of two that were followed on, 967
after 1,500 and 1,066 after 2,083. Where all kernels are kept, the heap stays as it is.
"""


def resident() -> int:
    """Bytes of this process that are in memory."""
    return psutil.Process().memory_info().rss


def peak_resident() -> int:
    """Most bytes of this process that were in memory at once; 0 if unknown."""
    with contextlib.suppress(OSError, StopIteration):
        # A process begins with the peak of the one that started it in what getrusage says on Linux, but not in this.
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def settled() -> int:
    """Bytes in memory after the C library has given back what it keeps free, as far as it can be asked to."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # only glibc can be asked
            ctypes.CDLL(None).malloc_trim(0)
    return resident()


def available_memory(device: torch.device) -> int:
    """Bytes that a run could have on a device if this process ended."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available + resident()


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


@dataclass(frozen=True)
class Trial:
    """What some work took.

    Attributes:
        size: Sentences.
        memory: Bytes at its peak beyond what was held before.
        seconds: How long it took.
    """

    size: int
    memory: int
    seconds: float


@dataclass(frozen=True)
class Trials:
    """Work that was tried with more and more sentences.

    Attributes:
        done: What was tried, smallest first; at least one.
        whole: Sentences of the whole.
        fits: Whether memory suffices for the whole, as far as was tried.
    """

    done: list[Trial]
    whole: int
    fits: bool

    @property
    def complete(self) -> bool:
        """Whether the whole was tried."""
        return self.done[-1].size == self.whole

    def expect(self, size: int) -> Trial:
        """What `size` sentences take if work grows as it did last; what was measured if it was tried last."""
        last = self.done[-1]
        before = self.done[-2] if len(self.done) > 1 else Trial(0, 0, 0.0)
        steps = (size - last.size) / (last.size - before.size)
        return Trial(
            size,
            last.memory + round(max(0, last.memory - before.memory) * steps),
            last.seconds + max(0.0, last.seconds - before.seconds) * steps,
        )


def try_sizes(run: Callable[[int], object], whole: int, device: torch.device, room: float, seconds: float) -> Trials:
    """Do some work with 1, 2, 8, 32, ... sentences up to the whole, as long as what comes next promises to fit.

    A processor's memory is often promised and then refused by ending the process, so what will not fit is not tried.

    Args:
        run: Does the work with so many sentences.
        whole: Sentences of the whole, at least 1.
        device: Where it is done.
        room: Bytes that it may take.
        seconds: Most that all steps together may take, the first two aside.
    """
    begin = time.perf_counter()
    trials = Trials([], whole, True)
    for size in _growing(whole):
        if trials.done:
            # One sentence, or two, do not tell what comes with each of them and what once and for all.
            farthest = whole if len(trials.done) > 2 else size
            if trials.expect(farthest).memory > room:
                return replace(trials, fits=False)
            if len(trials.done) > 1 and time.perf_counter() - begin + trials.expect(size).seconds > seconds:
                return trials
        start = time.perf_counter()
        memory = peak_growth(partial(run, size), device)
        trials = replace(trials, done=[*trials.done, Trial(size, memory, time.perf_counter() - start)])
    return replace(trials, fits=trials.done[-1].memory <= room)


def _growing(whole: int) -> Iterator[int]:
    """1, 2, 8, 32, ... and the whole."""
    steps = itertools.chain([1], (2 * 4**step for step in itertools.count()))
    yield from itertools.takewhile(lambda size: size < whole, steps)
    yield whole


@dataclass(frozen=True)
class Footprint:
    """Bytes that a training process holds at its peak, by what they are for.

    Attributes:
        libraries: Python, torch and all other libraries with what they set up for themselves; raw validation text.
        data: Mapped training data.
        weights: Weights, and again as many for gradients.
        optimizer: What the optimiser remembers.
        activations: Of the longest batch.
        validation: At its peak, when there are neither activations nor gradients.
        kernels: Machine code that oneDNN keeps for each shape of batch.
        gaps: What the C library's heap holds between tensors, free but in memory.
    """

    libraries: int
    data: int
    weights: int
    optimizer: int
    activations: int
    validation: int
    kernels: int
    gaps: int

    @property
    def total(self) -> int:
        """All that is in memory at the same time."""
        lasting = self.libraries + self.data + self.weights + self.optimizer + self.kernels + self.gaps
        return lasting + max(self.weights + self.activations, self.validation)

    @property
    def needed(self) -> int:
        """The same without data, which the system drops and reads again where memory is short."""
        return self.total - self.data


def as_text(size: int) -> str:
    """Bytes as MiB or GiB."""
    return f"{size / 2**20:,.1f} MiB" if size < 2**30 else f"{size / 2**30:,.1f} GiB"
