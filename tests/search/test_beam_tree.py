"""The tree of a beam search agrees with the hypotheses of the same search."""

import math

import pytest
import torch
from small_models import Variant, random_model

from nmt.config import DecodeSection
from nmt.models.seq2seq import Seq2Seq
from nmt.search.searcher import ModelSearcher
from nmt.text.vocabulary import EOS_ID

SOURCES = [[4, 5, 6, 7], [8, 4], [5], [7, 7, 7, 7, 7, 7]]


def model(order: str, attention: str) -> Seq2Seq:
    return random_model(Variant(order, False, attention), 5, spread=0.9)


@pytest.mark.parametrize(("order", "attention"), [("bahdanau", "general"), ("luong", "general"), ("luong", "heads")])
@pytest.mark.parametrize("beam_size", [1, 2, 5])
@pytest.mark.parametrize("source", SOURCES, ids=len)
def test_the_best_paths_are_the_hypotheses(order: str, attention: str, beam_size: int, source: list[int]) -> None:
    searcher = ModelSearcher([model(order, attention)], DecodeSection(beam_size=beam_size, max_length=12))
    tree = searcher.grow_tree(source)
    (found,) = searcher.search([source], n_best=beam_size, with_alignment=True)
    (first, *_) = found
    path = [tree.nodes[number] for number in tree.path(tree.best[0])]
    ids = [node.id for node in path]
    assert ids == [*first.ids, *([EOS_ID] if first.complete else [])]
    assert path[-1].log_prob == pytest.approx(first.log_prob, abs=1e-12)
    assert path[-1].score == pytest.approx(first.score, abs=1e-12)
    assert first.alignment is not None
    assert torch.equal(torch.stack([node.alignment for node in path]), first.alignment)
    assert [node.log_prob - (path[n - 1].log_prob if n else 0) for n, node in enumerate(path)] == pytest.approx(
        first.token_log_probs, abs=1e-12
    )


@pytest.mark.parametrize("source", SOURCES, ids=len)
def test_a_tree_has_every_prefix_of_the_beam(source: list[int]) -> None:
    searcher = ModelSearcher([model("luong", "general")], DecodeSection(beam_size=3, max_length=12))
    tree = searcher.grow_tree(source)
    depths = [len(tree.path(number)) for number in range(len(tree.nodes))]
    assert depths == sorted(depths)
    assert max(depths.count(depth) for depth in set(depths)) <= 3
    for number, node in enumerate(tree.nodes):
        assert node.parent < number
        assert node.log_prob <= (tree.nodes[node.parent].log_prob if node.parent >= 0 else 0.0)
        assert node.alignment.shape == (1, len(source) + 1)
        assert node.alignment.sum().item() == pytest.approx(1)
        if node.id == EOS_ID:
            assert node.score is not None
            assert all(other.parent != number for other in tree.nodes)
    scores = [tree.nodes[number].score for number in tree.best]
    assert scores == sorted(scores, key=lambda score: -(score or -math.inf))
    assert len({tuple(tree.nodes[n].id for n in tree.path(number)) for number in range(len(tree.nodes))}) == len(
        tree.nodes
    )
