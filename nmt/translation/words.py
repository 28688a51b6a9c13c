"""Links between the words of a source line as it was typed and those of its translation as it is returned.

Models read and write tokens: subwords, or words and punctuation marks. The tokens of a line contain its visible
characters in order, so counting these shows which word a token belongs to.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from nmt.system.errors import CONTROL
from nmt.text.tokenizers import WORD_BEGINNING

if TYPE_CHECKING:
    from nmt.text.processor import TextProcessor
    from nmt.translation.translation import Translation

MARKS = ".,;:!?…'\"“”„‘’‚‹›«»()[]{}¡¿–—。、，！？：；（）「」『』《》【】؟،؛।"
"""Punctuation around words."""
_UNSEEN = re.compile(rf"[\s{WORD_BEGINNING}]+|{CONTROL.pattern}")
"""Characters that tokens and text do not share."""


def align_words(source_line: str, translation: Translation, processor: TextProcessor) -> list[tuple[int, int]]:
    """Link each word of a translation to the source word attended most; words are separated by spaces.

    Attention is averaged over heads, summed over the tokens of a source word and averaged over those of a target word.
    EOS is ignored on both sides.

    Args:
        source_line: The source line.
        translation: Its translation, with its alignment.
        processor: The text processor of the model.

    Returns:
        (source word, target word), each counted from 0, in the order of the target words. A word that attends to
        nothing has no link.

    Raises:
        ValueError: The translation was made without `with_alignment`.
    """
    normalized = map(processor.normalizer, processor.normalizer.decode(source_line).split())
    read = _Words(map(processor.src_tokenizer.fold, normalized))
    written = _Words(translation.text.split())
    # Dividing by the number of a target word's tokens would not change its maximum.
    weights: defaultdict[int, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for part in translation.sentences or [translation]:
        if part.alignment is None and part.tokens:
            raise ValueError("the translation has no alignment; ask for one: translate(..., with_alignment=True)")
        src = [words[0] if words else None for words in map(read.take, part.src_tokens)]
        rows, _, _ = part.weights
        for words, row in zip(map(written.take, part.tokens), rows, strict=False):  # the last row is that of EOS
            for target in words:
                for source, weight in zip(src, row, strict=False):  # the last weight is that of EOS
                    if source is not None and weight > 0:
                        weights[target][source] += weight
    return [(max(row, key=lambda word: (row[word], -word)), target) for target, row in sorted(weights.items())]


def link_same_words(
    links: Sequence[tuple[int, int]], source: Sequence[str], target: Sequence[str], spans: Collection[str]
) -> list[tuple[int, int]]:
    """Links in which a span of the source leads to the same span of the translation only, whatever the attention says.

    Args:
        links: Pairs of a source word and a target word.
        source: The source words.
        target: The target words.
        spans: What the translation takes over as it is. Those of several words stay with attention.
    """
    places = defaultdict[str, list[int]](list)
    for number, word in enumerate(source):
        places[_without_marks(word)].append(number)
    bare = set(map(_without_marks, spans))
    sources = {number: places[name] for number, name in enumerate(map(_without_marks, target)) if name in bare}
    taken = {place for equal in sources.values() for place in equal}
    linked = {link for link in links if link[0] not in taken}
    for number, equal in sources.items():
        right = {(place, number) for place in equal}.intersection(links) or {(place, number) for place in equal[:1]}
        if equal:
            linked = right.union(link for link in linked if link[1] != number)
    return sorted(linked, key=lambda link: (link[1], link[0]))


def _without_marks(word: str) -> str:
    """A word without the punctuation around it, unless it is nothing else."""
    return word.strip(MARKS) or word


def token_places(
    text: str, tokens: Sequence[str], processor: TextProcessor, unit: Literal["words", "tokens"]
) -> list[list[int]]:
    """Positions of the tokens of each word of a source.

    Args:
        text: The source line.
        tokens: Its tokens.
        processor: The text processor of the model.
        unit: What a word is: what spaces separate, or a token.
    """
    if unit == "tokens":
        return [[position] for position in range(len(tokens))]
    normalized = map(processor.normalizer, processor.normalizer.decode(text).split())
    read = _Words(map(processor.src_tokenizer.fold, normalized))
    places: list[list[int]] = [[] for _ in text.split()]
    for position, words in enumerate(map(read.take, tokens)):
        for word in words:
            places[word].append(position)
    return places


class _Words:
    """A sequence of words whose visible characters are consumed from left to right.

    Args:
        words: The words.
    """

    def __init__(self, words: Iterable[str]) -> None:
        words = list(words)
        self.owners = [number for number, word in enumerate(words) for _ in range(count_visible(word))]
        self.owners = self.owners or [0] * bool(words)  # no character is visible
        self.taken = 0

    def take(self, token: str) -> Sequence[int]:
        """The words that the next token is part of; one without visible characters belongs to the word that follows."""
        begin = self.taken
        self.taken = self.taken + count_visible(token)
        words = self.owners[begin : max(self.taken, begin + 1)] or self.owners[-1:]
        return words[:1] if words and words[0] == words[-1] else sorted(set(words))


def count_visible(text: str) -> int:
    """Number of the characters that tokens and text share."""
    return len(_UNSEEN.sub("", text))
