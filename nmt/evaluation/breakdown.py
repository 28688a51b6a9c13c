"""Where systems are good and bad: by frequency of words, length and sentence, and by their differences."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from nmt.corpus.example import Example
from nmt.evaluation.metrics import ScoringRules, score_corpus, sentence_scores, words_of
from nmt.system.errors import shorten
from nmt.system.tables import ReportSection, Table

FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000)
"""First frequency of each bucket of words."""
LENGTH_BINS = 5
"""Bins of about equal numbers of sentences."""
FEWEST = 30
"""Sentences below which a score of a bin says nothing."""
BLEU_STEP = 10
LONGEST_NGRAM = 4
SHOWN = 10
"""N-grams and sentences per system."""
EMPTY = "–"
"""The text in place of a group with nothing in it."""

Ngram = tuple[str, ...]
Systems = Sequence[tuple[str, Sequence[str]]]
"""Name and translations of each system."""


@dataclass(frozen=True)
class WordAccuracy:
    """How well words of some frequencies are translated.

    Attributes:
        low: Smallest number of occurrences in training.
        high: Largest; None is unlimited.
        in_references: Words in the references.
        in_translations: Words in the translations.
        common: Words in both, sentence by sentence.
        f1: Harmonic mean of precision and recall, from 0 to 1; None if there is no such word.
    """

    low: int
    high: int | None
    in_references: int
    in_translations: int
    common: int
    f1: float | None

    @property
    def name(self) -> str:
        """The frequencies, such as `2-4`."""
        return f"{self.low}+" if self.high is None else _span(self.low, self.high)


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def accuracy_by_frequency(
    examples: Sequence[Example], hypotheses: Sequence[str], frequency: Mapping[str, int], rules: ScoringRules
) -> list[WordAccuracy]:
    """F1 of words by how often they occur in training, as compare-mt has it (Neubig et al., 2019).

    Of several references the first one counts.

    Args:
        examples: Sources with references.
        hypotheses: Their translations.
        frequency: Occurrences of target words in training.
        rules: How text is split into words.
    """
    bucket_of = {word: int(np.searchsorted(FREQUENCIES, count, side="right")) - 1 for word, count in frequency.items()}
    counts = np.zeros((len(FREQUENCIES), 3), dtype=np.int64)
    for reference, translation in zip(_first_references(examples, rules), words_of(hypotheses, rules), strict=True):
        wanted = Counter(reference)
        written = Counter(translation)
        for column, words in enumerate((wanted, written, wanted & written)):
            for word, number in words.items():
                counts[bucket_of.get(word, 0), column] += number
    highs = [following - 1 for following in FREQUENCIES[1:]] + [None]
    return [
        WordAccuracy(low, high, wanted, written, common, 2 * common / total if (total := wanted + written) else None)
        for low, high, (wanted, written, common) in zip(FREQUENCIES, highs, counts.tolist(), strict=True)
    ]


def _first_references(examples: Sequence[Example], rules: ScoringRules) -> Iterator[list[str]]:
    return words_of((example.references[0] for example in examples), rules)


def bin_by_length(examples: Sequence[Example]) -> dict[str, list[int]]:
    """Numbers of the sentences by the words of their sources, separated by spaces, such as `7` or `8-10`.

    The bins have about the same number of sentences (quantiles); the shortest come first.
    """
    lengths = np.array([len(example.src.split()) for example in examples])
    edges = np.unique(np.quantile(lengths, np.arange(1, LENGTH_BINS) / LENGTH_BINS, method="lower"))
    bins = np.searchsorted(edges, lengths, side="left")
    groups = (np.flatnonzero(bins == number) for number in np.unique(bins))
    return {_span(lengths[rows].min(), lengths[rows].max()): rows.tolist() for rows in groups}


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
        score_length(name, [examples[row] for row in rows], [hypotheses[row] for row in rows], rules)
        for name, rows in bin_by_length(examples).items()
    ]


def score_length(name: str, examples: Sequence[Example], hypotheses: Sequence[str], rules: ScoringRules) -> LengthScore:
    """BLEU of some sentences, unless they are too few.

    Args:
        name: Their length.
        examples: Sources with references.
        hypotheses: Their translations.
        rules: How text is scored.
    """
    few = len(examples) < FEWEST
    bleu = None if few else score_corpus(examples, hypotheses, rules, ["bleu"])["bleu"].value
    return LengthScore(name, len(examples), bleu)


def count_by_score(scores: Sequence[float]) -> list[int]:
    """How many sentences have a BLEU of 0 to 10, 10 to 20 and so on; 100 belongs to the last."""
    counts: list[int] = np.histogram(np.clip(scores, 0, 100), np.arange(0, 101, BLEU_STEP))[0].tolist()
    return counts


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
    examples: Sequence[Example], first: Sequence[str], second: Sequence[str], rules: ScoringRules
) -> tuple[list[NgramDifference], list[NgramDifference]]:
    """The n-grams of up to 4 words of the first references that one of two systems gets and the other does not.

    Args:
        examples: Sources with references.
        first: Translations of one system.
        second: Translations of the other.
        rules: How text is split into words.

    Returns:
        Up to 10 that the first gets more often, and up to 10 that the second does; the largest difference first.
    """
    wanted = Counter[Ngram]()
    in_first = Counter[Ngram]()
    in_second = Counter[Ngram]()
    texts = (_first_references(examples, rules), words_of(first, rules), words_of(second, rules))
    for reference, *translations in zip(*texts, strict=True):
        in_reference = _ngrams(reference)
        wanted.update(in_reference)
        for counter, words in zip((in_first, in_second), translations, strict=True):
            counter.update(_ngrams(words) & in_reference)
    rows = [NgramDifference(" ".join(ngram), in_first[ngram], in_second[ngram], n) for ngram, n in wanted.items()]
    rows.sort(key=lambda row: (row.second - row.first, -row.wanted, row.text))
    return (
        [row for row in rows[:SHOWN] if row.first > row.second],
        [row for row in rows[: -SHOWN - 1 : -1] if row.second > row.first],
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
        second: Translation of the second.
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
) -> tuple[list[SentenceGap], list[SentenceGap]]:
    """The sentences in which one of two systems is better by most, in BLEU of single sentences.

    Args:
        examples: Sources with references.
        first: Translations of one system.
        second: Translations of the other.
        scores: BLEU of each sentence, of both systems.

    Returns:
        Up to 10 in which the first is better, and up to 10 in which the second is; the largest gap first.
    """
    rows = zip(examples, first, second, *scores, strict=True)
    gaps = [
        SentenceGap(src, refs[0], text, text_of_rival, score - rival)
        for (src, refs), text, text_of_rival, score, rival in rows
    ]
    gaps.sort(key=lambda row: -row.gap)
    return [row for row in gaps[:SHOWN] if row.gap > 0], [row for row in gaps[: -SHOWN - 1 : -1] if row.gap < 0]


@dataclass(frozen=True)
class Difference:
    """The words and sentences that two systems get differently.

    Attributes:
        first: Name of the first system.
        second: Name of the second.
        ngrams: N-grams that the first gets more often, and that the second does.
        gaps: Sentences in which the first is better, and in which the second is.
    """

    first: str
    second: str
    ngrams: tuple[list[NgramDifference], list[NgramDifference]]
    gaps: tuple[list[SentenceGap], list[SentenceGap]]


@dataclass(frozen=True)
class Breakdown:
    """Where systems are good and bad.

    Attributes:
        frequencies: By system, F1 of words by their frequency in training; empty if that is unknown.
        lengths: By system, BLEU by source length.
        scores: By system, numbers of sentences by their BLEU, in steps of 10.
        differences: The first system and each other one.
    """

    frequencies: dict[str, list[WordAccuracy]]
    lengths: dict[str, list[LengthScore]]
    scores: dict[str, list[int]]
    differences: list[Difference]

    def sections(self) -> Iterator[ReportSection]:
        """As tables."""
        if self.frequencies:
            rows = []
            for of_systems in zip(*self.frequencies.values(), strict=True):
                words = of_systems[0].in_references
                scores = [f"{accuracy.f1:.3f}" if words else EMPTY for accuracy in of_systems]
                rows.append([of_systems[0].name, _count(words), *scores])
            header = ["occurrences", "in references", *self.frequencies]
            caption = "F1, from 0 to 1: harmonic mean of the shares of translated and of reference words in common"
            yield ReportSection("F1 of words by their frequency in training", [_table(header, rows, caption)])
        few = f"{EMPTY} (under {FEWEST})"
        rows = []
        for by_system in zip(*self.lengths.values(), strict=True):
            scores = [few if score.bleu is None else f"{score.bleu:.2f}" for score in by_system]
            rows.append([by_system[0].name, f"{by_system[0].sentences:,}", *scores])
        header = ["words of the source", "sentences", *self.lengths]
        yield ReportSection("BLEU by source length", [_table(header, rows)])
        rows = [
            [f"{low}-{low + BLEU_STEP}", *map(_count, counts)]
            for low, *counts in zip(range(0, 100, BLEU_STEP), *self.scores.values(), strict=True)
        ]
        yield ReportSection("Sentences by their BLEU", [_table(["BLEU", *self.scores], rows)])
        for difference in self.differences:
            yield ReportSection(f"{difference.first} compared with {difference.second}", list(_tables(difference)))


def break_down(
    examples: Sequence[Example], systems: Systems, rules: ScoringRules, frequency: Counter[str] | None
) -> Breakdown:
    """Break an evaluation down.

    Args:
        examples: Sources with references.
        systems: Name and translations of each; the first is compared with each other one.
        rules: How text is scored.
        frequency: Occurrences of target words in training; None if unknown.
    """
    (name, first), *others = systems
    scores = {system: sentence_scores(examples, texts, rules) for system, texts in systems}
    differences = []
    for rival_name, second in others:
        gaps = largest_gaps(examples, first, second, (scores[name], scores[rival_name]))
        differences.append(Difference(name, rival_name, compare_ngrams(examples, first, second, rules), gaps))
    accuracy = {}
    lengths = {}
    for system, texts in systems:
        lengths[system] = bleu_by_length(examples, texts, rules)
        if frequency is not None:
            accuracy[system] = accuracy_by_frequency(examples, texts, frequency, rules)
    counts = {system: count_by_score(values) for system, values in scores.items()}
    return Breakdown(accuracy, lengths, counts, differences)


def _tables(difference: Difference) -> Iterator[Table | str]:
    names = (difference.first, difference.second)
    for name, ngrams in zip(names, difference.ngrams, strict=True):
        if ngrams:
            rows = [[ngram.text, f"{ngram.first:,}", f"{ngram.second:,}", f"{ngram.wanted:,}"] for ngram in ngrams]
            header = ["n-gram", "first", "second", "references"]
            yield _table(header, rows, f"n-grams of the references that {name} gets more often")
    for name, gaps in zip(names, difference.gaps, strict=True):
        if gaps:
            yield f"Sentences in which {name} is better:"
        for gap in gaps:
            rows = [[label, shorten(getattr(gap, label))] for label in ("source", "reference", "first", "second")]
            yield Table(["", ""], [*rows, ["BLEU", f"{gap.gap:+z.1f}"]], "ll")


def _count(number: int) -> str:
    return f"{number:,}" if number else EMPTY


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Table:
    return Table(header, rows, "l" + "r" * (len(header) - 1), caption)
