"""Builds hypotheses from the steps of a search, by following each from its last word back to its first."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.layers.kernels.transfer import to_host
from nmt.layers.layout import Layout, join_padded
from nmt.search.hypothesis import Hypothesis
from nmt.search.strategy import Choice
from nmt.text.vocabulary import EOS_ID


class SearchStep(NamedTuple):
    """The record of one step of a search.

    Attributes:
        sources: Index of the source of each sentence, [B].
        choice: The grid after the step, [B, N].
        scores: Score of each hypothesis that ends at this step, -inf for the others, [B, N].
        attended: Source position attended most by each row, [R].
        alignment: [R, heads, S]; None if alignments are not kept.
        slots: Beam slot of each row of the next step, an index in the flattened grid, [R']; None if all continue.
    """

    sources: Tensor
    choice: Choice
    scores: Tensor
    attended: Tensor
    alignment: Tensor | None
    slots: Tensor | None


def join_steps(records: Sequence[Sequence[SearchStep]], numbers: Sequence[int]) -> list[SearchStep]:
    """The steps of several searches as those of one.

    Args:
        records: The steps of each search, equally many.
        numbers: Number of sources of each search.
    """
    return [_join_step(steps, numbers) for steps in zip(*records, strict=True)]


def _join_step(steps: Sequence[SearchStep], numbers: Sequence[int]) -> SearchStep:
    """One step of several searches."""
    sources = []
    parents = []
    layouts = []
    first_source = 0
    first_row = 0
    for step, number in zip(steps, numbers, strict=True):
        sources.append(step.sources + first_source)
        parents.append(step.choice.parents + first_row)
        num_sentences, width = step.scores.shape
        layouts.append(Layout(num_sentences, width, step.slots))
        first_source += number
        first_row += len(step.attended)
    totals = join_padded([step.choice.totals for step in steps], fill=-torch.inf)
    words = join_padded([step.choice.words for step in steps])
    alignments = [step.alignment for step in steps if step.alignment is not None]
    return SearchStep(
        torch.cat(sources),
        Choice(totals, words, join_padded(parents)),
        join_padded([step.scores for step in steps], fill=-torch.inf),
        torch.cat([step.attended for step in steps]),
        join_padded(alignments) if alignments else None,
        Layout.join(layouts, words.device).slots,  # the rows of the next step
    )


def trace(steps: Sequence[SearchStep], src_lengths: Tensor, n_best: int) -> list[list[Hypothesis]]:
    """Rank the finished hypotheses, and build the best ones of each source.

    Waits for the device twice, and once more for alignments.

    Args:
        steps: All steps of a search.
        src_lengths: True lengths of the sources, [B].
        n_best: Maximum number of hypotheses per source.

    Returns:
        The hypotheses of each source, best first.
    """
    totals, scores = _fetch([step.choice.totals for step in steps], [step.scores for step in steps])
    slots = [step.slots for step in steps if step.slots is not None]
    sources, words, attended, parents, fetched_slots = _fetch(
        [step.sources for step in steps],
        [step.choice.words for step in steps],
        [step.attended for step in steps],
        [step.choice.parents for step in steps],
        slots,
    )
    rest = iter(fetched_slots)
    before = [None if step.slots is None else next(rest) for step in steps]
    source, step, slot, score = _rank(sources, scores, n_best)
    shape = len(source), len(steps)
    words_of = np.zeros(shape, int)
    totals_of = np.zeros(shape)
    attended_of = np.zeros(shape, int)
    paths = _follow(parents, before, step, slot)
    for t, hypotheses, at, rows in paths:
        words_of[hypotheses, t] = words[t].flat[at]
        totals_of[hypotheses, t] = totals[t].flat[at]
        attended_of[hypotheses, t] = attended[t][rows]
    alignments = _alignments(steps, paths, len(source))
    lengths = src_lengths.tolist()
    ranked: list[list[Hypothesis]] = [[] for _ in lengths]
    for n, (origin, length) in enumerate(zip(source.tolist(), (step + 1).tolist(), strict=True)):
        complete = words_of[n, length - 1] == EOS_ID
        ranked[origin].append(
            Hypothesis(
                words_of[n, : length - complete].tolist(),
                bool(complete),
                float(totals_of[n, length - 1]),
                float(score[n]),
                np.diff(totals_of[n, :length], prepend=0.0).tolist(),
                attended_of[n, :length].clip(max=lengths[origin]).tolist(),
                None if alignments is None else alignments[n, :length, :, : lengths[origin]],
            )
        )
    return ranked


Indices = NDArray[np.int64]
Path = tuple[int, Indices, Indices, Indices]
"""A step; hypotheses that have a word there; their slots in its grid; the rows that they continued, backpointers."""


def _rank(
    sources: Sequence[Indices], scores: Sequence[NDArray[np.float64]], n_best: int
) -> tuple[Indices, Indices, Indices, NDArray[np.float64]]:
    """The best finished hypotheses: source, last step, slot and score, ordered by source and score."""
    ends = [np.isfinite(grid).nonzero() for grid in scores]  # sentence and number in its beam of those that ended
    source = np.concatenate([of[sentence] for of, (sentence, _) in zip(sources, ends, strict=True)])
    score = np.concatenate([grid[end] for grid, end in zip(scores, ends, strict=True)])
    step = np.concatenate([np.full(len(sentence), t) for t, (sentence, _) in enumerate(ends)])
    slot = np.concatenate([b * grid.shape[1] + n for grid, (b, n) in zip(scores, ends, strict=True)])
    order = np.lexsort((-score, source))  # stable: of equal scores, the one that ended first is first
    best = order[np.arange(len(order)) - np.searchsorted(source[order], source[order]) < n_best]
    return source[best], step[best], slot[best], score[best]


def _follow(parents: Sequence[Indices], before: Sequence[Indices | None], last: Indices, slot: Indices) -> list[Path]:
    """Follow hypotheses back to their first words.

    Args:
        parents: Rows that the cells of each step's grid continue.
        before: Slots of each step that the rows of the next continue; None if all do, in order.
        last: Last step of each hypothesis.
        slot: Its slot in the grid of that step.
    """
    paths = []
    current = slot.copy()
    for t in reversed(range(len(parents))):
        hypotheses = (last >= t).nonzero()[0]
        at = current[hypotheses]
        rows = parents[t].flat[at]
        paths.append((t, hypotheses, at, rows))
        if t:
            from_slots = before[t - 1]
            current[hypotheses] = rows if from_slots is None else from_slots[rows]
    return paths


def _alignments(steps: Sequence[SearchStep], paths: Sequence[Path], number: int) -> Tensor | None:
    """Alignments of the hypotheses on the host, [number, T, heads, S]; None if they were not kept."""
    first = steps[0].alignment
    if first is None:
        return None
    alignments = first.new_zeros(number, len(steps), *first.shape[1:])
    for t, hypotheses, _, rows in paths:
        weights = steps[t].alignment
        assert weights is not None
        alignments[torch.from_numpy(hypotheses).to(first.device), t] = weights[torch.from_numpy(rows).to(first.device)]
    return to_host(alignments)


def _fetch(*groups: Sequence[Tensor]) -> list[list[NDArray[Any]]]:
    """Groups of tensors of one type on the host, all in one transfer."""
    arrays = iter(_to_numpy([tensor for group in groups for tensor in group]))
    return [[next(arrays) for _ in group] for group in groups]


def _to_numpy(tensors: Sequence[Tensor]) -> list[NDArray[Any]]:
    """Tensors of one type on the host, all in one transfer."""
    flat = to_host(torch.cat([tensor.flatten() for tensor in tensors])).numpy()
    parts = np.split(flat, np.cumsum([tensor.numel() for tensor in tensors])[:-1])
    return [part.reshape(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]
