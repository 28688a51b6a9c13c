import math

import numpy as np
import pytest
import torch

from nmt.evaluation.attention_statistics import (
    Moments,
    attention_by_length,
    coverage,
    diagonality,
    mean_sharpness,
    summarize,
    tabulate_lengths,
)
from nmt.translation.sharpness import step_statistics


def rows(*weights: list[float]) -> torch.Tensor:
    return torch.tensor(weights, dtype=torch.float64).unsqueeze(1)


def test_entropies_by_hand() -> None:
    """Natural logarithms; six steps over seven positions, such as tutorials print, then the extremes."""
    found = step_statistics(
        rows(
            [0.65, 0.10, 0.10, 0.05, 0.05, 0.03, 0.02],
            [0.70, 0.10, 0.05, 0.05, 0.05, 0.03, 0.02],
            [0.60, 0.25, 0.05, 0.03, 0.03, 0.02, 0.02],
            [0.10, 0.75, 0.05, 0.05, 0.02, 0.02, 0.01],
            [0.05, 0.05, 0.05, 0.70, 0.10, 0.03, 0.02],
            [0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.88],
            [1 / 7] * 7,
            [0, 0, 1, 0, 0, 0, 0],
        )
    )
    expected = [1.224, 1.113, 1.170, 0.948, 1.113, 0.582, math.log(7), 0]
    assert found.entropy.flatten().tolist() == pytest.approx(expected, abs=5e-4)
    assert found.maximum.flatten().tolist() == pytest.approx([0.65, 0.70, 0.60, 0.75, 0.70, 0.88, 1 / 7, 1])
    assert found.clear.flatten().tolist() == [1, 1, 2, 1, 1, 1, 7, 1]
    assert found.columns() == {
        "entropy": ["1.22", "1.11", "1.17", "0.95", "1.11", "0.58", "1.95", "0.00"],
        "largest weight": ["0.65", "0.70", "0.60", "0.75", "0.70", "0.88", "0.14", "1.00"],
        "positions above 0.1": ["1", "1", "2", "1", "1", "1", "7", "1"],
    }


def test_heads_are_kept() -> None:
    weights = torch.tensor([[[1.0, 0.0], [0.5, 0.5]]])
    assert step_statistics(weights).entropy.tolist() == [[0, pytest.approx(math.log(2))]]
    assert coverage(weights).tolist() == [0.5, 0.5]


def test_coverage_by_hand() -> None:
    assert coverage(rows([1, 0, 0], [0.5, 0.5, 0])).tolist() == [pytest.approx((1 + 0.5 + 0) / 3)]
    assert coverage(torch.eye(4).unsqueeze(1)).tolist() == [1]


def test_diagonality_by_hand() -> None:
    assert diagonality(torch.eye(5).unsqueeze(1)).tolist() == [1]
    assert diagonality(torch.eye(5).flip(0).unsqueeze(1)).tolist() == [pytest.approx(1 - 0.6)]
    assert diagonality(rows([0.5, 0.5], [0.5, 0.5])).tolist() == [0.5]
    assert diagonality(rows([0.5, 0, 0], [0, 0, 0.25])).tolist() == [1]  # weights of local attention sum to less
    assert diagonality(rows([0.5, 0.5])).tolist() == [1]


def test_a_summary_is_that_of_all_steps_and_sentences() -> None:
    generator = torch.Generator().manual_seed(1)
    alignments = [
        torch.softmax(torch.randn(steps, 2, positions, generator=generator), dim=-1)
        for steps, positions in [(3, 4), (5, 2), (1, 1), (2, 9)]
    ]
    found = summarize([*alignments, torch.zeros(0, 1, 0)])
    assert len(found) == 2
    for head, each in enumerate(found):
        arrays = [weights[:, head].double().numpy() for weights in alignments]
        entropies = np.concatenate([-(a * np.log(a)).sum(axis=1) for a in arrays])
        assert (each.entropy.mean, each.entropy.deviation) == pytest.approx((entropies.mean(), entropies.std()))
        clear = np.concatenate([(a > 0.1).sum(axis=1) for a in arrays])
        assert (each.clear.mean, each.clear.deviation) == pytest.approx((clear.mean(), clear.std()))
        covered = np.array([np.minimum(a.sum(axis=0), 1).mean() for a in arrays])
        assert (each.coverage.mean, each.coverage.deviation) == pytest.approx((covered.mean(), covered.std()))
    labels = ("entropy", "largest weight", "positions above 0.1", "coverage", "diagonality")
    assert str(found[0]) == ", ".join(f"{one} {two}" for one, two in zip(labels, vars(found[0]).values(), strict=True))
    assert summarize([]) == summarize([torch.zeros(0, 1, 0)]) == []


def test_attention_by_length_is_that_of_its_sentences() -> None:
    torch.manual_seed(3)
    alignments = [torch.softmax(torch.randn(4, 2, 5), dim=-1) for _ in range(6)]
    bins = {"1-2": [0, 3], "3-9": [1, 2, 4, 5]}
    found = attention_by_length(bins, alignments)
    assert [(group.name, group.sentences) for group in found] == [("1-2", 2), ("3-9", 4)]
    assert found[0].heads == summarize([alignments[0], alignments[3]])
    weights = torch.cat([alignments[n] for n in (1, 2, 4, 5)]).double()
    expected = {
        "entropy": -(weights * weights.log()).sum(dim=-1).mean().item(),
        "maximum": weights.amax(dim=-1).mean().item(),
        "clear": (weights > 0.1).double().sum(dim=-1).mean().item(),
    }
    assert mean_sharpness(found[1].heads) == pytest.approx(expected)
    table = tabulate_lengths(found)
    assert table.header == ["words", "sentences", "entropy (nats)", "largest weight", "positions above 0.1"]
    assert table.rows[1] == ["3-9", "4", *(f"{value:.3f}" for value in expected.values())]
    assert [group.heads for group in attention_by_length(bins, [None] * 6)] == [[], []]
    assert mean_sharpness([]) == {}


def test_a_mean_of_almost_zero_has_no_sign() -> None:
    assert str(Moments(-0.0002, 0.5)) == "0.000 ± 0.500"
