"""Which of two models of a run is the better one."""

from __future__ import annotations

import math

FLOOR = 0.005
"""BLEU and chrF below it show as 0.00, and count as 0."""


def rank(metric: str, score: float, loss: float | None) -> tuple[float, float]:
    """What models are ordered by, the greater the better: the score, and among equal ones the validation loss.

    Args:
        metric: What the score is; for the loss less is better, for all else more.
        score: Its value.
        loss: Validation loss; None where it is not known, which is worse than any.
    """
    unlikely = -math.inf if loss is None else -loss
    if metric == "loss":
        return -score, unlikely
    return (0.0 if is_at_floor(metric, score) else score), unlikely


def is_at_floor(metric: str, score: float) -> bool:
    """Whether a score cannot be any worse, so that it tells nothing of a model that is still learning."""
    return metric != "loss" and score < FLOOR
