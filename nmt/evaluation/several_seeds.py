"""Two systems trained with several seeds each: the mean difference, and whether chance explains it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.corpus.example import Example
from nmt.evaluation.metrics import METRICS, ScoringRules, reference_streams

TRIALS = 10_000
"""Trials of approximate randomisation: sacreBLEU's default."""
SEED = 12345
"""Seed of the trials: sacreBLEU's default."""
AT_ONCE = 500
"""Trials whose statistics are summed at once, to bound memory."""

Statistics = NDArray[np.float64]
"""The counts of a metric in each sentence of one system, [sentences, counts]."""


class MeanDifference(NamedTuple):
    """The difference between two systems over several seeds.

    Attributes:
        difference: Mean over seeds of the score minus that of the baseline with the same seed.
        p_value: Probability of a mean difference this large in either direction if both were equally good.
    """

    difference: float
    p_value: float


def compare_over_seeds(
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]],
    examples: Sequence[Example],
    rules: ScoringRules,
    *,
    trials: int = TRIALS,
) -> MeanDifference:
    """Compare the BLEU of two systems over seeds by stratified approximate randomisation.

    A trial exchanges the two systems' translations of some sentences, each with probability 1/2, and computes the mean
    difference over seeds again (Clark et al., 2011, section 4; Riezler and Maxwell, 2005). A seed is a stratum: only
    translations with the same seed are exchanged. A sentence is exchanged with all seeds or with none, as its
    translations with several seeds are no independent observations; with one seed the test is sacreBLEU's. It says
    whether other sentences would show the difference of these models, not whether other seeds would.

    Args:
        pairs: For each seed the translations of the system, and those of the baseline.
        examples: Raw sources with references.
        rules: Case and tokenisation.
        trials: Number of trials.
    """
    metric = METRICS["bleu"].build(rules, [example.src for example in examples])
    references = reference_streams(examples, repeat=False)

    def read(hypotheses: Sequence[str]) -> Statistics:
        return np.array(metric._extract_corpus_statistics(list(hypotheses), references), dtype=np.float64)

    seeds = [(read(system), read(baseline)) for system, baseline in pairs]
    everywhere = np.ones((1, len(examples)), dtype=bool)
    (difference,) = _mean_differences(metric, seeds, everywhere)
    chance = np.random.default_rng(SEED)
    extreme = 0
    for first in range(0, trials, AT_ONCE):
        kept = chance.integers(2, size=(min(AT_ONCE, trials - first), len(examples)), dtype=bool)
        values = np.array(list(_mean_differences(metric, seeds, kept)))
        extreme += int((np.abs(values) >= abs(difference) - 1e-9).sum())
    # One is added to both, as the order that was observed is one of those that are possible.
    return MeanDifference(difference, (extreme + 1) / (trials + 1))


def _mean_differences(
    metric: Any, seeds: Sequence[tuple[Statistics, Statistics]], kept: NDArray[np.bool_]
) -> Iterator[float]:
    """The mean difference over seeds of each trial, given which sentences are not exchanged, [trials, sentences]."""
    stay = kept.astype(np.float64)
    sums = []
    for system, baseline in seeds:
        difference = stay @ (system - baseline)  # [trials, counts]
        sums.append((baseline.sum(axis=0) + difference, system.sum(axis=0) - difference))
    for trial in range(len(kept)):
        scores = [_score(metric, first[trial]) - _score(metric, second[trial]) for first, second in sums]
        yield sum(scores) / len(scores)


def _score(metric: Any, counts: Statistics) -> float:
    return float(metric._compute_score_from_stats([int(count) for count in counts.round()]).score)
