"""Spacing between word tokens: learnt from text and used to detokenise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

QUOTES = frozenset("\"'")


class Spacing:
    """Rules that attach tokens to their neighbours.

    A token is attached to the left (a full stop) or to the right (an opening bracket) if most of its occurrences are.
    Straight quotes alternate: the first opens, the next closes.

    Args:
        left: Tokens attached to the token before them.
        right: Tokens attached to the token after them.
    """

    def __init__(self, left: Iterable[str] = (), right: Iterable[str] = ()) -> None:
        self.left = frozenset(left)
        self.right = frozenset(right)

    @classmethod
    def learn(cls, sentences: Iterable[tuple[Sequence[str], Sequence[bool]]]) -> Spacing:
        """Learn the rules from text.

        Args:
            sentences: Tokens of each sentence, and for each token whether a space follows it.
        """
        pairs: Counter[tuple[str, str]] = Counter()
        attached_left: Counter[str] = Counter()
        attached_right: Counter[str] = Counter()
        seen_left: Counter[str] = Counter()
        seen_right: Counter[str] = Counter()
        for tokens, spaces in sentences:
            for before, token, space in zip(tokens, tokens[1:], spaces, strict=False):
                if before in QUOTES or token in QUOTES:
                    continue
                seen_left[token] += 1
                seen_right[before] += 1
                if not space:
                    pairs[before, token] += 1
                    attached_left[token] += 1
                    attached_right[before] += 1
        # A missing space is attributed to one of its two tokens: the one that is attached more often.
        left: Counter[str] = Counter()
        right: Counter[str] = Counter()
        for (before, token), count in pairs.items():
            by_left = 2 * attached_left[token] > seen_left[token]
            by_right = 2 * attached_right[before] > seen_right[before] and attached_right[before] > attached_left[token]
            if by_left and not by_right:
                left[token] += count
            else:
                right[before] += count
        return cls(
            (token for token, count in left.items() if 2 * count > seen_left[token]),
            (token for token, count in right.items() if 2 * count > seen_right[token]),
        )

    def join(self, tokens: Sequence[str]) -> str:
        """Join tokens, with spaces where they belong."""
        pieces: list[str] = []
        open_quotes: set[str] = set()
        attach_next = True
        for token in tokens:
            closes = token in QUOTES and token in open_quotes
            if not (attach_next or closes or token in self.left):
                pieces.append(" ")
            pieces.append(token)
            attach_next = token in self.right
            if token in QUOTES:
                attach_next = not closes
                open_quotes ^= {token}
        return "".join(pieces)
