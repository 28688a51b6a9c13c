"""Ranking the models of a run."""

import math
from pathlib import Path

from nmt.evaluation.metrics import higher_is_better
from nmt.models.storage import MARKER
from nmt.system.errors import DataError
from nmt.system.files import read_json

FLOOR = 0.005
"""BLEU and chrF below this are displayed as 0.00, and count as 0."""


def rank(metric: str, score: float, loss: float | None) -> tuple[float, float]:
    """Sort key of a model, greater is better: the score, and for equal scores the validation loss.

    Args:
        metric: A metric, or the loss.
        score: Its value.
        loss: Validation loss; None if unknown, which is worse than any.
    """
    unlikely = -math.inf if loss is None else -loss
    if not higher_is_better(metric):
        return -score, unlikely
    return (0.0 if is_at_floor(metric, score) else score), unlikely


def is_at_floor(metric: str, score: float) -> bool:
    """True if a score is the worst possible, so that it says nothing about a model that is still learning."""
    return higher_is_better(metric) and score < FLOOR


def stored_rank(model: Path, metric: str) -> tuple[float, float]:
    """Rank of a stored model; a damaged one is the worst."""
    try:
        scores = read_json(model / MARKER)["scores"]
        return rank(metric, float(scores[metric]), float(scores["loss"]))
    except (DataError, OSError, ValueError, KeyError, TypeError):
        return -math.inf, -math.inf
