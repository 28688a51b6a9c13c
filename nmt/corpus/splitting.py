"""Splits whose test set is unseen: sentences that share a translation stay together.

Tatoeba is many-to-many: one English sentence has several German translations, each of which may have several
English ones. A random split of the pairs puts the same sentence on both sides. Here pairs that share a
sentence, directly or through other pairs, form a component, and a component goes whole to one split.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt.corpus import Pair
from nmt.errors import DataError


class Example(NamedTuple):
    """A sentence with all its reference translations."""

    src: str
    references: tuple[str, ...]


@dataclass(frozen=True)
class Splits:
    """Training pairs, and validation and test sentences that share no sentence with them or each other.

    Attributes:
        train: Training pairs.
        valid: Validation sentences.
        test: Test sentences.
        components: Number of components in the corpus.
        largest_component: Size of the largest one, in pairs.
    """

    train: list[Pair]
    valid: list[Example]
    test: list[Example]
    components: int
    largest_component: int


@dataclass(frozen=True)
class Overlap:
    """How much of an evaluation set was seen in training.

    Attributes:
        sources: Examples whose source is a training source.
        targets: Examples with a reference that is a training target.
        examples: All examples.
    """

    sources: int
    targets: int
    examples: int


def split_pairs(pairs: Sequence[Pair], *, valid_size: int, test_size: int, train_size: int | None, seed: int) -> Splits:
    """Split a corpus so that no sentence, on either side, is in two splits.

    Two sentences count as the same when their letters and digits agree, whatever their case. The result
    depends on the pairs and the seed alone, not on the order of the pairs. The test split is filled first,
    then the validation split: components come in a random order, and one that does not fit into the room
    left is passed over.

    Args:
        pairs: Clean pairs.
        valid_size: Distinct source sentences in the validation split.
        test_size: Distinct source sentences in the test split.
        train_size: Pairs in the training split, a random choice; None keeps all that are left.
        seed: Which of the possible splits.

    Returns:
        The splits, each in a random order; but with `valid_size` and `test_size` both 0, the training
        pairs are in the order of `pairs`.

    Raises:
        DataError: The corpus is too small for the sizes, or its components are too large.
    """
    components = _components(pairs)
    test: list[Example] = []
    valid: list[Example] = []
    if valid_size == test_size == 0:
        drawn = sorted(range(len(pairs)), key=lambda index: _draw("pair", seed, *pairs[index]))
        train = [pairs[index] for index in sorted(drawn[:train_size])]
    else:
        rest = sorted(components, key=lambda component: _draw("component", seed, *min(component)))
        test, rest = _fill("test", test_size, rest, seed)
        valid, rest = _fill("valid", valid_size, rest, seed)
        remaining = [pair for component in rest for pair in component]
        train = sorted(remaining, key=lambda pair: _draw("pair", seed, *pair))[:train_size]
    if not train or (train_size is not None and len(train) < train_size):
        wanted = "" if train_size is None else f" of the {train_size:,} wanted"
        raise DataError(
            f"corpus: {len(train):,} pairs{wanted} left for training, beside {test_size:,} test and "
            f"{valid_size:,} valid sentences; ask for smaller splits or give more data"
        )
    return Splits(train, valid, test, len(components), max(map(len, components)))


def group_references(pairs: Iterable[Pair]) -> list[Example]:
    """Collect all references of each distinct source text, sorted; sources in order of first appearance."""
    references: dict[str, set[str]] = {}
    for src, tgt in pairs:
        references.setdefault(src, set()).add(tgt)
    return [Example(src, tuple(sorted(found))) for src, found in references.items()]


def as_examples(pairs: Iterable[Pair]) -> list[Example]:
    """Make each pair an example with one reference, in order: for test sets that come ready-made."""
    return [Example(src, (tgt,)) for src, tgt in pairs]


def measure_overlap(train: Iterable[Pair], examples: Sequence[Example]) -> Overlap:
    """Count the examples that training has seen, where letters and digits alone tell sentences apart."""
    train_sources = set()
    train_targets = set()
    for src, tgt in train:
        train_sources.add(_identity(src))
        train_targets.add(_identity(tgt))
    sources = sum(_identity(example.src) in train_sources for example in examples)
    targets = sum(
        any(_identity(reference) in train_targets for reference in example.references) for example in examples
    )
    return Overlap(sources, targets, len(examples))


def naive_overlap(pairs: Sequence[Pair], test_size: int, seed: int) -> Overlap:
    """Count what a plain random split of the pairs would have leaked, for comparison.

    Unlike `measure_overlap`, this compares exact texts, and each test pair is an example of its own:
    it is the common practice, measured by the mildest rule.

    Args:
        pairs: All pairs, in any order.
        test_size: Test pairs.
        seed: Of the random split.
    """
    shuffled = sorted(pairs)
    random.Random(seed).shuffle(shuffled)
    test, train = shuffled[:test_size], shuffled[test_size:]
    train_sources = {pair.src for pair in train}
    train_targets = {pair.tgt for pair in train}
    return Overlap(
        sources=sum(pair.src in train_sources for pair in test),
        targets=sum(pair.tgt in train_targets for pair in test),
        examples=len(test),
    )


def _identity(text: str) -> str:
    """What makes a sentence the same sentence: its letters and digits, caseless; else the text itself."""
    return "".join(filter(str.isalnum, text.casefold())) or text


def _components(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Group pairs that share a sentence, directly or through other pairs, by union-find."""
    source_nodes: dict[str, int] = {}
    target_nodes: dict[str, int] = {}
    parents: list[int] = []

    def node(nodes: dict[str, int], text: str) -> int:
        found = nodes.setdefault(_identity(text), len(parents))
        if found == len(parents):
            parents.append(found)
        return found

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]  # halves the path for the next time
            index = parents[index]
        return index

    edges = []
    for src, tgt in pairs:
        source = node(source_nodes, src)
        edges.append(source)
        parents[root(source)] = root(node(target_nodes, tgt))
    groups: dict[int, list[Pair]] = {}
    for pair, source in zip(pairs, edges, strict=True):
        groups.setdefault(root(source), []).append(pair)
    return list(groups.values())


def _fill(name: str, size: int, components: list[list[Pair]], seed: int) -> tuple[list[Example], list[list[Pair]]]:
    """Take components, in order, while they fit into `size` distinct sources; return the others as well."""
    taken: list[Pair] = []
    left: list[list[Pair]] = []
    room = size
    for component in components:
        sources = len({pair.src for pair in component})
        if sources <= room:
            taken.extend(component)
            room -= sources
        else:
            left.append(component)
    if room:
        raise DataError(
            f"corpus: {size - room:,} of {size:,} {name} sentences found ({len(left):,} components "
            f"left, each too large for the rest); ask for a smaller {name} split or give more data"
        )
    examples = sorted(group_references(taken), key=lambda example: _draw("source", seed, example.src))
    return examples, left


def _draw(purpose: str, seed: int, *texts: str) -> bytes:
    """Sorting key that puts texts in a random order which is the same wherever they stood before.

    Args:
        purpose: Draws for different purposes are independent of each other; at most 16 letters.
        seed: Which random order.
        texts: What is drawn, a sentence or a pair, without line breaks.

    Returns:
        A keyed hash of the texts, and the texts themselves to break the rare ties.
    """
    drawn = "\n".join(texts).encode()
    key = str(seed).encode()
    return hashlib.blake2b(drawn, digest_size=8, key=key, person=purpose.encode()).digest() + drawn
