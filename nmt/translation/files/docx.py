"""Text documents of Word (DOCX): runs with other formats are tags inside a text; fields and tracked changes stay."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from nmt.translation.document import Aside, Document, Part, Segment, escape_markup
from nmt.translation.files.archive import Archive, Asides, unpack
from nmt.translation.files.file_format import Edit, FileFormat, Task, edit
from nmt.translation.files.xml_text import Node, read_xml
from nmt.translation.running_text import MAX_TAGS, Piece, make_segment

TITLE = "a DOCX file"
PREFIXES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
    "http://schemas.openxmlformats.org/officeDocument/2006/math": "m",
}
PARTS = re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml")
"""The parts with text: the comments of readers have none that is translated."""
AROUND = ("w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:sdt", "w:customXml", "w:dir", "w:bdo")
"""Elements around runs; deleted text is in others, and stays."""
ENDS = ("w:tab", "w:ptab", "w:br", "w:cr")
"""Elements that end running text."""
STATES = ("w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen")
"""Marks of how the earlier text was checked and laid out: a translation has none."""
WORDS = ("w:sym", "w:ruby", "m:oMath", "m:oMathPara")
"""Elements that are words, and not translated."""
_NAME = re.compile(r"<([^\s/>]*:)?")

Kind = Literal["text", "single", "opaque", "start", "end", "block", "state", "field"]


@dataclass
class Run:
    """The tags around the text of a run.

    Attributes:
        begin: Its start tag with its format.
        end: Its end tag.
        format: The format, by which runs are equal.
    """

    begin: str
    end: str
    format: str


@dataclass
class Atom:
    """A part of a paragraph.

    Attributes:
        kind: Its kind; `field` is a part of a field until the whole is found.
        begin: Its first character.
        end: The character after its last one.
        source: It as in the file.
        text: Its text.
        run: The run that it is in; None if it is in none.
        instruction: Of a part of a field: begin, separate, end, or instruction.
        inside: Of a start or end: the runs with the text between them.
        edges: The runs in which its first and its last character are; None where they are in none.
    """

    kind: Kind
    begin: int
    end: int
    source: str
    text: str = ""
    run: Run | None = None
    instruction: str = ""
    inside: Sequence[Run] = ()
    edges: tuple[Run | None, Run | None] = (None, None)

    @property
    def whole(self) -> str:
        """It with its run."""
        return self.source if self.run is None else f"{self.run.begin}{self.source}{self.run.end}"


def read(content: bytes, task: Task) -> Archive:
    """Read a document.

    python-docx writes the XML of each part that it has read anew: only texts are changed here, in their places.

    Raises:
        DataError: It is no DOCX file, or larger than allowed.
    """
    parts = unpack(content, task, TITLE)
    names = sorted(name for name in parts if PARTS.fullmatch(name))
    if not any(name.startswith("word/document") for name in names):
        raise task.refuse(f"is not {TITLE}: it has no text of one")
    documents: dict[str, Document] = {}
    encodings: dict[str, str] = {}
    for name in names:
        text, encodings[name], root = read_xml(parts[name], task, PREFIXES)
        reader = _Reader(text)
        documents[name] = edit(text, list(reader.edits(root)))
    return Archive(content, documents, encodings)


class _Reader:
    """Finds the texts of a part.

    Args:
        text: The part.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._asides = Asides(text)

    def edits(self, node: Node) -> Iterator[Edit]:
        """The changes of all paragraphs in an element, but for those in text boxes of others."""
        if node.name == "w:p":
            if node.inside < node.end:
                yield Edit(node.inside, node.outside, list(self._divide(node)))
            return
        for child in node.nodes:
            yield from self.edits(child)

    def _divide(self, paragraph: Node) -> Iterator[Part]:
        """The content of a paragraph as segments, and the markup between them."""
        for node in _outermost(paragraph, "w:p"):
            changes = list(self.edits(node))
            marker = self._asides.add(node)
            parts: list[Part] = [self._text[node.begin : changes[0].begin], *changes[0].parts] if changes else []
            position = changes[0].end if changes else node.begin
            yield Aside(marker, [*parts, self._text[position : node.end]])
        atoms = _join_fields(list(self._atoms(paragraph, None)))
        position = paragraph.inside
        for group in _groups(atoms):
            first, last = _inside(group)
            if first == last:
                continue
            for begin, end, segment in self._segments(group[first:last]):
                yield self._source(position, begin)
                yield segment
                position = end
        yield self._source(position, paragraph.outside)

    def _source(self, begin: int, end: int) -> str:
        return self._asides.source(begin, end)

    def _atoms(self, node: Node, run: Run | None) -> Iterator[Atom]:
        """The parts of a paragraph, or of an element in it, in order."""
        for child in node.nodes:
            source = self._source(child.begin, child.end)
            if child.name == "w:r":
                yield from self._atoms(child, self._run(child))
            elif child.name in ("w:pPr", "w:rPr", "w:sdtPr", "w:sdtEndPr"):
                continue
            elif child.name in AROUND and child.inside < child.end:
                yield from self._around(child)
            elif child.name == "w:t":
                is_preserved = child.attributes.get("xml:space") == "preserve"
                text = child.text if is_preserved else child.text.strip()
                yield Atom("text", child.begin, child.end, source, text, run, edges=(run, run))
            elif child.name in ("w:fldChar", "w:instrText"):
                kind = next((value for name, value in child.attributes.items() if name.endswith("fldCharType")), "")
                part = kind or "instruction"
                yield Atom("field", child.begin, child.end, source, child.text, run, part, edges=(run, run))
            else:
                yield Atom(_kind(child), child.begin, child.end, source, "", run, edges=(run, run))

    def _around(self, node: Node) -> Iterator[Atom]:
        """An element around runs; one in which running text ends does so itself."""
        inner = node.find("w:sdtContent") if node.name == "w:sdt" else node
        inner = inner or node
        atoms = _join_fields(list(self._atoms(inner, None)))
        is_apart = any(atom.kind == "block" for atom in atoms) or not any(atom.kind == "text" for atom in atoms)
        runs = [atom.run for atom in atoms if atom.kind == "text" and atom.run is not None]
        begin = Atom("start", node.begin, inner.inside, self._source(node.begin, inner.inside), inside=runs)
        end = Atom("end", inner.outside, node.end, self._source(inner.outside, node.end), inside=runs)
        if is_apart:
            begin.kind = end.kind = "block"
        yield begin
        yield from atoms
        yield end

    def _run(self, node: Node) -> Run:
        properties = node.find("w:rPr")
        look = self._text[properties.begin : properties.end] if properties else ""
        tag = self._text[node.begin : node.inside]
        return Run(tag + look, self._text[node.outside : node.end], look)

    def _segments(self, atoms: Sequence[Atom]) -> Iterator[tuple[int, int, Segment]]:
        """A running text as a segment with its place; with very many tags each text by itself."""
        whole = [atoms] if len(atoms) <= MAX_TAGS else [[atom] for atom in atoms if atom.kind == "text"]
        for part in whole:
            segment = self._segment(part)
            if segment is not None:
                yield part[0].begin, part[-1].end, segment

    def _segment(self, atoms: Sequence[Atom]) -> Segment | None:
        """A running text as a segment; None if it has no word."""
        outside = list(_outside(atoms))
        formats = Counter[str]()
        for atom in outside or atoms:
            if atom.run is not None and atom.kind == "text":
                formats[atom.run.format] += len(atom.text)
        runs = [atom.run for atom in atoms if atom.run is not None]
        if not formats or not runs:
            return None
        ((most, _),) = formats.most_common(1)
        base = next(run for run in runs if run.format == most)
        writer = _Writer(self._text, atoms, base)
        segment = make_segment(writer.pieces, escape_markup, writer.empty)
        if segment is None:
            return None
        original = self._source(atoms[0].begin, atoms[-1].end)
        before = writer.before + segment.before
        return dataclasses.replace(segment, before=before, after=segment.after + writer.after, original=original)


