"""The strings of any YAML file with their places, for those who change them and nothing else."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml

from nmt.system.errors import DataError, shorten

_STRING = "tag:yaml.org,2002:str"
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")


class YamlString(NamedTuple):
    """A string that is a value.

    Attributes:
        begin: Its first character, which is the quote or indicator if it has one.
        end: The character after its last one.
        value: Its value.
        style: How it is written: the quote or indicator, empty for neither.
        keys: The keys of the mappings around it.
        is_flow: True if it is between brackets or braces.
    """

    begin: int
    end: int
    value: str
    style: str
    keys: tuple[str, ...]
    is_flow: bool


def find_yaml_strings(text: str) -> Iterator[YamlString]:
    """The strings that are values, in order; aliases are not followed.

    Args:
        text: One YAML document or several.

    Raises:
        DataError: It is not YAML.
    """
    try:
        loader = yaml.SafeLoader(text)
    except yaml.YAMLError as error:
        raise DataError(f"is not YAML: {shorten(str(error))}") from None
    keys: list[str | None] = []  # the key of each open mapping, None for a sequence
    expects_key: list[bool] = []
    brackets = 0
    try:
        while loader.check_event():
            event = loader.get_event()  # type: ignore[no-untyped-call]
            is_key = bool(expects_key) and expects_key[-1]
            match event:
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    keys.append("" if isinstance(event, yaml.MappingStartEvent) else None)
                    expects_key.append(isinstance(event, yaml.MappingStartEvent))
                    brackets += event.flow_style or brackets > 0
                    continue
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    keys.pop()
                    expects_key.pop()
                    brackets = max(0, brackets - 1)
                case yaml.ScalarEvent() if is_key:
                    keys[-1] = event.value
                case yaml.ScalarEvent(start_mark=yaml.Mark() as first, end_mark=yaml.Mark() as last) if _is_string(
                    loader, event
                ):
                    begin = first.index
                    properties = _PROPERTIES.match(text, begin)
                    begin = properties.end() if properties else begin
                    around = tuple(key for key in keys if key is not None)
                    yield YamlString(begin, last.index, event.value, event.style or "", around, brackets > 0)
                case yaml.AliasEvent() | yaml.ScalarEvent():
                    pass
                case _:
                    continue
            if expects_key and keys[-1] is not None:
                expects_key[-1] = not expects_key[-1]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise DataError(f"{line}is not YAML: {shorten(problem)}") from None
    finally:
        loader.dispose()


def _is_string(loader: yaml.SafeLoader, event: yaml.ScalarEvent) -> bool:
    """True if a scalar has no tag of its own and is no number, date, truth value or null."""
    if event.tag not in (None, "!", _STRING):
        return False
    tag = loader.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
    return bool(tag == _STRING)


def is_plain_string(text: str, is_flow: bool) -> bool:
    """True if a text without quotes is read as a string, and as the same one.

    Args:
        text: The text, on one line.
        is_flow: True if it is between brackets or braces.
    """
    try:
        value = yaml.safe_load(f"[{{a: {text}}}]" if is_flow else f"- a: {text}")
    except (yaml.YAMLError, ValueError):
        return False
    return bool(value == [{"a": text}])
