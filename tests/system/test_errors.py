import sys
import unicodedata

import pytest

from nmt.system.errors import ConfigError, DataError, describe_system_error, list_names, printable, shorten
from nmt.system.messages import SHOWN_CHARACTERS as MOST


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("Ärger 日本 🙂 a\u0301 \u00a0\\x1b", "Ärger 日本 🙂 a\u0301 \u00a0\\x1b"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("a\nb\r\tc\0", "a\\nb\\r\\tc\\x00"),
        ("\x7f\x80\x85\x9b\x9f", "\\x7f\\x80\\x85\\x9b\\x9f"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\u202atxt.\u202eexe\u2066\u2069", "\\u202atxt.\\u202eexe\\u2066\\u2069"),
        ("\ud800x\udcff", "\\ud800x\\udcff"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_whole_classes_of_characters_are_escaped() -> None:
    classes = ("Cc", "Cs", "Zl", "Zp")
    directions = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        obeyed = unicodedata.category(character) in classes or unicodedata.bidirectional(character) in directions
        shown = printable(character)
        assert (shown != character) == obeyed, hex(code)
        assert not obeyed or (shown.isascii() and shown.isprintable())


def test_a_message_has_one_line_for_each_problem() -> None:
    assert str(DataError("a\nb\x1b[31m: no such file")) == r"a\nb\x1b[31m: no such file"
    assert str(ConfigError("one", "an\nother")) == "one\nan\\nother"


def test_what_the_system_says_of_an_odd_name_is_one_line() -> None:
    error = OSError(2, "No such file or directory", "a\nb")
    assert str(describe_system_error(error)) == r"a\nb: No such file or directory"


def test_long_text_is_cut() -> None:
    assert shorten("x" * MOST) == "x" * MOST
    assert shorten("x" * MOST + "y") == "x" * MOST + "..."
    assert shorten("\x1b" * 10**6) == "\\x1b" * MOST + "..."


def test_long_lists_are_shortened() -> None:
    assert list_names([]) == ""
    assert list_names(["a", "b\x1b"]) == "a, b\\x1b"
    assert list_names("abcde") == "a, b, c, d, e"
    assert list_names("abcdef") == "a, b, c, d, e and 1 more"
    assert list_names(["x" * 10**6] * 20_000).endswith("x... and 19,995 more")
