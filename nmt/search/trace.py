"""Builds hypotheses from the steps of a search, by following each from its last word back to its first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.layers.kernels.transfer import to_host
from nmt.search.hypothesis import Hypothesis
from nmt.search.strategy import Choice
from nmt.text.vocabulary import EOS_ID


class Step(NamedTuple):
    """The record of one step of a search.

    Attributes:
        sources: Index of the source of each sentence, [B].
        choice: The grid after the step, [B, N].
        scores: Score of each hypothesis that ends at this step, -inf for the others, [B, N].
        attended: Source position attended most by each row, [R].
        alignment: [R, heads, S]; None if alignments are not kept.
        cells: Index in the flattened grid of each row of the next step, [R']; None if all continue, in order.
    """

    sources: Tensor
    choice: Choice
    scores: Tensor
    attended: Tensor
    alignment: Tensor | None
    cells: Tensor | None


def trace(steps: Sequence[Step], src_lengths: Tensor, n_best: int) -> list[list[Hypothesis]]:
    """Rank the finished hypotheses, and build the best ones of each source.

    Waits for the device twice, and once more for alignments.

    Args:
        steps: All steps of a search.
        src_lengths: True lengths of the sources, [B].
        n_best: Maximum number of hypotheses per source.

    Returns:
        The hypotheses of each source, best first.
    """
    floats = _to_numpy([part for step in steps for part in (step.choice.totals, step.scores)])
    totals, scores = floats[::2], floats[1::2]
    cells = [step.cells for step in steps if step.cells is not None]
    integers = _to_numpy([part for step in steps for part in _integers(step)] + cells)
    rest = iter(integers[4 * len(steps) :])
    sources, words, attended, parents = (integers[n : 4 * len(steps) : 4] for n in range(4))
    before = [None if step.cells is None else next(rest) for step in steps]
    source, step, cell, score = _rank(sources, scores, n_best)
    shape = len(source), len(steps)
    found_words, found_totals, found_attended = np.zeros(shape, int), np.zeros(shape), np.zeros(shape, int)
    paths = _follow(parents, before, step, cell)
    for t, hypotheses, places, rows in paths:
        found_words[hypotheses, t] = words[t].flat[places]
        found_totals[hypotheses, t] = totals[t].flat[places]
        found_attended[hypotheses, t] = attended[t][rows]
    alignments = _alignments(steps, paths, len(source))
    lengths = src_lengths.tolist()
    found: list[list[Hypothesis]] = [[] for _ in lengths]
    for n, (origin, length) in enumerate(zip(source.tolist(), (step + 1).tolist(), strict=True)):
        complete = found_words[n, length - 1] == EOS_ID
        found[origin].append(
            Hypothesis(
                found_words[n, : length - complete].tolist(),
                bool(complete),
                float(found_totals[n, length - 1]),
                float(score[n]),
                np.diff(found_totals[n, :length], prepend=0.0).tolist(),
                found_attended[n, :length].clip(max=lengths[origin]).tolist(),
                None if alignments is None else alignments[n, :length, :, : lengths[origin]],
            )
        )
    return found


Indices = NDArray[np.int64]
Path = tuple[int, Indices, Indices, Indices]
"""A step; hypotheses that have a word there; their cells in its grid; the rows that they continued."""


def _rank(
    sources: Sequence[Indices], scores: Sequence[NDArray[np.float64]], n_best: int
) -> tuple[Indices, Indices, Indices, NDArray[np.float64]]:
    """The best finished hypotheses: source, last step, cell and score of each, by source and score."""
    ends = [np.isfinite(each).nonzero() for each in scores]
    source = np.concatenate([of[sentence] for of, (sentence, _) in zip(sources, ends, strict=True)])
    score = np.concatenate([each[end] for each, end in zip(scores, ends, strict=True)])
    step = np.concatenate([np.full(len(sentence), t) for t, (sentence, _) in enumerate(ends)])
    cell = np.concatenate([b * each.shape[1] + n for each, (b, n) in zip(scores, ends, strict=True)])
    order = np.lexsort((-score, source))  # stable: of equal scores, the one that ended first is first
    best = order[np.arange(len(order)) - np.searchsorted(source[order], source[order]) < n_best]
    return source[best], step[best], cell[best], score[best]


def _integers(step: Step) -> tuple[Tensor, ...]:
    return step.sources, step.choice.words, step.attended, step.choice.parents


def _follow(parents: Sequence[Indices], before: Sequence[Indices | None], last: Indices, cell: Indices) -> list[Path]:
    """Follow hypotheses back to their first words.

    Args:
        parents: Rows that the cells of each step's grid continue.
        before: Cells of each step that the rows of the next continue; None if all do, in order.
        last: Last step of each hypothesis.
        cell: Its cell in the grid of that step.
    """
    paths = []
    current = cell.copy()
    for t in reversed(range(len(parents))):
        hypotheses = (last >= t).nonzero()[0]
        at = current[hypotheses]
        rows = parents[t].flat[at]
        paths.append((t, hypotheses, at, rows))
        if t:
            from_cells = before[t - 1]
            current[hypotheses] = rows if from_cells is None else from_cells[rows]
    return paths


def _alignments(steps: Sequence[Step], paths: Sequence[Path], number: int) -> Tensor | None:
    """Alignments of the hypotheses on the host, [number, T, heads, S]; None if they were not kept."""
    first = steps[0].alignment
    if first is None:
        return None
    found = first.new_zeros(number, len(steps), *first.shape[1:])
    for t, hypotheses, _, rows in paths:
        kept = steps[t].alignment
        assert kept is not None
        found[torch.from_numpy(hypotheses).to(found.device), t] = kept[torch.from_numpy(rows).to(found.device)]
    return to_host(found)


def _to_numpy(tensors: Sequence[Tensor]) -> list[NDArray[Any]]:
    """Tensors of one type on the host, all in one transfer."""
    if not tensors:
        return []
    flat = to_host(torch.cat([each.flatten() for each in tensors])).numpy()
    parts = np.split(flat, np.cumsum([each.numel() for each in tensors])[:-1])
    return [part.reshape(each.shape) for part, each in zip(parts, tensors, strict=True)]
