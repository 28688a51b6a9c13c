"""String tables in JSON: the strings of objects and lists are translated, keys and all layout stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial

from nmt.translation.files.encoded_text import EncodedText, decode
from nmt.translation.files.file_format import Edit, FileFormat, Task, edit
from nmt.translation.files.strings import divide_string

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
ABOUT = ("@", "$")
"""Beginnings of the keys that a table has for itself, as in ARB (`@@locale`) and JSON Schema (`$schema`)."""
MESSAGE = "message"
"""In a table of a browser extension, the key of the only text of an entry that is translated."""


def read(content: bytes, task: Task) -> EncodedText:
    """Read a table.

    json writes numbers, escapes and spaces anew: it only checks the file here, and each string is changed in its place.

    Raises:
        DataError: It is not JSON.
    """
    text, encoding = decode(content, task)
    table = text.removeprefix("\ufeff")
    try:
        root = json.loads(table) if table.strip() else None
    except json.JSONDecodeError as error:
        raise task.refuse(f"is not JSON: {error.msg}", error.lineno) from None
    except (RecursionError, ValueError) as error:
        raise task.refuse(f"is not JSON that can be read: {error}") from None
    is_extension = isinstance(root, dict) and all(
        isinstance(entry, dict) and isinstance(entry.get(MESSAGE), str) for entry in root.values()
    )
    edits = []
    for begin, end, path in _strings(text):
        is_about = any(key.startswith(ABOUT) for key in path)
        is_note = is_extension and path[1:] != [MESSAGE]
        if not is_about and not is_note:
            source = text[begin:end]
            parts = divide_string(json.loads(source), partial(_escape, like=source), "\\n")
            if any(not isinstance(part, str) for part in parts):
                edits.append(Edit(begin + 1, end - 1, parts))
    return EncodedText(edit(text, edits), task, encoding)


def _escape(value: str, like: str) -> str:
    """A text with the escapes that another string has: some programs write `\\/`, or only ASCII."""
    is_ascii = like.isascii() and "\\u" in like
    escaped = json.dumps(value, ensure_ascii=is_ascii)[1:-1]
    if re.search(r"\\u[0-9a-f]*[A-F]", like):
        escaped = re.sub(r"(?<=\\u)[0-9a-f]{4}", lambda match: match[0].upper(), escaped)
    return escaped.replace("/", "\\/") if "\\/" in like else escaped


def _strings(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """The place of each string that is a value, with the keys of the objects around it."""
    path: list[str | None] = []  # a key for each open object, None for a list
    key = ""
    is_key = False
    for token in _TOKEN.finditer(text):
        match token[0][0]:
            case "{":
                path.append("")
                is_key = True
            case "[":
                path.append(None)
                is_key = False
            case "}" | "]":
                path.pop()
                is_key = False
            case ",":
                is_key = path[-1] is not None
            case ":":
                path[-1] = key
                is_key = False
            case '"' if is_key:
                key = json.loads(token[0])
            case '"':
                yield token.start(), token.end(), [name for name in path if name is not None]


JSON_TABLE = FileFormat("json", (".json", ".arb"), "a JSON file", read)
