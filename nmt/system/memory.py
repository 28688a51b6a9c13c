"""Estimating the memory of training, by measuring this process while it does what training does."""

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

KERNEL_SIZE = round(0.53 * 2**20)
"""Bytes of the kernel that oneDNN creates for each new shape of a product, measured on six models of 0.1 to 29 million
weights.
"""
KERNELS_PER_BATCH, KERNELS_PER_STEP = 10, 4
"""Kernels per batch shape (9 to 13 in measurements), and per number of rows in a step of greedy search."""
GAPS_PER_UPDATE, GAPS_LIMIT = 2**19, 200 * 2**20
"""Growth of glibc's heap by fragmentation if the kernels exceed the cache: they are deleted and created again while
tensors come and go, which leaves gaps.

Measured: 959 MiB after an epoch of 313 updates where the other parts are 840 MiB, and at most 1,283 in 8,900 updates of
a larger model where they are 1,080. If all kernels fit into the cache, the heap does not grow.
"""


def resident() -> int:
    """Resident memory of this process in bytes."""
    return psutil.Process().memory_info().rss


def peak_resident() -> int:
    """Peak resident memory of this process in bytes; 0 if unknown."""
    with contextlib.suppress(OSError, StopIteration):
        # On Linux, a process inherits its parent's peak in getrusage, but not here.
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def trimmed_resident() -> int:
    """Resident memory in bytes after the C library has released free memory, if it supports that."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # glibc only
            ctypes.CDLL(None).malloc_trim(0)
    return resident()


def available_memory(device: torch.device) -> int:
    """Bytes that would be available to a run on a device if this process ended."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available + resident()


def state_size(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of an optimiser's state; 0 before its first update."""
    values = itertools.chain.from_iterable(values.values() for values in optimizer.state.values())
    return sum(value.nbytes for value in values if torch.is_tensor(value))


def peak_growth(run: Callable[[], object], device: torch.device) -> int:
    """Peak of the bytes that torch allocates during `run`, relative to those before."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        return torch.cuda.max_memory_allocated(device) - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # silences the profiler's messages
    with torch.autograd.profiler.profile(profile_memory=True) as profiler:
        run()
    assert profiler.kineto_results is not None
    changes = [event.nbytes() for event in profiler.kineto_results.events() if event.name() == "[memory]"]
    return max(itertools.accumulate(changes), default=0)


@dataclass(frozen=True)
class Trial:
    """Memory and time of some work.

    Attributes:
        size: Number of sentences.
        memory: Peak bytes, relative to those before.
        seconds: Time.
    """

    size: int
    memory: int
    seconds: float


@dataclass(frozen=True)
class Trials:
    """Trials of some work with more and more sentences.

    Attributes:
        done: The trials, smallest first; at least one.
        whole: Total number of sentences.
        fits: Whether memory suffices for all of them, as far as was tried.
    """

    done: list[Trial]
    whole: int
    fits: bool

    @property
    def complete(self) -> bool:
        """Whether all sentences were tried."""
        return self.done[-1].size == self.whole

    def expect(self, size: int) -> Trial:
        """Linear extrapolation of the last two trials to `size` sentences."""
        last = self.done[-1]
        before = self.done[-2] if len(self.done) > 1 else Trial(0, 0, 0.0)
        steps = (size - last.size) / (last.size - before.size)
        return Trial(
            size,
            last.memory + round(max(0, last.memory - before.memory) * steps),
            last.seconds + max(0.0, last.seconds - before.seconds) * steps,
        )


def try_sizes(run: Callable[[int], object], whole: int, device: torch.device, room: float, seconds: float) -> Trials:
    """Try some work with 1, 2, 8, 32, ... sentences up to all of them, as long as the next trial is expected to fit.

    What is not expected to fit is not tried, as a system that runs out of host memory often kills the process.

    Args:
        run: Does the work with a given number of sentences.
        whole: Total number of sentences, at least 1.
        device: Device of the work.
        room: Bytes available for it.
        seconds: Time limit of all trials together, except the first two.
    """
    begin = time.perf_counter()
    trials = Trials([], whole, True)
    for size in _growing(whole):
        if trials.done:
            # After one or two trials, the cost per sentence cannot be told from the fixed cost.
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
    """1, 2, 8, 32, ... and `whole`."""
    steps = itertools.chain([1], (2 * 4**step for step in itertools.count()))
    yield from itertools.takewhile(lambda size: size < whole, steps)
    yield whole


@dataclass(frozen=True)
class Footprint:
    """Peak memory of a training process in bytes, by purpose.

    Attributes:
        libraries: Python, torch and all other libraries, and the raw validation text.
        data: Memory-mapped training data.
        weights: Weights; gradients take the same again.
        optimizer: State of the optimiser.
        activations: Activations of the longest batch.
        validation: Peak of validation, when there are neither activations nor gradients.
        kernels: Machine code that oneDNN caches for each batch shape.
        gaps: Free memory between tensors in the C library's heap.
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
        """Total peak."""
        lasting = self.libraries + self.data + self.weights + self.optimizer + self.kernels + self.gaps
        return lasting + max(self.weights + self.activations, self.validation)

    @property
    def needed(self) -> int:
        """The total without data, which the system can drop and read again."""
        return self.total - self.data


def as_text(size: int) -> str:
    """Format bytes as MiB or GiB."""
    return f"{size / 2**20:,.1f} MiB" if size < 2**30 else f"{size / 2**30:,.1f} GiB"
