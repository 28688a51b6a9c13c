"""Loss of a model on reference translations."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import torch
from torch import nn

from nmt.batching import iterate_batches, plan_batches
from nmt.dataset import EncodedPairs
from nmt.model.kernels.transfer import to_host
from nmt.model.seq2seq import Seq2Seq


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, and restore its mode afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@torch.no_grad()
def mean_loss(model: Seq2Seq, pairs: EncodedPairs, batch_size: int = 64) -> float:
    """Teacher-forced cross-entropy of encoded pairs in nats per token; NaN without pairs."""
    plan = plan_batches(pairs.src.lengths, pairs.tgt.lengths, size=batch_size, unit="sentences")
    losses, tokens = [], 0
    with evaluating(model):
        for batch in iterate_batches(pairs, plan):
            readouts, targets, _ = model.readouts(batch.to(model.device))
            losses.append(model.decoder.loss(readouts, targets))
            tokens += batch.num_tokens
    return float(to_host(torch.stack(losses)).double().sum()) / tokens if tokens else math.nan
