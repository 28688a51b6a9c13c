"""Markdown: texts change, and the parser finds the same structure in the translation."""

import html

import pytest
from file_samples import MARKDOWN, read, same, shout, texts, write
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

FOUND = [
    "A nice heading",
    "She reads a big book and \ue000 is her old link here.",
    "Next line",
    "third line with html and 2 * 3, see this.",
    "quoted text goes on here",
    "item one continued",
    "todo thing",
    "second",
    "Setext title",
    "Name",
    "Old thing",
    "one",
    "\ue000 and \ue001",
]


def test_texts_change_and_nothing_else() -> None:
    document = read("md")
    found = texts(document)
    assert found[:12] == FOUND[:12]
    assert found[12:] == ["and \ue000 \ue001 b i", "Some text."]
    expected = MARKDOWN
    for text in (
        "A *nice* heading",
        "She reads a **big\nbook**",
        " and",
        " is [her *old*\nlink]",
        "here.",
        "Next line",
    ):
        expected = expected.replace(text, text.upper())
    expected = expected.replace("third line with <b>html</b>", "THIRD LINE WITH <b>HTML</b>").replace(
        "3, see", "3, SEE"
    )
    expected = expected.replace("[this].", "[THIS][this].").replace("Setext title", "SETEXT TITLE")
    for text in ("quoted text goes", "on here", "item one", "continued", "todo thing", "second", "Name", "Old *thing*"):
        expected = expected.replace(text, text.upper())
    expected = expected.replace("| one ", "| ONE ").replace("two \\| three", "two \\| three")
    expected = expected.replace("snake_case **b *i***", "snake_case **B *I***").replace("<p>Some text", "<p>SOME TEXT")
    assert shout(document) == expected
    windows = MARKDOWN.replace("\n", "\r\n")
    assert texts(read("md", windows)) == found
    assert write(read("md", windows), same).decode() == windows


def structure(text: str) -> list[str]:
    """Blocks, and the tags of each text, as a parser of Markdown finds them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    found = []
    for token in tokens:
        found.append(token.type)
        found += sorted(child.type for child in token.children or [] if child.type not in ("text", "softbreak"))
    return found


def test_a_parser_finds_the_same_structure() -> None:
    body = MARKDOWN.partition("---\n")[2].partition("---\n")[2]
    assert structure(shout(read("md", body))) == structure(body)


@given(
    st.lists(
        st.sampled_from(["a", "b c", "*", "**", "_", "`", "[", "](x)", "\\", "<b>", "|", "\n", " ", "> ", "- "]),
        max_size=15,
    )
)
def test_any_text_comes_back(parts: list[str]) -> None:
    text = "".join(parts)
    assert write(read("md", text), same).decode() == text
    shout(read("md", text))


@pytest.mark.parametrize("word", ["*", "`", "_x_", "<b>", "-", "#"])
def test_no_word_of_a_translation_is_markup(word: str) -> None:
    written = write(read("md", "She sleeps\nin **the** house.\n"), lambda text: f"{word} a {word} b {word}").decode()
    shown = MarkdownIt("commonmark").render(written.replace("\n", " "))
    plain = html.unescape(shown.replace("<strong>", "").replace("</strong>", ""))
    assert plain.split() == f"<p>{word} a {word} b {word}</p>".split()
