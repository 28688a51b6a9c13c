"""XML as a tree in which every element knows its place in the text, so that only texts are changed.

A parser that writes XML, such as lxml, changes quotes, entities and spaces in tags: here expat only checks it.
"""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from nmt.system.errors import shorten
from nmt.translation.files.encoded_text import MARKS, decode
from nmt.translation.files.file_format import Task

MAX_DEPTH = 200
"""Elements that are open at once."""
_DECLARED = re.compile(rb"<\?xml\s[^>]*?\sencoding\s*=\s*[\"']([^\"'<>]*)[\"']")
_TOKEN = re.compile(
    r"""(?P<text>[^<]+)|(?P<other><!--.*?-->|<\?.*?\?>|<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>)|(?P<cdata><!\[CDATA\[.*?\]\]>)"""
    r"""|(?P<end></[^>]*>)|(?P<start><(?:[^>"']|"[^"]*"|'[^']*')*>)""",
    re.DOTALL,
)
_NAME = re.compile(r"</?([^\s/>]+)")
_ATTRIBUTE = re.compile(r"""([^\s=<>"'/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
# References of XML itself; html.unescape would read &eacute; and &copy without a semicolon too.
_REFERENCE = re.compile(r"&(?:#[0-9]+|#x[0-9A-Fa-f]+|amp|lt|gt|quot|apos);")


@dataclass
class Text:
    """A part of the content of an element that is no element.

    Attributes:
        begin: Its first character.
        end: The character after its last one.
        text: The text; empty for a comment or an instruction.
        source: It as in the file.
    """

    begin: int
    end: int
    text: str
    source: str


@dataclass
class Node:
    """An element.

    Attributes:
        name: Its name; a known namespace has the prefix that the reader chose, whatever that of the file is.
        attributes: Values by name, with the prefixes of the file.
        begin: First character of its start tag.
        inside: First character of its content.
        outside: The character after its content; for a tag without content, as `inside`.
        end: The character after its end tag.
        children: Its content, in order.
    """

    name: str
    attributes: dict[str, str]
    begin: int
    inside: int
    outside: int = 0
    end: int = 0
    children: list[Node | Text] = field(default_factory=list)

    @property
    def nodes(self) -> Iterator[Node]:
        """The elements in it, not those in them."""
        return (child for child in self.children if isinstance(child, Node))

    def find(self, name: str) -> Node | None:
        """Its first element of a name."""
        return next((node for node in self.nodes if node.name == name), None)

    def walk(self) -> Iterator[Node]:
        """It and all elements in it, in order."""
        yield self
        for node in self.nodes:
            yield from node.walk()

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(child.text for child in self.children)


def read_xml(content: bytes, task: Task, prefixes: Mapping[str, str] | None = None) -> tuple[str, str, Node]:
    """The text of a file, its encoding, and its root.

    Args:
        content: The file.
        task: The purpose of the translation.
        prefixes: The prefix for names of a namespace, empty for none; others keep that of the file.

    Raises:
        DataError: It is not XML, declares entities, or has very many elements inside each other.
    """
    marked = any(content.startswith(mark) for mark in MARKS)
    declared = None if marked else _DECLARED.match(content)
    encoding = declared[1].decode("ascii", "replace") if declared else "utf-8"
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise task.refuse(f"declares the encoding {shorten(encoding)}, which is unknown; convert it to UTF-8") from None
    text, encoding = decode(content, task, encoding)
    _check(text, task)
    return text, encoding, _build(text, dict(prefixes or {}))


def _check(text: str, task: Task) -> None:
    """Let the parser of Python's library check a text.

    Raises:
        DataError: It is not XML, declares entities, or is too deep.
    """
    parser = expat.ParserCreate("utf-8")
    depth = 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise task.refuse(f"more than {MAX_DEPTH} elements inside each other", parser.CurrentLineNumber)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(name: str, *_: object) -> None:
        problem = f"declares the entity {shorten(name)!r}; write out its text instead"
        raise task.refuse(problem, parser.CurrentLineNumber)

    def refuse_entity(name: str, is_parameter: bool) -> None:
        if not is_parameter:
            problem = f"uses the entity {shorten(name)!r}, which it does not declare; write out its text instead"
            raise task.refuse(problem, parser.CurrentLineNumber)

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.EntityDeclHandler = refuse
    parser.SkippedEntityHandler = refuse_entity
    try:
        parser.Parse(text.removeprefix("\ufeff").encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise task.refuse(f"is not XML: {expat.ErrorString(error.code)}", error.lineno) from None


def _build(text: str, prefixes: Mapping[str, str]) -> Node:
    """The root of a text that has been checked."""
    root = Node("", {}, 0, 0)
    path = [root]
    namespaces: list[dict[str, str]] = [{}]  # prefix in the file to prefix of the reader
    for token in _TOKEN.finditer(text):
        begin, end = token.span()
        source = token[0]
        match token.lastgroup:
            case "text":
                path[-1].children.append(Text(begin, end, unescape(source), source))
            case "cdata":
                path[-1].children.append(Text(begin, end, source[len("<![CDATA[") : -len("]]>")], source))
            case "other":
                path[-1].children.append(Text(begin, end, "", source))
            case "start":
                attributes = {name: unescape(a or b) for name, a, b in _ATTRIBUTE.findall(source)}
                known = _known(namespaces[-1], attributes, prefixes)
                node = Node(_rename(source, known), attributes, begin, end)
                path[-1].children.append(node)
                if source.endswith("/>"):
                    node.outside = node.end = end
                else:
                    path.append(node)
                    namespaces.append(known)
            case _:
                node = path.pop()
                namespaces.pop()
                node.outside = begin
                node.end = end
    return next(root.nodes)


def _known(outer: dict[str, str], attributes: Mapping[str, str], prefixes: Mapping[str, str]) -> dict[str, str]:
    """The prefixes in an element: those around it, and those that it declares."""
    declared = {
        name.removeprefix("xmlns").removeprefix(":"): value
        for name, value in attributes.items()
        if name == "xmlns" or name.startswith("xmlns:")
    }
    if not declared:
        return outer
    return outer | {prefix: prefixes.get(uri, prefix) for prefix, uri in declared.items()}


def _rename(tag: str, known: Mapping[str, str]) -> str:
    match = _NAME.match(tag)
    prefix, _, local = (match[1] if match else "").rpartition(":")
    prefix = known.get(prefix, prefix)
    return f"{prefix}:{local}" if prefix else local


def unescape(source: str) -> str:
    """A text of XML without references."""
    return _REFERENCE.sub(lambda match: html.unescape(match[0]), source) if "&" in source else source


def set_attribute(tag: str, name: str, value: str) -> str:
    """A start tag with a value for an attribute, which it may have already."""
    escaped = html.escape(value)
    pattern = rf"""(\s{re.escape(name)}\s*=\s*)(?:"[^"]*"|'[^']*')"""
    if re.search(pattern, tag):
        return re.sub(pattern, lambda match: f'{match[1]}"{escaped}"', tag, count=1)
    close = "/>" if tag.endswith("/>") else ">"
    return f'{tag[: -len(close)].rstrip()} {name}="{escaped}"{close}'
