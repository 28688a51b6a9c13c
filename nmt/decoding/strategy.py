"""What makes one search different from another: which words continue which hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from nmt.decoding.top_words import top_words
from nmt.model.layout import Layout


class Candidates(NamedTuple):
    """What can follow the hypotheses of B sentences.

    Attributes:
        totals: Log-probability of each hypothesis, [R].
        log_probs: Log-probabilities of its next word, -inf for a word that may not follow, [R, V].
        layout: The sentence of each hypothesis.
        num_complete: Hypotheses of each sentence that have ended, [B].
        sources: Which of the sources of the search each sentence is, [B].
        step: The number of words that the hypotheses have.
    """

    totals: Tensor
    log_probs: Tensor
    layout: Layout
    num_complete: Tensor
    sources: Tensor
    step: int


class Choice(NamedTuple):
    """The hypotheses of B sentences with their new words, at most N per sentence.

    Attributes:
        totals: Log-probability of each, -inf where there is none, [B, N].
        words: The new words, [B, N].
        parents: The row of the hypothesis that each continues, [B, N].
    """

    totals: Tensor
    words: Tensor
    parents: Tensor


class Strategy(Protocol):
    """What makes one search different from another."""

    num_starts: int
    """Hypotheses of a sentence that the search starts from: 1 where equal ones would stay equal."""

    def choose(self, candidates: Candidates) -> Choice:
        """Choose the next words."""
        ...


class GreedyStrategy:
    """Take the most probable word at each step."""

    num_starts = 1

    def choose(self, candidates: Candidates) -> Choice:
        """The best word of each hypothesis."""
        best, words = top_words(candidates.log_probs, 1)
        return _continue_each(candidates, best.squeeze(1), words.squeeze(1))


class BeamStrategy:
    """Keep the most probable prefixes of each sentence; a hypothesis that ends takes its place out of the beam.

    Args:
        beam_size: Prefixes kept, K.
    """

    num_starts = 1

    def __init__(self, beam_size: int) -> None:
        self.beam_size = beam_size

    def choose(self, candidates: Candidates) -> Choice:
        """The best continuations of all prefixes of a sentence, as many as there are places left."""
        totals, log_probs, layout, num_complete, *_ = candidates
        # The best continuations of a sentence are among the best of each of its prefixes.
        best, words = top_words(log_probs, min(self.beam_size, log_probs.size(1)))  # [R, W]
        grid = layout.spread(totals.unsqueeze(1) + best, -torch.inf)  # [B, N, W]
        number = min(self.beam_size, grid.size(1) * grid.size(2))
        new_totals, chosen = grid.flatten(1).topk(number, dim=1)
        outside = torch.arange(number, device=totals.device) >= self.beam_size - num_complete.unsqueeze(1)
        rows = layout.spread(torch.arange(len(totals), device=totals.device)).gather(1, chosen // grid.size(2))
        return Choice(
            new_totals.masked_fill(outside, -torch.inf), layout.spread(words).flatten(1).gather(1, chosen), rows
        )


class SamplingStrategy:
    """Draw each word from the model's distribution, or from the head of it.

    What is drawn for a sentence depends on its seed alone: not on the batch, nor on the order.

    Args:
        num_samples: Translations to draw of each sentence, N.
        seeds: A seed for each source.
        longest: Most words of a translation.
        temperature: Divides log-probabilities; below 1 prefers probable words.
        top_k: Draw from so many of the most probable words; None from all.
        top_p: Draw from the fewest most probable words that together have this probability (nucleus sampling; Holtzman
            et al., 2020, section 3.1).
    """

    def __init__(
        self,
        num_samples: int,
        seeds: Sequence[int],
        longest: int,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
    ) -> None:
        self.num_starts = num_samples
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        draws = [np.random.default_rng(seed).random((longest, num_samples)) for seed in seeds]
        self.draws = torch.from_numpy(np.stack(draws)) if draws else torch.zeros(0, longest, num_samples)

    def choose(self, candidates: Candidates) -> Choice:
        """A word for each hypothesis, by the inverse of the cumulative distribution."""
        log_probs, layout = candidates.log_probs, candidates.layout
        draws = self.draws.to(log_probs.device)[candidates.sources, candidates.step, : layout.width]  # [B, N]
        drawn = layout.gather(draws).unsqueeze(1)
        number = log_probs.size(1) if self.top_k is None else min(self.top_k, log_probs.size(1))
        best, words = log_probs.double().topk(number, dim=1)
        cumulative = (best / self.temperature).softmax(dim=1).cumsum(dim=1)
        # The word that crosses `top_p` still belongs to the nucleus.
        nucleus = (cumulative < self.top_p).sum(dim=1, keepdim=True).clamp(max=number - 1)
        mass = cumulative.gather(1, nucleus)
        place = torch.searchsorted(cumulative, drawn * mass, right=True)
        place = torch.minimum(place, nucleus)
        totals = log_probs.gather(1, words.gather(1, place)).squeeze(1)
        return _continue_each(candidates, totals, words.gather(1, place).squeeze(1))


def _continue_each(candidates: Candidates, log_probs: Tensor, words: Tensor) -> Choice:
    """Each hypothesis with one word: log-probabilities [R] and words [R]."""
    layout = candidates.layout
    rows = torch.arange(len(words), device=words.device)
    totals = layout.spread(candidates.totals + log_probs, -torch.inf)
    return Choice(totals, layout.spread(words), layout.spread(rows))
