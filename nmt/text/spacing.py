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
        joined: Counter[tuple[str, str]] = Counter()
        # How often each token has a neighbour on its left and right, and how often there is no space between them.
        any_left, any_right, tight_left, tight_right = (Counter[str]() for _ in range(4))
        for tokens, spaces in sentences:
            for before, token, space in zip(tokens, tokens[1:], spaces, strict=False):
                if before not in QUOTES and token not in QUOTES:
                    any_left[token] += 1
                    any_right[before] += 1
                    if not space:
                        joined[before, token] += 1
                        tight_left[token] += 1
                        tight_right[before] += 1
        # A missing space is attributed to one of its two tokens: the one that is attached more often.
        left, right = Counter[str](), Counter[str]()
        for (before, token), count in joined.items():
            by_left = 2 * tight_left[token] > any_left[token]
            by_right = 2 * tight_right[before] > any_right[before] and tight_right[before] > tight_left[token]
            if by_left and not by_right:
                left[token] += count
            else:
                right[before] += count
        return cls(
            (token for token, count in left.items() if 2 * count > any_left[token]),
            (token for token, count in right.items() if 2 * count > any_right[token]),
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
