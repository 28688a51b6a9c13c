"""Ranking the models of a run."""

from __future__ import annotations

import math

FLOOR = 0.005
"""BLEU and chrF below this are displayed as 0.00, and count as 0."""


def rank(metric: str, score: float, loss: float | None) -> tuple[float, float]:
    """Sort key of a model, greater is better: the score, and for equal scores the validation loss.

    Args:
        metric: Name of the score; lower is better for the loss, higher for all others.
        score: Its value.
        loss: Validation loss; None if unknown, which is worse than any.
    """
    unlikely = -math.inf if loss is None else -loss
    if metric == "loss":
        return -score, unlikely
    return (0.0 if is_at_floor(metric, score) else score), unlikely


def is_at_floor(metric: str, score: float) -> bool:
    """Whether a score is the worst possible, so that it says nothing about a model that is still learning."""
    return metric != "loss" and score < FLOOR
