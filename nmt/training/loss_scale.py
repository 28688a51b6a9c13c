"""Scaling the loss in float16, where small gradients would become 0 (Micikevicius et al., 2018, section 3.2)."""

from __future__ import annotations

import torch
from torch import Tensor

FIRST_SCALE = 2.0**8
"""Lower than usual, as losses are summed over all tokens of a batch, not averaged."""
GROWTH = 2.0
BACKOFF = 0.5
GROWTH_INTERVAL = 2000
"""Updates without a skipped one after which the scale grows."""


class NoLossScale:
    """No scaling: gradients in float32 and bfloat16 need none."""

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss whose gradients are computed."""
        return loss

    def scaled_divisor(self, divisor: Tensor) -> Tensor:
        """Divisor of the gradients of a scaled loss, for a divisor of those of the loss."""
        return divisor

    def update(self, skipped: Tensor) -> None:
        """Take note of an update: 1 if it was skipped, otherwise 0."""

    def tensors(self) -> dict[str, Tensor]:
        """Its state by name, for a checkpoint."""
        return {}


class LossScale(NoLossScale):
    """A scale that is halved when gradients overflow, and doubled after 2,000 updates in which none did.

    All of it stays on the device: the host waits for nothing.

    Args:
        device: Device of the model.
    """

    def __init__(self, device: torch.device) -> None:
        self.scale = torch.full((), FIRST_SCALE, device=device)
        self.good_updates = torch.zeros((), dtype=torch.int32, device=device)

    def scaled(self, loss: Tensor) -> Tensor:
        """See `NoLossScale.scaled`."""
        return loss * self.scale

    def scaled_divisor(self, divisor: Tensor) -> Tensor:
        """See `NoLossScale.scaled_divisor`."""
        return divisor * self.scale

    def update(self, skipped: Tensor) -> None:
        """See `NoLossScale.update`."""
        torch._amp_update_scale_(self.scale, self.good_updates, skipped, GROWTH, BACKOFF, GROWTH_INTERVAL)

    def tensors(self) -> dict[str, Tensor]:
        """See `NoLossScale.tensors`."""
        return {"scale": self.scale, "good_updates": self.good_updates}


def make_loss_scale(precision: str, device: torch.device) -> NoLossScale:
    """The scaling that a precision needs."""
    return LossScale(device) if precision == "float16" else NoLossScale()
