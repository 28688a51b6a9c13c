"""Data-parallel training in several processes, started by torchrun; a single process is a special case."""

import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from nmt.system.errors import ConfigError, NmtError, shorten
from nmt.system.signals import ENDING, handled_signals

log = logging.getLogger(__name__)

CPU = torch.device("cpu")
AGREE_EVERY = 10
"""Updates between two agreements of processes with GPUs, as each one waits for the device."""
PATIENCE = timedelta(days=1)
"""How long processes wait for each other, such as for validation; torchrun ends them if another one died."""


@dataclass(frozen=True)
class Workers:
    """The processes of one run.

    Attributes:
        rank: Index of this process.
        size: Number of processes.
        device: Device of this process.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = CPU

    @property
    def is_first(self) -> bool:
        """True if this is the process that writes, prints and validates."""
        return self.rank == 0

    def seed(self, seed: int) -> None:
        """Let every process but the first, which keeps its state, draw random numbers of its own."""
        if self.rank:
            torch.manual_seed(int(np.random.SeedSequence((seed, self.rank)).generate_state(1)[0]))

    def part(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's part of a batch: every `size`-th pair, so that all parts have similar lengths."""
        return indices[self.rank :: self.size]

    def replicate(self, model: nn.Module) -> nn.Module:
        """Wrap the model for training: backward averages the gradients over all processes."""
        if self.size == 1:
            return model
        device_ids = [self.device] if self.device.type == "cuda" else None
        return DistributedDataParallel(model, device_ids=device_ids, gradient_as_bucket_view=True)

    def synchronized(self, replica: nn.Module, last: bool) -> contextlib.AbstractContextManager[Any]:
        """Context for the backward pass of one of several batches per update: only the last one all-reduces."""
        if last or not isinstance(replica, DistributedDataParallel):
            return contextlib.nullcontext()
        return cast("contextlib.AbstractContextManager[Any]", replica.no_sync())

    def total(self, values: Tensor) -> Tensor:
        """Sum over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def agree(self, update: int, request: int) -> int:
        """The highest request to any process; with GPUs only checked every `AGREE_EVERY` updates.

        Args:
            update: Number of updates so far, the same in all processes.
            request: Request to this process since the last agreement; 0 is none.
        """
        if self.size == 1:
            return request
        if self.device.type != "cpu" and update % AGREE_EVERY:
            return 0
        highest = torch.tensor(request, device=self.device)
        dist.all_reduce(highest, dist.ReduceOp.MAX)
        return int(highest)

    def broadcast(self, value: Any) -> Any:
        """Return the first process's value in all processes."""
        values = [value]
        if self.size > 1:
            dist.broadcast_object_list(values, device=self.device)
        return values[0]

    def decide_on_first(self, decide: Callable[[], Any]) -> Any:
        """Call `decide` in the first process, and return its result in all of them.

        Raises:
            NmtError: In all processes, if `decide` raised it.
        """
        decision = None
        failure = None
        if self.is_first:
            try:
                decision = decide()
            except NmtError as error:
                failure = error
        decision, failure = self.broadcast((decision, failure))
        if failure is not None:
            raise failure
        return decision

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, of equal shape, in order of rank."""
        if self.size == 1:
            return [tensor]
        here = tensor.to(self.device)
        parts = [torch.empty_like(here) for _ in range(self.size)]
        dist.all_gather(parts, here)
        return [part.cpu() for part in parts]


SINGLE = Workers()
"""A single process."""


@contextlib.contextmanager
def join_workers(device: torch.device) -> Iterator[Workers]:
    """Join the processes started by torchrun: gloo between CPUs, NCCL between GPUs. Only the first one logs.

    Args:
        device: The device of the config; with several processes on CUDA, each uses that of its local rank.

    Raises:
        ConfigError: A variable that torchrun sets is missing or is no number.
    """
    rank, size = _rank_and_size()
    if size == 1:
        yield Workers(device=device)
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    if not rank:
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        log.info(f"waiting at {address} for {size - 1} other processes")
    with handled_signals(ENDING, signal.SIG_DFL):  # torch waits without looking at Python's handlers
        # torchrun's store outlives the processes: restarted ones must not read the addresses of dead ones.
        store, rank, size = next(rendezvous("env://"))
        store = PrefixStore(f"attempt {restarts()}", store)
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)
    logger = logging.getLogger("nmt")
    level = logger.level
    logger.setLevel(logging.CRITICAL if rank else level)
    try:
        yield Workers(rank, size, device)
    finally:
        logger.setLevel(level)
        dist.destroy_process_group()


def _rank_and_size() -> tuple[int, int]:
    """Rank of this process, and the number of all."""
    if (size := os.environ.get("WORLD_SIZE", "1")) == "1":
        return 0, 1
    for name in ("RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR"):
        value = os.environ.get(name)
        if not value or (name != "MASTER_ADDR" and not (value.isdecimal() and len(value) < 10)):
            problem = f"is {shorten(value)!r}" if value else "is not set"
            launch = "start several processes with torchrun, or unset WORLD_SIZE"
            raise ConfigError(f"{name}: {problem}, though WORLD_SIZE is {shorten(size)}; {launch}")
    return int(os.environ["RANK"]), int(size)


def restarts() -> int:
    """How often torchrun restarted this process after another one died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def launch_command() -> list[str]:
    """The start of a command line that starts as many processes as now."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return ["nmt"]
    return ["torchrun", "--nproc-per-node", os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"]), "-m", "nmt"]


def launch_id() -> str | None:
    """Identifies one call of torchrun, including its restarts; None without torchrun."""
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    return f"process {os.getppid()}" if name == "none" else name  # "none" is torchrun's default
