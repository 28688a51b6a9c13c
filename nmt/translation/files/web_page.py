"""HTML files: tags, attributes, comments and scripts stay byte for byte."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

from nmt.translation.document import Document, escape_markup
from nmt.translation.files.encoded_text import MARKS, EncodedText, decode
from nmt.translation.files.file_format import FileFormat, Task
from nmt.translation.hypertext import ANNOTATION, INLINE, PICTURES, VOID, is_untranslated, join_footnotes
from nmt.translation.running_text import Kind, Piece, divide_text, match_tags

_CHARSET = re.compile(rb"<meta\b[^>]*?\bcharset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
HEAD = 1024
"""Bytes of a file in which its encoding is declared (HTML, 13.2.3.2)."""


def read(content: bytes, task: Task) -> EncodedText:
    """Read a page, or a piece of one.

    Raises:
        DataError: It has no tag, or bytes that are not in its encoding.
    """
    declared = _CHARSET.search(content[:HEAD])
    encoding = declared[1].decode() if declared else "utf-8"
    if any(content.startswith(mark) for mark in MARKS) or not _is_known(encoding):
        encoding = "utf-8"
    text, encoding = decode(content, task, encoding)
    return EncodedText(Document(divide_text(read_pieces(text), escape_markup)), task, encoding)


def _is_known(encoding: str) -> bool:
    """True if Python knows an encoding that contains ASCII, as one that a tag declares must."""
    try:
        return "<meta>".encode(encoding) == b"<meta>"
    except LookupError:
        return False


def read_pieces(text: str) -> list[Piece]:
    """The pieces of a page; their sources are the page.

    The server's reader of requests, which is that of lxml, repairs pages and writes their tags anew: this one takes
    tags as they are, and matches those that belong together.
    """
    reader = _Tokens(text)
    reader.feed(text)
    reader.close()
    reader.finish()
    match_tags(reader.pieces)
    return list(join_footnotes(reader.pieces))


class _Tokens(HTMLParser):
    """Receives tags and text in order, each of which ends where the next one begins."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.pieces: list[Piece] = []
        self._text = text
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._begin = 0
        self._kind: Kind = "block"
        self._name = ""
        self._hidden: list[str] = []  # open elements whose text is not translated, of the same name as the first
        self._hidden_begin = 0
        self._hidden_kind: Kind = "block"

    def _token(self, kind: Kind, name: str = "") -> None:
        """A token begins, so that the one before it ends."""
        line, column = self.getpos()
        place = self._lines[line - 1] + column
        self._end(place)
        self._begin = place
        self._kind = kind
        self._name = name

    def _end(self, place: int) -> None:
        source = self._text[self._begin : place]
        if not source or self._hidden:
            return
        if self._kind == "text":
            last = self.pieces[-1] if self.pieces else None
            if last is not None and last.kind == "text" and last.original is not None:
                last.original += source
                last.content = html.unescape(last.original)
            else:
                self.pieces.append(Piece(html.unescape(source), "text", source))
        else:
            self.pieces.append(Piece(source, self._kind, name=self._name))

    def finish(self) -> None:
        """The end of the page."""
        if self._hidden:
            self._hidden.clear()
            self._begin = self._hidden_begin
            self._kind = self._hidden_kind
        self._end(len(self._text))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        opens = tag not in VOID
        if self._hidden:
            if opens and tag == self._hidden[0]:
                self._hidden.append(tag)
            return
        if opens and is_untranslated(tag, {name: value or "" for name, value in attributes}):
            inline: Kind = "single" if tag in ANNOTATION | PICTURES else "opaque"
            self._hidden_kind = inline if tag in INLINE else "block"
            self._token(self._hidden_kind)
            self._hidden_begin = self._begin
            self._hidden.append(tag)
            return
        inline_kind: Kind = "start" if opens else "single"
        self._token(inline_kind if tag in INLINE else "block", tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in VOID or tag not in INLINE:
            self.handle_starttag(tag, attributes)
        else:
            self._token("single")

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            if tag == self._hidden[0]:
                self._hidden.pop()
            if not self._hidden:
                # The element is one piece, which goes on to the next token.
                self._begin = self._hidden_begin
                self._kind = self._hidden_kind
            return
        self._token("end" if tag in INLINE else "block", tag)

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._token("text")

    def handle_entityref(self, name: str) -> None:
        if not self._hidden:
            self._token("text")

    def handle_charref(self, name: str) -> None:
        if not self._hidden:
            self._token("text")

    def handle_comment(self, data: str) -> None:
        if not self._hidden:
            self._token("single")

    def handle_decl(self, decl: str) -> None:
        if not self._hidden:
            self._token("block")

    def handle_pi(self, data: str) -> None:
        if not self._hidden:
            self._token("single")

    def unknown_decl(self, data: str) -> None:
        if not self._hidden:
            self._token("single")


WEB_PAGE = FileFormat("html", (".html", ".htm", ".xhtml"), "an HTML file", read)
