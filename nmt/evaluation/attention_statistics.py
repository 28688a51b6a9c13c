"""Statistics of attention weights: how sharp they are, what they cover, and how they move through the source."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.system.tables import Table
from nmt.translation.sharpness import CLEAR, STEP_LABELS, step_statistics

LABELS = {**STEP_LABELS, "coverage": "coverage", "diagonality": "diagonality"}
"""Names of the statistics in tables."""
READING = {
    "entropy": "how spread the weights of a step are, in nats: 0 for one source token, ln n for n with equal weights",
    "maximum": "that of a step, from 0 to 1",
    "clear": "source tokens of a step with such a weight",
    "coverage": "share of a source that all steps together attended to, from 0 to 1",
    "diagonality": "1 where attention moves evenly from the first to the last source token, less the further it strays",
}
"""Definitions of the statistics."""
SHARP = (
    f"One source token read alone has entropy 0, a largest weight of 1 and 1 position above {CLEAR}; n read alike have "
    "ln n and 1/n."
)
"""How to read entropy, largest weight and positions above 0.1."""


def coverage(weights: Tensor) -> Tensor:
    """Mean over source positions of min(1, sum_t a_ts): 1 if everything was attended to, [T, heads, S] -> [heads].

    It is the sum that the coverage penalty of Wu et al. (2016, eq. 14) takes the logarithm of, position by position.
    """
    return weights.double().sum(dim=0).clamp(max=1).mean(dim=-1)


def diagonality(weights: Tensor) -> Tensor:
    """How close attention keeps to the diagonal: 1 on it, [T, heads, S] -> [heads].

    1 - mean_t |p_t - t / (T - 1)| with p_t the expected position in [0, 1], sum_s a_ts s / (S - 1), of weights that
    are divided by their sum; 1 with one position on either side.
    """
    steps, _, positions = weights.shape
    if steps < 2 or positions < 2:
        return weights.new_ones(weights.size(1), dtype=torch.float64)
    exact = weights.double()
    position = torch.linspace(0, 1, positions, dtype=torch.float64)
    expected = (exact * position).sum(dim=-1) / exact.sum(dim=-1).clamp(min=1e-12)
    target = torch.linspace(0, 1, steps, dtype=torch.float64).unsqueeze(1)
    return 1 - (expected - target).abs().mean(dim=0)


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation (of the population)."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:z.3f} ± {self.deviation:.3f}"


@dataclass(frozen=True)
class HeadStatistics:
    """Statistics of one head over many sentences.

    Attributes:
        entropy: Over steps, in nats.
        maximum: Over steps.
        clear: Over steps.
        coverage: Over sentences.
        diagonality: Over sentences.
    """

    entropy: Moments
    maximum: Moments
    clear: Moments
    coverage: Moments
    diagonality: Moments

    def __str__(self) -> str:
        return ", ".join(f"{label} {getattr(self, name)}" for name, label in LABELS.items())


def summarize(alignments: Iterable[Tensor | None]) -> list[HeadStatistics]:
    """Statistics of each head over the alignments of many sentences.

    Args:
        alignments: Attention of each sentence, [T, heads, S]; None, and sentences without any weight, as
            of models without attention, are left out.

    Returns:
        One for each head; none if there are no weights.
    """
    values: dict[str, list[Tensor]] = {name: [] for name in LABELS}
    for weights in alignments:
        if weights is not None and weights.any():
            sentence = {"coverage": coverage(weights)[None], "diagonality": diagonality(weights)[None]}
            for name, rows in {**vars(step_statistics(weights)), **sentence}.items():
                values[name].append(rows.double())
    if not values["entropy"]:
        return []
    spread = {name: torch.std_mean(torch.cat(rows), dim=0, correction=0) for name, rows in values.items()}
    return [
        HeadStatistics(**{name: Moments(float(means[n]), float(stds[n])) for name, (stds, means) in spread.items()})
        for n in range(values["entropy"][0].size(1))
    ]


def mean_sharpness(heads: Sequence[HeadStatistics]) -> dict[str, float]:
    """Entropy in nats, largest weight and positions above 0.1, in the mean over heads; none without heads."""
    means = {name: [getattr(head, name).mean for head in heads] for name in STEP_LABELS}
    return {name: math.fsum(values) / len(values) for name, values in means.items() if values}


@dataclass(frozen=True)
class LengthAttention:
    """Attention in the translations of sentences of similar length.

    Attributes:
        name: Words of their sources, separated by spaces.
        sentences: Their number.
        heads: Statistics of each head; none without attention.
    """

    name: str
    sentences: int
    heads: list[HeadStatistics]


def attention_by_length(
    bins: Mapping[str, Sequence[int]], alignments: Sequence[Tensor | None]
) -> list[LengthAttention]:
    """Statistics of attention by source length.

    Args:
        bins: Numbers of the sentences of similar length, by their length; see `bin_by_length`.
        alignments: As for `summarize`.
    """
    return [LengthAttention(name, len(rows), summarize(alignments[n] for n in rows)) for name, rows in bins.items()]


def tabulate_lengths(by_length: Sequence[LengthAttention]) -> Table:
    """Entropy, largest weight and positions above 0.1 by source length, in the mean over heads."""
    rows = [
        [group.name, f"{group.sentences:,}", *(f"{value:.3f}" for value in mean_sharpness(group.heads).values())]
        for group in by_length
        if group.heads
    ]
    header = ["words", "sentences", "entropy (nats)", "largest weight", STEP_LABELS["clear"]]
    return Table(header, rows, "lrrrr", "attention by source length")
