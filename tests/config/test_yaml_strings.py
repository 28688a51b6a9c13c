"""The strings of a YAML file with their places."""

import pytest

from nmt.config.yaml_strings import find_yaml_strings, is_plain_string
from nmt.system.errors import DataError

TEXT = """a: &x !!str one  # two
b: [ 'it''s', {c: 3, d: yes}, "q"]
e: |
  lines
? f
: *x
"""


def test_strings_have_their_places_and_keys() -> None:
    found = [(TEXT[s.begin : s.end], s.value, s.style, s.keys, s.is_flow) for s in find_yaml_strings(TEXT)]
    assert found == [
        ("one", "one", "", ("a",), False),
        ("'it''s'", "it's", "'", ("b",), True),
        ('"q"', "q", '"', ("b",), True),
        ("|\n  lines\n", "lines\n", "|", ("e",), False),
    ]


@pytest.mark.parametrize(
    ("text", "is_flow", "expected"),
    [
        ("a, b", False, True),
        ("a, b", True, False),
        ("yes", False, False),
        ("a: b", False, False),
        ("a #b", False, False),
    ],
)
def test_a_text_needs_quotes_where_it_would_be_read_otherwise(text: str, is_flow: bool, expected: bool) -> None:
    assert is_plain_string(text, is_flow) is expected


def test_the_line_of_a_fault_is_named() -> None:
    with pytest.raises(DataError, match=r"^line 2: is not YAML: "):
        list(find_yaml_strings("a: [b\nc: d"))
