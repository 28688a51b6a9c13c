"""A lexicon from training pairs: words that translate each other."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from nmt.corpus import Pair

WORD = re.compile(r"\w+(?:['’-]\w+)*")
LONGEST = 15
"""Words of a side, above which a pair is not read: in long ones, everything occurs with everything."""
MOST_PAIRS = 500_000
"""Pairs that are read at most: more need much memory, and add few words that are not in them."""
LEAST_PAIRS = 2
"""Pairs that have both words, below which words do not translate each other."""
LEAST_DICE = 0.4
"""Dice's coefficient, below which words do not translate each other."""
HALF = 32
"""Bits of a word's number."""


def find_lexicon(pairs: Iterable[Pair]) -> list[Pair]:
    """Words and their translations.

    The translation of a source word is the target word for which Dice's coefficient is largest, or the first such:
    2 n(s, t) / (n(s) + n(t)), where n counts the pairs that have one word or both, in any case (Dice, 1945; Melamed,
    2000). Both have the case that they mostly have inside sentences; words that only begin sentences are left out. So
    are source words that are sentences of their own, such as `Cheers!`: their pairs have their meaning as a sentence.

    Args:
        pairs: Training pairs, of which the first `MOST_PAIRS` are read.

    Returns:
        Pairs of one word each, in alphabetical order.
    """
    src = _Side()
    tgt = _Side()
    together: list[NDArray[np.int64]] = []  # of each pair, the pairs of one word of each side
    sentences = set[str]()
    for pair in islice(pairs, MOST_PAIRS):
        src_words = WORD.findall(pair.src)
        tgt_words = WORD.findall(pair.tgt)
        if len(src_words) == 1:
            sentences.add(src_words[0].casefold())
        if max(len(src_words), len(tgt_words)) <= LONGEST:
            # Both numbers fit into one: that of the source word into the upper half of its bits.
            together.append(np.add.outer(src.add(src_words) << HALF, tgt.add(tgt_words)).ravel())
    if not together:
        return []
    # n(s, t) of all pairs of words that occur together, and their Dice coefficients.
    word_pairs, count = np.unique(np.concatenate(together), return_counts=True)
    src_numbers = word_pairs >> HALF
    tgt_numbers = word_pairs & ((1 << HALF) - 1)
    dice = 2 * count / (src.count()[src_numbers] + tgt.count()[tgt_numbers])

    # The last of each source word's rows has the largest coefficient; of equal ones, the target word that came first.
    order = np.lexsort((-tgt_numbers, dice, src_numbers))
    is_last = np.diff(src_numbers[order], append=-1) != 0
    best = order[is_last]
    best = best[(count[best] >= LEAST_PAIRS) & (dice[best] >= LEAST_DICE)]
    src_forms = src.usual_forms()
    tgt_forms = tgt.usual_forms()
    lexicon = [Pair(src_forms[s], tgt_forms[t]) for s, t in zip(src_numbers[best], tgt_numbers[best], strict=True)]
    return sorted(pair for pair in lexicon if pair.src and pair.tgt and pair.src.casefold() not in sentences)


class _Side:
    """The words of one language: a number for each in any case, and in which case it is written."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._forms = Counter[str]()
        self._sentences: list[NDArray[np.int64]] = []

    def add(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of the distinct words of a sentence, which are counted; words with digits have none."""
        self._forms.update(words[1:])  # the first word has a capital because it begins the sentence
        distinct = dict.fromkeys(word.casefold() for word in words if word.replace("-", "").isalpha())
        numbers = [self._numbers.setdefault(word, len(self._numbers)) for word in distinct]
        self._sentences.append(np.array(numbers, np.int64))
        return self._sentences[-1]

    def count(self) -> NDArray[np.int64]:
        """In how many sentences each word is, by its number."""
        return np.bincount(np.concatenate(self._sentences))

    def usual_forms(self) -> list[str]:
        """Each word as it is mostly written inside sentences, by its number; empty if it only begins sentences."""
        usual: dict[str, str] = {}
        for form, _ in self._forms.most_common():
            usual.setdefault(form.casefold(), form)
        return [usual.get(word, "") for word in self._numbers]
