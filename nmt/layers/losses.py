"""Losses of the output layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from nmt.layers.kernels.consistency import consistent_cross_entropy
from nmt.layers.kernels.cross_entropy import output_cross_entropy


class Loss(Protocol):
    """A loss, summed over target positions, in nats."""

    @property
    def copies(self) -> int:
        """How many times each batch passes through the model."""

    def __call__(self, readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        """The loss.

        Args:
            readouts: Vectors before the output layer, of all copies one after the other, [copies * P, K].
            weight: Of the output layer, [V, K].
            bias: [V].
            targets: Words to predict, [copies * P].

        Returns:
            A scalar, the mean over the copies.
        """


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy; see `output_cross_entropy`.

    Attributes:
        label_smoothing: Share of the probability that is spread evenly over all words.
    """

    label_smoothing: float = 0.0
    copies = 1

    def __call__(self, readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        """See `Loss`."""
        return output_cross_entropy(readouts, weight, bias, targets, self.label_smoothing)


CROSS_ENTROPY = CrossEntropy()


@dataclass(frozen=True)
class RDrop:
    """R-Drop: two passes with different dropout, which are drawn together; see `consistent_cross_entropy`.

    Attributes:
        consistency: Weight of their divergence.
        label_smoothing: As for `CrossEntropy`.
    """

    consistency: float
    label_smoothing: float = 0.0
    copies = 2

    def __call__(self, readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        """See `Loss`."""
        return consistent_cross_entropy(readouts, weight, bias, targets, self.label_smoothing, self.consistency)


def make_loss(label_smoothing: float = 0.0, r_drop: float = 0.0) -> Loss:
    """The loss of training; without R-Drop, cross-entropy."""
    return RDrop(r_drop, label_smoothing) if r_drop else CrossEntropy(label_smoothing)
