"""Translating in several processes, which share the memory of the models where the platform can."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from nmt.system.errors import ConfigError, check_at_least
from nmt.system.messages import Parameter
from nmt.system.process_pool import Advance, ProcessPool

if TYPE_CHECKING:
    from nmt.translation.translator import Translator

In = TypeVar("In")
Out = TypeVar("Out")


def check_workers(translator: Translator, workers: int) -> None:
    """Check that so many processes can translate.

    Raises:
        ConfigError: The number is less than 1, or the models are not on the CPU.
    """
    check_at_least("workers", workers, 1)
    device = translator.searcher.device
    if workers > 1 and device.type != "cpu":
        raise ConfigError(
            "{workers}: shares the processor's cores, but the model is on {device}; add {cpu}, or leave {name} out",
            workers=Parameter("workers", workers),
            device=device.type,
            cpu=Parameter("device", "cpu"),
            name=Parameter("workers"),
        )


def open_workers(work: Callable[[In, Advance], Out], translator: Translator, workers: int) -> ProcessPool[In, Out]:
    """Open a pool of processes that translate.

    Args:
        work: Called with a chunk and with a function that takes numbers of finished texts; it uses the translator.
        translator: The translator.
        workers: Number of processes, as `check_workers` allows it, which share torch's threads; 1 is this process.
    """
    import torch

    threads = max(1, torch.get_num_threads() // workers)
    is_exported = not translator.searcher.models
    prepare = partial(_prepare, threads, is_exported)
    return ProcessPool(work, workers, prepare)


def _prepare(threads: int, is_exported: bool, work: Callable[[In, Advance], Out]) -> Callable[[In, Advance], Out]:
    """Use so many threads, and open an exported model again: its program's threads are not in a forked process."""
    import torch

    torch.set_num_threads(threads)
    if is_exported:
        work = pickle.loads(pickle.dumps(work))
    return work
