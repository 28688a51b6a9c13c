"""How sharp attention is at each step."""

from dataclasses import dataclass

import torch
from torch import Tensor

CLEAR = 0.1
"""Weight above which a position counts as attended."""
STEP_LABELS = {"entropy": "entropy", "maximum": "largest weight", "clear": f"positions above {CLEAR}"}
"""Names of the statistics where they are shown."""


@dataclass(frozen=True)
class StepStatistics:
    """Statistics of each step and head of an alignment, [T, heads].

    Attributes:
        entropy: -sum_s a_s ln a_s in nats: 0 for one position, ln S for the mean of S.
        maximum: Largest weight.
        clear: Positions with a weight above 0.1.
    """

    entropy: Tensor
    maximum: Tensor
    clear: Tensor

    def columns(self) -> dict[str, list[str]]:
        """Each statistic of every step of the first head as text, by its name."""
        values = ([f"{value:z.{digits}f}" for value in getattr(self, name)[:, 0]] for name, digits in _DIGITS.items())
        return dict(zip(STEP_LABELS.values(), values, strict=True))


_DIGITS = {"entropy": 2, "maximum": 2, "clear": 0}


def step_statistics(weights: Tensor) -> StepStatistics:
    """Statistics of each step.

    Args:
        weights: Attention, [T, heads, S].
    """
    exact = weights.double()
    return StepStatistics(
        entropy=torch.special.entr(exact).sum(dim=-1), maximum=exact.amax(dim=-1), clear=(exact > CLEAR).sum(dim=-1)
    )
