"""A text with all that is not translated: segments to translate, and the text between them."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nmt.translation.tags import find_words, link_words, place_tags

if TYPE_CHECKING:
    from nmt.text.processor import TextProcessor
    from nmt.translation.tags import Element
    from nmt.translation.translation import Translation

_LINE_END = re.compile(r"(\r\n|\n|\r)")
_MARKER = re.compile("\0[0-9]+\0")


def make_marker(number: int) -> str:
    """The marker of the text with this number, inside a tag of another text; no text has such characters."""
    return f"\0{number}\0"


def keep_as_is(text: str) -> str:
    """The text: it needs no escapes where it is written."""
    return text


def escape_markup(text: str) -> str:
    """A text in which nothing is read as a tag or an entity of HTML or XML."""
    return html.escape(text, quote=False)


@dataclass(frozen=True)
class Segment:
    """A line, or running text with the tags inside it.

    Attributes:
        text: The text to translate, without tags and entities.
        before: White space before it.
        after: White space after it.
        elements: Its tags, in order.
        opaque: Parts of the document that are words of the text but not translated, by the character of the private use
            area that stands for each.
        breaks: Text in place of a space inside it, such as the end of a line of a subtitle, with the share of
            the text in front of it; the translation is divided in proportion.
        escape: Writes a word, or a text without tags, as the document does.
        original: It as the document has it, which stays if the translation is the same text; None writes it anew.
        empty: Tags around nothing, which are left out.
        finish: Writes the whole as the document does; None needs nothing else.
    """

    text: str
    before: str = ""
    after: str = ""
    elements: Sequence[Element] = ()
    opaque: Mapping[str, str] = field(default_factory=dict)
    breaks: Sequence[tuple[float, str]] = ()
    escape: Callable[[str], str] = keep_as_is
    original: str | None = None
    empty: Sequence[str] = ()
    finish: Callable[[str], str] | None = None

    def render(self, translation: Translation, processor: TextProcessor) -> str:
        """Its translation, in which nothing but its own tags can be read as a tag."""
        if self.original is not None and translation.text == self.text:
            return self.original
        is_plain = not (self.elements or self.breaks)
        text = self.escape(translation.text) if is_plain else self._place(translation, processor)

        # Opaque parts take the places of their symbols; one whose symbol the model dropped comes last.
        for symbol, part in self.opaque.items():
            text = text.replace(symbol, part) if symbol in text else f"{text} {part}"
        whole = self.before + text + self.after
        for tags in self.empty:
            whole = whole.replace(tags, "")
        return whole if self.finish is None else self.finish(whole)

    def _place(self, translation: Translation, processor: TextProcessor) -> str:
        """The translation with the tags and breaks of the text."""
        tgt_words = find_words(translation.text)
        # Words that follow another one without a space between them, as in Japanese.
        joined = set()
        for number, (left, right) in enumerate(itertools.pairwise(tgt_words), 1):
            if left.end() == right.start():
                joined.add(number)
        links = link_words(self.text, translation, processor) if self.elements else ()
        words = [match[0] for match in tgt_words]
        places = [number for number in range(1, len(words)) if number not in joined]
        if len(places) < len(self.breaks) and not self.elements:
            # A language without spaces: a break may stand between any two characters.
            words = list(translation.text)
            places = list(range(1, len(words)))
            joined = set(places)
        breaks = _divide(words, joined, places, self.breaks)
        joined -= breaks.keys()
        return place_tags(self.elements, links, len(find_words(self.text)), words, joined, self.escape, breaks)


def _divide(
    words: Sequence[str], joined: set[int], places: Sequence[int], breaks: Sequence[tuple[float, str]]
) -> dict[int, str]:
    """The breaks by the word in front of which each stands, or the number of words if it stands at the end.

    Args:
        words: The words.
        joined: Indices of those that follow the one before them without a space.
        places: Indices of those in front of which a break may stand: the one that is nearest to its share is chosen.
        breaks: The share of the characters in front of each, and its text.
    """
    begins = [0]
    for number, word in enumerate(words, 1):
        begins.append(begins[-1] + len(word) + (number not in joined and number < len(words)))
    total = begins[-1]
    chosen: dict[int, str] = {}
    for share, source in breaks:
        wanted = share * total
        last = max(chosen, default=0)
        later = [number for number in places if number > last]
        number = min(later, key=lambda number: abs(begins[number] - wanted), default=len(words))
        chosen[number] = chosen.get(number, "") + source
    return chosen


@dataclass(frozen=True)
class Aside:
    """Text inside a tag of the next segment, such as a footnote in a sentence.

    Attributes:
        marker: Its marker in the tag; see `make_marker`.
        parts: Its segments, and the text between them.
    """

    marker: str
    parts: Sequence[Part]


Part = str | Segment | Aside


class Document:
    """A text whose segments are translated.

    Args:
        parts: Segments, asides in front of them, and the text between them.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self.segments = list(_segments(parts))
        """The texts to translate, in order."""
        self.needs_alignment = any(segment.elements for segment in self.segments)
        """True if there are tags to place among the words of a translation."""

    @property
    def texts(self) -> list[str]:
        """The texts to translate, in order."""
        return [segment.text for segment in self.segments]

    def render(self, translations: Sequence[Translation], processor: TextProcessor) -> str:
        """The document with its texts translated.

        Args:
            translations: One for each of `texts`, with alignments if they are needed.
            processor: The text processor of the model.
        """
        pairs = zip(self.segments, translations, strict=True)
        return self.join([segment.render(translation, processor) for segment, translation in pairs])

    def join(self, rendered: Sequence[str]) -> str:
        """The document with its segments as they were rendered."""
        return _join(self._parts, iter(rendered))


def _segments(parts: Sequence[Part]) -> Iterator[Segment]:
    for part in parts:
        if isinstance(part, Segment):
            yield part
        elif isinstance(part, Aside):
            yield from _segments(part.parts)


def _join(parts: Sequence[Part], rendered: Iterator[str]) -> str:
    texts: list[str] = []
    asides: dict[str, str] = {}
    for part in parts:
        match part:
            case Segment():
                texts.append(next(rendered))
            case Aside():
                asides[part.marker] = _join(part.parts, rendered)
            case _:
                texts.append(part)
    text = "".join(texts)
    return _MARKER.sub(lambda match: asides.get(match[0], match[0]), text) if asides else text


def read_plain_text(source: str) -> Document:
    """Split plain text into its lines; empty lines are kept as they are."""
    parts = _LINE_END.split(source)  # a line, its end, a line, ...
    return Document([Segment(part) if part.strip() else part for part in parts])
