"""Words that the project's English does without, in strings and Markdown files; the reasons are in CONTRIBUTING."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_files import FILES, ROOT, prose

PACKAGE = ROOT / "nmt"
SUBSTITUTIONS = {
    r"(?m)(?:^|: )Whether\b(?! to)": "True if",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"; put\b|\bput (?:null|it|them|the|a)\b": "set",
    r"\balone(?=[.,;:)]|$)": "only",
    r"\b(?:is|are|was|were) said\b": "is reported",
    r"\bin order to\b": "to",
    r"\b[Uu]tili[sz]e": "use",
    r"\be\.g\.|\bi\.e\.|\betc\.": "such as, that is, and so on",
    r"\b[Pp]lease\b": "nothing",
    r"\b[Ss]imply\b": "nothing",
    r"\b[Vv]ia\b": "by or through",
    r"\b[Dd]ue to\b": "because of",
    r"\b[Pp]rior to\b": "before",
    r"\bis able to\b": "can",
    r"\bupon\b": "on",
}
"""What is refused, and what stands there instead."""
ALLOWED = {
    "pairs alone": "a label: the pairs by themselves, beside the same pairs with synthetic ones",
    "Please send our grandmother the books! / Bitte schicke unserer Großmutter die Bücher!": "a pair of the sample",
}
"""Strings, and paragraphs or cells of Markdown, that may hold such words, with the reasons."""


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each string of a module that has several words: docstrings, messages and help."""
    for node in ast.walk(ast.parse(source)):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        if is_text and node.value not in ALLOWED:  # type: ignore[attr-defined]
            yield node.lineno, node.value  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def texts_of_the_package() -> list[tuple[str, str]]:
    """Place and text of each such string of the package."""
    return [
        (f"nmt/{path.relative_to(PACKAGE).as_posix()}:{line}", text)
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in texts(path.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("Whether it is so.", True),
        ("Args:\n    frozen: Whether weights change.", True),
        ("Find out whether it is so.", False),
        ("no part of it; put null", True),
        ("output", False),
        ("counted on the training split alone.", True),
        ("each sentence alone in its batch", False),
        ("the format is said first", True),
        ("via the server", True),
    ],
)
def test_a_word_is_recognised(text: str, is_refused: bool) -> None:
    assert any(re.search(pattern, text) for pattern in SUBSTITUTIONS) == is_refused


@pytest.mark.parametrize("pattern", SUBSTITUTIONS)
def test_strings_of_the_package_say_it_plainly(pattern: str, texts_of_the_package: list[tuple[str, str]]) -> None:
    found = [
        f"{place}: {match[0]!r} in {text[:60]!r}"
        for place, text in texts_of_the_package
        for match in re.finditer(pattern, text)
    ]
    assert found == [], f"write: {SUBSTITUTIONS[pattern]}"


def test_prose_is_what_people_write() -> None:
    text = (
        "# A title\n\nA paragraph\nin `two\nlines` about *via*.\n- an item\n- **another**\n\n    indented via\n"
        "| cell | text |\n\n```\nfenced via\n```\n<!-- results: it -->\n| generated via |\n<!-- end -->\nthe end\n"
    )
    parts = ["A title", "A paragraph in CODE about CODE.", "an item", "another", "cell", "text", "the end"]
    assert [part for part in prose(text) if part] == parts


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_markdown_file_says_it_plainly(path: Path) -> None:
    found = [
        f"{match[0]!r} in {part[max(0, match.start() - 40) : match.end() + 20]!r}: write {substitute}"
        for part in prose(path.read_text(encoding="utf-8"))
        if part not in ALLOWED
        for pattern, substitute in SUBSTITUTIONS.items()
        for match in re.finditer(pattern, part)
    ]
    assert found == []