class _Writer:
    """Writes the parts of a running text as pieces, between tags that end a run and begin the next one.

    Args:
        text: The part of the file.
        atoms: The parts of the running text.
        base: The run that most of its text is in, which goes on wherever no other is.
    """

    def __init__(self, text: str, atoms: Sequence[Atom], base: Run) -> None:
        first_text = next(atom for atom in atoms if atom.kind == "text")
        match = _NAME.match(text, first_text.begin)
        prefix = (match[1] if match else None) or ""
        self._open = f'<{prefix}t xml:space="preserve">'
        self._close = f"</{prefix}t>"
        self.pieces: list[Piece] = []
        self._runs = [base]
        runs = [run for atom in atoms for run in (atom.run, *atom.edges, *atom.inside) if run is not None]
        begins = dict.fromkeys(run.begin + run.end for run in runs)
        self.empty = [self._open + self._close, *begins]
        """Tags that are left out around nothing."""
        self.before = self._enter(atoms[0], base)
        """Tags in front of the text."""
        self.after = self._leave(atoms[-1], base)
        """Tags behind it."""
        self._write(atoms)

    def _enter(self, atom: Atom, base: Run) -> str:
        run, _ = atom.edges
        if run is None:
            return base.begin + self._open
        return self._open if run.format == base.format else run.end + base.begin + self._open

    def _leave(self, atom: Atom, base: Run) -> str:
        _, run = atom.edges
        if run is None:
            return self._close + base.end
        return self._close if run.format == base.format else self._close + base.end + run.begin

    def _write(self, atoms: Sequence[Atom]) -> None:
        second: Run | None = None  # of another format, whose text goes on
        for atom in atoms:
            base = self._runs[-1]
            is_other = atom.run is not None and atom.run.format != base.format
            if second is not None and atom.kind != "state":
                goes_on = atom.kind == "text" and is_other and atom.run is not None and atom.run.format == second.format
                if not goes_on:
                    self.pieces.append(Piece(self._close + second.end + base.begin + self._open, "end"))
                    second = None
            match atom.kind:
                case "text":
                    if is_other and second is None and atom.run is not None:
                        second = atom.run
                        self.pieces.append(Piece(self._close + base.end + second.begin + self._open, "start"))
                    self.pieces.append(Piece(atom.text, "text", atom.source))
                case "start":
                    inner = atom.inside[0]
                    self.pieces.append(Piece(self._close + base.end + atom.source + inner.begin + self._open, "start"))
                    self._runs.append(inner)
                case "end":
                    inner = self._runs.pop()
                    base = self._runs[-1]
                    self.pieces.append(Piece(self._close + inner.end + atom.source + base.begin + self._open, "end"))
                case "single" | "opaque":
                    is_inside = atom.run is not None and not is_other
                    source = atom.source if is_inside else base.end + atom.whole + base.begin
                    self.pieces.append(Piece(self._close + source + self._open, atom.kind))
        if second is not None:
            base = self._runs[-1]
            self.pieces.append(Piece(self._close + second.end + base.begin + self._open, "end"))


