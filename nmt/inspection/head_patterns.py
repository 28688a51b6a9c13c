"""What a head of self-attention does beyond chance: its weights against the same weights shuffled within each row.

Half of a head's weight within two words sounds like much, but a sentence of eight words has hardly any word farther
away, so that random weights have it too. Shuffling the weights of a row among the words it may read keeps how sharp it
is, and takes away where it looks. Of a row with n words to read, and m of them in question, shuffled weights a have on
these the mean m / n and the variance m (n - m) / (n (n - 1)) sum_j (a_j - 1/n)^2, of drawing without replacement; no
random number is needed.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.system.errors import DataError
from nmt.system.messages import Parameter
from nmt.translation.input import read_text

NEAR = 2
"""Positions on each side that count as near."""
FARTHEST = 5
"""Distance from which on all distances are one."""
DISTANCES = range(-FARTHEST, FARTHEST + 1)
PLACES = ("first", "stop", "end")
CANDIDATES = (*(f"{distance:+d}" for distance in DISTANCES[1:-1]), *PLACES)
"""Names of the single distances and places."""
EXCESS = 0.25
"""A pattern has at least so much more weight than chance gives."""
DEVIATIONS = 5.0
"""And at least so many standard deviations of chance: with 16 heads and 12 candidates once in some thousand models."""
_RELATION = re.compile(r"([A-Za-z_]{1,40}):([0-9]{1,9})-([0-9]{1,9})")


class WordRelation(NamedTuple):
    """A relation between words of a text, which are counted from 0.

    Attributes:
        name: Kind of the relation.
        reader: The word that should read the other.
        read: The word that it belongs to.
    """

    name: str
    reader: int
    read: int


class Relation(NamedTuple):
    """A word that belongs to another, such as a verb to its subject.

    Attributes:
        name: Kind of the relation.
        reader: Positions of the tokens of the word, which should read the other.
        read: Positions of the tokens of the word that it belongs to.
    """

    name: str
    reader: Sequence[int]
    read: Sequence[int]


@dataclass(frozen=True)
class Excess:
    """Mean weight of a head at certain places, against chance.

    Attributes:
        weight: Mean over the rows that count.
        shuffled: Its expectation if the weights of each row are shuffled.
        deviation: Standard deviation of that mean over shuffles.
        distance: Of a relation, the mean weight of the head at the same distances, of all words; None of others.
    """

    weight: float
    shuffled: float
    deviation: float
    distance: float | None = None

    @property
    def value(self) -> float:
        """How much more weight than shuffled."""
        return self.weight - self.shuffled

    def holds(self) -> bool:
        """True if the weight is larger than chance gives, by much and surely."""
        return self.value >= EXCESS and self.value >= DEVIATIONS * self.deviation

    def beyond_distance(self) -> bool:
        """True if it is also larger, by as much, than what any word reads at such a distance."""
        return self.distance is None or self.weight - self.distance >= EXCESS


@dataclass
class Tally:
    """Sums over rows, of all heads of a layer.

    Attributes:
        rows: Number of rows.
        weights: Weight on the words in question, [heads].
        shuffled: Its expectation under shuffling.
        variances: Its variance, [heads].
    """

    rows: int
    weights: Tensor
    shuffled: float
    variances: Tensor

    @classmethod
    def of_rows(cls, weights: Tensor, chosen: Tensor, readable: Tensor) -> "Tally":
        """Count some rows of a sentence.

        Args:
            weights: [heads, R, T].
            chosen: True for the words in question, [R, T].
            readable: True for the words that a row may read, [R, T].
        """
        words = readable.sum(dim=-1).double()  # [R]
        numbers = (chosen & readable).sum(dim=-1).double()
        scale = numbers * (words - numbers) / (words * (words - 1).clamp(min=1))
        dispersion = (weights.square().sum(dim=-1) - 1 / words).clamp(min=0)  # [heads, R]: a row sums to 1
        return cls(
            rows=len(chosen),
            weights=(weights * chosen).sum(dim=(1, 2)),
            shuffled=float((numbers / words).sum()),
            variances=(scale * dispersion).sum(dim=-1),
        )

    def add(self, tally: "Tally") -> None:
        """Add other rows."""
        self.rows += tally.rows
        self.weights = self.weights + tally.weights
        self.shuffled += tally.shuffled
        self.variances = self.variances + tally.variances

    def mean(self, head: int) -> float:
        """Mean weight of a head."""
        return float(self.weights[head] / self.rows)

    def excess(self, head: int, distance: float | None = None) -> Excess:
        """What a head has beyond chance."""
        deviation = math.sqrt(self.variances[head]) / self.rows
        return Excess(self.mean(head), self.shuffled / self.rows, deviation, distance)


class LayerTally:
    """What the heads of a layer do, over the rows of many sentences.

    Args:
        causal: True if each position reads those up to its own, as in a decoder, where the sentence has no end yet.

    Attributes:
        tallies: Of each distance, each place and `near`, by name.
        relations: Of each relation that was given, by name.
        distances: How often each relation spans each distance.
        spread: Sums of the entropy of rows as a share of the largest possible one, [heads].
    """

    def __init__(self, *, causal: bool) -> None:
        self.causal = causal
        self.tallies: dict[str, Tally] = {}
        self.relations: dict[str, Tally] = {}
        self.distances: dict[str, Counter[int]] = {}
        self.spread = torch.zeros((), dtype=torch.float64)

    def add(self, weights: Tensor, relations: Sequence[Relation] = ()) -> None:
        """Add a sentence.

        Args:
            weights: [heads, T, T].
            relations: Those of the sentence.
        """
        size = weights.size(1)
        exact = weights.double()
        positions = torch.arange(size)
        whole = torch.ones(size, size, dtype=torch.bool)
        readable = whole.tril() if self.causal else whole
        distance = (positions - positions.unsqueeze(1)).clamp(-FARTHEST, FARTHEST)  # [T, T]: of what is read
        last = size - 1 if self.causal else max(size - 2, 0)
        chosen = {name_of(offset): distance == offset for offset in DISTANCES}
        chosen |= {"first": whole & (positions == 0), "stop": whole & (positions == last)}
        chosen |= {"end": whole & (positions == size - 1) & (not self.causal), "near": distance.abs() <= NEAR}
        for name, words in chosen.items():
            _add(self.tallies, name, Tally.of_rows(exact, words, readable))
        largest = readable.sum(dim=-1).clamp(min=2).log()
        self.spread = self.spread + (torch.special.entr(exact).sum(dim=-1) / largest).sum(dim=-1)
        for relation in relations:
            read = torch.zeros(1, size, dtype=torch.bool)
            read[:, list(relation.read)] = True
            for row in relation.reader:
                _add(self.relations, relation.name, Tally.of_rows(exact[:, [row]], read, readable[[row]]))
                spans = (max(-FARTHEST, min(FARTHEST, column - row)) for column in relation.read)
                self.distances.setdefault(relation.name, Counter()).update(spans)

    def by_distance(self, head: int) -> dict[int, float]:
        """Mean weight of a head at each distance."""
        return {offset: self.tallies[name_of(offset)].mean(head) for offset in DISTANCES}

    def mean_spread(self, head: int) -> float:
        """Mean entropy of a head as a share of the largest possible one."""
        return float(self.spread[head] / self.tallies["near"].rows)

    def excesses(self, head: int) -> dict[str, Excess]:
        """What a head has at single distances, on places and near, beyond chance, where it can read anything."""
        return {
            name: tally.excess(head)
            for name, tally in self.tallies.items()
            if name in (*CANDIDATES, "near") and tally.shuffled > 0
        }

    def relation_excesses(self, head: int) -> dict[str, Excess]:
        """What a head has on each relation, beyond chance and beyond its weight at these distances."""
        means = self.by_distance(head)
        excesses = {}
        for name, tally in self.relations.items():
            at_distance = math.fsum(means[offset] * count for offset, count in self.distances[name].items())
            excesses[name] = tally.excess(head, at_distance / tally.rows)
        return excesses


def name_of(distance: int) -> str:
    """Name of a distance: -1 is the word before."""
    return f"{distance:+d}"


def _add(tallies: dict[str, Tally], name: str, tally: Tally) -> None:
    if name in tallies:
        tallies[name].add(tally)
    else:
        tallies[name] = tally


def read_relations(path: Path) -> list[list[WordRelation]]:
    """Read relations: a line for each sentence, with `name:i-j` for word i that belongs to word j, and spaces.

    Raises:
        DataError: The file cannot be read, is not UTF-8, or has another format.
    """
    sentences = []
    for number, line in enumerate(read_text(path), 1):
        relations = []
        for item in line.split():
            match = _RELATION.fullmatch(item)
            if match is None:
                raise DataError(
                    f"{path}, line {number}: {item!r} is not a relation; write name:i-j, counted from 0, as in "
                    "subject:1-0"
                )
            relations.append(WordRelation(match[1], int(match[2]), int(match[3])))
        sentences.append(relations)
    return sentences


def place_relations(relations: Sequence[WordRelation], places: Sequence[Sequence[int]], line: int) -> list[Relation]:
    """Relations between the tokens of a model.

    Args:
        relations: Those between words.
        places: Positions of the tokens of each word.
        line: Number of the sentence, from 1, for the error.

    Raises:
        DataError: A relation points past the end of the sentence.
    """
    placed = []
    for name, reader, read in relations:
        if max(reader, read) >= len(places):
            raise DataError(
                "{relations}, sentence {line}: {name}:{reader}-{read}, but it has {number} words; use relations of the "
                "same text, and words or tokens as {links_of}",
                relations=Parameter("relations"),
                line=line,
                name=name,
                reader=reader,
                read=read,
                number=len(places),
                links_of=Parameter("links_of"),
            )
        placed.append(Relation(name, places[reader], places[read]))
    return placed
