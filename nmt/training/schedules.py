"""Schedules: the learning rate and the ratio of teacher forcing."""

import math
from typing import assert_never

import torch
from torch import Tensor

from nmt.config import (
    ConstantForcingSection,
    ConstantRateSection,
    CosineRateSection,
    InverseRootRateSection,
    PlateauRateSection,
    ScheduleSection,
    TeacherForcingSection,
)
from nmt.models.base import WordChooser


class LearningRateSchedule:
    """Share of the configured learning rate at each update.

    constant: 1. inverse_sqrt (Vaswani et al., 2017, eq. 3): sqrt(warmup / update). cosine (Loshchilov & Hutter,
    2017): from 1 to `floor` over the whole run. plateau: times `factor` after more than `patience` validations
    without improvement, down to `floor`. Each starts with a linear warm-up over `warmup` updates.

    Args:
        config: The schedule.
        total_updates: Length of the whole run, for cosine.
    """

    def __init__(self, config: ScheduleSection, total_updates: int) -> None:
        self.config = config
        self.total_updates = total_updates
        self.reduction = 1.0
        self.waited = 0

    def share(self, update: int) -> float:
        """Share at an update, counted from 1."""
        config = self.config
        if update < config.warmup:
            return update / config.warmup
        match config:
            case ConstantRateSection():
                return 1.0
            case PlateauRateSection():
                return self.reduction
            case InverseRootRateSection():
                return math.sqrt(config.warmup / update)
            case CosineRateSection():
                progress = (update - config.warmup) / max(1, self.total_updates - config.warmup)
                return config.floor + (1 - config.floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
        assert_never(config)

    def validated(self, improved: bool) -> None:
        """Record a validation; only affects plateau."""
        config = self.config
        if not isinstance(config, PlateauRateSection):
            return
        self.waited = 0 if improved else self.waited + 1
        if self.waited > config.patience:
            self.reduction = max(config.floor, self.reduction * config.factor)
            self.waited = 0


def forcing_ratio(config: TeacherForcingSection, update: int) -> float:
    """Probability of teacher forcing at an update, counted from 0 (Bengio et al., 2015, section 2.4).

    linear: from `ratio` to `minimum` over `updates` updates. inverse_sigmoid: falls from `ratio` towards `minimum`
    as k / (k + exp(i / k)), with k = `updates`.
    """
    if isinstance(config, ConstantForcingSection):
        return config.ratio
    span = config.ratio - config.minimum
    k = config.updates
    if config.schedule == "linear":
        return config.ratio - span * min(1.0, update / k)
    return config.minimum + span * k / (k + math.exp(min(700.0, update / k)))


def draw_choices(config: TeacherForcingSection, update: int, tgt_in: Tensor) -> WordChooser | None:
    """Draw for one batch which steps read the reference and which the model's own last word.

    Draws from torch's global CPU generator, unless the ratio is 1.

    Args:
        config: Ratio, unit and schedule.
        update: Number of updates so far.
        tgt_in: Target ids that start with BOS, [B, T].

    Returns:
        `choose` of `Seq2Seq.forward`; None if every step of the batch reads the reference.
    """
    ratio = forcing_ratio(config, update)
    if ratio >= 1:
        return None
    rows, length = tgt_in.shape
    draws = torch.rand(rows, length if config.unit == "token" else 1)
    drawn = draws < ratio
    if drawn.all():
        return None
    forced = drawn.to(tgt_in.device, non_blocking=True).expand(rows, length)

    def choose(position: int, logits: Tensor) -> Tensor:
        return torch.where(forced[:, position], tgt_in[:, position], logits.argmax(dim=-1))

    return choose
