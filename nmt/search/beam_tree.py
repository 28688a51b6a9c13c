"""The tree of a search: every prefix that was in the beam, also those that were dropped."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from nmt.search.trace import SearchStep


@dataclass(frozen=True)
class Node:
    """A prefix, named by its last word.

    Attributes:
        parent: Number of the node that it continues; -1 for a first word.
        id: Id of its last word.
        log_prob: Natural logarithm of the probability of the prefix.
        score: The score by which hypotheses are ranked if it ended here; None if it did not.
        alignment: Attention of the step that predicted the word, [heads, S].
    """

    parent: int
    id: int
    log_prob: float
    score: float | None
    alignment: Tensor


@dataclass(frozen=True)
class BeamTree:
    """The search for translations of one source.

    Attributes:
        nodes: All prefixes; each after the one that it continues.
        best: Numbers of the nodes where hypotheses end, best first.
    """

    nodes: list[Node]
    best: list[int]

    def path(self, node: int) -> list[int]:
        """Numbers of the nodes of a prefix, from its first word to its last."""
        path = []
        while node >= 0:
            path.append(node)
            node = self.nodes[node].parent
        return path[::-1]

    def ids(self, node: int) -> list[int]:
        """The words of a prefix."""
        return [self.nodes[number].id for number in self.path(node)]


def grow_tree(steps: Sequence[SearchStep]) -> BeamTree:
    """The tree of a search in a single source, whose steps have alignments.

    Args:
        steps: All steps of the search.
    """
    nodes: list[Node] = []
    # The number of the node of each row of the search: before the first step there are none.
    rows = [-1] * len(steps[0].choice.parents.flatten())
    for step in steps:
        assert step.alignment is not None
        totals = step.choice.totals.flatten().tolist()
        words = step.choice.words.flatten().tolist()
        parents = step.choice.parents.flatten().tolist()
        scores = step.scores.flatten().tolist()
        # A node for each beam slot that has a hypothesis.
        numbers = []
        for total, word, parent, score in zip(totals, words, parents, scores, strict=True):
            if not math.isfinite(total):
                numbers.append(-1)
                continue
            numbers.append(len(nodes))
            score_at_end = score if math.isfinite(score) else None
            nodes.append(Node(rows[parent], word, total, score_at_end, step.alignment[parent].cpu()))
        # The slots that continue become the rows of the next step.
        rows = numbers if step.slots is None else [numbers[slot] for slot in step.slots.tolist()]
    ends = [(node.score, number) for number, node in enumerate(nodes) if node.score is not None]
    best = sorted(ends, key=lambda end: -end[0])
    return BeamTree(nodes, [number for _, number in best])
