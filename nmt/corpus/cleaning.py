"""Cleaning: repair sentences and drop unusable pairs, with counts and samples of both."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from nmt.config import CleaningSection, DataSection
from nmt.corpus import Pair
from nmt.corpus.lines import Rows, encode_lines
from nmt.corpus.processes import map_chunks
from nmt.corpus.sources import Chunk, LineReport, Source, parse_chunk
from nmt.corpus.store import Block, PairStore
from nmt.corpus.traces import Run, Sample, take_runs
from nmt.system.errors import DataError
from nmt.system.progress import progress_bar
from nmt.text.direction import Direction
from nmt.text.languages import is_language
from nmt.text.normalization import Normalizer
from nmt.text.numbers import find_numbers as find_numbers
from nmt.text.numbers import have_same_numbers

SCRIPTS: dict[str, str | tuple[str, ...]] = {"chinese": "CJK", "japanese": ("CJK", "HIRAGANA", "KATAKANA")}
"""Unicode's names of scripts that have others."""
FINGERPRINTS_OF: dict[str, dict[str, str]] = {
    "keep": {},
    "drop": {"duplicate": "pair_draw"},
    "drop_casefold": {"duplicate": "pair_draw", "caseless_duplicate": "caseless_pair"},
}
"""By data.cleaning.duplicates the rules that drop a pair, each with the fingerprint that repeated pairs share."""
SAMPLES = 3
"""How many examples of a rule are in the report."""


@dataclass
class RuleCount:
    """The pairs that a rule changed or dropped.

    Attributes:
        pairs: Pairs changed or dropped.
        samples: The first few: before and after for a rule that changes, the pair for one that drops.
    """

    pairs: int = 0
    samples: list[tuple[Pair, ...]] = field(default_factory=list)

    def add(self, pairs: int, samples: Iterable[tuple[Pair, ...]]) -> None:
        """Add later pairs that the same rule changed or dropped."""
        self.pairs += pairs
        self.samples = [*self.samples, *samples][:SAMPLES]


@dataclass
class CleaningReport:
    """The result of cleaning, in pairs: read = kept + dropped.

    Attributes:
        read: Pairs before cleaning.
        kept: Pairs after cleaning.
        changed: By name of the rule that changed text; a pair can count under several.
        dropped: By name of the first rule that a pair violated.
        changed_targets: Pairs whose target a rule changed, by its name; not part of `report.json`.
    """

    read: int
    kept: int
    changed: dict[str, RuleCount] = field(default_factory=dict)
    dropped: dict[str, RuleCount] = field(default_factory=dict)
    changed_targets: Counter[str] = field(default_factory=Counter)

    def add(self, other: CleaningReport) -> None:
        """Add the report of a later part of the corpus."""
        self.read += other.read
        self.kept += other.kept
        self.changed_targets += other.changed_targets
        _add_counts(self.changed, other.changed)
        _add_counts(self.dropped, other.dropped)

    def explain_loss(self) -> str:
        """Name the rule that dropped most pairs; empty if at least half of them are left."""
        if 2 * self.kept >= self.read:
            return ""
        rule, rule_count = max(self.dropped.items(), key=lambda item: item[1].pairs)
        left = f"cleaning kept {self.kept:,} of {self.read:,} pairs"
        return f"{left} ({rule} dropped {rule_count.pairs:,}): see data.cleaning and data.columns"


def _add_counts(counts: dict[str, RuleCount], later: Mapping[str, RuleCount]) -> None:
    """Add the counts of later pairs, by name of the rule."""
    for name, rule_count in later.items():
        counts.setdefault(name, RuleCount()).add(rule_count.pairs, rule_count.samples)


class Cleaner:
    """The rules that judge each pair on its own; duplicates are recognised later, by their fingerprints.

    Args:
        options: How to repair sentences, and the limits that a pair must keep.
        direction: Languages of the pairs, by which an option may judge their scripts.
    """

    def __init__(self, options: CleaningSection, direction: Direction) -> None:
        self.normalizer = make_text_normalizer(options)
        self._options = options
        self._scripts = [find_script(options.scripts, language) for language in (direction.source, direction.target)]

    def find_fault(self, pair: Pair) -> str | None:
        """The first rule that a repaired pair violates, None if it keeps all; later rules need words on both sides."""
        src, tgt = pair
        options = self._options
        if not src or not tgt:
            return "empty"
        words = (_words(src), _words(tgt))
        if min(words) < options.min_length:
            return "too_short"
        if max(words) > options.max_length:
            return "too_long"
        longer = max(len(src), len(tgt))
        if options.max_characters and longer > options.max_characters:
            return "too_many_characters"
        if options.max_ratio and longer > options.max_ratio * min(len(src), len(tgt)):
            return "length_ratio"
        if options.min_letters > 0 and min(letter_share(src), letter_share(tgt)) < options.min_letters:
            return "few_letters"
        if not options.copies and src == tgt:
            return "copy"
        if options.same_numbers and not have_same_numbers(src, tgt):
            return "other_numbers"
        if not all(map(is_written_in, self._scripts, pair)):
            return "other_script"
        return None

    def clean(self, pairs: Sequence[Pair]) -> tuple[list[Pair], CleaningReport]:
        """Repair every pair and drop those that violate a rule.

        Returns:
            The clean pairs, in order, and a report.
        """
        report = CleaningReport(len(pairs), 0)
        clean = []
        for raw in pairs:
            src, src_steps = self.normalizer.explain(raw.src)
            tgt, tgt_steps = self.normalizer.explain(raw.tgt)
            pair = Pair(src, tgt)
            report.changed_targets.update(tgt_steps)
            for step in dict.fromkeys(src_steps + tgt_steps):
                report.changed.setdefault(step, RuleCount()).add(1, [(raw, pair)])
            fault = self.find_fault(pair)
            if fault is None:
                clean.append(pair)
            else:
                report.dropped.setdefault(fault, RuleCount()).add(1, [(raw,)])
        report.kept = len(clean)
        return clean, report


