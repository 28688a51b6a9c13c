"""The text of a request: units to translate, and what stays between them."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nmt.serving.tags import Element, find_words, link_words, place_tags
from nmt.text.processor import TextProcessor
from nmt.translation.translation import Translation

_LINE_END = re.compile(r"(\r\n|\n|\r)")


@dataclass(frozen=True)
class Unit:
    """A line, or running text with the tags inside it.

    Attributes:
        text: The text to translate, without tags and entities.
        before: White space before it.
        after: White space after it.
        elements: Its tags, in order; None if it is plain text, not HTML.
        opaque: Parts of the document that are words of the text but not translated, by the character of the private use
            area that stands for each.
    """

    text: str
    before: str = ""
    after: str = ""
    elements: Sequence[Element] | None = None
    opaque: Mapping[str, str] = field(default_factory=dict)

    def render(self, translation: Translation, processor: TextProcessor) -> str:
        """Its translation, in which nothing but its own tags can be read as HTML if it is HTML."""
        if self.elements is None:
            return translation.text
        num_src_words = len(find_words(self.text))
        tgt_words = find_words(translation.text)
        # Words that follow another one without a space between them, as in Japanese.
        joined = set()
        for number, (left, right) in enumerate(itertools.pairwise(tgt_words), 1):
            if left.end() == right.start():
                joined.add(number)
        links = link_words(self.text, translation, processor) if self.elements else ()
        text = place_tags(self.elements, links, num_src_words, [match[0] for match in tgt_words], joined)

        # Opaque parts take the places of their symbols; one whose symbol the model dropped comes last.
        for symbol, part in self.opaque.items():
            text = text.replace(symbol, part) if symbol in text else f"{text} {part}"
        return self.before + text + self.after


class Document:
    """A text whose units are translated.

    Args:
        parts: Units, and the text between them.
    """

    def __init__(self, parts: Sequence[str | Unit]) -> None:
        self._parts = parts
        self.texts = [part.text for part in parts if isinstance(part, Unit)]
        """The texts to translate, in order."""
        self.needs_alignment = any(isinstance(part, Unit) and part.elements for part in parts)
        """True if there are tags to place among the words of a translation."""

    def render(self, translations: Sequence[Translation], processor: TextProcessor) -> str:
        """The document with its texts translated.

        Args:
            translations: One for each of `texts`, with alignments if they are needed.
            processor: The text processor of the model.
        """
        remaining = iter(translations)
        return "".join(
            part if isinstance(part, str) else part.render(next(remaining), processor) for part in self._parts
        )


def read_plain_text(source: str) -> Document:
    """Split plain text into its lines; empty lines are kept as they are."""
    parts = _LINE_END.split(source)  # a line, its end, a line, ...
    return Document([Unit(part) if part.strip() else part for part in parts])
