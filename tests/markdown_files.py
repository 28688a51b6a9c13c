"""The Markdown files of the project, and the parts of them that people write."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (".github", "configs", "data/sample", "docs", "nmt", "notebooks", "scripts", "tests")
FILES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.md"))),
]
GENERATED = re.compile(r"^<!-- .*?^<!-- end[^\n]*", re.MULTILINE | re.DOTALL)
"""What a script writes, between two comments."""
QUOTED = re.compile(r"`[^`]+`|\*\S(?:[^*]*\S)?\*")
"""Code, and in italics words and examples that a sentence is about."""
BOUNDARY = re.compile(r"\n\s*\n|\n(?=#)|\n(?= *(?:-|\d+\.) )|\|")
"""Between paragraphs, headings, list items and cells of tables."""
MARK = re.compile(r"^(?:#+|-|\d+\.) ")
"""Of a heading or a list item."""


def without_code(text: str) -> str:
    """A text without its blocks of code, fenced or indented."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)


def prose(text: str) -> list[str]:
    """The headings, paragraphs, list items and cells of a text, each in one line, with `CODE` for what is quoted."""
    written = without_code(GENERATED.sub("", text)).replace("**", "")
    parts = BOUNDARY.split(QUOTED.sub("CODE", written))
    return [MARK.sub("", " ".join(part.split())) for part in parts]
