"""Where blanks stood between word tokens: learnt from text, used to put tokens together again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

QUOTES = frozenset("\"'")


class Spacing:
    """Rules that glue tokens to their neighbours.

    A token is glued to its left (a full stop) or to its right (an opening bracket) when that is what it does in
    most of its occurrences. Straight quotes are glued by turns: the first opens, the next closes.

    Args:
        left: Tokens glued to the token before them.
        right: Tokens glued to the token after them.
    """

    def __init__(self, left: Iterable[str] = (), right: Iterable[str] = ()) -> None:
        self.left = frozenset(left)
        self.right = frozenset(right)

    @classmethod
    def learn(cls, sentences: Iterable[tuple[Sequence[str], Sequence[bool]]]) -> Spacing:
        """Count how tokens stand in text.

        Args:
            sentences: Tokens of each sentence, and for each token whether a blank follows it.
        """
        pairs: Counter[tuple[str, str]] = Counter()
        glued_left: Counter[str] = Counter()
        glued_right: Counter[str] = Counter()
        seen_left: Counter[str] = Counter()
        seen_right: Counter[str] = Counter()
        for tokens, blanks in sentences:
            for before, token, blank in zip(tokens, tokens[1:], blanks, strict=False):
                if before in QUOTES or token in QUOTES:
                    continue
                seen_left[token] += 1
                seen_right[before] += 1
                if not blank:
                    pairs[before, token] += 1
                    glued_left[token] += 1
                    glued_right[before] += 1
        # A missing blank is explained by one of its two tokens: the one that is glued more often.
        left: Counter[str] = Counter()
        right: Counter[str] = Counter()
        for (before, token), count in pairs.items():
            by_left = 2 * glued_left[token] > seen_left[token]
            by_right = 2 * glued_right[before] > seen_right[before] and glued_right[before] > glued_left[token]
            if by_left and not by_right:
                left[token] += count
            else:
                right[before] += count
        return cls(
            (token for token, count in left.items() if 2 * count > seen_left[token]),
            (token for token, count in right.items() if 2 * count > seen_right[token]),
        )

    def join(self, tokens: Sequence[str]) -> str:
        """Text of tokens, with blanks where they belong."""
        pieces: list[str] = []
        open_quotes: set[str] = set()
        glue_next = True
        for token in tokens:
            closes = token in QUOTES and token in open_quotes
            if not (glue_next or closes or token in self.left):
                pieces.append(" ")
            pieces.append(token)
            glue_next = token in self.right
            if token in QUOTES:
                glue_next = not closes
                open_quotes ^= {token}
        return "".join(pieces)
