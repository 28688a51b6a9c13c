"""Where the batches of a training come from: made on the host, ahead of the loop, or on the device by index."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.corpus.batching import Batch, make_batch
from nmt.corpus.dataset import EncodedPairs, Sequences
from nmt.corpus.noise import Noise, no_noise
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

Item = TypeVar("Item")
Made = TypeVar("Made")

MEMORY_SHARE = 0.1
"""Share of a device's free memory that training text may take."""
AHEAD = 4
"""Updates whose batches a thread makes while the device works."""

BatchSource = Callable[[NDArray[np.int64], int], Batch]
"""The pairs with some indices, with the noise of an epoch, as a batch."""


def open_batches(pairs: EncodedPairs, noise: Noise, device: torch.device) -> BatchSource:
    """The fastest source of batches: without noise, text that fits stays on a GPU and never leaves it.

    Args:
        pairs: Training pairs.
        noise: Noise on them, which the host adds.
        device: Device of the model.
    """
    if device.type == "cuda" and noise is no_noise:
        free, _ = torch.cuda.mem_get_info(device)
        if count_bytes(pairs) <= MEMORY_SHARE * free:
            return DeviceBatches(pairs, device)
    return HostBatches(pairs, noise, pinned=device.type == "cuda")


def count_bytes(pairs: EncodedPairs) -> int:
    """Memory of the ids and the offsets of pairs."""
    return sum(side.ids.nbytes + side.offsets.nbytes for side in (pairs.src, pairs.tgt))


class HostBatches:
    """Makes batches on the host.

    Args:
        pairs: Training pairs.
        noise: Noise on them.
        pinned: True if a batch lies in memory from which it is copied to a GPU while the host goes on.
    """

    def __init__(self, pairs: EncodedPairs, noise: Noise = no_noise, *, pinned: bool = False) -> None:
        self.pairs = pairs
        self.noise = noise
        self.pinned = pinned

    def __call__(self, indices: NDArray[np.int64], epoch: int) -> Batch:
        """See `BatchSource`."""
        batch = make_batch(self.pairs, indices, self.noise, epoch)
        return batch.pin_memory() if self.pinned else batch


class DeviceBatches:
    """Holds all pairs on a device and makes batches there; the host only sends the indices.

    A batch has the same ids as that of `make_batch`. Shapes are known on the host, which waits for nothing.

    Args:
        pairs: Training pairs; they are copied.
        device: The device.
    """

    def __init__(self, pairs: EncodedPairs, device: torch.device) -> None:
        self.device = device
        self.src = _DeviceSequences(pairs.src, device)
        self.tgt = _DeviceSequences(pairs.tgt, device)

    def __call__(self, indices: NDArray[np.int64], epoch: int) -> Batch:
        """See `BatchSource`; all epochs are the same."""
        rows = torch.from_numpy(np.asarray(indices, dtype=np.int64))
        on_device = rows.pin_memory() if self.device.type == "cuda" else rows
        on_device = on_device.to(self.device, non_blocking=True)
        src, src_lengths = self.src.take(indices, on_device)
        tgt, tgt_lengths = self.tgt.take(indices, on_device)
        first = torch.full((len(indices), 1), BOS_ID, device=self.device)
        # The input is BOS and the sentence: the output but for its EOS, one place later.
        tgt_in = torch.cat([first, tgt[:, :-1].masked_fill(tgt[:, :-1] == EOS_ID, PAD_ID)], dim=1)
        is_real = tgt != PAD_ID
        number = int(tgt_lengths.sum())
        positions = torch.nonzero_static(is_real.flatten(), size=number).squeeze(1)
        return Batch(src, torch.from_numpy(src_lengths), tgt_in, tgt, positions, rows)


class _DeviceSequences:
    """Id sequences on a device."""

    def __init__(self, sequences: Sequences, device: torch.device) -> None:
        self.lengths = sequences.lengths  # on the host
        self.ids = torch.from_numpy(np.array(sequences.ids)).to(device)
        self.starts = torch.from_numpy(np.array(sequences.offsets[:-1])).to(device)
        self.ends = torch.from_numpy(np.array(sequences.offsets[1:])).to(device)

    def take(self, indices: NDArray[np.int64], rows: Tensor) -> tuple[Tensor, NDArray[np.int64]]:
        """Some sequences, each ending in EOS, padded, [B, longest]; and their lengths with EOS, on the host.

        Args:
            indices: Which ones.
            rows: The same on the device.
        """
        lengths = self.lengths[indices] + 1
        columns = torch.arange(int(lengths.max()), device=rows.device)
        places = self.starts[rows].unsqueeze(1) + columns  # of each id in all ids, [B, longest]
        ends = self.ends[rows].unsqueeze(1)
        ids = self.ids[places.clamp(max=max(0, len(self.ids) - 1))].long() if len(self.ids) else places
        ids = torch.where(places < ends, ids, PAD_ID)
        return torch.where(places == ends, EOS_ID, ids), lengths


def make_ahead(make: Callable[[Item], Made], items: Iterable[Item], number: int) -> Iterator[tuple[Item, Made]]:
    """Yield items with what is made of them, in order; a thread makes the next ones meanwhile.

    Args:
        make: Makes something of an item.
        items: The items.
        number: How many are made ahead; 0 makes each when it is asked for, in this thread.
    """
    if number == 0:
        for item in items:
            yield item, make(item)
        return
    waiting: deque[tuple[Item, Future[Made]]] = deque()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as pool:
        try:
            for item in items:
                waiting.append((item, pool.submit(make, item)))
                if len(waiting) > number:
                    earlier, future = waiting.popleft()
                    yield earlier, future.result()
            for earlier, future in waiting:
                yield earlier, future.result()
        finally:
            pool.shutdown(cancel_futures=True)
