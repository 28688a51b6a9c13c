"""A lexicon from training pairs: words that translate each other."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from nmt.corpus import Pair

WORD = re.compile(r"\w+(?:['’-]\w+)*")
LONGEST = 15
"""Words of a side, above which a pair is not read: in long ones, everything occurs with everything."""
MOST_PAIRS = 500_000
"""Pairs that are read at most: more need much memory, and add few words that are not in them."""
LEAST_PAIRS, LEAST_DICE = 2, 0.4
"""Pairs that have both words, and Dice's coefficient, below which words do not translate each other."""


def find_lexicon(pairs: Iterable[Pair]) -> list[Pair]:
    """Words and their translations.

    The translation of a source word is the target word for which Dice's coefficient is largest, or the first such:
    2 n(s, t) / (n(s) + n(t)), where n counts the pairs that have one word or both, in any case (Dice, 1945; Melamed,
    2000). Both have the case that they mostly have inside sentences; words that only begin sentences are left out. So
    are source words that are sentences of their own, such as `Cheers!`: their pairs say what they mean alone.

    Args:
        pairs: Training pairs, of which the first `MOST_PAIRS` are read.

    Returns:
        Pairs of one word each, in alphabetical order.
    """
    numbers, written = (dict[str, int](), dict[str, int]()), (Counter[str](), Counter[str]())
    sides, together = (list[NDArray[np.int64]](), list[NDArray[np.int64]]()), list[NDArray[np.int64]]()
    alone = set[str]()
    for pair in islice(pairs, MOST_PAIRS):
        texts = [WORD.findall(text) for text in pair]
        if len(texts[0]) == 1:
            alone.add(texts[0][0].casefold())
        if max(map(len, texts)) <= LONGEST:
            for words, known, forms, found in zip(texts, numbers, written, sides, strict=True):
                forms.update(words[1:])
                distinct = dict.fromkeys(word.casefold() for word in words if word.replace("-", "").isalpha())
                found.append(np.array([known.setdefault(word, len(known)) for word in distinct], np.int64))
            together.append(np.add.outer(sides[0][-1] << 32, sides[1][-1]).ravel())
    if not together:
        return []
    both, count = np.unique(np.concatenate(together), return_counts=True)
    src, tgt = both >> 32, both & 0xFFFFFFFF
    of_src, of_tgt = (np.bincount(np.concatenate(found)) for found in sides)
    dice = 2 * count / (of_src[src] + of_tgt[tgt])
    order = np.lexsort((-tgt, dice, src))
    best = order[np.flatnonzero(np.diff(src[order], append=-1))]
    best = best[(count[best] >= LEAST_PAIRS) & (dice[best] >= LEAST_DICE)]
    usual = [{form.casefold(): form for form, _ in reversed(forms.most_common())} for forms in written]
    src_words, tgt_words = ([usual[side].get(word, "") for word in numbers[side]] for side in (0, 1))
    lexicon = (Pair(src_words[s], tgt_words[t]) for s, t in zip(src[best], tgt[best], strict=True))
    return sorted(pair for pair in lexicon if all(pair) and pair.src.casefold() not in alone)