def _outermost(node: Node, name: str) -> Iterator[Node]:
    """The elements of a name in an element, but for those in others of the name."""
    for child in node.nodes:
        if child.name == name:
            yield child
        else:
            yield from _outermost(child, name)


def _kind(node: Node) -> Kind:
    """The kind of an element in a paragraph."""
    if node.name in ENDS:
        return "block"
    if node.name in STATES:
        return "state"
    if node.name in WORDS:
        return "opaque"
    if node.name == "w:fldSimple":
        return "opaque"
    return "single"


def _join_fields(atoms: list[Atom]) -> list[Atom]:
    """The parts of a paragraph, in which a field is one word, or tags around its text if it is a link.

    A field that goes on in another paragraph ends running text.
    """
    joined: list[Atom] = []
    position = 0
    while position < len(atoms):
        atom = atoms[position]
        if atom.kind != "field":
            joined.append(atom)
            position += 1
            continue
        last = _end_of_field(atoms, position)
        if last is None:
            joined.append(dataclasses.replace(atom, kind="block"))
            position += 1
            continue
        joined += _make_field(atoms[position : last + 1])
        position = last + 1
    return joined


def _end_of_field(atoms: Sequence[Atom], begin: int) -> int | None:
    """The place of the end of a field that begins somewhere; None if it has none."""
    depth = 0
    if atoms[begin].instruction != "begin":
        return None
    for number in range(begin, len(atoms)):
        atom = atoms[number]
        if atom.kind == "block" or atom.kind in ("start", "end"):
            return None
        if atom.kind == "field":
            depth += {"begin": 1, "end": -1}.get(atom.instruction, 0)
            if depth == 0:
                return number
    return None


