"""Constraints on translations: they rule out words before the next ones are chosen, and so can demand words too."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, Self

import torch
from torch import Tensor

from nmt.corpus.batching import pad
from nmt.text.vocabulary import EOS_ID, PAD_ID


class Constraint(Protocol):
    """Rules out words of the translations of B sentences."""

    def select(self, sentences: Sequence[int]) -> "Constraint":
        """The same constraint on some of the sentences: a search numbers those of its batch from 0."""

    def apply(self, log_probs: Tensor, words: Tensor, sources: Tensor, left: Tensor) -> None:
        """Set the log-probabilities of words that must not follow to -inf, in place.

        Args:
            log_probs: Of the next word of each hypothesis, [R, V].
            words: Words of each hypothesis so far, [R, T].
            sources: Number of the sentence that each hypothesis translates, [R].
            left: Maximum number of words that each hypothesis may still get, [R].
        """


class MinLength:
    """Rules out EOS before a translation has a minimum number of words.

    Args:
        fewest: Minimum number of words for each source, [B].
    """

    def __init__(self, fewest: Tensor) -> None:
        self.fewest = fewest
        self.longest = int(fewest.max())

    def select(self, sentences: Sequence[int]) -> Self:
        """See `Constraint.select`."""
        return type(self)(self.fewest[list(sentences)])

    def apply(self, log_probs: Tensor, words: Tensor, sources: Tensor, left: Tensor) -> None:
        """Rule out EOS."""
        if words.size(1) >= self.longest:
            return
        early = words.size(1) < self.fewest.to(log_probs.device)[sources]
        log_probs[:, EOS_ID].masked_fill_(early, -torch.inf)


class NoRepeat:
    """Rules out repeating a sequence of n words (Paulus et al., 2018, section 2.5, with n = 3).

    Args:
        size: n.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def select(self, sentences: Sequence[int]) -> Self:
        """The constraint itself, which is the same for all sentences."""
        return self

    def apply(self, log_probs: Tensor, words: Tensor, sources: Tensor, left: Tensor) -> None:
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
        self.prefixes = prefixes
        self.words = pad(prefixes)

    def select(self, sentences: Sequence[int]) -> Self:
        """See `Constraint.select`."""
        return type(self)([self.prefixes[n] for n in sentences])

    def apply(self, log_probs: Tensor, words: Tensor, sources: Tensor, left: Tensor) -> None:
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

    def select(self, sentences: Sequence[int]) -> Self:
        """See `Constraint.select`."""
        return type(self)(self.lengths[list(sentences)], self.inside)

    def apply(self, log_probs: Tensor, words: Tensor, sources: Tensor, left: Tensor) -> None:
        """Rule out words that go on with the one before, at the step after the beginning."""
        lengths = self.lengths.to(log_probs.device)[sources]
        after = (lengths > 0) & (lengths == words.size(1))
        log_probs.masked_fill_(after.unsqueeze(1) & self.inside.to(log_probs.device), -torch.inf)


class DemandedWords:
    """Demands words: a translation has each of them exactly as often as it is demanded, and no other reserved word.

    A hypothesis does not end before it has all of them; where only the places of the words that it lacks and of its end
    are left, nothing else may follow.

    Args:
        demanded: Words that the translation of each sentence must have, in any order; a word may stand there twice.
        reserved: Words that no translation has unless they are demanded; the demanded words are reserved in any case.
    """

    def __init__(self, demanded: Sequence[Sequence[int]], reserved: Sequence[int] = ()) -> None:
        self.demanded = demanded
        self.reserved = sorted(set(reserved).union(*demanded))
        self.is_demanding = any(demanded)
        # How often each sentence's translation must have each reserved word, [sentences, reserved words].
        flat: list[int] = []
        for words in demanded:
            count = Counter(words)
            flat += [count[word] for word in self.reserved]
        self.counts = torch.tensor(flat, dtype=torch.long).view(len(demanded), len(self.reserved))

    def select(self, sentences: Sequence[int]) -> Self:
        """See `Constraint.select`."""
        return type(self)([self.demanded[n] for n in sentences], self.reserved)

    def apply(self, log_probs: Tensor, words: Tensor, sources: Tensor, left: Tensor) -> None:
        """Rule out reserved words that are not missing, the end while one is, and all but them in the last places."""
        reserved = torch.tensor(self.reserved, device=words.device)
        if not self.is_demanding:
            log_probs[:, reserved] = -torch.inf
            return
        present = (words.unsqueeze(2) == reserved).sum(dim=1)  # [R, T], [N] -> [R, N]
        missing = self.counts.to(words.device)[sources] - present
        is_missing = missing > 0
        log_probs[:, reserved] = log_probs[:, reserved].masked_fill(~is_missing, -torch.inf)
        number = missing.clamp(min=0).sum(dim=1)
        is_last_chance = (number > 0) & (number >= left - 1)  # the last place is that of EOS
        is_other = torch.ones(log_probs.size(1), dtype=torch.bool, device=words.device)
        is_other[reserved] = False
        log_probs.masked_fill_(is_last_chance.unsqueeze(1) & is_other, -torch.inf)
        log_probs[:, EOS_ID].masked_fill_(number > 0, -torch.inf)
