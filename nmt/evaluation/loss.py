"""Loss of a model on reference translations."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.corpus.batching import make_batch, plan_batches
from nmt.corpus.dataset import EncodedPairs
from nmt.layers.kernels.cross_entropy import CHUNK_ROWS
from nmt.layers.kernels.transfer import to_host
from nmt.models.base import WordChooser
from nmt.models.seq2seq import Seq2Seq


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, and restore its mode afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def mean_loss(model: Seq2Seq, pairs: EncodedPairs, batch_size: int = 64) -> float:
    """Teacher-forced cross-entropy of encoded pairs in nats per token; NaN without pairs."""
    return measure_loss(model, pairs, batch_size, accuracy=False).loss


def perplexity(loss: float) -> float:
    """exp(loss); beyond 700 nats, where floats end, exp(700)."""
    return math.exp(min(loss, 700.0))


@dataclass(frozen=True)
class LossMeasures:
    """How well a model predicts reference translations.

    Attributes:
        loss: Cross-entropy in nats per token, EOS included; NaN without tokens.
        perplexity: See `perplexity`.
        accuracy: Share of the tokens that are the most probable ones.
    """

    loss: float
    perplexity: float
    accuracy: float

    def __str__(self) -> str:
        return f"loss {self.loss:z.2f} (perplexity {self.perplexity:.2f}), accuracy {self.accuracy:.1%}"


@torch.no_grad()
def measure_loss(
    model: Seq2Seq,
    pairs: EncodedPairs,
    batch_size: int = 64,
    choose: WordChooser | None = None,
    *,
    accuracy: bool = True,
) -> LossMeasures:
    """Measure loss and accuracy at the positions of the references, in evaluation mode.

    Args:
        model: The model.
        pairs: Encoded pairs.
        batch_size: Sentences at once.
        choose: Chooses the decoder's input words; None is the reference (teacher forcing).
        accuracy: True if accuracy is measured, which predicts words; it is NaN otherwise.
    """
    losses = []
    hits = []
    tokens = 0
    with evaluating(model):
        for indices in plan_batches(pairs.src.lengths, pairs.tgt.lengths, size=batch_size, unit="sentences"):
            batch = make_batch(pairs, indices).to(model.device)
            readouts, targets, _ = model.readouts(batch, choose)  # [P, K] and [P]
            losses.append(model.decoder.output.loss(readouts, targets))
            tokens += len(targets)
            if not accuracy:
                continue
            for first in range(0, len(targets), CHUNK_ROWS):
                predicted = model.decoder.output(readouts[first : first + CHUNK_ROWS]).argmax(dim=-1)
                hits.append((predicted == targets[first : first + CHUNK_ROWS]).sum())
    loss = _sum(losses) / max(1, tokens)
    return LossMeasures(loss, perplexity(loss), _sum(hits) / max(1, tokens))


def _sum(scalars: Sequence[Tensor]) -> float:
    """The sum of scalars, fetched from their device at once; NaN without any."""
    return float(to_host(torch.stack(list(scalars))).double().sum()) if scalars else math.nan


def own_words(position: int, logits: Tensor) -> Tensor:
    """Choose the model's own most probable word at each step: free running, as in inference."""
    return logits.argmax(dim=-1)
