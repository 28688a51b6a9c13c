"""Placement of a text's inline tags around the words of its translation."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nmt.text.processor import TextProcessor
from nmt.text.spans import find_spans
from nmt.translation.translation import Translation
from nmt.translation.words import MARKS, align_words, link_same_words

Links = Sequence[tuple[int, int]]
"""Word alignment: pairs of a source and a target word, each counted from 0."""
_MARK = f"[{re.escape(MARKS)}]"
"""Punctuation is a word of its own where a word with spaces around it begins or ends with it."""
_WORD = re.compile(rf"{_MARK}+(?!\S)|(?<!\S){_MARK}+|(?!{_MARK})\S(?:\S*(?!{_MARK})\S)?")


def find_words(text: str) -> list[re.Match[str]]:
    """The words of a text, and the punctuation around them."""
    return list(_WORD.finditer(text))


@dataclass
class Element:
    """An inline element, in terms of the words of its unit.

    Attributes:
        start: The start tag, or the whole of a single piece.
        end: The end tag; empty for a single piece.
        first: Index of the first word in it, or of the word that follows it.
        last: Index after that of the last word in it.
        children: The elements in it.
        glued: True if it follows a word without a space.
        spaced: True if a space follows it, for a single piece.
    """

    start: str
    end: str = ""
    first: int = 0
    last: int = 0
    children: list[Element] = field(default_factory=list)
    glued: bool = False
    spaced: bool = False


def link_words(source: str, translation: Translation, processor: TextProcessor) -> Links:
    """Link each target word to the source word that it translates; in order if attention gives no links.

    Words are those of `find_words`. The punctuation at the end of the target is always that at the end of the source.

    Args:
        source: The source text.
        translation: Its translation, with its alignment.
        processor: The text processor of the model.
    """
    read, written = ([match[0] for match in find_words(text)] for text in (source, translation.text))
    links = align_words(" ".join(read), replace(translation, text=" ".join(written)), processor)
    last = len(written) - 1
    spans = [source[span.begin : span.end] for span in find_spans(source)]
    links = links and link_same_words(links, read, written, spans)
    links = links or [(word * len(read) // len(written), word) for word in range(len(written) if read else 0)]
    if read and written and read[-1][0] in MARKS and written[-1][0] in MARKS:
        links = [*(link for link in links if link[1] < last), (len(read) - 1, last)]
    return links


def place_tags(
    elements: Sequence[Element],
    links: Links,
    num_source: int,
    words: Sequence[str],
    joined: Collection[int] = (),
    escape: Callable[[str], str] = str,
    breaks: Mapping[int, str] | None = None,
) -> str:
    """Place the tags of a source in its translation: each tag once, well nested, whatever the links.

    An element encloses the run of target words of which most come from the words inside it. If there is none, it is
    placed, empty, after the translation of what precedes it.

    Args:
        elements: Tags of the source, by its words.
        links: Pairs of a source and a target word.
        num_source: Words of the source.
        words: Words of the translation.
        joined: Indices of those that follow the one before them without a space.
        escape: Writes a word as the document does.
        breaks: What stands in place of the space in front of a word, by its index; that of the end is their number.
    """
    sources: list[set[int]] = [set() for _ in words]
    reach = [-1] * num_source
    for source, target in links:
        sources[target].add(source)
        reach[source] = max(reach[source], target)
    breaks = breaks or {}
    line = _Line(sources, reach, list(map(escape, words)), joined, breaks)
    line.write(elements, (0, num_source), (0, len(words)))
    return "".join([*line.parts, breaks.get(len(words), "")])


class _Line:
    """Words and tags, written in order.

    Args:
        sources: For each target word the source words that it comes from.
        reach: For each source word the last target word that comes from it, -1 if there is none.
        words: The target words, as they are written.
        joined: Indices of those that follow the one before them without a space.
        breaks: What stands in place of the space in front of a word, by its index.
    """

    def __init__(
        self,
        sources: Sequence[set[int]],
        reach: Sequence[int],
        words: Sequence[str],
        joined: Collection[int],
        breaks: Mapping[int, str],
    ) -> None:
        self.parts: list[str] = []
        self._sources = sources
        self._reach = reach
        self._words = words
        self._joined = joined
        self._breaks = dict(breaks)
        self._separated = True  # whether a word may follow without a space

    def write(self, elements: Sequence[Element], within: tuple[int, int], span: tuple[int, int]) -> None:
        """Write a span of the target words, with the elements within a span of the source words."""
        position, stop = span
        runs = [(*self._run(element, within, span), element) for element in elements]
        for first, last, element in sorted(runs, key=lambda run: run[0]):
            first = max(first, position)  # not into the element before it
            last = max(first, last)
            self._write_words(position, first)
            is_empty = first == last
            is_attached = element.glued if is_empty else first in self._joined
            if not is_attached:
                self._separate(first)
            self.parts.append(element.start)
            self.write(element.children, (element.first, element.last), (first, last))
            self.parts.append(element.end)
            self._separated = self._separated and not element.spaced
            position = last
        self._write_words(position, stop)

    def _run(self, element: Element, within: tuple[int, int], span: tuple[int, int]) -> tuple[int, int]:
        """The target words, within a span, that an element encloses."""
        start, stop = span
        if element.end and (element.first, element.last) == within:
            return span
        if element.end:
            enclosed = set(range(element.first, element.last))
            first, last = best_run([_vote(sources, enclosed) for sources in self._sources[start:stop]])
            if first < last:
                return start + first, start + last
        if element.first >= within[1]:
            return stop, stop
        before = next((self._reach[word] for word in range(element.first - 1, -1, -1) if self._reach[word] >= 0), -1)
        position = min(max(before + 1, start), stop)
        while position < stop and position in self._joined and not element.glued:
            position += 1
        return position, position

    def _write_words(self, start: int, stop: int) -> None:
        for index in range(start, stop):
            if index not in self._joined:
                self._separate(index)
            self.parts.append(self._words[index])
            self._separated = False

    def _separate(self, index: int) -> None:
        """Write a space in front of a word, or the break that stands there."""
        separator = self._breaks.pop(index, "")
        if separator or not self._separated:
            self.parts.append(separator or " ")
            self._separated = True


def _vote(sources: Collection[int], enclosed: Collection[int]) -> int:
    """A target word's vote on an element: 1 if the element encloses one of its sources, -1 if not, 0 without any."""
    if not sources:
        return 0
    return -1 if set(sources).isdisjoint(enclosed) else 1


def best_run(votes: Sequence[int]) -> tuple[int, int]:
    """Start and end of the first and shortest run with the largest sum; (0, 0) if no sum is positive."""
    best = 0
    run = (0, 0)
    total = 0
    start = 0
    for number, vote in enumerate(votes):
        if total <= 0:
            total = 0
            start = number
        total += vote
        if total > best:
            best = total
            run = (start, number + 1)
    return run
