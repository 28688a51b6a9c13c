"""Splits lines into sentences, and long sentences into parts: models are trained on one sentence at a time."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from nmt.text.abbreviations import Abbreviations, load_abbreviations
from nmt.text.direction import Direction
from nmt.text.normalization import INVISIBLE
from nmt.text.spans import PICTURES
from nmt.text.tokenizers import WORD_BEGINNING

_END = ".!?\u2026\u203d\u2047-\u2049\u0589\u061f\u06d4\u0964\u0965\u104b\u1362\u17d4"
_WIDE_END = "\u3002\uff01\uff0e\uff1f\uff61"
"""Ends of sentences that are not followed by a space."""
_QUOTES = "\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a"
"""Quotation marks, which open in one language and close in another."""
_CLOSING = ")\\]}"
_UNSEEN = "\u200b\u200e\u200f\u2060\ufeff"
_WIDE_CLOSING = "\u2019\u201d\u300d\u300f\uff09"
_DASHES = "\u2013\u2014-"
_OPENING = f"(\\[{{\u300c\u300e\uff08\u00bf\u00a1{_DASHES}"
_MARKS = "*_~"
"""Marks of Markdown, which may stand around a sentence or its first word, and so may tags."""
_END_TAG = r"</[A-Za-z][^<>\s]{0,40}>"
_START = rf"[{_MARKS}]{{1,3}}(?![\s{_MARKS}])|<[A-Za-z][^<>]{{0,200}}>(?!\s)"
_FOOTNOTE = r"(?:\[\^?\w{1,20}\]){0,9}+"
# Each run of characters is tried only once, from its beginning to its end, so that no line takes quadratic time.
_BOUNDARY = re.compile(
    rf"(?<![{_END}{_WIDE_END}])(?P<end>[{_END}{_WIDE_END}]++)"
    rf"(?:(?<=[{_WIDE_END}])[{_WIDE_CLOSING}]*+\s*+|(?<=[{_END}])(?:[{_QUOTES}{_CLOSING}{_UNSEEN}{_MARKS}]|{_END_TAG})*+{_FOOTNOTE}\s++)"
    rf"(?=(?:[{_DASHES}]\s++)?+(?:[{_QUOTES}{_OPENING}]|{_START})*+(?P<first>[^\s{_END}{_WIDE_END}]))"
)
_PAUSE = re.compile(r".*[,;:.!?\u2026\u2013\u2014\u060c\u061b\u3001\uff0c\uff1a\uff1b\u3002-]")
_EMOJI = re.compile(rf"[{PICTURES}][{PICTURES}{_END}{_WIDE_END}\ufe0e\ufe0f\u200d\u20e3\s]*+")
_WORD = re.compile(r"[^\W\d_]+")
_INITIAL = re.compile(r"[^\W\d_]\.")
_FIRST_WORD = re.compile(r"[^\W\d_]+(?=n['\u2019]t\b)|[^\W\d_]+|\d+")
"""The first word or number of a sentence: `do` of don't, `I` of I've."""
SHORT = 3
"""Letters of the longest words that need no capital in a title."""
LONGEST_WORD = 40
"""Characters before a full stop that are examined."""


class SentenceSplitter:
    """Splits a line into sentences, and emoji from their beginnings and ends.

    A sentence ends with a punctuation mark, any closing quotes and a space, unless a lower-case letter follows. A full
    stop of an abbreviation ends a sentence only where the word behind it says so; see `Abbreviations`. spaCy, whose
    abbreviations these are, is imported only when there is a full stop to check. In a language unknown to spaCy, every
    full stop ends a sentence.

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
        return [line[begin:end] for begin, end in self.find(line)] or [line.strip()]

    def find(
        self, line: str, kept: Sequence[tuple[int, int]] = (), breaks: Iterable[tuple[int, int]] = ()
    ) -> list[tuple[int, int]]:
        """The places of the sentences of a line, in order, without the white space around them.

        Args:
            line: The line.
            kept: Places of spans in which no sentence ends, in order.
            breaks: Those of them that end a sentence in any case; each is a sentence of its own.
        """
        ends = {end.end() for end in _BOUNDARY.finditer(line) if self._ends_sentence(line, end)}
        inside = {place for begin, end in kept for place in range(begin + 1, end)} if ends else set()
        cuts = (ends - inside).union(*breaks)
        places = pairwise((0, *sorted(cuts), len(line)))
        return [part for begin, end in places for part in _without_emoji(line, begin, end)]

    def _ends_sentence(self, line: str, boundary: re.Match[str]) -> bool:
        """True if the punctuation ends a sentence; a full stop must not be part of the word before it."""
        if boundary["end"][-1] in _WIDE_END:
            return True
        if boundary["first"].islower():
            return False
        if boundary["end"] != ".":
            return True
        *earlier, word = line[max(0, boundary.start() - LONGEST_WORD) : boundary.end("end")].split()
        if len(word) == 1 or self.abbreviations is None:
            return True
        if _INITIAL.match(line, boundary.start("first")) and _INITIAL.fullmatch(word):
            return False  # J. F. Kennedy
        before = earlier[-1] if earlier else ""
        following = _FIRST_WORD.match(line, boundary.start("first"))
        return self.abbreviations.ends_sentence(before, word, following[0] if following else "")

    def __getstate__(self) -> dict[str, object]:
        """The attributes that are pickled: not the abbreviations, which are read again."""
        return {name: value for name, value in vars(self).items() if name != "abbreviations"}

    @cached_property
    def abbreviations(self) -> Abbreviations | None:
        """Those of the language; None if spaCy does not know it or is not installed."""
        return load_abbreviations(self.language)


def _without_emoji(line: str, begin: int, end: int) -> list[tuple[int, int]]:
    """The places of a sentence, and of the emoji in front of it or behind it, without white space around them."""
    text = line[begin:end]
    first, last = _strip(text, 0, len(text))
    cuts = {first, last}
    for emoji in _EMOJI.finditer(text, first, last):
        if emoji.start() == first or emoji.end() == last:
            cuts |= {emoji.start(), emoji.end()}
    places = [_strip(text, *place) for place in pairwise(sorted(cuts))]
    return [(begin + first, begin + last) for first, last in places if first < last]


def _strip(text: str, begin: int, end: int) -> tuple[int, int]:
    """A part of a text without the white space and the characters around it that are not seen."""
    while begin < end and _is_blank(text[begin]):
        begin += 1
    while begin < end and _is_blank(text[end - 1]):
        end -= 1
    return begin, end


def _is_blank(character: str) -> bool:
    return character.isspace() or INVISIBLE.match(character) is not None


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
    parts = []
    end = 0
    for number, match in enumerate(_WORD.finditer(text)):
        word = match[0]
        small = word.lower()
        has_one_capital = word == word.capitalize()
        if number > 0 and has_one_capital and rarity(small) < rarity(word):
            word = small
        parts += [text[end : match.start()], word]
        end = match.end()
    return "".join(parts) + text[end:]


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
