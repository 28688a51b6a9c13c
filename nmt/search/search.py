"""Search for translations: one loop, in which greedy search, beam search and sampling are strategies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.layers.kernels.transfer import to_host
from nmt.layers.layout import Layout, join_padded
from nmt.search.constraint import Constraint, MinLength
from nmt.search.hypothesis import Hypothesis, Lengths, Scoring
from nmt.search.stepper import Stepper
from nmt.search.strategy import Candidates, Choice, Strategy
from nmt.search.trace import SearchStep, join_steps, trace
from nmt.text.vocabulary import BOS_ID, EOS_ID

STEPS_PER_WAIT = defaultdict(lambda: 4, cpu=1)
"""Steps between two checks for finished hypotheses, by type of device; on an accelerator they synchronise."""
FULL = 0.75
"""Finished sentences are removed from a batch once no more than this share of it is unfinished, and at a pause."""


@dataclass(frozen=True)
class SearchSettings:
    """Search settings, which are the same for every model.

    Attributes:
        strategy: Which words continue which hypotheses.
        lengths: Limits of the lengths of translations.
        scoring: The score by which hypotheses are ranked.
        constraints: Rule out words; they number the sentences of the search from 0.
        n_best: Maximum number of hypotheses per source.
        with_alignment: Keep alignments.
    """

    strategy: Strategy
    lengths: Lengths
    scoring: Scoring = field(default_factory=Scoring)
    constraints: Sequence[Constraint] = ()
    n_best: int = 1
    with_alignment: bool = False


class _Sentences(NamedTuple):
    """The state of the B sentences that a search has not finished.

    Attributes:
        sources: Index of the source of each, [B].
        limits: Maximum number of target tokens, [B].
        num_complete: Hypotheses that have reached EOS, [B].
        best: The `n_best` best scores of complete hypotheses, -inf if there are fewer, [B, n_best].
        mask: True at real source tokens, [B, S].
    """

    sources: Tensor
    limits: Tensor
    num_complete: Tensor
    best: Tensor
    mask: Tensor


class _Beam(NamedTuple):
    """The hypotheses that a search continues, one a row, R in all.

    Attributes:
        state: That of the stepper.
        words: Last word of each, [R].
        totals: Log-probability of each, -inf for rows that ended between two checks, [R].
        prefixes: All words of each for constraints, [R, T]; empty if there are none.
        received: Attention that each source position has had, [R, S]; None where coverage is not scored.
        layout: The sentence of each.
        sentences: The sentences that are not finished.
    """

    state: Any
    words: Tensor
    totals: Tensor
    prefixes: Tensor
    received: Tensor | None
    layout: Layout
    sentences: _Sentences

    def rule_out(self, log_probs: Tensor, constraints: Sequence[Constraint], step: int) -> None:
        """Apply constraints to the log-probabilities of the next words, [R, V]."""
        rows = self.layout.sentences(log_probs.device)
        sources = self.sentences.sources[rows]
        left = self.sentences.limits[rows] - step
        for constraint in constraints:
            constraint.apply(log_probs, self.prefixes, sources, left)

    def receive(self, alignment: Tensor) -> Tensor:
        """Attention that each source position has had after a step, [R, heads, S] -> [R, S]."""
        mean = alignment.mean(dim=1)
        return mean if self.received is None else self.received + mean


class Search:
    """A search for translations of B sentences, which can pause after any word.

    A sentence is finished when none of its hypotheses is left, or when no remaining one can still exceed the scores of
    its `n_best` best complete ones. Hypotheses leave the batch as soon as they end.

    Args:
        stepper: The model.
        src: Padded source ids that end in EOS, [B, S].
        src_lengths: Their true lengths, [B].
        settings: The settings of the search.

    Attributes:
        steps: The record of each step.
        src_lengths: True lengths of the sources, [B].
        longest: Maximum number of words of any translation.
        is_finished: True if no hypothesis is left.
    """

    @torch.inference_mode()
    def __init__(self, stepper: Stepper[Any], src: Tensor, src_lengths: Tensor, settings: SearchSettings) -> None:
        self.stepper = stepper
        self.settings = settings
        self.src_lengths = src_lengths
        limits = settings.lengths.most(src_lengths)
        self.longest = int(limits.max())
        self.steps: list[SearchStep] = []
        self.is_finished = False
        self._beam = _begin(stepper, src, src_lengths, limits, settings)

    @classmethod
    @torch.inference_mode()
    def join(cls, searches: Sequence[Search], settings: SearchSettings) -> Search:
        """Searches that have paused after the same number of words, as one.

        Args:
            searches: Not finished, of one stepper.
            settings: Their settings, which number the sentences of the first search first, then those of the second.
        """
        joined = cls.__new__(cls)
        joined.stepper = searches[0].stepper
        joined.settings = settings
        joined.src_lengths = torch.cat([search.src_lengths for search in searches])
        joined.longest = max(search.longest for search in searches)
        numbers = [len(search.src_lengths) for search in searches]
        joined.steps = join_steps([search.steps for search in searches], numbers)
        joined.is_finished = False
        joined._beam = _join_beams(searches)
        return joined

    @property
    def unfinished(self) -> list[int]:
        """Indices of the sources whose search goes on."""
        return [] if self.is_finished else self._beam.sentences.sources.tolist()

    @property
    def size(self) -> int:
        """Source positions of the sentences that are not finished, including padding."""
        return 0 if self.is_finished else self._beam.sentences.mask.numel()

    @torch.inference_mode()
    def run(self, most: int | None = None) -> None:
        """Continue the hypotheses of each sentence word by word.

        Args:
            most: Pause once hypotheses have this many words; None never pauses.
        """
        last = self.longest if most is None else min(most, self.longest)
        constraints = self._constraints()
        for step in range(len(self.steps), last):
            self._step(constraints, step, pauses=step + 1 == most)
            if self.is_finished:
                return
        self.is_finished = last == self.longest

    def hypotheses(self) -> list[list[Hypothesis]]:
        """The best hypotheses of a finished search.

        Returns:
            For each source its hypotheses, best first, whether they reached EOS or the maximum length; at least one,
            unless probabilities are NaN.
        """
        return trace(self.steps, self.src_lengths, self.settings.n_best)

    def _constraints(self) -> list[Constraint]:
        """The constraints of the settings, and that on the length."""
        settings = self.settings
        lengths = settings.lengths
        if not lengths.shortest and not lengths.min_ratio:
            return list(settings.constraints)
        return [MinLength(lengths.fewest(self.src_lengths)), *settings.constraints]

    def _step(self, constraints: Sequence[Constraint], step: int, *, pauses: bool) -> None:
        """Continue each hypothesis by a word; before a pause all finished sentences leave the batch."""
        beam = self._beam
        settings = self.settings
        scoring = settings.scoring
        log_probs, alignment, state = self.stepper.step(beam.words, beam.state)  # [R, V], [R, heads, S]
        if constraints:
            beam.rule_out(log_probs, constraints, step)
        # From rows to the grid of beam slots: [R, V] -> [B, N], each slot with the row that it continues.
        sentences = beam.sentences
        choice = settings.strategy.choose(
            Candidates(beam.totals, log_probs, beam.layout, sentences.num_complete, sentences.sources, step)
        )
        parents = choice.parents.flatten()
        received = None
        coverage = None  # [B, N]
        if scoring.coverage_penalty:
            received = beam.receive(alignment).index_select(0, parents)
            mask = sentences.mask.repeat_interleave(choice.words.size(1), dim=0)
            coverage = scoring.coverage(received, mask).view(choice.words.shape)
        scores, alive, updated = _score_ended(choice, step + 1, sentences, scoring, coverage)
        remaining, slots, layout = _continue(alive, step + 1, 1.0 if pauses else FULL)
        recorded = alignment if settings.with_alignment else None
        self.steps.append(SearchStep(sentences.sources, choice, scores, _attended(alignment), recorded, slots))
        if slots is not None and not len(slots):
            self.is_finished = True
            return
        # From the grid back to rows: [B, N] -> [R'], without ended hypotheses and finished sentences.
        rows = parents
        words = choice.words.flatten()
        totals = choice.totals.masked_fill(~alive, -torch.inf).flatten()
        if slots is not None:
            rows = rows.index_select(0, slots)
            words = words.index_select(0, slots)
            totals = totals.index_select(0, slots)
            if received is not None:
                received = received.index_select(0, slots)
        state = self.stepper.select(state, rows, layout, remaining)
        prefixes = beam.prefixes
        if constraints:
            prefixes = torch.cat([prefixes.index_select(0, rows), words.unsqueeze(1)], dim=1)
        if remaining is not None:
            updated = _Sentences(*(part.index_select(0, remaining) for part in updated))
        self._beam = _Beam(state, words, totals, prefixes, received, layout, updated)


def search(stepper: Stepper[Any], src: Tensor, src_lengths: Tensor, settings: SearchSettings) -> list[list[Hypothesis]]:
    """Search to the end, and return the best hypotheses; see `Search`."""
    whole = Search(stepper, src, src_lengths, settings)
    whole.run()
    return whole.hypotheses()


def _begin(stepper: Stepper[Any], src: Tensor, src_lengths: Tensor, limits: Tensor, settings: SearchSettings) -> _Beam:
    """The empty hypotheses of each sentence."""
    device = src.device
    state = stepper.start(src, src_lengths)
    layout = Layout(len(src))
    starts = settings.strategy.num_starts
    if starts > 1:  # B rows -> B * N rows
        layout = Layout(len(src), starts)
        state = stepper.select(state, layout.sentences(device), layout)
    words = torch.full((len(src) * starts,), BOS_ID, device=device)
    totals = torch.zeros(len(words), dtype=torch.float64, device=device)
    sentences = _Sentences(
        torch.arange(len(src), device=device),
        limits.to(device),
        torch.zeros(len(src), dtype=torch.long, device=device),
        torch.full((len(src), settings.n_best), -torch.inf, dtype=torch.float64, device=device),
        torch.arange(src.size(1), device=device) < src_lengths.to(device).unsqueeze(1),
    )
    return _Beam(state, words, totals, words.new_empty(len(words), 0), None, layout, sentences)


def _join_beams(searches: Sequence[Search]) -> _Beam:
    """The hypotheses of several searches, those of the first search first."""
    beams = [search._beam for search in searches]
    layout = Layout.join([beam.layout for beam in beams], beams[0].words.device)
    sources = []
    first = 0  # number of the first source of a search among all sources
    for search in searches:
        sources.append(search._beam.sentences.sources + first)
        first += len(search.src_lengths)
    columns = zip(*(beam.sentences for beam in beams), strict=True)
    sentences = _Sentences(*(join_padded(column) for column in columns))
    received = None
    if beams[0].received is not None:
        received = join_padded([beam.received for beam in beams if beam.received is not None])
    return _Beam(
        searches[0].stepper.join([beam.state for beam in beams], layout),
        torch.cat([beam.words for beam in beams]),
        torch.cat([beam.totals for beam in beams]),
        torch.cat([beam.prefixes for beam in beams]),
        received,
        layout,
        sentences._replace(sources=torch.cat(sources)),
    )


def _score_ended(
    choice: Choice, length: int, sentences: _Sentences, scoring: Scoring, coverage: Tensor | None
) -> tuple[Tensor, Tensor, _Sentences]:
    """Score the hypotheses that end at a step, and choose those that continue.

    Returns:
        Scores of those that end, -inf for the others, [B, N]; True at those that continue, [B, N]; the updated
        sentences.
    """
    limits = sentences.limits
    alive = choice.totals.isfinite()
    complete = alive & (choice.words == EOS_ID)
    ending = complete | (alive & (limits <= length).unsqueeze(1))  # at EOS, or at the maximum length
    scores = choice.totals / scoring.norm(length)
    if coverage is not None:
        scores = scores + coverage
    scores = scores.masked_fill(~ending, -torch.inf)
    # The best scores of complete hypotheses, of this step and of earlier ones.
    ended = torch.cat([sentences.best, scores.masked_fill(~complete, -torch.inf)], dim=1)
    best = ended.topk(sentences.best.size(1), dim=1).values
    rest = choice.totals.masked_fill(~alive | ending, -torch.inf)
    # Probabilities only decrease, and coverage is at most 0: no hypothesis can score higher than this.
    bounds = rest.amax(dim=1) / scoring.norm(limits)
    continuing = rest.isfinite() & (bounds > best[:, -1]).unsqueeze(1)
    sentences = sentences._replace(num_complete=sentences.num_complete + complete.sum(dim=1), best=best)
    return scores, continuing, sentences


def _continue(alive: Tensor, steps: int, full: float) -> tuple[Tensor | None, Tensor | None, Layout]:
    """Choose the rows of the next step.

    On an accelerator this happens only every few steps; in between, all rows continue, those that ended at -inf.

    Args:
        alive: True at hypotheses that continue, [B, N].
        steps: Number of words of each.
        full: Finished sentences are removed once no more than this share of the batch is unfinished.

    Returns:
        The sentences that remain, None for all; the beam slots that become rows, None for all; their layout.
    """
    device = alive.device
    if steps % STEPS_PER_WAIT[device.type]:
        return None, None, Layout(*alive.shape)
    alive = to_host(alive)
    slots = alive.flatten().nonzero().squeeze(1)

    # Finished sentences leave the batch only when there are many of them.
    counts = alive.sum(dim=1)  # hypotheses of each sentence
    unfinished = counts.nonzero().squeeze(1)
    remaining = None
    if len(unfinished) < len(alive) and len(unfinished) <= full * len(alive):
        remaining = unfinished.to(device)
        alive = alive[unfinished]
        counts = counts[unfinished]

    # The grid is as wide as the sentence with most hypotheses; those of a sentence move to its first slots.
    width = int(counts.max()) if len(counts) else 0
    new_slots = None
    if len(slots) < len(alive) * width:
        first_slots = width * torch.arange(len(alive)).unsqueeze(1)
        ranks = alive.cumsum(dim=1) - 1
        new_slots = (first_slots + ranks)[alive].to(device)
    return remaining, slots.to(device), Layout(len(alive), width, new_slots)


def _attended(alignment: Tensor) -> Tensor:
    """Source position attended most by the mean of the heads, S if there is none: [R, heads, S] -> [R]."""
    weight, position = alignment.mean(dim=1).max(dim=-1)
    return position.masked_fill(weight == 0, alignment.size(-1))
