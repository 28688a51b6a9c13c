"""Word alignments made by people, those of a model that reads a sentence and its reference, and their error rate."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from nmt.corpus.example import Example
from nmt.system.errors import DataError
from nmt.system.messages import Parameter
from nmt.translation.alignment import Links, strongest_links
from nmt.translation.input import read_text
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator
from nmt.translation.words import align_words

Unit = Literal["words", "tokens"]
"""The unit of links: words, separated by spaces, or tokens of the model."""
_LINK = re.compile(r"([0-9]{1,9})([-?])([0-9]{1,9})")


class GoldLinks(NamedTuple):
    """Word alignment of a pair made by people (Och & Ney, 2003, section 6).

    Attributes:
        sure: Links that are unambiguous.
        possible: Those and the ambiguous ones.
    """

    sure: Links
    possible: Links


def read_alignments(path: Path) -> list[GoldLinks]:
    """Read links in Pharaoh format: one line per pair, with `i-j` for source token i and target token j, and spaces.

    Links that are only possible are `i?j`.

    Raises:
        DataError: The file cannot be read, is not UTF-8, or has another format.
    """
    alignments: list[GoldLinks] = []
    for number, line in enumerate(read_text(path), 1):
        links = GoldLinks(set(), set())
        for item in line.split():
            match = _LINK.fullmatch(item)
            if match is None:
                raise DataError(f"{path}, line {number}: {item!r} is not a link; write i-j, counted from 0, as in 0-0")
            link = int(match[1]), int(match[3])
            links.possible.add(link)
            if match[2] == "-":
                links.sure.add(link)
        alignments.append(links)
    return alignments


def measure_error_rate(
    translator: Translator,
    examples: Sequence[Example],
    sentences: Sequence[Translation],
    gold: Sequence[GoldLinks],
    unit: Unit,
    first: int = 1,
) -> float:
    """Alignment error rate of a model on sentences and their first references.

    Args:
        translator: The model.
        examples: The sentences with their references.
        sentences: The references as the model reads them, with alignments.
        gold: Links of people.
        unit: Their unit.
        first: Line of the first in the file with the links, from 1.

    Raises:
        DataError: A link points past the end of a sentence.
    """
    links = []
    for line, (example, sentence, known) in enumerate(zip(examples, sentences, gold, strict=True), first):
        sizes = len(example.src.split()), len(example.references[0].split())
        if unit == "tokens":
            sizes = len(sentence.src_tokens), len(sentence.tokens)
        for i, j in sorted(known.possible):
            if i >= sizes[0] or j >= sizes[1]:
                raise DataError(
                    "{gold}, line {line}: {i}-{j}, but the sentences have {src} and {tgt} {unit}; use links of the "
                    "same text, and words or tokens as {links_of}",
                    gold=Parameter("gold"),
                    line=line,
                    i=i,
                    j=j,
                    src=sizes[0],
                    tgt=sizes[1],
                    unit=unit,
                    links_of=Parameter("links_of"),
                )
        links.append(find_links(translator, example, sentence, unit))
    return alignment_error_rate(links, gold)


def find_links(translator: Translator, example: Example, sentence: Translation, unit: Unit) -> Links:
    """The source word, or token, attended most by each one of the target; EOS does not count."""
    if unit == "words":  # of the reference as it was given, not as its tokens are joined
        return set(align_words(example.src, replace(sentence, text=example.references[0]), translator.processor))
    assert sentence.alignment is not None
    return strongest_links(sentence.alignment[: len(sentence.tokens), :, : len(sentence.src_tokens)].mean(dim=1))


def alignment_error_rate(predicted: Sequence[Links], gold: Sequence[GoldLinks]) -> float:
    """Alignment error rate of a corpus (Och & Ney, 2003, section 6): 1 - (|A & S| + |A & P|) / (|A| + |S|).

    Args:
        predicted: A: links of each pair.
        gold: S and P: sure and possible links of each pair, in the same order.

    Returns:
        0 if all links agree, 1 if none does; 0 if there are none at all.
    """
    common = sum(len(a & s) + len(a & p) for a, (s, p) in zip(predicted, gold, strict=True))
    total = sum(map(len, predicted)) + sum(len(links.sure) for links in gold)
    return 1 - common / total if total else 0.0
