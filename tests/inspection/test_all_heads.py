"""Patterns of heads, by hand, and that chance gives none."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from nmt.inspection.all_heads import SelfHead, self_head
from nmt.inspection.head_patterns import LayerTally, Relation
from nmt.models.base import Head

VERB_AND_SUBJECT = [Relation("subject", [6], [1])]


def heads_of(
    weights: Tensor, sentences: int = 1, *, causal: bool = False, relations: Sequence[Relation] = ()
) -> list[SelfHead]:
    """Heads with the same weights in several sentences."""
    tally = LayerTally(causal=causal)
    for _ in range(sentences):
        tally.add(weights, relations)
    return [self_head("decoder" if causal else "encoder", Head(0, n), tally) for n in range(len(weights))]


def test_patterns_by_hand() -> None:
    """Ten positions, the last of them the end of the sentence."""
    size = 10
    same, even = torch.eye(size), torch.full((size, size), 1 / size)
    before = torch.eye(size).roll(-1, dims=1)  # the word before; the first reads the last
    near = torch.ones(size, size).tril(2) - torch.ones(size, size).tril(-3)
    near = near / near.sum(dim=1, keepdim=True)
    end = torch.zeros(size, size)
    end[:, -1] = 1
    verb = torch.eye(size).flip(0)  # the verb at 6 reads its subject at 1, and others what is as far or nearer
    verb[6], verb[7] = torch.eye(size)[1], torch.eye(size)[4]
    weights = torch.stack([same, even, before, near, end, verb]).double()
    found = heads_of(weights, 30, relations=VERB_AND_SUBJECT)
    assert [head.pattern for head in found] == ["positional", "even", "positional", "local", "positional", "syntactic"]
    assert [head.shown_excess[0] for head in found] == ["+0", "near", "-1", "near", "end", "subject"]
    assert found[0].by_distance[0] == pytest.approx(1)
    assert found[0].first == found[0].stop == found[0].end == pytest.approx(1 / size)
    assert found[0].describe() == "positional, +0: +0.90"  # of each row a tenth by chance
    assert found[1].spread == pytest.approx(1)
    assert found[1].by_distance[-1] == pytest.approx(9 / 100)
    assert found[1].by_distance[5] == pytest.approx(15 / 100)
    assert found[2].by_distance[-1] == pytest.approx(9 / 10)
    assert found[2].excesses["-1"].value == pytest.approx(9 / 10 - 9 / 100)
    assert found[3].excesses["near"].shuffled == pytest.approx(44 / 100)  # 5 of 10 words, less 6 beyond the margins
    assert found[4].end == found[4].describe().count("end") == 1
    subject = found[5].relations["subject"]
    assert (subject.weight, subject.shuffled) == (1, pytest.approx(1 / 10))
    assert subject.distance == pytest.approx(found[5].by_distance[-5])


def test_the_same_weights_are_syntactic_only_where_that_was_measured() -> None:
    weights = torch.eye(10, dtype=torch.float64).flip(0)[None]
    weights[0, 6] = torch.eye(10)[1]
    assert heads_of(weights, 30)[0].pattern == "by content"


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [4, 6, 8, 11, 20])
@pytest.mark.parametrize("sharpness", [0.5, 2.0, 8.0])
def test_random_heads_have_no_pattern(size: int, sharpness: float, *, causal: bool) -> None:
    """By an earlier rule, such heads were local in sentences of eight words, and syntactic in those of eleven."""
    generator = torch.Generator().manual_seed(size)
    tally = LayerTally(causal=causal)
    for _ in range(20):
        scores = sharpness * torch.randn(64, size, size, generator=generator, dtype=torch.float64)
        if causal:
            scores = scores.masked_fill(torch.ones(size, size, dtype=torch.bool).triu(1), -torch.inf)
        tally.add(scores.softmax(dim=-1), [Relation("subject", [size - 1], [0]), Relation("noun", [1], [2])])
    found = [self_head("decoder" if causal else "encoder", Head(0, n), tally) for n in range(64)]
    assert {head.pattern for head in found} <= {"even", "by content"}
    assert all(abs(head.excesses["near"].value) <= 5 * head.excesses["near"].deviation for head in found)


def test_shuffling_many_times_gives_what_the_formula_says() -> None:
    """The mean and the deviation over 4,000 shuffles of each row."""
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(1, 7, 7, generator=generator, dtype=torch.float64).mul(2).softmax(dim=-1)
    (head,) = heads_of(weights)
    near = (torch.arange(7) - torch.arange(7).unsqueeze(1)).abs() <= 2
    order = torch.rand(4000, 7, 7, generator=generator).argsort(dim=-1)
    shuffled = (weights[0].expand(4000, 7, 7).gather(-1, order) * near).sum(dim=(1, 2)) / 7
    assert head.excesses["near"].shuffled == pytest.approx(float(shuffled.mean()), abs=0.005)
    assert head.excesses["near"].deviation == pytest.approx(float(shuffled.std()), rel=0.05)


def test_distances_beyond_the_farthest_are_one_and_a_decoder_has_no_end() -> None:
    size = 9
    first = torch.zeros(1, size, size, dtype=torch.float64)
    first[:, :, 0] = 1
    (head,) = heads_of(first, 30, causal=True)
    assert head.by_distance[-5] == pytest.approx(4 / 9)
    assert head.first == 1
    assert head.stop == head.end == 0
    assert "end" not in head.excesses
    assert head.pattern == "positional"
    by_chance = sum(1 / words for words in range(1, 10)) / 9  # of the only word, of two, of three ...
    assert head.describe() == f"positional, first: +{1 - by_chance:.2f}"
