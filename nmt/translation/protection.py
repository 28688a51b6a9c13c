"""Spans that a translation takes over: stand-ins for them in the source, and the spans again in the translation.

A model with placeholders (`text.placeholders`) has learnt to copy them, and the search demands each. For another model
numbers stand as they are, or small numbers stand in for the spans, as any model copies those; where one is lost, the
sentence is translated without the spans, which attention then places; see `nmt.translation.markup`.
"""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from nmt.text.casing import Casing, upper
from nmt.text.glossary import read_glossary, read_names
from nmt.text.names import find_unknown_names
from nmt.text.placeholders import annotate
from nmt.text.spans import AT_WORD, WORD_ENDS, find_spans, is_apart, put_over, replace_places
from nmt.text.tokenizers import WORD_BEGINNING
from nmt.text.unread import find_unread
from nmt.translation.words import count_visible

if TYPE_CHECKING:
    from nmt.translation.translation import Translation

Way = Literal["placeholders", "plain", "numbers", "without"]
"""How a sentence with spans is read: with placeholders, as it is, with small numbers for the spans, or without them."""
NUMBERS = ("25", "30", "17", "42", "15", "60", "12", "80", "35", "70", "18", "90", "45", "20", "50", "16", "75", "40")
"""Numbers that stand in for spans: training text has them, and no other word depends on which it is."""
CLOSING = ".,;:!?\u2026)]}\u2019\u201d\u00bb\u203a\u3002\uff0c\uff01\uff1f\u060c\u061b\u061f"
"""Marks that stand directly behind a word."""
STOPS = ".!?\u2026\u3002\uff01\uff1f\u061f"
"""Those of them that end a sentence."""
PAIRED_MARKS = ("***", "**", "__", "~~", "*", "_")
"""Marks that stand in front of words and again behind them."""
OPENING = "([{\u00bf\u00a1\u201c\u201e\u00ab\u2039"
"""Marks that a word stands directly behind."""


class Kept(NamedTuple):
    """A span of a sentence.

    Attributes:
        begin: Its first character.
        end: The character after its last one.
        text: What the translation has in its place: the same text, or the translation of a term.
        kind: That of the span, or `term`, or `inflected` for a term whose translation may be inflected, or `unread`.
    """

    begin: int
    end: int
    text: str
    kind: str


class Knowledge(NamedTuple):
    """What a model knows of words.

    Attributes:
        words: The words of its training: other words with a capital are names that it takes over. None looks for none.
        letters: The letters of its vocabulary: it cannot read words that have none of them. None looks for none.
        casing: How its translations are set in capitals.
    """

    words: Collection[str] = ()
    letters: Collection[str] = ()
    casing: Casing = ""


class Protection:
    """Finds the spans of a text that its translation takes over.

    Args:
        names: Words, or several, that stay as they are.
        terms: Words, or several, with their translations. The capitals of a term must be in a text too; a text may have
            more.
        inflected: The terms whose translations may be inflected by a model with marks for terms.
    """

    def __init__(
        self, names: Sequence[str] = (), terms: Mapping[str, str] | None = None, inflected: Collection[str] = ()
    ) -> None:
        self.names = tuple(names)
        self.terms = dict(terms or {})
        self.inflected = frozenset(inflected)
        self._pattern = re.compile(match_terms(self.terms)) if self.terms else None

    def find(self, text: str, known: Knowledge = Knowledge()) -> list[Kept]:
        """The spans of a text in order. A user's term or name counts before a span that it contains.

        Args:
            text: The text.
            known: What the model knows of words.
        """
        spans = find_spans(text, self.names)
        kept = [Kept(*span[:2], text[span.begin : span.end], span.kind) for span in spans]
        if self._pattern is not None:
            kept = self._put_terms(text, kept, known.casing)
        unread = [place for place in find_unread(text, known.letters) if is_apart(*place, kept)]
        kept += [Kept(begin, end, text[begin:end], "unread") for begin, end in unread]
        if known.words:
            unknown = [place for place in find_unknown_names(text, known.words) if is_apart(*place, kept)]
            kept += [Kept(begin, end, text[begin:end], "name") for begin, end in unknown]
        return sorted(kept)

    def _put_terms(self, text: str, kept: Sequence[Kept], casing: Casing) -> list[Kept]:
        """Spans with terms in place of the names that they overlap, and of the other spans that they contain."""
        assert self._pattern is not None
        terms = []
        for match in self._pattern.finditer(text):
            term, is_louder = self._find_term(match[0])
            translation = upper(self.terms[term], casing) if is_louder else self.terms[term]
            kind = "inflected" if term in self.inflected and not is_louder else "term"
            terms.append(Kept(*match.span(), translation, kind))
        chosen = put_over([span for span in kept if span.kind != "name"], terms)
        return [*chosen, *(span for span in kept if span.kind == "name" and is_apart(span.begin, span.end, chosen))]

    def _find_term(self, written: str) -> tuple[str, bool]:
        """The term that a text has, and True if the text sets it in capitals, unlike the glossary."""
        if written in self.terms:
            return written, False
        if written.lower() in self.terms:
            return written.lower(), written.isupper() and len(written) > 1
        return next(term for term in self.terms if upper(term) == written), True


