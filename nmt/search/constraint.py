"""Constraints on translations: they rule out words before the next ones are chosen."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from nmt.corpus.batching import pad
from nmt.text.vocabulary import EOS_ID, PAD_ID


class Constraint(Protocol):
    """Rules out words."""

    def apply(self, log_probs: Tensor, words: Tensor, sources: Tensor) -> None:
        """Set the log-probabilities of words that must not follow to -inf, in place.

        Args:
            log_probs: Of the next word of each hypothesis, [R, V].
            words: Words of each hypothesis so far, [R, T].
            sources: Index of the source that each hypothesis translates, [R].
        """


class MinLength:
    """Rules out EOS before a translation has a minimum number of words.

    Args:
        fewest: Minimum number of words for each source, [B].
    """

    def __init__(self, fewest: Tensor) -> None:
        self.fewest = fewest

    def apply(self, log_probs: Tensor, words: Tensor, sources: Tensor) -> None:
        """Rule out EOS."""
        early = words.size(1) < self.fewest.to(log_probs.device)[sources]
        log_probs[:, EOS_ID].masked_fill_(early, -torch.inf)


class NoRepeat:
    """Rules out repeating a sequence of n words (Paulus et al., 2018, section 2.5, with n = 3).

    Args:
        size: n.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def apply(self, log_probs: Tensor, words: Tensor, sources: Tensor) -> None:
        """Rule out each word that followed an earlier occurrence of the last n - 1 words."""
        if words.size(1) < self.size:
            return
        seen = words.unfold(1, self.size, 1)  # [R, T - n + 1, n]
        last = words[:, words.size(1) - self.size + 1 :].unsqueeze(1)
        again = (seen[..., :-1] == last).all(dim=2)
        log_probs.scatter_(1, torch.where(again, seen[..., -1], PAD_ID), -torch.inf)  # PAD never follows anything


class ForcedPrefix:
    """Makes translations begin with given words.

    A prefix that ends with EOS is a whole translation, whose probability the search then computes.

    Args:
        prefixes: First words of the translation of each source; may be empty.
    """

    def __init__(self, prefixes: Sequence[Sequence[int]]) -> None:
        self.words = pad(prefixes)

    def apply(self, log_probs: Tensor, words: Tensor, sources: Tensor) -> None:
        """Rule out all words but the next one of the prefix."""
        step = words.size(1)
        if step >= self.words.size(1):
            return
        word = self.words.to(log_probs.device)[sources, step].unsqueeze(1)  # [R, 1]
        log_prob = log_probs.gather(1, word)
        log_probs.masked_fill_(word != PAD_ID, -torch.inf)
        log_probs.scatter_(1, word, log_prob)


class WholeWord:
    """Rules out going on inside the last word of a given beginning.

    Args:
        lengths: Words of the beginning of each source's translation, [B]; 0 if its last word may go on.
        inside: True at ids of words that go on with a word, as pieces of subwords do, [V].
    """

    def __init__(self, lengths: Tensor, inside: Tensor) -> None:
        self.lengths = lengths
        self.inside = inside

    def apply(self, log_probs: Tensor, words: Tensor, sources: Tensor) -> None:
        """Rule out words that go on with the one before, at the step after the beginning."""
        lengths = self.lengths.to(log_probs.device)[sources]
        after = (lengths > 0) & (lengths == words.size(1))
        log_probs.masked_fill_(after.unsqueeze(1) & self.inside.to(log_probs.device), -torch.inf)
