"""What a search finds, and how it is ranked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, overload

import torch
from torch import Tensor

LengthNorm = Literal["wu", "average"]

LEAST_COVERAGE = 1e-10
"""Stands for the attention that a source word got, where it got none: its logarithm is finite."""


@dataclass(frozen=True)
class Hypothesis:
    """One translation in ids.

    Attributes:
        ids: Target ids without EOS.
        complete: Whether EOS was reached.
        log_prob: Natural logarithm of the probability of `ids` and, if it was reached, EOS.
        score: What hypotheses are ranked by; see `Scoring`.
        token_log_probs: The share of each target token (EOS last, if reached) in `log_prob`.
        attended: For each target token the source position attended most; a position past the end where nothing was
            attended to.
        alignment: Attention, [target tokens with EOS, heads, source tokens with EOS]; None unless asked for.
    """

    ids: list[int]
    complete: bool
    log_prob: float
    score: float
    token_log_probs: list[float]
    attended: list[int]
    alignment: Tensor | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Scoring:
    """The score of a hypothesis Y of a source X (Wu et al., 2016, eq. 14): log P(Y|X) / norm(|Y|) + coverage(X, Y).

    Attributes:
        length_penalty: Exponent alpha of the norm; 0 ranks by log-probability.
        length_norm: `wu` is ((5 + |Y|) / 6) ** alpha, `average` is |Y| ** alpha; |Y| counts EOS.
        coverage_penalty: Weight beta of the sum over the source positions of log(min(attention received, 1)).
    """

    length_penalty: float = 0.0
    length_norm: LengthNorm = "wu"
    coverage_penalty: float = 0.0

    @overload
    def norm(self, length: int) -> float: ...
    @overload
    def norm(self, length: Tensor) -> Tensor: ...
    def norm(self, length: int | Tensor) -> float | Tensor:
        """What log-probabilities are divided by, given lengths with EOS; it does not fall as the length grows."""
        base = (5 + length) / 6 if self.length_norm == "wu" else length
        normalized: float | Tensor = base**self.length_penalty
        return normalized

    def coverage(self, received: Tensor, mask: Tensor) -> Tensor:
        """What is added for coverage, at most 0.

        Args:
            received: Attention that each source position has received, [R, S].
            mask: True at real source tokens, [R, S].

        Returns:
            [R].
        """
        logs = received.clamp(LEAST_COVERAGE, 1.0).log().masked_fill(~mask, 0.0)
        return self.coverage_penalty * logs.sum(dim=1)


@dataclass(frozen=True)
class Lengths:
    """How long translations may be, in target tokens.

    Attributes:
        longest: Most tokens, EOS included, whatever the source.
        max_ratio: Most tokens per source token, beyond the `margin`.
        margin: Tokens that a translation may have beyond `max_ratio`.
        shortest: Fewest tokens before EOS, whatever the source.
        min_ratio: Fewest tokens before EOS per source token.
    """

    longest: int
    max_ratio: float = 3.0
    margin: int = 10
    shortest: int = 0
    min_ratio: float = 0.0

    def most(self, src_lengths: Tensor) -> Tensor:
        """Most target tokens, EOS included, for sources of these lengths with EOS: max_ratio * S + margin."""
        return (self.max_ratio * src_lengths + self.margin).long().clamp(max=self.longest)

    def fewest(self, src_lengths: Tensor) -> Tensor:
        """Fewest target tokens before EOS: min_ratio * (S - 1), never so many that EOS would not fit."""
        fewest = (self.min_ratio * (src_lengths - 1)).long().clamp(min=self.shortest)
        return torch.minimum(fewest, self.most(src_lengths) - 1)
