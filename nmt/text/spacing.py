"""Spacing between word tokens: learnt from text and used to detokenise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

APOSTROPHE = "'"
QUOTES = frozenset((APOSTROPHE, '"'))

TokenPair = tuple[str, str]


class Spacing:
    """Rules that attach tokens to their neighbours.

    A token is attached to the left (a full stop) or to the right (an opening bracket) if most of its occurrences are.
    Parts of one written word, such as `can` and `not`, are attached to each other. Straight quotes alternate: the first
    opens, the next closes; a single quote without a partner is an apostrophe and ends its word, as in `boys' room`.

    Args:
        left: Tokens attached to the token before them.
        right: Tokens attached to the token after them.
        compounds: Two tokens in a row that are one written word, although other rules do not attach them.
    """

    def __init__(
        self,
        left: Iterable[str] = (),
        right: Iterable[str] = (),
        compounds: Iterable[TokenPair] = (),
    ) -> None:
        self.left = frozenset(left)
        self.right = frozenset(right)
        self.compounds = frozenset(compounds)

    @classmethod
    def learn(
        cls, sentences: Iterable[tuple[Sequence[str], Sequence[bool]]], compounds: Collection[TokenPair] = ()
    ) -> Spacing:
        """Learn the rules from text.

        Args:
            sentences: Tokens of each sentence, and for each token True if a space follows it.
            compounds: Pairs of tokens that the tokenizer makes of one written word. They are attached unless the text
                has them apart more often.
        """
        # How often each pair of tokens is written without a space, and compounds with one.
        joined: Counter[TokenPair] = Counter()
        apart: Counter[TokenPair] = Counter()
        # How often each token has a neighbour on its left and right, and how often there is no space between them.
        any_left = Counter[str]()
        any_right = Counter[str]()
        tight_left = Counter[str]()
        tight_right = Counter[str]()
        for tokens, spaces in sentences:
            for before, token, space in zip(tokens, tokens[1:], spaces, strict=False):
                if before not in QUOTES and token not in QUOTES:
                    any_left[token] += 1
                    any_right[before] += 1
                    if not space:
                        joined[before, token] += 1
                        tight_left[token] += 1
                        tight_right[before] += 1
                    elif (before, token) in compounds:
                        apart[before, token] += 1
        # A missing space is attributed to one of its two tokens: the one that is attached more often.
        left = Counter[str]()
        right = Counter[str]()
        for (before, token), count in joined.items():
            by_left = 2 * tight_left[token] > any_left[token]
            by_right = 2 * tight_right[before] > any_right[before] and tight_right[before] > tight_left[token]
            if by_left and not by_right:
                left[token] += count
            else:
                right[before] += count
        attached_left = {token for token, count in left.items() if 2 * count > any_left[token]}
        attached_right = {token for token, count in right.items() if 2 * count > any_right[token]}
        # Compounds that no rule of a single token attaches.
        written_together = []
        for before, token in compounds:
            is_attached = token in attached_left or before in attached_right
            if not is_attached and joined[before, token] >= apart[before, token]:
                written_together.append((before, token))
        return cls(attached_left, attached_right, written_together)

    def join(self, tokens: Sequence[str]) -> str:
        """Join tokens, with spaces where they belong."""
        pieces: list[str] = []
        open_quotes: set[str] = set()
        attach_next = True
        before = ""
        for position, token in enumerate(tokens):
            closes = token in open_quotes
            is_apostrophe = False
            if token == APOSTROPHE and not closes:
                # A single quote after a letter, without another one later, cannot be half of a pair.
                is_apostrophe = before[-1:].isalpha() and token not in tokens[position + 1 :]

            is_attached = attach_next or token in self.left or (before, token) in self.compounds
            if not (is_attached or closes or is_apostrophe):
                pieces.append(" ")
            pieces.append(token)

            if token not in QUOTES:
                attach_next = token in self.right
            elif closes:
                attach_next = False
                open_quotes.remove(token)
            elif is_apostrophe:
                attach_next = False
            else:  # it opens
                attach_next = True
                open_quotes.add(token)
            before = token
        return "".join(pieces)
