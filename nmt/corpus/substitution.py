"""Copies of pairs with placeholders on both sides: for numbers, names, and words with their translations."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nmt.corpus import Pair
from nmt.corpus.lexicon import WORD
from nmt.text.spans import find_spans, is_apart, replace_places

MOST = 4
"""Maximum number of placeholders in a pair."""
COMMON = 300
"""Number of the most frequent words, which no placeholder stands for: sentences are built with them."""

Place = tuple[int, int]
"""The first character of a part of a text, and the character after its last one."""


class Shared(NamedTuple):
    """Parts that both sides of a pair have once.

    Attributes:
        src: Its place in the source.
        tgt: Its place in the target.
    """

    src: Place
    tgt: Place


def substitute(placeholders: Sequence[str], lexicon: Mapping[str, str], pair: Pair, chance: random.Random) -> Pair:
    """A pair with placeholders for parts that both sides have; the pair itself if they have nothing in common.

    Args:
        placeholders: Those of the model, of which a pair has at most `MOST`, each once.
        lexicon: Words in small letters with their translations, in any case.
        pair: The pair.
        chance: Which parts become which placeholders.
    """
    shared = list(find_shared(pair, lexicon))
    number = min(len(shared), len(placeholders), chance.randint(1, MOST))
    chosen = chance.sample(shared, number)
    symbols = chance.sample(list(placeholders), number)
    src = dict(zip([part.src for part in chosen], symbols, strict=True))
    tgt = dict(zip([part.tgt for part in chosen], symbols, strict=True))
    return Pair(replace_places(pair.src, src), replace_places(pair.tgt, tgt))


def find_shared(pair: Pair, lexicon: Mapping[str, str]) -> Iterator[Shared]:
    """Spans that both sides have, words with a capital that both sides have, and words with their translations."""
    src_spans = [span[:2] for span in find_spans(pair.src)]
    tgt_spans = [span[:2] for span in find_spans(pair.tgt)]
    yield from _match(pair, src_spans, tgt_spans, lambda text: text)
    src_words = list(_words_outside(pair.src, src_spans))
    tgt_words = list(_words_outside(pair.tgt, tgt_spans))

    def translate(word: str) -> str | None:
        if word[0].isupper() and word in pair.tgt:
            return word.casefold()
        return lexicon.get(word.casefold(), "").casefold() or None

    yield from _match(pair, src_words, tgt_words, translate, fold=str.casefold)


def find_common_words(texts: Iterable[str]) -> set[str]:
    """The `COMMON` most frequent words of some texts, in small letters: most of them have a part in the grammar."""
    counts = Counter(word.casefold() for text in texts for word in WORD.findall(text))
    return {word for word, _ in counts.most_common(COMMON)}


def _match(
    pair: Pair,
    src: Sequence[Place],
    tgt: Sequence[Place],
    translate: Callable[[str], str | None],
    fold: Callable[[str], str] = str,
) -> Iterator[Shared]:
    """Places of the source, and the one place of the target that has their translation."""
    places = {fold(pair.tgt[begin:end]): (begin, end) for begin, end in tgt}
    once = _once(fold(pair.tgt[begin:end]) for begin, end in tgt)
    src_once = _once(fold(pair.src[begin:end]) for begin, end in src)
    taken = set[str]()
    for begin, end in src:
        word = pair.src[begin:end]
        translation = translate(word)
        if translation in once and fold(word) in src_once and translation not in taken:
            taken.add(translation)
            yield Shared((begin, end), places[translation])


def _once(texts: Iterable[str]) -> set[str]:
    return {text for text, count in Counter(texts).items() if count == 1}


def _words_outside(text: str, spans: Sequence[Place]) -> Iterator[Place]:
    """The words of a text that no span has a part of."""
    for match in WORD.finditer(text):
        begin, end = match.span()
        if is_apart(begin, end, spans):
            yield begin, end