def _make_field(atoms: Sequence[Atom]) -> list[Atom]:
    """A field as a word that is not translated, or as tags around its text if it is a link."""
    instructions = "".join(atom.text for atom in atoms if atom.instruction == "instruction")
    separators = [number for number, atom in enumerate(atoms) if atom.instruction == "separate"]
    is_nested = sum(atom.instruction == "begin" for atom in atoms) > 1
    first = atoms[0]
    last = atoms[-1]
    if instructions.split()[:1] == ["HYPERLINK"] and len(separators) == 1 and not is_nested:
        lead = atoms[: separators[0] + 1]
        inner = atoms[separators[0] + 1 : -1]
        runs = [atom.run for atom in inner if atom.kind == "text" and atom.run is not None]
        if runs:
            source = "".join(atom.whole for atom in lead)
            begin = Atom("start", first.begin, lead[-1].end, source, inside=runs, edges=(first.run, lead[-1].run))
            end = Atom("end", last.begin, last.end, last.whole, inside=runs, edges=(last.run, last.run))
            return [begin, *inner, end]
    source = "".join(atom.whole for atom in atoms)
    return [Atom("opaque", first.begin, last.end, source, edges=(first.run, last.run))]


def _groups(atoms: Sequence[Atom]) -> Iterator[list[Atom]]:
    """Running texts: the parts between those that end them."""
    group: list[Atom] = []
    for atom in atoms:
        if atom.kind == "block":
            yield group
            group = []
        else:
            group.append(atom)
    yield group


def _inside(group: Sequence[Atom]) -> tuple[int, int]:
    """Where a running text begins and ends without the parts around its words, but with both tags of each pair."""
    words = []
    for number, atom in enumerate(group):
        is_text = atom.kind == "text" and bool(atom.text.strip())
        if is_text or atom.kind == "opaque":
            words.append(number)
    if not any(group[number].kind == "text" for number in words):
        return 0, 0
    first = words[0]
    last = words[-1] + 1
    pairs = _pairs(group)
    while True:
        outer = [pair for pair in pairs if (pair[0] < first <= pair[1] < last) or (first <= pair[0] < last <= pair[1])]
        if not outer:
            return first, last
        first = min(first, *(pair[0] for pair in outer))
        last = max(last, *(pair[1] + 1 for pair in outer))


def _pairs(group: Sequence[Atom]) -> list[tuple[int, int]]:
    """The places of start tags with those of their end tags."""
    pairs = []
    starts = []
    for number, atom in enumerate(group):
        if atom.kind == "start":
            starts.append(number)
        elif atom.kind == "end" and starts:
            pairs.append((starts.pop(), number))
    return pairs


def _outside(atoms: Sequence[Atom]) -> Iterator[Atom]:
    """Texts that are in no other element."""
    depth = 0
    for atom in atoms:
        depth += {"start": 1, "end": -1}.get(atom.kind, 0)
        if depth == 0 and atom.kind == "text":
            yield atom


DOCX = FileFormat("docx", (".docx", ".docm", ".dotx"), TITLE, read)
