"""Dropout with cheap random numbers."""

import torch
from torch import Tensor, nn

LEVELS = 2**16
"""Values of the random numbers; p is rounded to a multiple of 1 / LEVELS."""


class Dropout(nn.Module):
    """Dropout (Srivastava et al., 2014): in training each unit is 0 with probability p, otherwise divided by 1 - p.

    On the CPU each 64-bit random number of torch's global generator decides four units, which is several times faster
    than one per unit; p is rounded to 1 / 65536, and kept units are divided by the rounded 1 - p, so that the mean is
    exact. On other devices torch's own dropout is used.

    Args:
        p: Probability of 0.
    """

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.p = p

    def forward(self, inputs: Tensor) -> Tensor:
        """Any shape."""
        kept_levels = round((1 - self.p) * LEVELS)
        if not self.training or kept_levels == LEVELS:
            return inputs
        if inputs.device.type != "cpu" or not kept_levels:
            return nn.functional.dropout(inputs, self.p)
        mask = draw_mask(inputs.shape, kept_levels)
        if inputs.dtype.itemsize < mask.dtype.itemsize:  # the factor would be rounded with the mask
            return inputs * mask.to(inputs.dtype) * (LEVELS / kept_levels)
        return inputs * mask.to(inputs.dtype).mul_(LEVELS / kept_levels)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


def draw_mask(shape: torch.Size, kept_levels: int) -> Tensor:
    """Draw 1 with probability kept_levels / LEVELS, otherwise 0, independently; float32 on the CPU."""
    number = shape.numel()
    draws = torch.empty(-(-number // 4), dtype=torch.int64).random_(-(2**63), None)
    levels = draws.view(torch.int16)[:number].float()  # -LEVELS / 2 to LEVELS / 2 - 1; the highest `kept_levels` stay
    return levels.sub_(LEVELS // 2 - kept_levels - 1).clamp_(0, 1).view(shape)
