"""String tables in YAML: the strings are translated, and keys, comments, anchors and layout stay."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from functools import partial

from nmt.config.yaml_strings import YamlString, find_yaml_strings, is_plain_string
from nmt.system.errors import DataError
from nmt.translation.document import Part, Segment, keep_as_is
from nmt.translation.files.encoded_text import EncodedText, decode
from nmt.translation.files.file_format import Edit, FileFormat, Task, edit
from nmt.translation.files.strings import divide_lines, divide_string

_LINE = re.compile(r"([ \t]*)([^\n]*?)(\r?)$")


def read(content: bytes, task: Task) -> EncodedText:
    """Read a table.

    PyYAML loses comments and layout when it writes: it only says where each string is.

    Raises:
        DataError: It is not YAML.
    """
    text, encoding = decode(content, task)
    try:
        edits = [_edit(text, string) for string in find_yaml_strings(text)]
    except DataError as error:
        raise task.refuse(str(error)) from None
    return EncodedText(edit(text, [change for change in edits if change is not None]), task, encoding)


def _edit(text: str, string: YamlString) -> Edit | None:
    """The change of a string; None if it has nothing to translate."""
    if string.style in ("|", ">"):
        parts, begin = _divide_block(text, string)
    else:
        parts = _divide_flow(text, string)
        begin = string.begin
    if all(isinstance(part, str) for part in parts):
        return None
    return Edit(begin, string.end, parts)


def _divide_flow(text: str, string: YamlString) -> Sequence[Part]:
    """A string on one line, or folded over several."""
    source = text[string.begin : string.end]
    if string.style != '"' and "\n" not in string.value:
        (part,) = divide_string(string.value, keep_as_is, " ") or [""]
        if not isinstance(part, Segment):
            return [source]
        finish = _quote_singly if string.style == "'" else partial(_quote_if_needed, is_flow=string.is_flow)
        return [dataclasses.replace(part, finish=finish, original=source)]
    parts = list(divide_string(string.value, _escape, "\\n"))
    if len(parts) == 1 and isinstance(parts[0], Segment):
        return [dataclasses.replace(parts[0], finish=_quote, original=source)]
    return ['"', *parts, '"'] if any(not isinstance(part, str) for part in parts) else [source]


def _divide_block(text: str, string: YamlString) -> tuple[Sequence[Part], int]:
    """A string of whole lines, and where the first of them begins."""
    begin = text.find("\n", string.begin, string.end) + 1
    if begin == 0:
        return [], string.begin
    lines: list[tuple[str, str]] = []
    separator = ""
    indentation: int | None = None
    rows = text[begin : string.end].split("\n")
    for number, row in enumerate(rows):
        match = _LINE.match(row)
        assert match is not None
        space, line, end = match.groups()
        if indentation is None and line:
            indentation = len(space)
        # A line that begins further to the right is no running text where lines are folded.
        deeper = space[indentation:] if line else ""
        lines.append((separator + space.removesuffix(deeper), deeper + line))
        separator = f"{end}\n" if number < len(rows) - 1 else ""
    is_folded = string.style == ">" and not any(line[:1].isspace() for _, line in lines)
    first, line = lines[0]
    parts = divide_lines([("", line), *lines[1:]], keep_as_is, are_folded=is_folded)
    return [first, *parts], begin


def _escape(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _quote(escaped: str) -> str:
    return f'"{escaped}"'


def _quote_singly(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quote_if_needed(text: str, is_flow: bool) -> str:
    return text if is_plain_string(text, is_flow) else _quote(_escape(text))


YAML_TABLE = FileFormat("yaml", (".yaml", ".yml"), "a YAML file", read)
