"""Search for translations: one loop, with greedy and beam search as strategies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from nmt.decoding.stepper import Stepper
from nmt.model.kernels.transfer import to_host
from nmt.text.vocabulary import BOS_ID, EOS_ID

State = TypeVar("State")


@dataclass(frozen=True)
class Hypothesis:
    """One translation in ids.

    Attributes:
        ids: Target ids without EOS.
        complete: Whether EOS was reached.
        log_prob: Natural logarithm of the probability of `ids` and, if it was reached, EOS.
        score: `log_prob` after length normalisation, by which hypotheses are ranked.
        attended: Source position attended most by each target token (EOS last, if reached); one past the end if no
            position was attended to.
        alignment: Attention, [target tokens with EOS, heads, source tokens with EOS]; None unless requested.
    """

    ids: list[int]
    complete: bool
    log_prob: float
    score: float
    attended: list[int]
    alignment: Tensor | None = field(default=None, repr=False)


def length_norm(length: int | Tensor, alpha: float) -> float | Tensor:
    """((5 + length) / 6) ** alpha (Wu et al., 2016, eq. 14); `length` counts EOS."""
    return ((5 + length) / 6) ** alpha


def length_limits(src_lengths: Tensor, max_length: int) -> Tensor:
    """Maximum number of target tokens of each source, including EOS: 3 S + 10, but at most `max_length`."""
    return (3 * src_lengths + 10).clamp(max=max_length)


class Choice(NamedTuple):
    """The words that continue the hypotheses of B sentences.

    Attributes:
        totals: Log-probability of each hypothesis with its new word, -inf for empty places, [B, N].
        words: The new words, [B, N].
        parents: Index of the hypothesis that each continues, [B, N]; None if each continues itself.
    """

    totals: Tensor
    words: Tensor
    parents: Tensor | None = None


class Strategy(Protocol):
    """The decisions of a search."""

    num_hypotheses: int
    """Concurrent hypotheses per sentence, N."""
    num_starts: int
    """How many of them the search starts from: 1 if identical ones would stay identical, N if words are drawn."""
    length_penalty: float
    """Exponent of `length_norm`; 0 scores by log-probability."""

    def choose(self, totals: Tensor, log_probs: Tensor, num_complete: Tensor) -> Choice:
        """Choose the next words.

        Args:
            totals: Log-probability of each hypothesis, -inf for empty places, [B, N].
            log_probs: Log-probabilities of the next word, [B, N, V].
            num_complete: Hypotheses of each sentence that have reached EOS, [B].
        """
        ...

    def threshold(self, finished: list[Hypothesis]) -> float:
        """The score that a sentence's unfinished hypotheses must be able to exceed for its search to continue."""
        ...


class GreedyStrategy:
    """Takes the most probable word at each step."""

    num_hypotheses = 1
    num_starts = 1
    length_penalty = 0.0

    def choose(self, totals: Tensor, log_probs: Tensor, num_complete: Tensor) -> Choice:
        """The best word of each hypothesis."""
        best, words = log_probs.max(dim=-1)
        return Choice(totals + best, words)

    def threshold(self, finished: list[Hypothesis]) -> float:
        """Continue until EOS."""
        return -torch.inf