def clean_corpus(
    data: DataSection, source: Source, store: PairStore, tag: str | None = None, *, sample: Sample
) -> tuple[LineReport, CleaningReport]:
    """Read a corpus, and store its clean pairs with their fingerprints.

    Args:
        data: How to clean.
        source: The corpus.
        store: Where clean pairs go, after those that it has.
        tag: First token of the stored sources; they have the fingerprints of those without it.
        sample: Receives raw pairs.

    Returns:
        Reports on the lines of the files, and on the cleaning of the pairs.

    Raises:
        DataError: The corpus has no pair, or too many malformed lines.
    """
    lines = LineReport(0)
    cleaned = CleaningReport(0, 0)
    work = partial(_clean_chunk, data, tag)
    with progress_bar(desc="cleaning", unit=" lines", leave=False) as bar:
        for block, chunk_lines, chunk_cleaned, runs in map_chunks(work, source.chunks(lines), data.workers):
            store.append(block)
            sample.add(runs)
            lines.add(chunk_lines)
            cleaned.add(chunk_cleaned)
            bar.update(chunk_lines.read)
    source.check(lines, cleaned.read, data.max_malformed)
    return lines, cleaned


def _clean_chunk(
    data: DataSection, tag: str | None, chunk: Chunk
) -> tuple[Block, LineReport, CleaningReport, list[Run]]:
    """Parse and clean the lines of a chunk: the work of one process."""
    raw, lines = parse_chunk(chunk)
    pairs, cleaned = Cleaner(data.cleaning, Direction.of(data)).clean(raw)
    block = Block.encode(pairs, data.split.seed)
    if tag:
        block = block._replace(src=encode_lines(f"{tag} {pair.src}" for pair in pairs))
    return block, lines, cleaned, take_runs(raw, chunk.first_line)


def drop_repeated(options: CleaningSection, store: PairStore, report: CleaningReport, first: int = 0) -> Rows:
    """Rows of the first occurrence of each pair, from row `first` on; the others are counted as dropped.

    Raises:
        DataError: No pair is left.
    """
    rows = np.arange(first, len(store))
    for rule, kind in FINGERPRINTS_OF[options.duplicates].items():
        # Equal pairs have equal fingerprints; `first_places` are those of the first pair with each fingerprint.
        fingerprints = store.fingerprints(kind)[rows]
        _, first_places = np.unique(fingerprints, return_index=True)
        is_first = np.zeros(len(rows), dtype=bool)
        is_first[first_places] = True
        repeated = rows[~is_first]
        if len(repeated):
            samples: list[tuple[Pair, ...]] = [(pair,) for pair in store.pairs(repeated[:SAMPLES])]
            report.kept -= len(repeated)
            report.dropped[rule] = RuleCount(len(repeated), samples)
        rows = rows[is_first]
    if not len(rows):
        raise DataError(f"corpus: no pair is left, as {report.explain_loss()}")
    return rows


def make_text_normalizer(options: CleaningSection) -> Normalizer:
    """The normalizer of a config: those of its settings that are named as in the config."""
    return Normalizer(**options.model_dump(include=set(Normalizer().settings)))


def letter_share(text: str) -> float:
    """Share of letters, with the marks that belong to them, among the characters that are not spaces."""
    total = len(text) - text.count(" ")
    letters = sum(map(str.isalpha, text))
    if not text.isascii():  # the vowel signs of many scripts are marks, not letters
        letters += sum(unicodedata.category(character)[0] == "M" for character in text)
    return letters / total if total else 0.0


def find_script(scripts: Mapping[str, str], language: str) -> str:
    """The script that a language is to be written in, by its code or another code of the same language."""
    if language in scripts:
        return scripts[language]
    return next((script for code, script in scripts.items() if is_language(language, code)), "")


def is_written_in(script: str, text: str) -> bool:
    """True if at least half of the letters of a text are of a script; always without one, and without letters."""
    if not script:
        return True
    # Unicode's name of a letter begins with that of its script: LATIN SMALL LETTER A.
    beginnings = SCRIPTS.get(script, script.upper())
    names = [unicodedata.name(character, "") for character in text if character.isalpha()]
    of_script = sum(name.startswith(beginnings) for name in names)
    return 2 * of_script >= len(names)


def _words(text: str) -> int:
    return text.count(" ") + 1
