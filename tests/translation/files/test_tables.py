"""String tables in JSON and YAML: values change, and keys, numbers, comments and layout stay."""

import json
import re
from typing import Any

import pytest
import yaml
from file_samples import JSON, YAML, changed_lines, read, same, shout, texts, write
from hypothesis import given
from hypothesis import strategies as st

from nmt.system.errors import DataError


def in_capitals(value: Any) -> Any:
    """A value with its strings in capitals, but for tags and messages with alternatives."""
    if isinstance(value, dict):
        return {key: item if str(key).startswith("@") else in_capitals(item) for key, item in value.items()}
    if isinstance(value, list):
        return [in_capitals(item) for item in value]
    if isinstance(value, str) and "{n," not in value:
        return value.upper().replace("<B>", "<b>").replace("</B>", "</b>")
    return value


def test_json_is_read_again_with_other_strings() -> None:
    assert texts(read("json")) == ["Hello,", "world é / now!", "one book", "She sleeps."]
    written = shout(read("json"))
    assert json.loads(written) == in_capitals(json.loads(JSON))
    assert [line.split(":")[0] for line in changed_lines(JSON, written)] == ['  "hello" ', '  "items"']


def test_only_the_messages_of_a_browser_extension_are_translated() -> None:
    table = '{"a": {"message": "I am old.", "description": "Not this.", "placeholders": {"x": {"content": "$1"}}}}'
    assert texts(read("json", table)) == ["I am old."]
    assert texts(read("json", table.replace('"message"', '"text"'))) == ["I am old.", "Not this.", "$1"]


def test_yaml_is_read_again_with_other_strings() -> None:
    written = shout(read("yaml"))
    first, second = yaml.safe_load_all(written)
    before, _ = yaml.safe_load_all(YAML)
    assert first == in_capitals(before)
    assert second == ["ANOTHER DOCUMENT"]
    comments = [re.sub(r"[^#\n]*#", "#", line) for line in (YAML, written)]
    assert [re.findall("#.*", text) for text in comments] == [["# A comment.", "# behind it"]] * 2
    kept = {
        "en: &top",
        "  yes: true",
        "  number: 12",
        "  date: 2020-01-01",
        "  alias: *a",
        "  tagged: !!binary aGVsbG8=",
    }
    assert kept < {*written.splitlines()}
    windows = YAML.replace("\n", "\r\n")
    assert write(read("yaml", windows), same).decode() == windows


@given(
    st.text(st.sampled_from("ab :#'\"\\-{}[],&*!|>%@`?é\t"), max_size=12),
    st.sampled_from(["a: {}", "- [{}]", "'{}'", '"{}"']),
)
def test_any_translation_is_read_again(translation: str, frame: str) -> None:
    words = " ".join(translation.split())
    for sample, source in (("yaml", frame.format("old book") + "\n"), ("json", '["old book"]')):
        written = write(read(sample, source), lambda text: f"x{words}").decode()
        value = yaml.safe_load(written) if sample == "yaml" else json.loads(written)
        while not isinstance(value, str):
            (value,) = value.values() if isinstance(value, dict) else value
        assert value == f"x{words}"


@pytest.mark.parametrize(
    ("sample", "content", "problem"),
    [
        ("json", '{"a": }', "a.json:1: is not JSON: Expecting value"),
        ("json", "\n// no\n{}", "a.json:2: is not JSON: Expecting value"),
        ("json", "[" * 100_000, "a.json: is not JSON that can be read"),
        ("yaml", "a: [b\nc: d", "a.yaml: line 2: is not YAML"),
        ("yaml", "a: \x01", "a.yaml: is not YAML"),
        ("yaml", "[" * 5000, "a.yaml: line 1: is not YAML"),
    ],
)
def test_other_files_are_refused(sample: str, content: str, problem: str) -> None:
    with pytest.raises(DataError, match="^" + re.escape(problem)):
        read(sample, content)


def test_aliases_of_aliases_take_no_time() -> None:
    lines = ["a0: &a0 [x word]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    assert texts(read("yaml", "\n".join(lines))) == ["x word"]
