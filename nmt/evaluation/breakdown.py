"""Where a system is good and bad: by frequency of words, by length, by sentence, and compared with another system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from nmt.corpus.splitting import Example
from nmt.evaluation.metrics import ScoringRules, score_corpus, words_of

FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000)
"""First frequency of each bucket of words."""
LENGTH_BINS = 5
"""Bins of about equal numbers of sentences."""
FEWEST = 30
"""Sentences below which a score of a bin says nothing."""
BLEU_STEP = 10
LONGEST_NGRAM = 4

Ngram = tuple[str, ...]


@dataclass(frozen=True)
class WordAccuracy:
    """How well words of some frequencies are translated.

    Attributes:
        low: Smallest number of occurrences in training.
        high: Largest; None is unlimited.
        in_references: Words in the references.
        in_translations: Words in the translations.
        common: Words in both, sentence by sentence.
    """

    low: int
    high: int | None
    in_references: int
    in_translations: int
    common: int

    @property
    def name(self) -> str:
        """The frequencies, such as `2-4`."""
        if self.high is None:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall, from 0 to 1; None if there is no such word."""
        total = self.in_references + self.in_translations
        return 2 * self.common / total if total else None


def accuracy_by_frequency(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], frequency: Mapping[str, int], rules: ScoringRules
) -> list[WordAccuracy]:
    """F1 of words by how often they occur in training, as compare-mt has it (Neubig et al., 2019).

    Of several references the first one counts.

    Args:
        hypotheses: Translations.
        references: References of each.
        frequency: Occurrences of target words in training.
        rules: What is a word.
    """
    bucket_of = {word: int(np.searchsorted(FREQUENCIES, count, side="right")) - 1 for word, count in frequency.items()}
    counts = np.zeros((len(FREQUENCIES), 3), dtype=np.int64)
    firsts = [refs[0] for refs in references]
    for reference, translation in zip(words_of(firsts, rules), words_of(hypotheses, rules), strict=True):
        wanted, found = Counter(reference), Counter(translation)
        for column, words in enumerate((wanted, found, wanted & found)):
            for word, number in words.items():
                counts[bucket_of.get(word, 0), column] += number
    highs = [following - 1 for following in FREQUENCIES[1:]] + [None]
    return [WordAccuracy(low, high, *row) for low, high, row in zip(FREQUENCIES, highs, counts.tolist(), strict=True)]


@dataclass(frozen=True)
class LengthBin:
    """Sentences of similar length.

    Attributes:
        low: Fewest words of a source, separated by spaces.
        high: Most.
        rows: Their numbers.
    """

    low: int
    high: int
    rows: list[int]

    @property
    def name(self) -> str:
        """The lengths, such as `7` or `8-10`."""
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


def bin_by_length(examples: Sequence[Example]) -> list[LengthBin]:
    """Bins of about the same number of sentences (quantiles), the shortest first."""
    lengths = np.array([len(example.src.split()) for example in examples])
    edges = np.unique(np.quantile(lengths, np.arange(1, LENGTH_BINS) / LENGTH_BINS, method="lower"))
    bins = np.searchsorted(edges, lengths, side="left")
    groups = (np.flatnonzero(bins == number) for number in np.unique(bins))
    return [LengthBin(int(lengths[rows].min()), int(lengths[rows].max()), rows.tolist()) for rows in groups]


@dataclass(frozen=True)
class LengthScore:
    """BLEU of the translations of sentences of similar length.

    Attributes:
        name: Words of their sources, separated by spaces.
        sentences: Their number.
        bleu: BLEU; None if there are fewer than 30.
    """

    name: str
    sentences: int
    bleu: float | None


def bleu_by_length(examples: Sequence[Example], hypotheses: Sequence[str], rules: ScoringRules) -> list[LengthScore]:
    """BLEU by source length, in bins of about the same number of sentences (quantiles).

    Args:
        examples: Sources with references.
        hypotheses: Their translations.
        rules: How text is scored.
    """
    return [
        score_length(each.name, [examples[row] for row in each.rows], [hypotheses[row] for row in each.rows], rules)
        for each in bin_by_length(examples)
    ]


