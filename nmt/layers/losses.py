"""Losses of the output layer."""

from dataclasses import dataclass

from torch import Tensor

from nmt.layers.kernels.cross_entropy import consistent_cross_entropy, output_cross_entropy


@dataclass(frozen=True)
class Loss:
    """Cross-entropy, summed over target positions, in nats; or R-Drop, of two passes with different dropout.

    Attributes:
        label_smoothing: Share of the probability that is spread evenly over all words.
        r_drop: Weight of the divergence of the passes, which are drawn together; without it there is one pass.
    """

    label_smoothing: float = 0.0
    r_drop: float = 0.0

    @property
    def copies(self) -> int:
        """How many times each batch passes through the model."""
        return 2 if self.r_drop else 1

    def __call__(self, readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        """The loss; see `output_cross_entropy` and `consistent_cross_entropy`.

        Args:
            readouts: Vectors before the output layer, of all copies one after the other, [copies * P, K].
            weight: Of the output layer, [V, K].
            bias: [V].
            targets: Words to predict, [copies * P].

        Returns:
            A scalar, the mean over the copies.
        """
        if self.r_drop:
            return consistent_cross_entropy(readouts, weight, bias, targets, self.label_smoothing, self.r_drop)
        return output_cross_entropy(readouts, weight, bias, targets, self.label_smoothing)


CROSS_ENTROPY = Loss()
