"""Splits with an unseen test set: sentences that share a translation stay together.

Tatoeba is many-to-many: one English sentence has several German translations, each of which may have several
English ones. A random split of the pairs puts the same sentence into training and test. Here pairs that share a
sentence, directly or through other pairs, form a component, and each component goes to one split as a whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from nmt.config import DataSection, SplitSection
from nmt.corpus import Pair
from nmt.corpus.cleaning import CleaningReport, make_text_normalizer
from nmt.corpus.example import Example
from nmt.corpus.identity import among_sorted, draw, identities
from nmt.corpus.lines import Rows
from nmt.corpus.report_schema import Overlap, SplitFileReport, SplitReport
from nmt.corpus.sources import Source, read_pairs
from nmt.corpus.store import PairStore, in_chunks, most_frequent
from nmt.corpus.traces import is_blank
from nmt.system.errors import DataError, shorten
from nmt.system.messages import Message, Parameter
from nmt.text.normalization import Normalizer
from nmt.text.processor import SIDES

MAX_HUBS = 3
"""How many of the sentences that connect a corpus are named."""
MANY_PARTNERS = 10
"""Minimum number of different translations of such a sentence."""
FREQUENT = 10
"""How many of the most frequent sentences are in the report."""


@dataclass(frozen=True)
class Splits:
    """Training pairs, and validation and test examples; unless they are ready-made, they share no sentence.

    Attributes:
        train: Rows of the training pairs in their store.
        evaluation: Validation and test examples, by the name of their split, `valid` or `test`.
        components: Number of components in the corpus; 0 if the splits are ready-made.
        largest_component: Size of the largest one, in pairs.
        dropped_overlap: Training pairs dropped because valid or test share them; None if that was not asked for.
        files: Reports on the evaluation splits that have files of their own, by name.
    """

    train: Rows
    evaluation: dict[str, list[Example]]
    components: int = 0
    largest_component: int = 0
    dropped_overlap: int | None = None
    files: Mapping[str, SplitFileReport] = field(default_factory=dict)


def split_corpus(
    data: DataSection, evaluation_sources: Mapping[str, Source], store: PairStore, rows: Rows, cleaned: CleaningReport
) -> Splits:
    """Split clean pairs, unless the corpus has ready-made splits.

    Args:
        data: How to split.
        evaluation_sources: Ready-made validation and test splits, by name.
        store: Clean pairs.
        rows: Which of them to split, each pair once.
        cleaned: Report of cleaning, to explain why pairs are missing.

    Raises:
        DataError: There are too few pairs, or ready-made splits that cannot be used.
    """
    lost = ""
    try:
        read = {name: _read(name, file, data) for name, file in evaluation_sources.items()}
        if not read:
            return split_pairs(store, rows, data.split)
        public = {name: _with_references(examples) for name, examples in read.items()}
        files = {
            name: SplitFileReport(len(examples), len(examples) - len(public[name])) for name, examples in read.items()
        }
        ready_made = "valid" in public
        train = rows
        dropped = None
        if data.drop_overlap or not ready_made:
            normalizer = make_text_normalizer(data.cleaning)
            is_dropped = np.zeros(len(rows), dtype=bool)
            for name, examples in public.items():
                shared = _find_shared(store, rows, examples, normalizer)
                files[name] = replace(files[name], dropped_training=int(shared.sum()))
                is_dropped |= shared
            train = rows[~is_dropped]
            dropped = len(rows) - len(train)
            if not len(train):
                raise DataError("corpus: every training pair shares a sentence with valid or test; use other splits")
            lost = explain_overlap(dropped, len(rows))
        if not ready_made:
            splits = split_pairs(store, train, data.split.model_copy(update={"test_size": 0}))
            return replace(splits, evaluation=splits.evaluation | public, dropped_overlap=dropped, files=files)
        size = data.split.train_size
        if size is not None and size > len(train):
            there = f"{len(train):,} are left" if dropped else f"the training file has {len(train):,}"
            fault = f"data.split.train_size: {size:,} pairs wanted, but {there}"
            raise DataError(f"{fault}; ask for fewer or give more data")
        return Splits(train[:size], {"valid": [], "test": [], **public}, dropped_overlap=dropped, files=files)
    except DataError as error:
        reasons = [reason for reason in (lost, cleaned.explain_loss()) if reason]
        if not reasons:
            raise
        raise DataError("{error}; {reasons}", error=error, reasons="; ".join(reasons)) from None


def explain_overlap(dropped: int, pairs: int) -> str:
    """How many training pairs were dropped because valid or test share them; empty if most are left."""
    if 2 * dropped <= pairs:
        return ""
    return f"overlap with valid or test dropped {dropped:,} of {pairs:,} training pairs; use other splits"


def _read(name: str, source: Source, data: DataSection) -> list[Example]:
    """The examples of a ready-made split, as they are but for their Unicode form and spaces."""
    normalizer = make_text_normalizer(data.cleaning)
    plain = normalizer.without_repairs
    change = normalizer if data.repair_references else plain
    pairs = [Pair(plain(pair.src), change(pair.tgt)) for pair in read_pairs(source)]
    for side, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=False):
        if not any(texts):
            raise DataError(f"{name}: all {len(pairs):,} {side} lines are empty; give text")
    return [Example(src, (tgt,)) for src, tgt in pairs]


def _with_references(examples: Sequence[Example]) -> list[Example]:
    """The examples of a ready-made split whose references are not empty: no translation is right there."""
    return [example for example in examples if not any(map(is_blank, example.references))]


def split_pairs(store: PairStore, rows: Rows, options: SplitSection) -> Splits:
    """Split a corpus so that no sentence, on either side, is in two splits.

    Two sentences count as the same if their letters and digits agree, ignoring case. The result depends on the pairs
    and on the seed only, not on the order of the pairs. The test split is filled first, then the validation split:
    components come in a random order, and those too large for the room left are skipped.

    Args:
        store: Clean pairs, fingerprinted with the seed of the split.
        rows: Which of them to split, each pair once.
        options: Distinct source sentences in the validation and in the test split, and pairs in the training split.

    Returns:
        The splits, each in a random order; but if `valid_size` and `test_size` are both 0, the training pairs are
        in the order of `rows`.

    Raises:
        DataError: The corpus is too small for the sizes, or its components are too large.
    """
    labels = find_components(store.fingerprints("src_identity")[rows], store.fingerprints("tgt_identity")[rows])
    sizes = np.bincount(labels)
    shuffled = np.argsort(store.fingerprints("pair_draw")[rows], kind="stable")
    examples: dict[str, list[Example]] = {"valid": [], "test": []}
    if options.valid_size == options.test_size == 0:
        train = rows[np.sort(shuffled[: options.train_size])]
    else:
        order, num_sources = _draw_components(store, rows, labels)
        free = np.ones(len(rows), dtype=bool)
        for name, size in (("test", options.test_size), ("valid", options.valid_size)):
            room = size
            taken = list[int]()
            left = list[int]()
            for component in order:
                fits = num_sources[component] <= room
                (taken if fits else left).append(component)
                room -= num_sources[component] if fits else 0
            if room:
                members = labels == max(left, key=sizes.__getitem__, default=-1)
                advice = Message(f"ask for a smaller {name} split or give more data")
                if 2 * members.sum() > len(rows):
                    advice = _explain_connection(store, rows[members], len(rows))
                drawn = f"{size - room:,} of {size:,} {name} sentences found"
                raise DataError("corpus: {found}; {advice}", found=drawn, advice=advice)
            order = left
            in_split = np.isin(labels, taken)
            free &= ~in_split
            grouped = group_references(store.pairs(rows[in_split]))
            examples[name] = sorted(
                grouped, key=lambda example: (draw("source", options.seed, example.src), example.src)
            )
        train = rows[shuffled[free[shuffled]][: options.train_size]]
    if not len(train) or len(train) < (options.train_size or 0):
        wanted = "" if options.train_size is None else f" of the {options.train_size:,} wanted"
        raise DataError(
            f"corpus: {len(train):,} pairs{wanted} left for training, after {options.test_size:,} test and "
            f"{options.valid_size:,} valid sentences; ask for smaller splits or give more data"
        )
    return Splits(train, examples, len(sizes), int(sizes.max()))


def group_references(pairs: Iterable[Pair]) -> list[Example]:
    """Collect all references of each distinct source text, sorted; sources in order of first appearance."""
    references: dict[str, set[str]] = {}
    for src, tgt in pairs:
        references.setdefault(src, set()).add(tgt)
    return [Example(src, tuple(sorted(texts))) for src, texts in references.items()]


def measure_overlap(store: PairStore, train: Rows, examples: Sequence[Example], normalizer: Normalizer) -> Overlap:
    """Count the examples seen in training, comparing sentences by letters, their marks and digits.

    Args:
        store: Clean pairs.
        train: Which of them are training pairs.
        examples: Validation or test examples.
        normalizer: Normalizer of the training text, as a model reads the examples through it.
    """
    sources, references, owners = _identities(examples, normalizer)
    seen = _few_among_many(references, store.fingerprints("tgt_identity")[train])
    leaked = _few_among_many(sources, store.fingerprints("src_identity")[train])
    return Overlap(int(leaked.sum()), len(np.unique(owners[seen])), len(examples))


def measure_overlap_of_splits(
    examples: Sequence[Example], others: Sequence[Example], normalizer: Normalizer
) -> Overlap:
    """Count the examples of a split that another split has, as `measure_overlap` does."""
    sources, references, owners = _identities(examples, normalizer)
    other_sources, other_references, _ = _identities(others, normalizer)
    shared = np.isin(sources, other_sources)
    return Overlap(int(shared.sum()), len(np.unique(owners[np.isin(references, other_references)])), len(examples))


def without_overlap(store: PairStore, train: Rows, examples: Sequence[Example], normalizer: Normalizer) -> Rows:
    """The training pairs that share no sentence, on either side, with the examples as a model reads them."""
    return train[~_find_shared(store, train, examples, normalizer)]


def _find_shared(
    store: PairStore, train: Rows, examples: Sequence[Example], normalizer: Normalizer
) -> NDArray[np.bool_]:
    """Which training pairs share a sentence, on either side, with the examples as a model reads them, [pairs]."""
    sources, references, _ = _identities(examples, normalizer)
    shared = among_sorted(store.fingerprints("src_identity")[train], np.sort(sources))
    shared |= among_sorted(store.fingerprints("tgt_identity")[train], np.sort(references))
    return shared


def _identities(
    examples: Sequence[Example], normalizer: Normalizer
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
    """Identities of all sources and of all references, and for each reference the index of its example."""
    owners = np.repeat(np.arange(len(examples)), [len(example.references) for example in examples])
    references = [normalizer(reference) for example in examples for reference in example.references]
    return identities([normalizer(example.src) for example in examples]), identities(references), owners


def _few_among_many(few: NDArray[np.uint64], many: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which of a few numbers are among many, without sorting the many as np.isin alone would."""
    return np.isin(few, many[among_sorted(many, np.sort(few))])


