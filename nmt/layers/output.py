"""Output layers: from a readout to the logits of all target words."""

import math

import torch
from torch import Tensor, nn

from nmt.layers.kernels.cross_entropy import consistent_cross_entropy, output_cross_entropy
from nmt.layers.kernels.dropout import Dropout
from nmt.layers.kernels.stepwise import PreparedLinear, StepLinear, StepWeight

SHORTEST = 0.1
"""A shorter vector does not get the fixed norm: that of PAD starts at 0, where the gradient would be infinite."""


class OutputLayer(StepLinear):
    """z = W x + b: readouts [..., K] -> logits of all words [..., V].

    Args:
        in_features: K.
        out_features: V.
        dropout: On readouts.
    """

    def __init__(self, in_features: int, out_features: int, dropout: float = 0.0) -> None:
        super().__init__(in_features, out_features)
        self.dropout = Dropout(dropout)
        self.stretch: nn.Module = nn.Identity()

    def rows(self) -> Tensor:
        """W, [V, K]."""
        return self.weight

    def forward(self, readouts: Tensor) -> Tensor:
        """[..., K] -> [..., V]."""
        return nn.functional.linear(*self.operands(readouts))

    def loss(
        self, readouts: Tensor, targets: Tensor, label_smoothing: float = 0.0, ignored: int | None = None
    ) -> Tensor:
        """Cross-entropy, summed, in nats: [P, K] and words [P] -> scalar; see `output_cross_entropy`."""
        return output_cross_entropy(*self.operands(readouts), targets, label_smoothing, ignored)

    def consistent_loss(
        self,
        readouts: Tensor,
        targets: Tensor,
        label_smoothing: float,
        consistency: float,
        *,
        stop_gradient: bool = False,
    ) -> Tensor:
        """The loss of a first reading, and its divergence from a second one: readouts of both [2 * P, K], words [P].

        See `consistent_cross_entropy`.
        """
        operands = self.operands(readouts)
        return consistent_cross_entropy(*operands, targets, label_smoothing, consistency, stop_gradient=stop_gradient)

    def operands(self, readouts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The x, W and b of the product: [..., K], [V, K] and [V]."""
        return self.stretch(self.dropout(readouts)), self.rows(), self.bias

    def for_steps(self) -> nn.Module:
        """See `StepLinear`."""
        return nn.Sequential(self.dropout, self.stretch, PreparedLinear(StepWeight(self.rows()), self.bias))

    @property
    def uniform_loss(self) -> float:
        """Cross-entropy of the uniform distribution over the words, in nats per token."""
        return math.log(self.out_features)

    @property
    def initial_loss(self) -> float:
        """Expected cross-entropy with random weights, in nats per token."""
        return self.uniform_loss


class FixedNormOutput(OutputLayer):
    """z = r^2 cos(W_v, x) + b_v for each word v: readouts and words' vectors have the norm r (Nguyen & Chiang, 2018).

    Otherwise frequent words get long vectors and are preferred to rare ones. Vectors shorter than `SHORTEST` are
    lengthened by the factor r / SHORTEST.

    Args:
        in_features: K.
        out_features: V.
        dropout: On readouts.
        norm: r.
    """

    def __init__(self, in_features: int, out_features: int, dropout: float = 0.0, *, norm: float) -> None:
        super().__init__(in_features, out_features, dropout)
        self.norm = norm
        self.stretch = FixedNorm(norm**2)  # r^2 is part of x

    def rows(self) -> Tensor:
        """W with rows of norm 1, [V, K]."""
        return unit(self.weight)

    @property
    def initial_loss(self) -> float:
        """See `OutputLayer`; the cosine of random vectors has the variance 1 / K."""
        return self.uniform_loss + self.norm**4 / (2 * self.in_features)


class FixedNorm(nn.Module):
    """Gives vectors a norm; see `unit`.

    Args:
        norm: The norm.
    """

    def __init__(self, norm: float) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., K] -> [..., K]."""
        return self.norm * unit(inputs)


def unit(vectors: Tensor) -> Tensor:
    """x -> x / |x|, or x / SHORTEST if |x| is less: [..., K] -> [..., K], in float32 or better."""
    exact = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    return nn.functional.normalize(exact, dim=-1, eps=SHORTEST)
