"""Splits lines into sentences, and long sentences into parts: models are trained on one sentence at a time."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from nmt.text.direction import Direction
from nmt.text.tokenizers import WORD_BEGINNING, blank_language

_END = ".!?\u2026\u203d\u2047-\u2049\u0589\u061f\u06d4\u0964\u0965\u104b\u1362\u17d4"
_WIDE_END = "\u3002\uff01\uff0e\uff1f\uff61"
"""Ends of sentences that are not followed by a space."""
_QUOTES = "\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a"
"""Quotation marks, which open in one language and close in another."""
_CLOSING = ")\\]}"
_WIDE_CLOSING = "\u2019\u201d\u300d\u300f\uff09"
_OPENING = "(\\[{\u300c\u300e\uff08\u00bf\u00a1\u2013\u2014-"
# Each run of characters is tried only once, from its beginning to its end, so that no line takes quadratic time.
_BOUNDARY = re.compile(
    rf"(?<![{_END}{_WIDE_END}])(?P<end>[{_END}{_WIDE_END}]++)"
    rf"(?:(?<=[{_WIDE_END}])[{_WIDE_CLOSING}]*+\s*+|(?<=[{_END}])[{_QUOTES}{_CLOSING}]*+\s++)"
    rf"(?=[{_QUOTES}{_OPENING}]*+(?P<first>[^\s{_END}{_WIDE_END}]))"
)
_PAUSE = re.compile(r".*[,;:.!?\u2026\u2013\u2014\u060c\u061b\u3001\uff0c\uff1a\uff1b\u3002-]")
_PICTURES = "\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff"
_EMOJI = re.compile(rf"[{_PICTURES}][{_PICTURES}{_END}{_WIDE_END}\ufe0e\ufe0f\u200d\u20e3\s]*+")
_WORD = re.compile(r"[^\W\d_]+")
SHORT = 3
"""Letters of the longest words that need no capital in a title."""
LONGEST_WORD = 40
"""Characters before a full stop that are examined."""


class SentenceSplitter:
    """Splits a line into sentences, and emoji from their beginnings and ends.

    A sentence ends with a punctuation mark, any closing quotes and a space, unless a lower-case letter follows. A full
    stop that spaCy's rules for the language keep with its word, as in `Dr.` or `z. B.`, does not end a sentence; spaCy
    is imported only when there is one to check. In a language unknown to spaCy, every full stop ends a sentence.

    Args:
        language: Language code of the text.
        tgt_language: Language code of its translation.
    """

    def __init__(self, language: str, tgt_language: str = "") -> None:
        self.language = language
        direction = Direction(language, tgt_language)
        self.glue = direction.separator
        """Separator between translated sentences."""
        self.casings = direction.casings
        """Rules of small and capital letters of both languages."""

    def __call__(self, line: str) -> list[str]:
        """The sentences of a line, in order; the line itself if it is only one."""
        ends = [end.end() for end in _BOUNDARY.finditer(line) if self._ends_sentence(line, end)]
        if not ends:
            return _without_emoji(line)
        sentences = (line[begin:end].strip() for begin, end in pairwise((0, *ends, len(line))))
        return [part for sentence in sentences for part in _without_emoji(sentence)]

    def _ends_sentence(self, line: str, boundary: re.Match[str]) -> bool:
        """True if the punctuation ends a sentence; a full stop must not be part of the word before it."""
        if boundary["end"][-1] in _WIDE_END:
            return True
        if boundary["first"].islower():
            return False
        if boundary["end"] != ".":
            return True
        word = line[max(0, boundary.start() - LONGEST_WORD) : boundary.end("end")].split()[-1]
        return len(word) == 1 or self._tokenize is None or self._tokenize(word)[-1] == "."

    def __getstate__(self) -> dict[str, object]:
        """What is pickled: not the tokenizer, which is made again."""
        return {name: value for name, value in vars(self).items() if name != "_tokenize"}

    @cached_property
    def _tokenize(self) -> Callable[[str], list[str]] | None:
        """Splits a word into spaCy's tokens; None if spaCy does not know the language or is not installed."""
        try:
            tokenizer = blank_language(self.language).tokenizer
        except ImportError:
            return None
        return lambda word: [token.text for token in tokenizer(word)]


def _without_emoji(sentence: str) -> list[str]:
    """A sentence, and the emoji in front of it or behind it."""
    text = sentence.strip()
    runs = (emoji.span() for emoji in _EMOJI.finditer(text))
    cuts = {cut for begin, end in runs if begin == 0 or end == len(text) for cut in (begin, end)}
    return [text[begin:end].strip() for begin, end in pairwise(sorted({0, *cuts, len(text)}))] if cuts else [sentence]


def is_in_capitals(text: str) -> bool:
    """True if the text has at least two words and all of them are in capitals. Words without letters are ignored."""
    return text.isupper() and sum(word.isupper() for word in text.split()) > 1


def is_title(text: str) -> bool:
    """True if each long word has a capital, at least two after the first word, and the text no full stop."""
    words = _WORD.findall(text)
    capitals = sum(word[0].isupper() for word in words[1:] if len(word) > SHORT)
    return capitals > 1 and all(word[0].isupper() for word in words if len(word) > SHORT) and not text.endswith(".")


def untitle(text: str, rarity: Callable[[str], tuple[float, ...]]) -> str:
    """A text in which only the first word and those that are rarer in small letters keep a capital.

    Args:
        text: The text.
        rarity: How rare a word is in training text.
    """
    places = itertools.count()

    def lower(word: re.Match[str]) -> str:
        small = word[0].lower()
        is_capital = next(places) == 0 or word[0] != word[0].capitalize() or rarity(word[0]) <= rarity(small)
        return word[0] if is_capital else small

    return _WORD.sub(lower, text)


def split_tokens(tokens: Sequence[str], limit: int, *, subwords: bool) -> Iterator[list[str]]:
    """Split the tokens of a long sentence into parts: after punctuation, else between words, else anywhere.

    Args:
        tokens: The tokens.
        limit: Maximum number of tokens in a part.
        subwords: True if the tokens are subwords.
    """
    begin = 0
    while len(tokens) - begin > limit:
        cuts = range(begin + limit, begin + limit // 2, -1)  # no part is shorter than half of the limit
        words = [cut for cut in cuts if not subwords or tokens[cut].startswith(WORD_BEGINNING)]
        pauses = (cut for cut in words if _PAUSE.fullmatch(tokens[cut - 1]))
        end = next(pauses, words[0] if words else begin + limit)
        yield list(tokens[begin:end])
        begin = end
    yield list(tokens[begin:])
