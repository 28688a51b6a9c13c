"""A moving average of the weights during training."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import nn


class WeightAverage:
    """Exponential moving average of a model's weights (Polyak & Juditsky, 1992).

    After update t, average = d average + (1 - d) weights, with d = min(decay, (1 + t) / (10 + t)), so that the initial
    weights are soon forgotten.

    Args:
        model: The model in training; the average starts at its weights.
        decay: None averages nothing: `applied` leaves the weights as they are.
    """

    def __init__(self, model: nn.Module, decay: float | None) -> None:
        self.decay = decay or 0.0
        self.weights = {} if decay is None else dict(model.named_parameters())
        self.averages = {name: weight.detach().clone() for name, weight in self.weights.items()}

    @property
    def nbytes(self) -> int:
        """Memory of the average."""
        return sum(average.nbytes for average in self.averages.values())

    @torch.no_grad()
    def update(self, updates: int) -> None:
        """Add the current weights, those after so many updates."""
        share = 1 - min(self.decay, (1 + updates) / (10 + updates))
        for name, average in self.averages.items():
            average.lerp_(self.weights[name], share)

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Give the model the averaged weights inside the block."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, average in self.averages.items():
            weight = self.weights[name]
            kept = weight.clone()
            weight.copy_(average)
            average.copy_(kept)
