import math

import numpy as np
import pytest
import torch

from nmt.model.kernels.cross_entropy import cross_entropy

SIZE = 10  # of the vocabulary


def logsumexp(x: np.ndarray) -> float:
    return float(x.max() + np.log(np.exp(x - x.max()).sum()))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_cross_entropy_by_hand(smoothing: float) -> None:
    """Szegedy et al., 2016, section 7: (1 - e) to the reference and e spread evenly over all words."""
    rng = np.random.default_rng(0)
    logits, targets = rng.normal(size=(5, SIZE)), rng.integers(SIZE, size=5)
    expected = 0.0
    for row, target in zip(logits, targets, strict=True):
        log_probs = row - logsumexp(row)
        expected -= (1 - smoothing) * log_probs[target] + smoothing * log_probs.mean()
    found = cross_entropy(torch.from_numpy(logits), torch.from_numpy(targets), smoothing)
    assert float(found) == pytest.approx(expected, rel=1e-6)


def test_cross_entropy_of_even_odds() -> None:
    found = cross_entropy(torch.zeros(3, SIZE), torch.tensor([3, 4, 9]), 0.2)
    assert float(found) == pytest.approx(3 * math.log(SIZE), rel=1e-6)
