"""Cleaning: repair sentences and drop unusable pairs, with counts and samples of both."""

from __future__ import annotations

import math
import sys
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from nmt.corpus import Pair
from nmt.text.normalization import Normalizer

SAMPLES = 3
"""How many examples are kept for each rule."""

SETTINGS = {
    "empty": "data.columns",
    "too_short": "data.cleaning.min_length",
    "too_long": "data.cleaning.max_length",
    "too_many_characters": "data.cleaning.max_characters",
    "length_ratio": "data.cleaning.max_ratio",
    "few_letters": "data.cleaning.min_letters",
    "copy": "data.cleaning.copies",
    "duplicate": "data.cleaning.duplicates",
    "caseless_duplicate": "data.cleaning.duplicates",
}
"""The config key of each rule that drops pairs."""


@dataclass
class Finding:
    """What one rule did.

    Attributes:
        pairs: Pairs changed or dropped.
        samples: The first few: before and after for a rule that changes, the pair for one that drops.
    """

    pairs: int = 0
    samples: list[tuple[Pair, ...]] = field(default_factory=list)

    def note(self, *texts: Pair) -> None:
        """Count a pair, and keep it if there are fewer than `SAMPLES`."""
        self.pairs += 1
        if len(self.samples) < SAMPLES:
            self.samples.append(texts)

    def add(self, other: Finding) -> None:
        """Add what the same rule did in a later part of the corpus."""
        self.pairs += other.pairs
        self.samples += other.samples[: SAMPLES - len(self.samples)]


@dataclass
class CleaningReport:
    """What cleaning did, in pairs: read = kept + dropped.

    Attributes:
        read: Pairs before cleaning.
        kept: Pairs after cleaning.
        changed: By name of the rule that changed text; a pair can count under several.
        dropped: By name of the first rule that a pair violated.
    """

    read: int = 0
    kept: int = 0
    changed: dict[str, Finding] = field(default_factory=dict)
    dropped: dict[str, Finding] = field(default_factory=dict)

    def add(self, other: CleaningReport) -> None:
        """Add the report of a later part of the corpus."""
        self.read += other.read
        self.kept += other.kept
        for mine, others in ((self.changed, other.changed), (self.dropped, other.dropped)):
            for name, finding in others.items():
                mine.setdefault(name, Finding()).add(finding)

    def drop(self, rule: str, count: int, samples: Iterable[Pair]) -> None:
        """Count pairs kept so far as dropped by `rule`."""
        self.kept -= count
        self.dropped.setdefault(rule, Finding()).add(Finding(count, [(pair,) for pair in samples]))

    def explain_loss(self) -> str:
        """Name the rule that dropped most pairs, and its config key; empty if at least half of them were kept."""
        if 2 * self.kept >= self.read:
            return ""
        rule, finding = max(self.dropped.items(), key=lambda item: item[1].pairs)
        kept = f"cleaning kept {self.kept:,} of {self.read:,} pairs"
        return f"{kept} ({rule} dropped {finding.pairs:,}): see {SETTINGS[rule]}"


class Cleaner:
    """The rules that judge each pair on its own; duplicates are found later, by their fingerprints.

    Args:
        normalizer: Repairs each sentence before it is judged.
        min_length: Minimum number of words, separated by spaces, of a side.
        max_length: Maximum number of words of a side.
        max_characters: Maximum number of characters of a side; None is off.
        max_ratio: Maximum number of characters of the longer side per character of the shorter; None is off.
        min_letters: Minimum share of letters and their marks among the characters that are not spaces.
        copies: Keep pairs whose sides are the same text.
    """

    def __init__(
        self,
        normalizer: Normalizer,
        *,
        min_length: int = 1,
        max_length: int = 100,
        max_characters: int | None = None,
        max_ratio: float | None = None,
        min_letters: float = 0.0,
        copies: bool = True,
    ) -> None:
        self.normalizer = normalizer
        most, ratio = max_characters or sys.maxsize, max_ratio or math.inf
        # The order matters: a pair counts under the first rule it violates, and later ones need words on both sides.
        rules: dict[str, tuple[bool, Callable[[Pair], bool]]] = {
            "empty": (True, lambda pair: not pair.src or not pair.tgt),
            "too_short": (min_length > 1, lambda pair: min(_words(pair.src), _words(pair.tgt)) < min_length),
            "too_long": (True, lambda pair: max(_words(pair.src), _words(pair.tgt)) > max_length),
            "too_many_characters": (bool(max_characters), lambda pair: max(map(len, pair)) > most),
            "length_ratio": (bool(max_ratio), lambda pair: max(map(len, pair)) > ratio * min(map(len, pair))),
            "few_letters": (min_letters > 0, lambda pair: min(map(letter_share, pair)) < min_letters),
            "copy": (not copies, lambda pair: pair.src == pair.tgt),
        }
        self.rules = {name: violates for name, (active, violates) in rules.items() if active}

    def clean(self, pairs: Iterable[Pair]) -> tuple[list[Pair], CleaningReport]:
        """Repair every pair and drop those that violate a rule.

        Returns:
            The pairs kept, in order, and a report.
        """
        report = CleaningReport()
        kept = []
        for raw in pairs:
            report.read += 1
            src, src_steps = self.normalizer.explain(raw.src)
            tgt, tgt_steps = self.normalizer.explain(raw.tgt)
            pair = Pair(src, tgt)
            for step in dict.fromkeys(src_steps + tgt_steps):
                report.changed.setdefault(step, Finding()).note(raw, pair)
            violated = next((name for name, violates in self.rules.items() if violates(pair)), None)
            if violated:
                report.dropped.setdefault(violated, Finding()).note(raw)
            else:
                kept.append(pair)
        report.kept = len(kept)
        return kept, report


def letter_share(text: str) -> float:
    """Share of letters, with the marks that belong to them, among the characters that are not spaces."""
    total = len(text) - text.count(" ")
    letters = sum(map(str.isalpha, text))
    if not text.isascii():  # the vowel signs of many scripts are marks, not letters
        letters += sum(unicodedata.category(character)[0] == "M" for character in text)
    return letters / total if total else 0.0


def _words(text: str) -> int:
    return text.count(" ") + 1
