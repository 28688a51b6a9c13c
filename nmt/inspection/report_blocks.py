"""The parts of a report besides paragraphs and tables, and its page."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, Self

from nmt.inspection.html_page import FOLDER, Page, fill_page
from nmt.system.tables import Table

Mark = Literal["same", "ins", "del"]
Piece = tuple[Mark, str]
"""Words that two texts share, that only the second has, or that only the first has."""


@dataclass(frozen=True)
class Figure:
    """A picture or a heat map; a weight has the same colour in every map.

    Attributes:
        caption: Its subject.
        html: The drawing, such as that of `make_html_heatmap`.
    """

    caption: str
    html: str

    @classmethod
    def of_png(cls, caption: str, png: bytes) -> Self:
        """A picture, which becomes part of the page."""
        return cls(caption, f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}" alt="">')


@dataclass(frozen=True)
class Sentence:
    """A sentence with its translations by systems.

    Attributes:
        note: Why it is shown, such as its BLEU.
        source: Its source.
        rows: A label and a text each; the words in which a text differs from the row before it are marked.
    """

    note: str
    source: str
    rows: Sequence[tuple[str, Sequence[Piece]]]


@dataclass(frozen=True)
class Preformatted:
    """Text with line breaks, such as a config."""

    content: str


Block = str | Table | Figure | Sentence | Preformatted


@dataclass(frozen=True)
class Chapter:
    """A part of a report.

    Attributes:
        title: Heading.
        blocks: Its content.
        folded: True if a reader has to open it.
    """

    title: str
    blocks: Sequence[Block]
    folded: bool = False


def mark_words(before: str, after: str) -> list[Piece]:
    """The words of `after`, and where they differ from those of `before`."""
    first = before.split()
    second = after.split()
    pieces: list[Piece] = []
    for kind, a, b, c, d in SequenceMatcher(a=first, b=second, autojunk=False).get_opcodes():
        marked: list[tuple[Mark, list[str]]] = [("del", first[a:b]), ("ins", second[c:d])]
        if kind == "equal":
            marked = [("same", second[c:d])]
        pieces += [(mark, " ".join(words)) for mark, words in marked if words]
    return pieces


def render(title: str, lead: Sequence[str], chapters: Sequence[Chapter]) -> Page:
    """The page: it has no script.

    Args:
        title: Heading.
        lead: Paragraphs that introduce the page.
        chapters: Its parts.
    """

    def kind(block: Block) -> str:
        return type(block).__name__

    files = [FOLDER / "tables.css", FOLDER / "report.css"]
    return fill_page(FOLDER / "report.html", title, files, inline=True, lead=lead, chapters=chapters, kind=kind)
