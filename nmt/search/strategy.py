"""Search strategies: which words continue which hypotheses."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from nmt.config import SamplingSection
from nmt.layers.layout import Layout
from nmt.search.top_words import top_words


class Candidates(NamedTuple):
    """The possible continuations of the hypotheses of B sentences.

    Attributes:
        totals: Log-probability of each hypothesis, [R].
        log_probs: Log-probabilities of its next word, -inf for words that are ruled out, [R, V].
        layout: The sentence of each hypothesis.
        num_complete: Hypotheses of each sentence that have ended, [B].
        sources: Index of each sentence among the sources of the search, [B].
        step: Number of words of the hypotheses.
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
        totals: Log-probability of each, -inf for empty beam slots, [B, N].
        words: The new words, [B, N].
        parents: Row of the hypothesis that each continues, [B, N].
    """

    totals: Tensor
    words: Tensor
    parents: Tensor


class Strategy(Protocol):
    """The decisions of a search."""

    num_starts: int
    """Hypotheses per sentence at the start of the search: 1 if identical ones would stay identical."""

    def choose(self, candidates: Candidates) -> Choice:
        """Choose the next words."""


class GreedyStrategy:
    """Takes the most probable word at each step."""

    num_starts = 1

    def choose(self, candidates: Candidates) -> Choice:
        """The best word of each hypothesis."""
        best, words = top_words(candidates.log_probs, 1)
        return _one_word_per_row(candidates, best.squeeze(1), words.squeeze(1))


class BeamStrategy:
    """Keeps the most probable prefixes of each sentence; a complete hypothesis reduces the beam by one.

    Args:
        beam_size: Prefixes kept, K.
    """

    num_starts = 1

    def __init__(self, beam_size: int) -> None:
        self.beam_size = beam_size

    def choose(self, candidates: Candidates) -> Choice:
        """The best continuations of all prefixes of a sentence, one per remaining place."""
        layout = candidates.layout
        device = candidates.totals.device

        # The K best continuations of a sentence are among the K best of each of its prefixes. Only these are compared.
        num_words = min(self.beam_size, candidates.log_probs.size(1))
        log_probs, words = top_words(candidates.log_probs, num_words)  # [R, W]
        totals = candidates.totals.unsqueeze(1) + log_probs

        # Rows become a grid with one line per sentence: [R, W] -> [B, N, W] -> [B, N * W]
        grid_totals = layout.to_grid(totals, -torch.inf)
        num_continuations = grid_totals.size(1) * grid_totals.size(2)
        num_chosen = min(self.beam_size, num_continuations)
        chosen_totals, chosen = grid_totals.flatten(1).topk(num_chosen, dim=1)  # [B, K]
        chosen_words = layout.to_grid(words).flatten(1).gather(1, chosen)
        rows = layout.to_grid(torch.arange(len(words), device=device))  # [B, N]
        parents = rows.gather(1, chosen // num_words)

        # An ended hypothesis keeps its slot for good: fewer are left for those that go on.
        num_free = self.beam_size - candidates.num_complete.unsqueeze(1)
        is_outside = torch.arange(num_chosen, device=device) >= num_free
        return Choice(chosen_totals.masked_fill(is_outside, -torch.inf), chosen_words, parents)


class SamplingStrategy:
    """Draws each word from the model's distribution, or from its most probable words.

    The words drawn for a sentence depend only on its seed, not on the batch or the order.

    Args:
        num_samples: Number of translations to draw per sentence, N.
        seeds: A seed for each source.
        longest: Maximum number of words of a translation.
        options: Temperature, the number of most probable words to draw from, and their probability (nucleus sampling;
            Holtzman et al., 2020, section 3.1).
    """

    def __init__(self, num_samples: int, seeds: Sequence[int], longest: int, options: SamplingSection) -> None:
        self.num_starts = num_samples
        self.options = options
        draws = [np.random.default_rng(seed).random((longest, num_samples)) for seed in seeds]
        self.draws = torch.from_numpy(np.stack(draws))

    def choose(self, candidates: Candidates) -> Choice:
        """A word for each hypothesis, by the inverse of the cumulative distribution."""
        log_probs = candidates.log_probs
        layout = candidates.layout
        options = self.options

        # The most probable words, best first, and the distribution among them: [R, W]
        num_words = log_probs.size(1)
        if options.top_k is not None:
            num_words = min(options.top_k, num_words)
        best, words = log_probs.double().topk(num_words, dim=1)
        probabilities = (best / (options.temperature or 1.0)).softmax(dim=1)
        cumulative = probabilities.cumsum(dim=1)

        # The nucleus: the fewest words that have at least `top_p` together. The word that crosses it is the last.
        last_of_nucleus = (cumulative < options.top_p).sum(dim=1, keepdim=True).clamp(max=num_words - 1)
        nucleus_probability = cumulative.gather(1, last_of_nucleus)

        # A number drawn from [0, 1) for each hypothesis, scaled to the nucleus, falls into the interval of one word.
        draws = self.draws.to(log_probs.device)[candidates.sources, candidates.step, : layout.width]  # [B, N]
        thresholds = layout.to_rows(draws).unsqueeze(1) * nucleus_probability
        ranks = torch.searchsorted(cumulative, thresholds, right=True)
        ranks = torch.minimum(ranks, last_of_nucleus)  # by rounding a threshold may lie behind the nucleus
        drawn_words = words.gather(1, ranks)
        drawn_log_probs = log_probs.gather(1, drawn_words)
        return _one_word_per_row(candidates, drawn_log_probs.squeeze(1), drawn_words.squeeze(1))


def _one_word_per_row(candidates: Candidates, log_probs: Tensor, words: Tensor) -> Choice:
    """Each hypothesis with one word: log-probabilities [R] and words [R]."""
    layout = candidates.layout
    rows = torch.arange(len(words), device=words.device)
    totals = layout.to_grid(candidates.totals + log_probs, -torch.inf)
    return Choice(totals, layout.to_grid(words), layout.to_grid(rows))
