"""Markdown: marks, links, code, tables, front matter and layout stay."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nmt.translation.document import Part, escape_markup
from nmt.translation.files.encoded_text import EncodedText, decode
from nmt.translation.files.file_format import Edit, FileFormat, Task, edit
from nmt.translation.files.web_page import read_pieces
from nmt.translation.hypertext import VOID
from nmt.translation.running_text import Piece, divide_text, match_tags

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\ufeff?(---|\+\+\+)[ \t]*\r?\n.*?^(?:\1|\.\.\.)[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_LINK_END = r"\]\((?:[^()\s\\]|\\.|\([^()\s]*\))*(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)|\]\[[^\[\]]*\]"
_NO_TEXT = r"^\[\^[^\]\s]+\]:\s*|^\[[ xX]\]\s+|^:::[^\n]*$|^\{[:%][^\n]*\}\s*$"
"""The label of a footnote or a box in front of a text; a line that is no text: a container, attributes."""
_INLINE = re.compile(
    rf"(?P<label>{_NO_TEXT})|"
    r"(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<footnote>\[\^[^\]\s]+\])"
    rf"|(?P<image>!\[[^\[\]]*(?:{_LINK_END}))"
    rf"|(?P<link_end>{_LINK_END})"
    rf"|(?P<link>\[(?=(?:[^\[\]]|\[[^\[\]]*\](?:\([^()\s]*\))?)*(?:{_LINK_END})))"
    r"|(?P<shortcut>\[(?P<name_of_link>[^\[\]]+)\])"
    r"|(?P<address><[A-Za-z][\w+.-]*:[^<>\s]*>|<[\w.+-]+@[\w.-]+>)"
    r"|(?P<comment><!--.*?-->)"
    r"|(?P<tag><(?P<slash>/?)(?P<name>[A-Za-z][\w-]*)(?:\s[^<>]*)?(?P<single>/?)>)"
    r"|(?P<math>\$(?=\S)[^$\n]+(?<=\S)\$(?!\d))"
    r"|(?P<entity>&(?:#\d+|#[xX][0-9A-Fa-f]+|[A-Za-z]\w*);)"
    r"|(?P<mark>\*\*\*|\*\*|\*|(?<!\w)___?|(?<!\w)_|___?(?!\w)|_(?!\w)|~~)"
    r"|(?P<line_end>\n)",
    re.DOTALL | re.MULTILINE,
)
LONGEST = 50_000
"""Characters of a paragraph; a longer one is no text of a person, and stays."""
_HARD_BREAK = re.compile(r"(?:  +|\\)$")
_TO_ESCAPE = re.compile(r"[\\`*<]|(?<!\w)_|_(?!\w)|^[-+=]$|^#+$")


def read(content: bytes, task: Task) -> EncodedText:
    """Read a file.

    markdown-it-py says which lines are text; nothing writes Markdown as it was, so that texts are changed in place.

    Raises:
        DataError: It is not UTF-8.
    """
    from markdown_it import MarkdownIt

    text, encoding = decode(content, task)
    matter = _FRONT_MATTER.match(text)
    blank = ""
    if matter is not None:
        blank = "\n" * matter[0].count("\n")
    body = blank + text[matter.end() if matter else 0 :]
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable(["table", "strikethrough"])
    surroundings: dict[str, Any] = {}
    tokens = parser.parse(body.replace("\r\n", "\n"), surroundings)
    labels = set(surroundings.get("references", ()))
    return EncodedText(edit(text, sorted(_edits(text, tokens, labels), key=_begin)), task, encoding)


def _begin(change: Edit) -> int:
    return change.begin


def _edits(text: str, tokens: Sequence[Token], labels: Collection[str]) -> Iterator[Edit]:
    """The changes of all texts.

    Args:
        text: The file.
        tokens: The parser's tokens.
        labels: Those that a link may have in place of an address, in capitals.
    """
    begins = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    position = 0  # of the cell of a table before
    is_cell = False
    for token in tokens:
        if token.type in ("td_open", "th_open"):
            is_cell = True
        if token.map is None:
            continue
        first, last = token.map
        begin = begins[min(first, len(begins) - 1)]
        end = begins[min(last, len(begins) - 1)]
        if token.type == "html_block":
            parts = divide_text(read_pieces(text[begin:end]), escape_markup)
            yield Edit(begin, end, parts)
        elif token.type == "inline":
            places = _find_lines(text, token.content, max(begin, position), end)
            if places and len(token.content) <= LONGEST:
                yield Edit(places[0][0], places[-1][1], _divide(text, places, labels, is_cell))
                position = places[-1][1]
            is_cell = False


def _find_lines(text: str, content: str, begin: int, end: int) -> list[tuple[int, int]]:
    """The places of the lines of a text, without the marks of lists and quotations in front of them.

    Empty if a line is not found as it is, as with a vertical bar in a table.
    """
    places = []
    position = begin
    for line in content.split("\n"):
        wanted = line.strip()
        if not wanted:
            continue
        place = text.find(wanted, position, end)
        if place < 0:
            return []
        position = place + len(wanted)
        places.append((place, position))
    return places


def _divide(text: str, places: Sequence[tuple[int, int]], labels: Collection[str], is_cell: bool) -> list[Part]:
    """The lines of a text as segments, and the markup between them."""
    lines = [text[begin:end] for begin, end in places]
    between = [text[end:begin] for (_, end), (begin, _) in itertools.pairwise(places)]
    pieces = list(_pieces("\n".join(lines), between, labels))
    match_tags(pieces)
    return list(divide_text(pieces, _escape_cell if is_cell else _escape))


def _pieces(content: str, between: Sequence[str], labels: Collection[str]) -> Iterator[Piece]:
    """A text as pieces.

    Args:
        content: The text, with a line feed between its lines.
        between: The text between its lines in the file.
        labels: Those that a link may have in place of an address, in capitals.
    """
    unclosed: list[str] = []
    position = 0
    for match in _INLINE.finditer(content):
        yield from _text(content, position, match.start())
        source = _source(content, match.start(), match.end(), between)
        match match.lastgroup:
            case "line_end":
                is_hard = _HARD_BREAK.search(content[: match.start()]) or _HARD_BREAK.search(
                    source.split("\n")[0].rstrip("\r")
                )
                yield Piece(source, "block" if is_hard else "break")
            case "label":  # no text of a sentence
                yield Piece(source, "block")
            case "mark":
                yield _mark(match, content, unclosed)
            case "shortcut" if " ".join(match["name_of_link"].split()).upper() in labels:
                yield Piece("[", "start", name="]")
                yield from _pieces(match["name_of_link"], [], ())
                yield Piece(f"][{match['name_of_link']}]", "end", "]", name="]")
            case "shortcut":
                yield Piece(source, "text", source)
            case _:
                yield _piece(match, source)
        position = match.end()
    yield from _text(content, position, len(content))


def _source(content: str, begin: int, end: int, between: Sequence[str]) -> str:
    """A part of a text as the file has it."""
    first, *others = content[begin:end].split("\n")
    number = content.count("\n", 0, begin)
    return first + "".join(gap + line for gap, line in zip(between[number:], others, strict=False))


def _text(content: str, begin: int, end: int) -> Iterator[Piece]:
    """Plain text; a backslash at the end of a line breaks it."""
    text = content[begin:end]
    is_hard = text.endswith("\\") and content[end : end + 1] == "\n"
    if is_hard:
        text = text[:-1]
    if text:
        yield Piece(text, "text", text)
    if is_hard:
        yield Piece("\\", "block")


def _mark(match: re.Match[str], line: str, unclosed: list[str]) -> Piece:
    """A mark around words; one between spaces is text."""
    mark = match[0]
    closes = match.start() > 0 and not line[match.start() - 1].isspace()
    opens = bool(line[match.end() : match.end() + 1].strip())
    if closes and mark in unclosed:
        unclosed.remove(mark)
        return Piece(mark, "end", name=mark)
    if opens:
        unclosed.append(mark)
        return Piece(mark, "start", name=mark)
    return Piece(mark, "single") if closes else Piece(mark, "text", mark)


def _piece(match: re.Match[str], source: str) -> Piece:
    """Another part of a text that is no plain text."""
    match match.lastgroup:
        case "code" | "address" | "math":
            return Piece(source, "opaque")
        case "escape":
            return Piece(match[0][1:], "text", source)
        case "entity":
            return Piece(html.unescape(match[0]), "text", source)
        case "link":
            return Piece(source, "start", name="]")
        case "link_end":
            return Piece(source, "end", name="]")
        case "tag" if match["slash"]:
            return Piece(source, "end", name=match["name"].lower())
        case "tag" if not (match["single"] or match["name"].lower() in VOID):
            return Piece(source, "start", name=match["name"].lower())
        case _:
            return Piece(source, "single")


def _escape(text: str) -> str:
    return _TO_ESCAPE.sub(lambda match: "\\" + match[0], text)


def _escape_cell(text: str) -> str:
    return _escape(text).replace("|", "\\|")


MARKDOWN = FileFormat("md", (".md", ".markdown"), "a Markdown file", read, ("markdown_it", "markdown-it-py"))
