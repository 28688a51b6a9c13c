"""Text documents of LibreOffice (ODT): styles, fields, comments and tracked changes stay."""

from __future__ import annotations

from collections.abc import Iterator

from nmt.translation.document import Aside, Document, Part, escape_markup
from nmt.translation.files.archive import Archive, Asides, unpack
from nmt.translation.files.file_format import Edit, FileFormat, Task, edit
from nmt.translation.files.xml_text import Node, Text, read_xml
from nmt.translation.running_text import Piece, divide_text

TITLE = "an ODT file"
PREFIXES = {
    "urn:oasis:names:tc:opendocument:xmlns:text:1.0": "text",
    "urn:oasis:names:tc:opendocument:xmlns:office:1.0": "office",
    "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0": "draw",
}
PARTS = ("content.xml", "styles.xml")
"""The parts with text: styles have the headers and footers of pages."""
PARAGRAPHS = ("text:p", "text:h")
AROUND = ("text:span", "text:a", "text:meta", "text:meta-field")
"""Elements around words."""
ENDS = ("text:tab", "text:line-break")
"""Elements that end running text."""
UNTRANSLATED = ("text:tracked-changes", "office:annotation", "office:forms", "office:scripts")
"""Elements whose paragraphs are not translated: deleted text, comments of readers, programs."""
SPACES = ("text:s", "text:soft-page-break")


def read(content: bytes, task: Task) -> Archive:
    """Read a document.

    odfdo writes all XML anew: only texts are changed here, in their places.

    Raises:
        DataError: It is no ODT file, or larger than allowed.
    """
    parts = unpack(content, task, TITLE)
    kind = parts.get("mimetype", b"").strip()
    if PARTS[0] not in parts or (kind and not kind.startswith(b"application/vnd.oasis.opendocument.text")):
        raise task.refuse(f"is not {TITLE}: it has no text of one")
    documents: dict[str, Document] = {}
    encodings: dict[str, str] = {}
    for name in PARTS:
        if name in parts:
            text, encodings[name], root = read_xml(parts[name], task, PREFIXES)
            asides = Asides(text)
            documents[name] = edit(text, list(_edits(root, asides)))
    return Archive(content, documents, encodings)


def _edits(node: Node, asides: Asides) -> Iterator[Edit]:
    """The changes of all paragraphs in an element, but for those that others have in their tags."""
    if node.name in UNTRANSLATED:
        return
    if node.name in PARAGRAPHS:
        if node.inside < node.end:
            yield Edit(node.inside, node.outside, list(_divide(node, asides)))
        return
    for child in node.nodes:
        yield from _edits(child, asides)


def _divide(paragraph: Node, asides: Asides) -> Iterator[Part]:
    """The content of a paragraph as segments, and the markup between them."""
    for child in _with_paragraphs(paragraph):
        changes = list(_edits(child, asides))
        if changes:
            marker = asides.add(child)
            yield Aside(marker, _fill(child, changes, asides))
    yield from divide_text(list(_pieces(paragraph, asides)), escape_markup)


def _with_paragraphs(node: Node) -> Iterator[Node]:
    """The elements in a paragraph, the outermost, that hold paragraphs of their own."""
    for child in node.nodes:
        if child.name in AROUND:
            yield from _with_paragraphs(child)
        elif child.name not in UNTRANSLATED:
            yield child


def _fill(node: Node, changes: list[Edit], asides: Asides) -> list[Part]:
    """An element with other content at some places."""
    parts: list[Part] = []
    position = node.begin
    for begin, end, content in changes:
        parts += [asides.text[position:begin], *content]
        position = end
    return [*parts, asides.text[position : node.end]]


def _pieces(node: Node, asides: Asides) -> Iterator[Piece]:
    for child in node.children:
        source = asides.source(child.begin, child.end)
        if isinstance(child, Text):
            yield Piece(child.text, "text", source) if child.text else Piece(source, "single")
        elif child.name in AROUND and child.inside < child.end:
            yield Piece(asides.source(child.begin, child.inside), "start")
            yield from _pieces(child, asides)
            yield Piece(asides.source(child.outside, child.end), "end")
        elif child.name in ENDS:
            yield Piece(source, "block")
        elif child.name in SPACES:
            yield Piece(" " if child.name == "text:s" else "", "text", source)
        elif child.name == "text:ruby" or (child.name.startswith("text:") and _is_field(child)):
            yield Piece(source, "opaque")
        else:
            yield Piece(source, "single")


def _is_field(node: Node) -> bool:
    """True if an element has text, but no paragraph: a page number, a date, a reference."""
    return bool(node.text.strip()) and next(node.nodes, None) is None


ODT = FileFormat("odt", (".odt", ".ott"), TITLE, read)