def score_length(name: str, examples: Sequence[Example], hypotheses: Sequence[str], rules: ScoringRules) -> LengthScore:
    """BLEU of some sentences, unless they are too few.

    Args:
        name: Their length.
        examples: Sources with references.
        hypotheses: Their translations.
        rules: How text is scored.
    """
    bleu = None
    if len(examples) >= FEWEST:
        references = [example.references for example in examples]
        bleu = score_corpus(hypotheses, references, rules, ["bleu"])["bleu"].value
    return LengthScore(name, len(examples), bleu)


def count_by_score(scores: Sequence[float]) -> list[int]:
    """How many sentences have a BLEU of 0 to 10, 10 to 20 and so on; 100 belongs to the last."""
    edges = np.arange(0, 100 + BLEU_STEP, BLEU_STEP)
    counts, _ = np.histogram(np.clip(scores, 0, 100), edges)
    return [int(count) for count in counts]


@dataclass(frozen=True)
class NgramDifference:
    """An n-gram of the references that one system gets more often than the other.

    Attributes:
        text: Its words.
        first: Times that the first system has it, at most as often as the reference in each sentence.
        second: Times that the second has it.
        wanted: Times that the references have it.
    """

    text: str
    first: int
    second: int
    wanted: int


def compare_ngrams(
    first: Sequence[str], second: Sequence[str], references: Sequence[Sequence[str]], rules: ScoringRules, number: int
) -> tuple[list[NgramDifference], list[NgramDifference]]:
    """The n-grams of up to 4 words of the first references that one of two systems gets and the other does not.

    Args:
        first: Translations of one system.
        second: Those of the other.
        references: References of each sentence.
        rules: What is a word.
        number: How many n-grams to return for each system.

    Returns:
        Those that the first gets more often, and those that the second does; the largest difference first.
    """
    wanted: Counter[Ngram] = Counter()
    found: tuple[Counter[Ngram], Counter[Ngram]] = (Counter(), Counter())
    for reference, *both in zip(
        *(words_of(lines, rules) for lines in ([refs[0] for refs in references], first, second)), strict=True
    ):
        in_reference = _ngrams(reference)
        wanted.update(in_reference)
        for counter, words in zip(found, both, strict=True):
            counter.update(_ngrams(words) & in_reference)
    rows = [
        NgramDifference(" ".join(ngram), found[0][ngram], found[1][ngram], total) for ngram, total in wanted.items()
    ]
    rows.sort(key=lambda row: (row.second - row.first, -row.wanted, row.text))
    return (
        [row for row in rows[:number] if row.first > row.second],
        [row for row in rows[: -number - 1 : -1] if row.second > row.first],
    )


def _ngrams(words: Sequence[str]) -> Counter[Ngram]:
    sizes = range(1, LONGEST_NGRAM + 1)
    return Counter(chain.from_iterable(zip(*(words[start:] for start in range(size)), strict=False) for size in sizes))


@dataclass(frozen=True)
class SentenceGap:
    """A sentence that two systems translate differently well.

    Attributes:
        source: Raw source.
        reference: Its first reference.
        first: Translation of the first system.
        second: That of the second.
        gap: BLEU of the first minus that of the second.
    """

    source: str
    reference: str
    first: str
    second: str
    gap: float


def largest_gaps(
    examples: Sequence[Example],
    first: Sequence[str],
    second: Sequence[str],
    scores: tuple[Sequence[float], Sequence[float]],
    number: int,
) -> tuple[list[SentenceGap], list[SentenceGap]]:
    """The sentences in which one of two systems is better by most, in BLEU of single sentences.

    Args:
        examples: Sources with references.
        first: Translations of one system.
        second: Those of the other.
        scores: BLEU of each sentence, of both systems.
        number: How many sentences to return for each system.

    Returns:
        Those in which the first is better, and those in which the second is; the largest gap first.
    """
    one, other = map(np.array, scores)
    order = np.argsort(other - one, kind="stable").tolist()

    def gaps(rows: Sequence[int]) -> list[SentenceGap]:
        return [
            SentenceGap(examples[n].src, examples[n].references[0], first[n], second[n], float(one[n] - other[n]))
            for n in rows
        ]

    better, worse = gaps(order[:number]), gaps(order[: -number - 1 : -1])
    return [row for row in better if row.gap > 0], [row for row in worse if row.gap < 0]