def match_terms(terms: Iterable[str]) -> str:
    """A pattern of terms, the longest first, each with the capitals that it has, perhaps with more of them.

    `cat` is found in `Cat` and `CAT`, `May` in `MAY` and not in `may`, `US` in no other form.
    """
    alternatives = []
    for term in sorted(terms, key=len, reverse=True):
        if term.lower() == term:
            alternatives.append("".join(_in_any_case(letter) for letter in term))
        else:
            alternatives += [_escape(term), _escape(upper(term))]
    return f"{AT_WORD}(?:{'|'.join(alternatives)}){WORD_ENDS}"


def _in_any_case(letter: str) -> str:
    """A pattern of a small letter that may be a capital."""
    capital = letter.upper()
    if capital == letter or len(capital) > 1 or capital.lower() != letter:
        return _escape(letter)
    return f"[{letter}{capital}]"


def _escape(text: str) -> str:
    """A pattern of a text, for JavaScript too, which refuses the backslash that `re.escape` puts before a space."""
    return re.sub(r"[.^$*+?{}\[\]\\|()/]", r"\\\g<0>", text)


def read_protection(keep: Path | None, glossary: Path | None) -> Protection:
    """The protection of the spans that any text has, and of those that a user's files list.

    Args:
        keep: File with names that stay as they are; see `read_names`.
        glossary: File with terms and their translations; see `read_glossary`.

    Raises:
        DataError: A file is malformed.
        OSError: A file cannot be read.
    """
    names = [] if keep is None else read_names(keep)
    if glossary is None:
        return Protection(names)
    terms, inflected = read_glossary(glossary)
    return Protection(names, terms, inflected)


def stand_in(sentence: str, kept: Sequence[Kept], stand_ins: Sequence[str]) -> str:
    """A sentence with other texts in place of its spans."""
    symbols = zip(kept, stand_ins, strict=True)
    return replace_places(sentence, {(span.begin, span.end): symbol for span, symbol in symbols})


def stand_in_apart(sentence: str, kept: Sequence[Kept], stand_ins: Sequence[str]) -> str:
    """A sentence as a model reads it: what stands in for a span has a space to a word beside it, and to another span.

    A model knows `25 apples`, and hardly any word that begins or ends with a number or a placeholder. Nothing may stand
    in for a span, and then a single space is where it was.
    """
    apart = []
    end = -1
    for span, symbol in zip(kept, stand_ins, strict=True):
        before = " " if symbol and (span.begin == end or sentence[: span.begin][-1:].isalnum()) else ""
        behind = " " if symbol and sentence[span.end : span.end + 1].isalnum() else ""
        apart.append(f"{before}{symbol}{behind}")
        end = span.end
    text = stand_in(sentence, kept, apart)
    return text if all(stand_ins) else " ".join(text.split())


def annotate_terms(sentence: str, kept: Sequence[Kept]) -> tuple[str, tuple[Kept, ...]]:
    """A sentence with the translations of its inflected terms beside them, and its other spans at their new places."""
    others = []
    notes = {}
    shift = 0
    for span in kept:
        if span.kind == "inflected":
            term = sentence[span.begin : span.end]
            note = annotate(term, span.text)
            notes[span.begin, span.end] = note
            shift += len(note) - len(term)
        else:
            others.append(span._replace(begin=span.begin + shift, end=span.end + shift))
    return replace_places(sentence, notes), tuple(others)


def take_out(sentence: str, kept: Sequence[Kept]) -> str:
    """A sentence without its spans, with single spaces where they were."""
    return " ".join(stand_in(sentence, kept, [""] * len(kept)).split())


def choose_numbers(sentence: str, number: int) -> list[str]:
    """Numbers that stand in for spans, none of which a sentence has; fewer than asked for if there are no more."""
    return [text for text in NUMBERS if text not in sentence][:number]


