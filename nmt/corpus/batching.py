"""Length-bucketed batches of padded id tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.corpus.dataset import EncodedPairs, Ids
from nmt.corpus.noise import Noise, no_noise
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

Unit = Literal["sentences", "tokens"]
Lengths = NDArray[np.int64]


class Batch(NamedTuple):
    """Sentence pairs as tensors, padded on the right.

    Attributes:
        src: Source ids, each sentence ending in EOS, [B, S].
        src_lengths: Tokens of each source with EOS, on the CPU, [B].
        tgt_in: Decoder input, starting with BOS, [B, T].
        tgt_out: Target ids to predict, ending in EOS, [B, T].
        positions: Indices of the real tokens in the flattened `tgt_out`, [N].
        indices: Indices of the pairs in their data set, on the CPU, [B].
    """

    src: Tensor
    src_lengths: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    positions: Tensor
    indices: Tensor

    @property
    def num_tokens(self) -> int:
        """Target tokens to predict, including EOS, without padding."""
        return len(self.positions)

    def twice(self) -> Batch:
        """The pairs, and then the same pairs again."""
        again = self.positions + self.tgt_out.numel()
        doubled = Batch(*(torch.cat([part, part]) for part in self))
        return doubled._replace(positions=torch.cat([self.positions, again]))

    def to(self, device: torch.device) -> Batch:
        """Copy the batch to another device, unless it is there; lengths and indices stay on the CPU."""
        if self.src.device.type == device.type:
            return self
        batch = self.pin_memory() if device.type == "cuda" else self
        return batch._replace(
            src=batch.src.to(device, non_blocking=True),
            tgt_in=batch.tgt_in.to(device, non_blocking=True),
            tgt_out=batch.tgt_out.to(device, non_blocking=True),
            positions=batch.positions.to(device, non_blocking=True),
        )

    def pin_memory(self) -> Batch:
        """The batch in memory from which a GPU copies it while the host goes on."""
        return self._replace(
            src=self.src.pin_memory(),
            tgt_in=self.tgt_in.pin_memory(),
            tgt_out=self.tgt_out.pin_memory(),
            positions=self.positions.pin_memory(),
        )


def pad(sequences: Sequence[Sequence[int] | Ids], *, prefix: bool = False, suffix: bool = False) -> Tensor:
    """Stack id sequences into one tensor.

    Args:
        sequences: B sequences of ids.
        prefix: Start each with BOS.
        suffix: End each with EOS.

    Returns:
        int64 ids padded with PAD on the right, [B, longest].
    """
    extra = int(prefix) + int(suffix)
    padded = np.full((len(sequences), max(map(len, sequences), default=0) + extra), PAD_ID, dtype=np.int64)
    if prefix:
        padded[:, 0] = BOS_ID
    for row, sequence in zip(padded, sequences, strict=True):
        end = len(sequence) + int(prefix)
        row[int(prefix) : end] = sequence
        if suffix:
            row[end] = EOS_ID
    return torch.from_numpy(padded)


def plan_batches(
    src_lengths: Lengths, tgt_lengths: Lengths, *, size: int, unit: Unit, generator: np.random.Generator | None = None
) -> list[NDArray[np.int64]]:
    """Group pairs of similar length; each pair is in exactly one batch.

    Args:
        src_lengths: Source tokens of each pair.
        tgt_lengths: Target tokens of each pair.
        size: Sentences per batch, or tokens per batch: sentences times the longest side, including padding.
        unit: The unit of `size`.
        generator: Shuffles pairs of equal length and the order of batches; None keeps the sorted order.

    Returns:
        Indices of the pairs of each batch.
    """
    number = len(src_lengths)
    if number == 0:
        return []
    shuffled = generator.permutation(number) if generator else np.arange(number)
    order = shuffled[np.lexsort((src_lengths[shuffled], tgt_lengths[shuffled]))]
    if unit == "sentences":
        starts = list(range(0, number, size))
    else:
        longest = np.maximum(src_lengths, tgt_lengths)[order] + 1
        starts = [0]
        peak = 0
        for position, length in enumerate(longest.tolist()):
            peak = max(peak, length)
            if peak * (position - starts[-1] + 1) > size and position > starts[-1]:
                starts.append(position)
                peak = length
    batches = np.split(order, starts[1:])
    if generator:
        batches = [batches[index] for index in generator.permutation(len(batches))]
    return batches


def make_batch(pairs: EncodedPairs, indices: NDArray[np.int64], noise: Noise = no_noise, epoch: int = 1) -> Batch:
    """Read the pairs at `indices`, add the noise of an epoch and pad them."""
    noisy = [noise(pairs.src[index], pairs.tgt[index], epoch, index) for index in indices.tolist()]
    src = [pair[0] for pair in noisy]
    tgt_in = [pair[1] for pair in noisy]
    tgt_out = [pair[2] for pair in noisy]
    words = pad(tgt_out, suffix=True)
    return Batch(
        src=pad(src, suffix=True),
        src_lengths=torch.tensor([len(ids) + 1 for ids in src]),
        tgt_in=pad(tgt_in, prefix=True),
        tgt_out=words,
        positions=real_positions(words),
        indices=torch.from_numpy(np.asarray(indices, dtype=np.int64)),
    )


def real_positions(tgt_out: Tensor) -> Tensor:
    """Indices of real tokens in the flattened target ids, [B, T] -> [N]; computed on the CPU to save a device sync."""
    return (tgt_out != PAD_ID).flatten().nonzero().squeeze(1)


def epoch_generator(seed: int, epoch: int) -> np.random.Generator:
    """Random generator for the order of one epoch, which depends only on seed and epoch."""
    return np.random.default_rng((seed, epoch))
