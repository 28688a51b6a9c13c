"""XLIFF 1.2 and 2.0, the exchange formats of translators' programs: a translation is marked as not reviewed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nmt.system.errors import shorten
from nmt.text.languages import is_language
from nmt.translation.document import Part, escape_markup
from nmt.translation.files.encoded_text import EncodedText
from nmt.translation.files.file_format import Edit, FileFormat, Task, edit
from nmt.translation.files.xml_text import Node, Text, read_xml, set_attribute, unescape
from nmt.translation.running_text import Piece, divide_text, match_tags

PREFIXES = {
    "urn:oasis:names:tc:xliff:document:1.1": "",
    "urn:oasis:names:tc:xliff:document:1.2": "",
    "urn:oasis:names:tc:xliff:document:2.0": "",
    "urn:oasis:names:tc:xliff:document:2.1": "",
    "urn:oasis:names:tc:xliff:document:2.2": "",
}
AROUND = ("g", "mrk", "pc")
"""Elements around words."""
BEGINS = {"bpt": "ept", "bx": "ex", "sc": "ec", "sm": "em"}
"""Elements that begin a part of a text, and those that end it."""
STATE = "needs-review-translation"
SUB_STATE = "nmt:needs-review"
"""The state of a translation in 1.2 and in 2.0, where it has the prefix of a program."""
_NAME = re.compile(r"<([^\s/>]*:)?")


def read(content: bytes, task: Task) -> EncodedText:
    """Read a file of any version.

    Raises:
        DataError: It is not XLIFF.
    """
    text, encoding, root = read_xml(content, task, PREFIXES)
    if root.name != "xliff":
        raise task.refuse(f"its root is {shorten(root.name)}, not xliff")
    is_old = root.find("file") is None or not root.attributes.get("version", "1").startswith("2")
    edits = list(_edit_old(text, root, task) if is_old else _edit_new(text, root, task))
    return EncodedText(edit(text, sorted(edits)), task, encoding)


def _edit_old(text: str, root: Node, task: Task) -> Iterator[Edit]:
    """The changes of a file of version 1.2."""
    for file in _children(root, "file"):
        _check_languages(
            file.attributes.get("source-language"), file.attributes.get("target-language"), file, text, task
        )
        if "target-language" not in file.attributes and task.target:
            tag = set_attribute(text[file.begin : file.inside], "target-language", task.target)
            yield Edit(file.begin, file.inside, [tag])
        for unit, is_on in _units(file, "trans-unit", task):
            source = unit.find("source")
            if is_on and source is not None:
                parsed = unit.find("seg-source") or source
                is_preserved = unit.attributes.get("xml:space") == "preserve"
                mark = {"state": STATE}
                yield from _edit_target(text, unit, source, parsed, mark, task, is_preserved)


def _edit_new(text: str, root: Node, task: Task) -> Iterator[Edit]:
    """The changes of a file of version 2."""
    _check_languages(root.attributes.get("srcLang"), root.attributes.get("trgLang"), root, text, task)
    if "trgLang" not in root.attributes and task.target:  # which a file with translations must have
        yield Edit(root.begin, root.inside, [set_attribute(text[root.begin : root.inside], "trgLang", task.target)])
    for file in _children(root, "file"):
        for unit, is_on in _units(file, "unit", task):
            for segment in unit.nodes:
                source = segment.find("source")
                if segment.name == "segment" and is_on and source is not None:
                    is_preserved = "preserve" in (unit.attributes.get("xml:space"), source.attributes.get("xml:space"))
                    edits = list(_edit_target(text, segment, source, source, {}, task, is_preserved))
                    if edits:
                        tag = set_attribute(text[segment.begin : segment.inside], "state", "translated")
                        tag = set_attribute(tag, "subState", SUB_STATE)
                        yield Edit(segment.begin, segment.inside, [tag])
                    yield from edits


def _children(node: Node, name: str) -> Iterator[Node]:
    return (child for child in node.nodes if child.name == name)


def _check_languages(source: str | None, target: str | None, node: Node, text: str, task: Task) -> None:
    """Refuse a file that is for other languages than the model.

    Raises:
        DataError: It is.
    """
    for stated, wanted in ((source, task.source), (target, task.target)):
        if stated and wanted and not (is_language(stated, wanted) or is_language(wanted, stated)):
            line = 1 + text.count("\n", 0, node.begin)
            pair = f"{shorten(source or '?')} to {shorten(target or '?')}"
            raise task.refuse(f"is for {pair}, but the model translates {task.source} to {task.target}", line)


def _units(node: Node, name: str, task: Task, is_on: bool = True) -> Iterator[tuple[Node, bool]]:
    """The units in an element, each with true if it is translated."""
    is_on = {"no": False, "yes": True}.get(node.attributes.get("translate", ""), is_on)
    for child in node.nodes:
        if child.name == name:
            stated = child.attributes.get("translate", "")
            is_done = child.attributes.get("approved") == "yes" and not task.retranslate
            yield child, {"no": False, "yes": True}.get(stated, is_on) and not is_done
        elif child.name in ("group", "body"):
            yield from _units(child, name, task, is_on)


def _edit_target(
    text: str, unit: Node, source: Node, parsed: Node, mark: dict[str, str], task: Task, is_preserved: bool
) -> Iterator[Edit]:
    """Translate a text, unless it has a translation.

    Args:
        text: The file.
        unit: The element around the text.
        source: The element with the text.
        parsed: The element with the text in segments, or the same.
        mark: Attributes of the target.
        task: The purpose of the translation.
        is_preserved: True if line ends of the text have a meaning.
    """
    target = unit.find("target")
    if target is not None and text[target.inside : target.outside].strip() and not task.retranslate:
        return
    pieces = list(_pieces(text, parsed, is_preserved))
    match_tags(pieces)
    parts: list[Part] = list(divide_text(pieces, escape_markup))
    if all(isinstance(part, str) for part in parts) and not any(piece.content.strip() for piece in pieces):
        return
    written = _NAME.match(text, source.begin)
    prefix = written[1] if written else None
    tag_name = f"{prefix or ''}target"
    if target is None:
        tag = f"<{tag_name}>"
        for attribute, value in mark.items():
            tag = set_attribute(tag, attribute, value)
        before = text[text.rfind("\n", 0, source.begin) + 1 : source.begin]
        lead = f"\n{before}" if not before.strip() and "\n" in text else ""
        lead = lead.replace("\n", "\r\n") if "\r\n" in text else lead
        place = parsed.end if parsed is not source else source.end
        yield Edit(place, place, [lead, tag, *parts, f"</{tag_name}>"])
        return
    tag = text[target.begin : target.inside]
    if tag.endswith("/>"):
        tag = f"{tag[:-2].rstrip()}>"
    for attribute, value in mark.items():
        tag = set_attribute(tag, attribute, value)
    yield Edit(target.begin, target.end, [tag, *parts, f"</{tag_name}>"])


def _pieces(text: str, node: Node, is_preserved: bool) -> Iterator[Piece]:
    """The content of an element as pieces."""
    ends = {name: begin for begin, name in BEGINS.items()}
    for child in node.children:
        source = text[child.begin : child.end]
        if isinstance(child, Text):
            yield from _lines(child, is_preserved)
            continue
        is_hidden = child.attributes.get("translate") == "no" or child.attributes.get("mtype") == "protected"
        key = child.attributes.get("rid") or child.attributes.get("id", "")
        if is_hidden:
            yield Piece(source, "opaque")
        elif child.name in AROUND and child.inside < child.end:
            is_sentence = child.attributes.get("mtype") == "seg"
            yield Piece(text[child.begin : child.inside], "block" if is_sentence else "start", name=child.name)
            yield from _pieces(text, child, is_preserved)
            yield Piece(text[child.outside : child.end], "block" if is_sentence else "end", name=child.name)
        elif child.name in BEGINS:
            yield Piece(source, "start", name=f"{child.name} {key}")
        elif child.name in ends:
            key = child.attributes.get("startRef") or key
            yield Piece(source, "end", name=f"{ends[child.name]} {key}")
        else:
            yield Piece(source, "single")


def _lines(child: Text, is_preserved: bool) -> Iterator[Piece]:
    """A text as pieces, a line each if line ends have a meaning."""
    if not child.text:
        yield Piece(child.source, "single")
    elif not is_preserved or child.source.startswith("<"):
        yield Piece(child.text, "text", child.source)
    else:
        for number, line in enumerate(child.source.split("\n")):
            if number:
                yield Piece("\n", "block")
            if line:
                yield Piece(unescape(line), "text", line)


XLIFF = FileFormat("xliff", (".xlf", ".xliff"), "an XLIFF file", read)
