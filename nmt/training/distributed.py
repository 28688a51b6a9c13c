"""Several processes that train one model together, started by torchrun; one process alone is the simplest case."""

from __future__ import annotations

import contextlib
import json
import logging
import os
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

from nmt.errors import NmtError
from nmt.model.seq2seq import Seq2Seq

CPU = torch.device("cpu")
AGREE_EVERY = 10
"""Updates between two agreements of several processes with GPUs, which would have to wait for them at each."""
PATIENCE = timedelta(days=1)
"""How long processes wait for one another, as while the first one validates; torchrun ends those that wait in vain."""


@dataclass(frozen=True)
class Workers:
    """The processes of one run.

    Attributes:
        rank: Number of this process, from 0.
        size: How many there are.
        device: Where this one computes.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = CPU

    @property
    def is_first(self) -> bool:
        """Whether this is the one that writes, prints and validates."""
        return self.rank == 0

    def part(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's part of a batch: every `size`-th pair, so that all have the same lengths to deal with."""
        return indices[self.rank :: self.size]

    def replicate(self, model: Seq2Seq) -> nn.Module:
        """The model as it is to be called in training: backward makes each gradient the mean over all processes."""
        if self.size == 1:
            return model
        places = [self.device] if self.device.type == "cuda" else None
        return DistributedDataParallel(model, device_ids=places, gradient_as_bucket_view=True)

    def synchronized(self, replica: nn.Module, last: bool) -> contextlib.AbstractContextManager[Any]:
        """Around the backward pass of one of several batches of an update: only the last one talks to the others."""
        if last or not isinstance(replica, DistributedDataParallel):
            return contextlib.nullcontext()
        return cast("contextlib.AbstractContextManager[Any]", replica.no_sync())

    def total(self, values: Tensor) -> Tensor:
        """Sum over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def agree(self, update: int, request: int) -> int:
        """The highest of what was asked of any process; several with GPUs only look every `AGREE_EVERY` updates.

        Args:
            update: Updates made, the same in all processes.
            request: What was asked of this one since the last agreement; 0 is nothing.
        """
        if self.size == 1:
            return request
        if self.device.type != "cpu" and update % AGREE_EVERY:
            return 0
        highest = torch.tensor(request, device=self.device)
        dist.all_reduce(highest, dist.ReduceOp.MAX)
        return int(highest)

    def tell(self, value: Any) -> Any:
        """What the first process gives, as JSON knows it, in all of them."""
        if self.size == 1:
            return value
        text = json.dumps(value).encode()
        length = torch.tensor(len(text), device=self.device)
        dist.broadcast(length, 0)
        content = torch.zeros(int(length), dtype=torch.uint8, device=self.device)
        if self.is_first:
            content.copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
        dist.broadcast(content, 0)
        return json.loads(bytes(content.tolist()))

    def ask_first(self, decide: Callable[[], Any]) -> Any:
        """What the first process decides, as JSON knows it, in all of them.

        Raises:
            NmtError: In all of them, where the first one could not decide.
        """
        if self.size == 1:
            return decide()
        decision, failure = None, None
        if self.is_first:
            try:
                decision = decide()
            except NmtError as error:
                failure = error
        decision, message = self.tell([decision, failure and str(failure)])
        if message is not None:
            raise failure or NmtError(message)
        return decision

    def collect(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, equal in shape, in order of rank."""
        if self.size == 1:
            return [tensor]
        here = tensor.to(self.device)
        parts = [torch.empty_like(here) for _ in range(self.size)]
        dist.all_gather(parts, here)
        return [part.cpu() for part in parts]


ALONE = Workers()
"""One process."""


@contextlib.contextmanager
def join_workers(device: torch.device) -> Iterator[Workers]:
    """Join the processes that torchrun started: gloo between CPUs, NCCL between GPUs. Only the first sends messages.

    Args:
        device: The device of the config; of several processes on CUDA each takes the one of its local rank.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Workers(device=device)
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    # torchrun's store outlives the processes: those that it starts again must not read the addresses of the dead.
    store, rank, size = next(rendezvous("env://"))
    dist.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        store=PrefixStore(f"attempt {_attempt()}", store),
        rank=rank,
        world_size=size,
        timeout=PATIENCE,
    )
    logger = logging.getLogger("nmt")
    level = logger.level
    if rank:
        logger.setLevel(logging.CRITICAL)
    try:
        yield Workers(dist.get_rank(), size, device)
    finally:
        logger.setLevel(level)
        dist.destroy_process_group()


def restarted() -> bool:
    """Whether torchrun started this process again after one of its kind had died."""
    return _attempt() > 0


def _attempt() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def launcher() -> list[str]:
    """The words with which a command of as many processes as now begins."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return ["nmt"]
    return ["torchrun", "--nproc-per-node", os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"]), "-m", "nmt"]


def launch() -> str | None:
    """What names one call of torchrun, through all its restarts; None without torchrun."""
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    return f"process {os.getppid()}" if name == "none" else name  # "none" is the name of those that were given none