class BeamStrategy:
    """Keeps the most probable prefixes of each sentence; a complete hypothesis reduces the beam by one.

    Args:
        beam_size: Prefixes kept, K.
        length_penalty: Exponent alpha of `length_norm`.
        n_best: Number of hypotheses to find, at most K.
    """

    num_starts = 1

    def __init__(self, beam_size: int, length_penalty: float, n_best: int) -> None:
        self.num_hypotheses = beam_size
        self.length_penalty = length_penalty
        self.n_best = n_best

    def choose(self, totals: Tensor, log_probs: Tensor, num_complete: Tensor) -> Choice:
        """The best continuations of all prefixes of a sentence, one per remaining place."""
        number, vocabulary = self.num_hypotheses, log_probs.size(2)
        candidates = (totals.unsqueeze(2) + log_probs).flatten(1)  # [B, K, V] -> [B, K * V]
        best, chosen = candidates.topk(number, dim=1)
        places = torch.arange(number, device=totals.device)
        outside = places >= number - num_complete.unsqueeze(1)
        return Choice(best.masked_fill(outside, -torch.inf), chosen % vocabulary, chosen // vocabulary)

    def threshold(self, finished: list[Hypothesis]) -> float:
        """The lowest score of the `n_best` best complete hypotheses, once there are so many."""
        scores = sorted((hypothesis.score for hypothesis in finished if hypothesis.complete), reverse=True)
        return scores[self.n_best - 1] if len(scores) >= self.n_best else -torch.inf


def greedy_search(
    stepper: Stepper[State], src: Tensor, src_lengths: Tensor, *, max_length: int, with_alignment: bool = False
) -> list[Hypothesis]:
    """Take the most probable word at each step.

    Args:
        stepper: The model.
        src: Padded source ids that end in EOS, [B, S].
        src_lengths: Their true lengths, [B].
        max_length: Maximum number of target tokens, including EOS; see `length_limits`.
        with_alignment: Keep alignments.

    Returns:
        B hypotheses; their score is their log-probability. If probabilities are not finite, it is NaN, and there are no
        words.
    """
    found = search(stepper, src, src_lengths, GreedyStrategy(), max_length=max_length, with_alignment=with_alignment)
    return [each[0] if each else Hypothesis([], False, math.nan, math.nan, []) for each in found]


def beam_search(
    stepper: Stepper[State],
    src: Tensor,
    src_lengths: Tensor,
    *,
    beam_size: int,
    length_penalty: float,
    max_length: int,
    n_best: int = 1,
    with_alignment: bool = False,
) -> list[list[Hypothesis]]:
    """Keep the most probable prefixes of each sentence; see `BeamStrategy`.

    A sentence is finished when its beam is empty, or when no remaining prefix can exceed the scores of its `n_best`
    best complete hypotheses.

    Args:
        stepper: The model.
        src: Padded source ids that end in EOS, [B, S].
        src_lengths: Their true lengths, [B].
        beam_size: Prefixes kept, K.
        length_penalty: Exponent alpha of `length_norm`; 0 ranks by log-probability.
        max_length: Maximum number of target tokens, including EOS; see `length_limits`.
        n_best: Hypotheses to return, at most K.
        with_alignment: Keep alignments.

    Returns:
        The hypotheses of each source, best first, complete ones before the others; at least one.
    """
    strategy = BeamStrategy(beam_size, length_penalty, n_best)
    found = search(stepper, src, src_lengths, strategy, max_length=max_length, with_alignment=with_alignment)
    return [
        sorted(each, key=lambda hypothesis: (not hypothesis.complete, -hypothesis.score))[:n_best] for each in found
    ]


class _Prefixes(NamedTuple):
    """The unfinished hypotheses of B sentences, N each, at length T.

    Attributes:
        totals: Log-probabilities, -inf for empty places, [B, N].
        history: Words and the source positions attended most, [B, N, T, 2].
        weights: Alignments, [B, N, T, heads, S]; None if they are not kept.
        num_complete: Hypotheses that have reached EOS, [B].
        limits: Maximum number of target tokens, [B].
    """

    totals: Tensor
    history: Tensor
    weights: Tensor | None
    num_complete: Tensor
    limits: Tensor

    def select(self, sentences: Tensor) -> _Prefixes:
        """The prefixes of some sentences."""
        weights = self.weights if self.weights is None else self.weights[sentences]
        totals, history, num_complete, limits = self.totals, self.history, self.num_complete, self.limits
        return _Prefixes(totals[sentences], history[sentences], weights, num_complete[sentences], limits[sentences])


@torch.inference_mode()
def search(
    stepper: Stepper[State],
    src: Tensor,
    src_lengths: Tensor,
    strategy: Strategy,
    *,
    max_length: int,
    with_alignment: bool = False,
) -> list[list[Hypothesis]]:
    """Extend the hypotheses of each sentence word by word; a finished sentence leaves the batch.

    Args:
        stepper: The model.
        src: Padded source ids that end in EOS, [B, S].
        src_lengths: Their true lengths, [B].
        strategy: Chooses which words continue which hypotheses, and when a sentence is finished.
        max_length: Maximum number of target tokens, including EOS; see `length_limits`.
        with_alignment: Keep alignments.

    Returns:
        The hypotheses of each source in the order in which they ended or reached the limit; at least one.
    """
    finished: list[list[Hypothesis]] = [[] for _ in src]
    if not len(src):
        return finished
    number, device, lengths = strategy.num_hypotheses, src.device, src_lengths.tolist()
    state = stepper.start(src, src_lengths, number)
    totals = torch.full((len(src), number), -torch.inf, dtype=torch.float64, device=device)
    totals[:, : strategy.num_starts] = 0.0
    history = torch.empty(len(src), number, 0, 2, dtype=torch.long, device=device)
    limits = length_limits(src_lengths, max_length).to(device)
    prefixes = _Prefixes(totals, history, None, torch.zeros_like(limits), limits)
    words = torch.full((len(src) * number,), BOS_ID, device=device)
    owners = list(range(len(src)))  # which source each sentence of the shrinking batch is
    while owners:
        log_probs, alignment, state = stepper.step(words, state)
        choice = strategy.choose(prefixes.totals, log_probs.view(len(owners), number, -1), prefixes.num_complete)
        if choice.parents is not None:
            rows = (choice.parents + number * torch.arange(len(owners), device=device).unsqueeze(1)).flatten()
            state, alignment = stepper.select(state, rows), alignment.index_select(0, rows)
        prefixes = _extend(prefixes, choice, alignment if with_alignment else None, _attended(alignment))
        prefixes, closing, bounds = _close(prefixes, choice.words, strategy.length_penalty)
        for place, hypothesis in closing:
            source = owners[place]
            finished[source].append(_trim(hypothesis, lengths[source]))
        going = [place for place, bound in enumerate(bounds) if bound > strategy.threshold(finished[owners[place]])]
        words = choice.words.flatten()
        if len(going) < len(owners):
            sentences = torch.tensor(going, dtype=torch.long, device=device)
            rows = (number * sentences.unsqueeze(1) + torch.arange(number, device=device)).flatten()
            state, words = stepper.select(state, rows, sentences), words[rows]
            prefixes = prefixes.select(sentences)
            owners = [owners[place] for place in going]
    return finished


def _attended(alignment: Tensor) -> Tensor:
    """Source position with the largest mean weight over heads, S if all are 0: [R, heads, S] -> [R]."""
    weight, position = alignment.mean(dim=1).max(dim=-1)
    return position.masked_fill(weight == 0, alignment.size(-1))


def _extend(prefixes: _Prefixes, choice: Choice, alignment: Tensor | None, attended: Tensor) -> _Prefixes:
    """Append a step to the prefixes: its words, alignments [R, heads, S] and attended positions [R]."""
    shape = choice.words.shape
    new = torch.stack([choice.words, attended.view(shape)], dim=2).unsqueeze(2)  # [B, N, 1, 2]
    history = torch.cat([_of_parents(prefixes.history, choice.parents), new], dim=2)
    weights = None
    if alignment is not None:
        weights = alignment.view(*shape, 1, *alignment.shape[1:])
        if prefixes.weights is not None:
            weights = torch.cat([_of_parents(prefixes.weights, choice.parents), weights], dim=2)
    return prefixes._replace(totals=choice.totals, history=history, weights=weights)


def _of_parents(tensor: Tensor, parents: Tensor | None) -> Tensor:
    """Rows [B, N, ...] of the parents."""
    if parents is None:
        return tensor
    return tensor.take_along_dim(parents.view(*parents.shape, *[1] * (tensor.dim() - 2)), dim=1)


def _close(
    prefixes: _Prefixes, words: Tensor, length_penalty: float
) -> tuple[_Prefixes, list[tuple[int, Hypothesis]], list[float]]:
    """Remove the hypotheses that have ended or reached their limit.

    Waits for the device once, and again if any are removed (twice with alignments).

    Returns:
        The rest; the removed hypotheses, with the index of their sentence in the batch; and for each sentence an upper
        bound of the score that the rest can reach, -inf if nothing is left.
    """
    length = prefixes.history.size(2)
    alive = prefixes.totals.isfinite()
    ended = alive & (words == EOS_ID)
    closing = ended | (alive & (prefixes.limits <= length).unsqueeze(1))
    rest = prefixes.totals.masked_fill(~alive | closing, -torch.inf)
    bounds = rest.amax(dim=1) / length_norm(prefixes.limits, length_penalty)
    on_host = to_host(torch.cat([closing.to(bounds.dtype), bounds.unsqueeze(1)], dim=1))
    found = []
    places = on_host[:, :-1].nonzero()
    if len(places):
        sentence, row = places.to(words.device).unbind(1)
        totals, history = prefixes.totals[sentence, row], prefixes.history[sentence, row]
        closed = to_host(torch.cat([totals.unsqueeze(1), history.flatten(1).to(totals.dtype)], dim=1))
        log_probs, histories = closed[:, 0].tolist(), closed[:, 1:].long().view(len(places), -1, 2).tolist()
        weights: Sequence[Tensor | None] = [None] * len(places)
        if prefixes.weights is not None:
            weights = to_host(prefixes.weights[sentence, row]).unbind()
        norm = float(length_norm(length, length_penalty))
        for place, history, log_prob, kept in zip(places[:, 0].tolist(), histories, log_probs, weights, strict=True):
            ids, attended = map(list, zip(*history, strict=True))
            complete = ids[-1] == EOS_ID
            ids = ids[:-1] if complete else ids
            found.append((place, Hypothesis(ids, complete, log_prob, log_prob / norm, attended, kept)))
    rest_of = prefixes._replace(totals=rest, num_complete=prefixes.num_complete + ended.sum(dim=1))
    return rest_of, found, on_host[:, -1].tolist()


def _trim(hypothesis: Hypothesis, src_length: int) -> Hypothesis:
    """Cut the padding of its source from a hypothesis."""
    attended = [min(position, src_length) for position in hypothesis.attended]
    kept = hypothesis.alignment if hypothesis.alignment is None else hypothesis.alignment[..., :src_length]
    return replace(hypothesis, attended=attended, alignment=kept)