def put_back(
    translation: Translation, kept: Sequence[Kept], stand_ins: Sequence[str], sentence: str
) -> Translation | None:
    """A translation with the spans in place of what stood in for them; None unless it has each as often as the source.

    Args:
        translation: As the model wrote it.
        kept: The spans.
        stand_ins: What stands in for each, in the same order; one may stand in for several.
        sentence: The source with its spans: where it has a space between a span and a word, or none, the translation
            has so too.
    """
    expected = Counter(stand_ins)
    places = [(match.start(), match.end(), symbol) for symbol in expected for match in _find(symbol, translation.text)]
    if Counter(symbol for _, _, symbol in places) != expected:
        return None
    waiting = {
        symbol: [span for span, text in zip(kept, stand_ins, strict=True) if text == symbol] for symbol in expected
    }
    chosen = [(begin, end, waiting[symbol].pop(0)) for begin, end, symbol in sorted(places)]
    text = translation.text
    parts: list[str] = []
    position = 0
    previous = chosen[0][2]
    for begin, end, span in chosen:
        before = text[position:begin]
        bare = before.rstrip()
        is_beside_word = bare[-1:].isalnum()
        is_beside_span = bool(parts) and not bare
        if is_beside_word and is_glued(sentence, kept, span.begin):
            before = bare
        elif is_beside_span and before and previous.end == span.begin:
            before = ""
        elif (is_beside_word or is_beside_span) and before == bare and sentence[: span.begin][-1:].isspace():
            before += " "
        parts += [before, span.text]
        position = end
        previous = span
        if span.text.endswith(".") and text[end : end + 1] == "." and sentence[span.end : span.end + 1] != ".":
            position += 1  # the full stop of the span is that of the sentence too
        rest = text[end:]
        after = rest.lstrip()
        if after[:1].isalnum():
            if is_glued(sentence, kept, span.end):
                position = len(text) - len(after)
            elif after == rest and sentence[span.end : span.end + 1].isspace():
                parts.append(" ")
    whole = begin_large("".join([*parts, text[position:]]), kept, sentence)
    tokens = _with_spans(translation.tokens, translation.text, [(begin, end, span.text) for begin, end, span in chosen])
    pairs = zip(kept, stand_ins, strict=True)
    src = _with_source_spans(
        translation.src_tokens, [(symbol, sentence[span.begin : span.end]) for span, symbol in pairs]
    )
    return dataclasses.replace(translation, text=whole, tokens=tokens, src_tokens=src)


def begin_large(text: str, kept: Sequence[Kept], sentence: str) -> str:
    """A translation that begins with a term in small letters begins with a capital, unless its sentence does not."""
    begin = next((place for place, character in enumerate(text) if character.isalnum()), 0)
    first = next((character for character in sentence if character.isalpha()), "")
    terms = [span.text for span in kept if span.kind == "term" and span.text.islower()]
    if first.islower() or not text.startswith(tuple(terms), begin):
        return text
    return text[:begin] + text[begin : begin + 1].upper() + text[begin + 1 :]


def is_glued(sentence: str, kept: Sequence[Kept], edge: int) -> bool:
    """True if a sentence has a word on the other side of an edge of a span, without a space between them."""
    for span in kept:
        if span.end == edge and sentence[edge : edge + 1].isalnum():
            return all(neighbour.begin != edge for neighbour in kept)
        if span.begin == edge and sentence[:edge][-1:].isalnum():
            return all(neighbour.end != edge for neighbour in kept)
    return False


def _find(symbol: str, text: str) -> list[re.Match[str]]:
    left = r"(?<![\w.,-])" if symbol[0].isdigit() else ""
    right = r"(?![\w]|[.,:-]\d)" if symbol[-1].isdigit() else ""
    return list(re.finditer(f"{left}{re.escape(symbol)}{right}", text))


def _with_spans(tokens: Sequence[str], text: str, places: Sequence[tuple[int, int, str]]) -> list[str]:
    """Tokens with the texts at some places of their text replaced: the first token of each has it, others nothing."""
    ends: list[int] = []  # visible characters up to the end of each token
    for token in tokens:
        ends.append((ends[-1] if ends else 0) + count_visible(token))
    changed = list(tokens)
    for begin, end, replacement in places:
        first = bisect_left(ends, count_visible(text[:begin]) + 1)
        last = bisect_left(ends, count_visible(text[:end]))
        if first < len(changed):
            lead = WORD_BEGINNING if changed[first].startswith(WORD_BEGINNING) else ""
            for place in range(first, min(last, len(changed) - 1) + 1):
                changed[place] = ""
            changed[first] = lead + replacement
    return changed


def _with_source_spans(tokens: Sequence[str], replacements: Sequence[tuple[str, str]]) -> list[str]:
    """Source tokens with the spans in place of what stood in for them, from left to right."""
    changed = list(tokens)
    text = "".join(tokens)
    position = 0
    for symbol, replacement in replacements:
        begin = text.find(symbol, position)
        if begin < 0:
            return changed
        position = begin + len(symbol)
        length = 0
        for place, token in enumerate(tokens):
            overlaps = length < position and begin < length + len(token)
            if overlaps:
                is_first = length <= begin
                kept = token[: max(0, begin - length)] if is_first else ""
                changed[place] = kept + replacement if is_first else ""
            length += len(token)
    return changed
