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
        glued_left: Counter[str] = Counter()
        seen_left: Counter[str] = Counter()
        pairs: list[tuple[str, str]] = []
        seen_right: Counter[str] = Counter()
        for tokens, blanks in sentences:
            for before, token, blank in zip(tokens, tokens[1:], blanks, strict=False):
                seen_left[token] += 1
                seen_right[before] += 1
                if not blank:
                    glued_left[token] += 1
                    pairs.append((before, token))
        left = {token for token, count in glued_left.items() if 2 * count > seen_left[token]}
        left -= QUOTES
        # A token explains a missing blank on its right only where its neighbour does not explain it already.
        glued_right = Counter(before for before, token in pairs if token not in left)
        right = {token for token, count in glued_right.items() if 2 * count > seen_right[token]}
        return cls(left, right - QUOTES)

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
