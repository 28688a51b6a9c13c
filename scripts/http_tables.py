"""Generate the tables of fields in docs/reference/http.md from the types of requests and replies.

Usage: python scripts/http_tables.py [--write]
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from nmt.serving import http_schema
from nmt.system.files import write_text

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/http.md"
TABLE = re.compile(r"(?s)(?P<begin><!-- fields: (?P<name>\w+) -->).*?<!-- end -->")
REQUEST = ["| field | type | default | meaning |", "|---|---|---|---|"]
REPLY = ["| field | type | meaning |", "|---|---|---|"]


def with_tables(text: str) -> str:
    """Replace the table after each mark `<!-- fields: TYPE -->` by the current table."""
    return TABLE.sub(lambda mark: f"{mark['begin']}\n\n{markdown_table(mark['name'])}\n\n<!-- end -->", text)


def markdown_table(name: str) -> str:
    """The fields of a type of `http_schema`, in one Markdown table; only requests have defaults."""
    schema = TypeAdapter(getattr(http_schema, name)).json_schema()
    is_request = name.endswith("Request")
    lines = list(REQUEST if is_request else REPLY)
    for field, about in schema["properties"].items():
        cells = [f"`{field}`", type_of(about), about["description"]]
        if is_request:
            is_required = field in schema["required"]
            cells.insert(2, "required" if is_required else f"`{json.dumps(about['default'])}`")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def type_of(about: dict[str, Any]) -> str:
    """The type of a field in words."""
    if "anyOf" in about:
        kinds = [type_of(part) for part in about["anyOf"]]
        return " or ".join(kind for kind in kinds if kind != "null")
    if "$ref" in about:
        name = about["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in about:
        return " or ".join(f"`{value}`" for value in about["enum"])
    if about["type"] == "array":
        return f"list of {plural_of(type_of(about['items']))}"
    if about.get("format") == "binary":
        return "file"
    return str(about["type"])


def plural_of(kind: str) -> str:
    """The plural of a type in words."""
    first, mark, rest = kind.partition(" of ")
    return kind if kind.startswith("[") else f"{first}s{mark}{rest}"


def main() -> None:
    """Update the tables, or print the updated page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="change the page instead of printing it")
    text = with_tables(PAGE.read_text(encoding="utf-8"))
    if parser.parse_args().write:
        write_text(PAGE, text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
