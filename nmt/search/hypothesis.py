"""Hypotheses, their scores and the limits of their lengths."""

from dataclasses import dataclass, field
from typing import Literal, TypeVar

import torch
from torch import Tensor

Number = TypeVar("Number", float, Tensor)

LEAST_COVERAGE = 1e-10
"""Lower bound of the attention received, so that its logarithm is finite."""


@dataclass(frozen=True)
class Hypothesis:
    """One translation in ids.

    Attributes:
        ids: Target ids without EOS.
        complete: True if EOS was reached.
        log_prob: Natural logarithm of the probability of `ids` and, if it was reached, EOS.
        score: The score by which hypotheses are ranked; see `Scoring`.
        token_log_probs: The contribution of each target token (EOS last, if reached) to `log_prob`.
        attended: Source position attended most by each target token; one past the end if no position was attended to.
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
    length_norm: Literal["wu", "average"] = "wu"
    coverage_penalty: float = 0.0

    def norm(self, length: Number) -> Number:
        """The divisor of log-probabilities, given lengths with EOS; it never decreases with the length."""
        base = (5 + length) / 6 if self.length_norm == "wu" else length
        normalized: Number = base**self.length_penalty
        return normalized

    def coverage(self, received: Tensor, mask: Tensor) -> Tensor:
        """The coverage term of the score, at most 0.

        Args:
            received: Attention received by each source position, [R, S].
            mask: True at real source tokens, [R, S].

        Returns:
            [R].
        """
        logs = received.clamp(LEAST_COVERAGE, 1.0).log().masked_fill(~mask, 0.0)
        return self.coverage_penalty * logs.sum(dim=1)


@dataclass(frozen=True)
class Lengths:
    """Limits of the length of translations, in target tokens.

    Attributes:
        longest: Maximum number of tokens of any translation, including EOS.
        max_ratio: Maximum number of tokens per source token, on top of `margin`.
        shortest: Minimum number of tokens before EOS.
        min_ratio: Minimum number of tokens before EOS per source token.
        margin: Tokens that a translation may always have.
    """

    longest: int
    max_ratio: float = 3.0
    shortest: int = 0
    min_ratio: float = 0.0
    margin: int = 10

    def most(self, src_lengths: Tensor) -> Tensor:
        """Maximum number of target tokens, including EOS, for source lengths with EOS: max_ratio * S + margin."""
        return (self.max_ratio * src_lengths + self.margin).long().clamp(max=self.longest)

    def fewest(self, src_lengths: Tensor) -> Tensor:
        """Minimum number of target tokens before EOS: min_ratio * (S - 1), less if EOS would not fit."""
        fewest = (self.min_ratio * (src_lengths - 1)).long().clamp(min=self.shortest)
        return torch.minimum(fewest, self.most(src_lengths) - 1)
