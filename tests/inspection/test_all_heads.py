"""Patterns of heads, by hand."""

import pytest
import torch

from nmt.inspection.all_heads import _profile, _self_head
from nmt.models.base import Head


def test_patterns_by_hand() -> None:
    """Six positions, the last of them the end of the sentence."""
    size = 6
    same, even = torch.eye(size), torch.full((size, size), 1 / size)
    before = torch.eye(size).roll(-1, dims=1)  # the word before; the first reads the last
    near = (torch.ones(size, size).tril(1) - torch.ones(size, size).tril(-2)).clamp(min=0)
    near = near / near.sum(dim=1, keepdim=True)
    fixed = torch.zeros(size, size)
    fixed[:3, 4], fixed[3:, 1] = 1, 1  # the first three read the word before the end, the others the second
    weights = torch.stack([same, even, before, near, fixed]).double()
    heads = [_self_head("encoder", Head(0, n), sums) for n, sums in enumerate(_profile(weights, causal=False))]
    assert [head.pattern for head in heads] == ["positional", "global", "positional", "local", "syntactic"]
    assert heads[0].by_distance[0] == pytest.approx(1)
    assert heads[0].first == heads[0].stop == heads[0].end == pytest.approx(1 / size)
    assert heads[1].spread == pytest.approx(1)
    assert heads[1].by_distance[-1] == pytest.approx(5 / 36)
    assert heads[1].by_distance[5] == pytest.approx(1 / 36)
    assert heads[2].by_distance[-1] == pytest.approx(5 / 6)
    assert heads[4].stop == pytest.approx(0.5)
    assert heads[4].end == 0
    assert heads[4].spread == 0


def test_distances_beyond_the_farthest_are_one_and_a_decoder_has_no_end() -> None:
    size = 9
    first = torch.zeros(1, size, size, dtype=torch.float64)
    first[:, :, 0] = 1
    (sums,) = _profile(first, causal=True)
    head = _self_head("decoder", Head(1, 0), sums)
    assert head.by_distance[-5] == pytest.approx(4 / 9)
    assert head.first == 1
    assert head.stop == head.end == 0
