"""The breakdown of an evaluation: tables for people, and plain values."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmt.corpus.splitting import Example
from nmt.evaluation.breakdown import (
    BLEU_STEP,
    FEWEST,
    LengthScore,
    NgramDifference,
    SentenceGap,
    WordAccuracy,
    accuracy_by_frequency,
    bleu_by_length,
    compare_ngrams,
    count_by_score,
    largest_gaps,
)
from nmt.evaluation.metrics import ScoringRules, sentence_scores, words_of
from nmt.evaluation.training_text import decode_lines, load_training_pairs
from nmt.system.errors import shorten
from nmt.system.progress import progress_bar
from nmt.system.tables import Section, Table
from nmt.text.processor import TextProcessor

log = logging.getLogger(__name__)

MAX_PAIRS = 500_000
"""Training pairs whose words are counted, evenly spaced."""
CHUNK = 2000
SHOWN = 10
"""N-grams and sentences per system."""

Systems = Sequence[tuple[str, Sequence[str]]]


@dataclass(frozen=True)
class Difference:
    """What two systems get differently.

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

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        frequencies = {
            name: [{**asdict(each), "f1": each.f1} for each in rows] for name, rows in self.frequencies.items()
        }
        return {**asdict(self), "frequencies": frequencies}

    def sections(self) -> Iterator[Section]:
        """As tables."""
        if self.frequencies:
            yield Section("F1 of words by their frequency in training", [self._frequency_table()])
        yield Section("BLEU by source length", [self._length_table()])
        yield Section("Sentences by their BLEU", [self._score_table()])
        for difference in self.differences:
            yield Section(f"{difference.first} compared with {difference.second}", list(_tables(difference)))

    def _frequency_table(self) -> Table:
        rows = [
            [each[0].name, f"{each[0].in_references:,}", *(_f1(accuracy) for accuracy in each)]
            for each in zip(*self.frequencies.values(), strict=True)
        ]
        return _table(["occurrences", "in references", *self.frequencies], rows)

    def _length_table(self) -> Table:
        rows = [
            [each[0].name, f"{each[0].sentences:,}", *(_or_dash(bin_.bleu) for bin_ in each)]
            for each in zip(*self.lengths.values(), strict=True)
        ]
        return _table(["words", "sentences", *self.lengths], rows)

    def _score_table(self) -> Table:
        rows = [
            [f"{place * BLEU_STEP}-{(place + 1) * BLEU_STEP}", *(f"{count:,}" for count in counts)]
            for place, counts in enumerate(zip(*self.scores.values(), strict=True))
        ]
        return _table(["BLEU", *self.scores], rows)


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
    references = [example.references for example in examples]
    (name, first), *others = systems
    scores = {each: sentence_scores(texts, references, rules) for each, texts in systems}
    return Breakdown(
        frequencies={}
        if frequency is None
        else {each: accuracy_by_frequency(texts, references, frequency, rules) for each, texts in systems},
        lengths={each: bleu_by_length(examples, texts, rules) for each, texts in systems},
        scores={each: count_by_score(of_sentences) for each, of_sentences in scores.items()},
        differences=[
            Difference(
                name,
                other,
                compare_ngrams(first, second, references, rules, SHOWN),
                largest_gaps(examples, first, second, (scores[name], scores[other]), SHOWN),
            )
            for other, second in others
        ],
    )


def count_training_words(data: Path, processor: TextProcessor, rules: ScoringRules) -> Counter[str]:
    """Count the target words of training pairs, without the copies that `data.augment` made.

    Args:
        data: Data directory.
        processor: Its tokenizers and vocabularies.
        rules: What is a word.

    Raises:
        DataError: The directory is missing, incomplete or damaged.
    """
    encoded, originals = load_training_pairs(data)
    rows = np.unique(np.linspace(0, max(0, originals - 1), min(originals, MAX_PAIRS)).astype(np.int64)).tolist()
    counts: Counter[str] = Counter()
    with progress_bar(total=len(rows), unit=" pairs", desc="counting training words", leave=False) as bar:
        for first in range(0, len(rows), CHUNK):
            chunk = rows[first : first + CHUNK]
            lines = decode_lines(encoded.tgt, chunk, processor.tgt_vocabulary, processor.tgt_tokenizer, data)
            for words in words_of(lines, rules):
                counts.update(words)
            bar.update(len(chunk))
    return counts


def _tables(difference: Difference) -> Iterator[Table | str]:
    names = (difference.first, difference.second)
    for name, ngrams in zip(names, difference.ngrams, strict=True):
        if ngrams:
            rows = [[each.text, f"{each.first:,}", f"{each.second:,}", f"{each.wanted:,}"] for each in ngrams]
            header = ["n-gram", "first", "second", "references"]
            yield _table(header, rows, f"n-grams of the references that {name} gets more often")
    for name, gaps in zip(names, difference.gaps, strict=True):
        if gaps:
            yield f"Sentences in which {name} is better:"
            for each in gaps:
                texts = (each.source, each.reference, each.first, each.second)
                labels = ("source", "reference", "first", "second")
                rows = [[label, shorten(text)] for label, text in zip(labels, texts, strict=True)]
                yield Table(["", ""], [*rows, ["BLEU", f"{each.gap:+z.1f}"]], "ll")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Table:
    return Table(header, rows, "l" + "r" * (len(header) - 1), caption)


def _f1(accuracy: WordAccuracy) -> str:
    return "–" if accuracy.f1 is None else f"{accuracy.f1:.3f}"


def _or_dash(bleu: float | None) -> str:
    return f"- (under {FEWEST})" if bleu is None else f"{bleu:.2f}"
