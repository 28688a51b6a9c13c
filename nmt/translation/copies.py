"""Numbers and unknown names, which a translation takes over from its source, where the model misspelled them."""

import math
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

from nmt.text.numbers import NUMBER, read_digits, write_like
from nmt.text.tokenizers import WORD_BEGINNING

NAME = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
SPELLED = 3
"""Subwords from which a word with a capital is taken for a name that training has not shown."""
LONGEST = 40
"""Characters of the longest name or number that is compared with others."""
SURE = 0.8
"""Probability of its subwords, in the geometric mean, from which a name is right, however the source writes it."""
SIMILAR = 0.6
"""How similar a misspelled word is at least: characters that match in order, as a share of those of both words."""


class _Word(NamedTuple):
    """A word that may have to be copied.

    Attributes:
        begin: Its first subword.
        end: The subword after its last one.
        length: Number of its subwords that have letters or digits.
        copied: Its first number, or its first letters if it has none.
        key: The same in small letters; of a number its digits, as those of ASCII.
        is_unsure: True if the model gave its subwords little probability.
    """

    begin: int
    end: int
    length: int
    copied: str
    key: str
    is_unsure: bool

    @property
    def may_be_copied(self) -> bool:
        """True if a translation has it as the source does: a number, or a name that training has not shown."""
        return self.key.isdecimal() or (self.copied[0].isupper() and self.begin > 0 and self.length >= SPELLED)

    def is_in(self, other: "_Word") -> bool:
        """True if a word of the translation is the same, or the same name with an ending."""
        return other.key == self.key or (not self.key.isdecimal() and other.key.startswith(self.key))

    def similarity(self, other: "_Word") -> float:
        """How similar a word of the translation is, if it can be an attempt at the same number or name; otherwise 0.

        A name ends as it does in the source; a translated adjective, which may have a capital too, does not.
        """
        is_number = self.key.isdecimal()
        is_spelled = other.copied[0].isupper() and other.length >= SPELLED and other.is_unsure
        if is_number != other.key.isdecimal() or not (is_number or (is_spelled and self.key[-2:] == other.key[-2:])):
            return 0.0
        return SequenceMatcher(None, self.key, other.key, autojunk=False).ratio()


def repair_copies(src_tokens: Sequence[str], tokens: Sequence[str], log_probs: Sequence[float]) -> list[str]:
    """The subwords of a translation, with misspelled numbers and names as in the source.

    A number, or after the first word one with a capital and several subwords, is misspelled if the translation lacks
    it and has a similar one that the source lacks: `236` for `2386`, `Noatrix` for `Novatrix`. A name of which the
    model was sure stays, as `Schottland` for `Scotland`. There are as many subwords as before; the characters of a
    word are dealt out to them anew.

    Args:
        src_tokens: Subwords of the source.
        tokens: Subwords of its translation.
        log_probs: Natural logarithm of the probability of each of them.
    """
    source = _find_words(src_tokens, [0.0] * len(src_tokens))
    target = _find_words(tokens, log_probs)
    # Words of the translation that no word of the source explains: each may be a misspelled one.
    unexplained = [candidate for candidate in target if not any(word.is_in(candidate) for word in source)]
    repaired = list(tokens)
    for word in source:
        is_missing = not any(word.is_in(candidate) for candidate in target)
        if not (word.may_be_copied and is_missing and unexplained):
            continue
        # Of equally similar words the last.
        similarity, _, misspelled = max((word.similarity(rival), rival.begin, rival) for rival in unexplained)
        if similarity < SIMILAR:
            continue
        unexplained.remove(misspelled)
        copied = word.copied
        if word.key.isdecimal():
            copied = write_like(word.copied, misspelled.copied)
        subwords = tokens[misspelled.begin : misspelled.end]
        text = "".join(subwords).replace(misspelled.copied, copied, 1)
        repaired[misspelled.begin : misspelled.end] = _deal_out(text, len(subwords))
    return repaired


def _deal_out(text: str, number: int) -> list[str]:
    """A text as so many subwords: one character in each but the first, which has the rest; empty ones where it ends."""
    first = max(1, len(text) - number + 1)
    subwords = [text[:first]]
    for place in range(first, first + number - 1):
        subwords.append(text[place : place + 1])
    return subwords


def _find_words(tokens: Sequence[str], log_probs: Sequence[float]) -> list[_Word]:
    """The words of some subwords that have letters or digits, but for very long ones."""
    words = []
    begins = [place for place, token in enumerate(tokens) if not place or token.startswith(WORD_BEGINNING)]
    for begin, end in pairwise([*begins, len(tokens)]):
        text = "".join(tokens[begin:end])
        if (copied := NUMBER.search(text) or NAME.search(text)) and len(copied[0]) <= LONGEST:
            length = sum(any(map(str.isalnum, token)) for token in tokens[begin:end])
            is_unsure = sum(log_probs[begin:end]) < math.log(SURE) * (end - begin)
            key = read_digits(copied[0]) or copied[0].lower()
            words.append(_Word(begin, end, length, copied[0], key, is_unsure))
    return words