def naive_overlap(store: PairStore, rows: Rows, test_size: int) -> Overlap:
    """Count the sentences that a plain random split of the pairs would have leaked, for comparison.

    Unlike `measure_overlap`, this compares exact texts, and each test pair is an example of its own: the common
    practice, measured by the most lenient rule.

    Args:
        store: Clean pairs.
        rows: Which of them to split.
        test_size: Test pairs.
    """
    draws = store.fingerprints("pair_draw")[rows]
    test = np.zeros(len(rows), dtype=bool)
    test[np.argpartition(draws, min(test_size, len(rows) - 1))[:test_size]] = True
    texts = (store.fingerprints(side)[rows] for side in ("src_text", "tgt_text"))
    sources, targets = (int(_few_among_many(side[test], side[~test]).sum()) for side in texts)
    return Overlap(sources, targets, examples=int(test.sum()))


def report_splits(store: PairStore, rows: Rows, splits: Splits, normalizer: Normalizer) -> SplitReport:
    """Count and compare the splits.

    Args:
        store: Clean pairs.
        rows: Those that were split.
        splits: The splits.
        normalizer: Normalizer of the training text.
    """
    evaluation = splits.evaluation
    components = splits.components
    counts = {"train": np.unique(store.fingerprints("src_text")[splits.train], return_counts=True)[1]}
    for name, examples in evaluation.items():
        counts[name] = np.array([len(example.references) for example in examples], dtype=np.int64)
    references = {name: np.bincount(numbers)[1:].tolist() for name, numbers in counts.items()}
    frequent = {
        side: most_frequent(store.lines(side), store.fingerprints(f"{side}_text"), splits.train, FREQUENT)
        for side in SIDES
    }
    return SplitReport(
        ready_made_splits=not components,
        pairs={name: int(numbers.sum()) for name, numbers in counts.items()},
        sources={name: sum(numbers) for name, numbers in references.items()},
        components=components,
        largest_component=splits.largest_component,
        references=references,
        frequent=frequent,
        overlap={
            name: measure_overlap(store, splits.train, some, normalizer) for name, some in evaluation.items() if some
        },
        valid_in_test=None
        if components or not (evaluation["valid"] and evaluation["test"])
        else measure_overlap_of_splits(evaluation["valid"], evaluation["test"], normalizer),
        dropped_overlap=splits.dropped_overlap,
        naive_overlap=naive_overlap(store, rows, counts["test"].sum()) if components and evaluation["test"] else None,
        split_files=dict(splits.files) or None,
    )


