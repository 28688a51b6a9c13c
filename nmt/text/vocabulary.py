"""Tokens to ids and back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from nmt.system.errors import DataError, shorten
from nmt.system.files import read_json, write_json
from nmt.system.limits import MAX_TEXT_FILE

PAD_ID = 0
UNK_ID = 1
BOS_ID = 2
EOS_ID = 3
SPECIAL_TOKENS = ("<pad>", "<unk>", "<s>", "</s>")

LARGER = "lower text.vocabulary.min_count, raise text.vocabulary.max_size or use text.tokenizer: subword"
"""Advice for a vocabulary that is too small."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class Vocabulary:
    """A list of tokens whose positions are their ids; the four special tokens come first.

    Args:
        tokens: Tokens without the special ones, most frequent first.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens: list[str] = [*SPECIAL_TOKENS, *tokens]
        # Text that is the name of a special token is unknown.
        self._ids = {token: index for index, token in enumerate(self.tokens) if index > EOS_ID}

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.tokens == other.tokens

    @classmethod
    def from_counts(
        cls, counts: Counter[str], *, min_count: int = 1, max_size: int | None = None, reserved: Collection[str] = ()
    ) -> Vocabulary:
        """Keep tokens by frequency, ties in alphabetical order.

        Args:
            counts: Number of occurrences of each token in the training text.
            min_count: Rarer tokens get no id.
            max_size: Maximum number of tokens to keep, not counting special and reserved ones; None keeps all.
            reserved: Tokens that get an id however rare they are.
        """
        left_out = {*SPECIAL_TOKENS, *reserved}
        tokens = [token for token, count in counts.items() if count >= min_count and token not in left_out]
        kept = sorted(tokens, key=lambda token: (-counts[token], token))[:max_size]
        return cls(sorted([*kept, *reserved], key=lambda token: (-counts[token], token)))

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Ids of tokens, UNK_ID for unknown ones; no EOS is added. The names of special tokens are unknown too."""
        return [self._ids.get(token, UNK_ID) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Tokens of ids."""
        return [self.tokens[index] for index in ids]

    def save(self, path: Path) -> None:
        """Write the tokens after the special ones as a JSON list."""
        write_json(path, self.tokens[len(SPECIAL_TOKENS) :])

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read the file of `save`.

        Raises:
            DataError: The file is missing or damaged.
        """
        tokens = read_json(path, MAX_TEXT_FILE)
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise DataError(f"{path}: not a list of tokens; the directory is damaged")
        for number, token in enumerate(tokens, start=1):
            if not _is_possible_token(token):
                fault = f"token {number:,} is {shorten(repr(token))}, which no tokenizer produces"
                raise DataError(f"{path}: {fault}; the directory is damaged")
        if len({*SPECIAL_TOKENS, *tokens}) != len(SPECIAL_TOKENS) + len(tokens):
            raise DataError(f"{path}: a token occurs twice in the vocabulary; the directory is damaged")
        return cls(tokens)


def _is_possible_token(token: str) -> bool:
    """True if a tokenizer can produce it: it is visible, in one line, and can be encoded as UTF-8."""
    return token.splitlines() == [token] and not token.isspace() and not _SURROGATE.search(token)