def find_components(src: NDArray[np.uint64], tgt: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Group pairs that share a sentence, directly or through other pairs.

    Label propagation with pointer jumping: each sentence has the smallest label seen so far, pairs pass the smaller
    of their two labels on to the sentence that the larger one names, and labels are followed to their ends, until
    nothing changes.

    Args:
        src: Identities of the source sentences, [pairs].
        tgt: Identities of the target sentences, [pairs].

    Returns:
        The component of each pair, from 0 without gaps, [pairs].
    """
    src_nodes, tgt_nodes = (np.unique(side, return_inverse=True)[1] for side in (src, tgt))
    tgt_nodes += src_nodes.max(initial=-1) + 1
    labels = np.arange(tgt_nodes.max(initial=-1) + 1)
    while True:
        src_labels = labels[src_nodes]
        tgt_labels = labels[tgt_nodes]
        apart = src_labels != tgt_labels
        if not apart.any():
            return np.unique(src_labels, return_inverse=True)[1]
        src_labels = src_labels[apart]
        tgt_labels = tgt_labels[apart]
        smaller = np.minimum(src_labels, tgt_labels)
        larger = np.maximum(src_labels, tgt_labels)
        np.minimum.at(labels, larger, smaller)
        while not np.array_equal(followed := labels[labels], labels):
            labels = followed


def _draw_components(store: PairStore, rows: Rows, labels: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """The components in a random order, and for each the number of its sources.

    Args:
        store: Clean pairs.
        rows: Which of them.
        labels: Their components, from 0 without gaps.
    """
    # All pairs of a source are in one component.
    _, of_sources = np.unique(store.fingerprints("src_text")[rows], return_index=True)
    num_sources = np.bincount(labels[of_sources])
    # The random draw of a component is that of its smallest pair: its only one, or the first in text order.
    smallest = np.unique(labels, return_index=True)[1]
    several = np.argsort(labels, kind="stable")
    several = several[np.bincount(labels)[labels[several]] > 1]
    texts = chain.from_iterable(map(store.pairs, in_chunks(rows[several])))
    pairs = zip(labels[several].tolist(), texts, several.tolist(), strict=True)
    for component, members in groupby(pairs, key=itemgetter(0)):
        smallest[component] = min(members)[2]
    draws = store.fingerprints("component_draw")[rows[smallest]]
    return np.argsort(draws, kind="stable").tolist(), num_sources.tolist()


def _explain_connection(store: PairStore, members: Rows, all_pairs: int) -> Message:
    """Say which sentences, those with the most translations, tie most pairs of a corpus together, and what to do."""
    sides = [store.fingerprints(f"{side}_identity")[members] for side in SIDES]
    distinct = np.unique(np.stack(sides, axis=1), axis=0)
    hubs: list[tuple[int, str, str]] = []
    for column, partners in enumerate(("targets", "sources")):
        identity, counts = np.unique(distinct[:, column], return_counts=True)
        for top in np.argsort(-counts, kind="stable")[:MAX_HUBS]:
            if counts[top] >= MANY_PARTNERS:
                text = min(store.lines(SIDES[column]).texts(members[sides[column] == identity[top]]))
                hubs.append((-int(counts[top]), text, partners))
    named = [f"'{shorten(text)}' ({-count:,} {partners})" for count, text, partners in sorted(hubs)[:MAX_HUBS]]
    mainly = f", mainly {', '.join(named)}" if named else ""
    return Message(
        "{connected} of {pairs} pairs are connected through shared sentences{mainly}; {remove}give ready-made splits, "
        "4 or 6 files with {source}",
        connected=f"{len(members):,}",
        pairs=f"{all_pairs:,}",
        mainly=mainly,
        remove="remove such lines, or " if named else "",
        source=Parameter("source"),
    )
