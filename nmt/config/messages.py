"""Faults of values, in words: pydantic's errors, with the keys that may have been meant."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from pydantic import ValidationError

from nmt.config.description import KeyDescription, describe_keys
from nmt.config.fields import Kinds, Section, find_section, kinds_of
from nmt.config.sections import Config
from nmt.config.tree import KeyPath
from nmt.system.errors import shorten
from nmt.system.messages import Message


class Problem(NamedTuple):
    """A value that is not allowed.

    Attributes:
        path: Its keys.
        message: The fault, without the keys.
    """

    path: KeyPath
    message: str | Message


def suggest(key: str, known: Sequence[str]) -> str:
    """`; did you mean ...?` if a known key is close, otherwise empty."""
    close = difflib.get_close_matches(key[:100], known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def in_words(error: Mapping[str, Any]) -> str:
    """Pydantic's message without its subject, as messages start with the key."""
    message = re.sub(r"^(Value error, )?(input|string|tuple|list) (?=should)", "", error["msg"], flags=re.IGNORECASE)
    return message[0].lower() + message[1:].replace("a valid tuple", "a list")


def find_problems(error: ValidationError, values: Any, root: type[Section] = Config) -> Iterator[Problem]:
    """The problems of values that are not those of a section: what is allowed, what was found, what may be meant.

    Args:
        error: The error of pydantic.
        values: The plain values.
        root: The section.
    """
    for item in error.errors():
        path = tuple(str(part) for part in item["loc"])
        *above, last = path
        value = item["input"]
        mark, kinds, section = _section_at(above, root, values)
        if item["type"] == "extra_forbidden":
            known = list(section.model_fields) if section else []
            users = [str(mark.name(kind)) for kind in kinds if last in kind.model_fields] if mark else []
            if mark and users and section:
                fault = f" with {mark.key}: {mark.name(section)}, only with {' or '.join(users)}"
            else:
                wanted = [f"{last}.{key}" for key in value] if isinstance(value, dict) else [last]
                fault = _name_elsewhere(wanted, root) or suggest(last, known)
                fault = fault or (f"; known keys: {', '.join(known)}" if known else "")
            message = f"unknown key{fault}"
        elif item["type"] == "missing" and mark and section:
            unit = section.model_fields[last].json_schema_extra
            assert isinstance(unit, dict)
            message = f"{mark.name(section)} needs a number of {unit['unit']}"
        elif item["type"] == "model_type":
            message = f"should be a section with keys, found {shorten(repr(value))}{_name_key(path, value, root)}"
        elif item["type"] == "too_short" and value:
            continue  # its items are wrong, which is shown
        elif isinstance(value, dict):
            message = in_words(item)
        else:
            choices = re.findall(r"'([^']*)'", item["ctx"]["expected"]) if item["type"] == "literal_error" else []
            message = f"{in_words(item)}, found {shorten(repr(value))}{suggest(str(value)[:100], choices)}"
        yield Problem(path, message)


def _name_elsewhere(keys: Sequence[str], root: type[Section]) -> str:
    """`; did you mean ...?` if keys of other sections have these names, otherwise empty."""
    paths = dict.fromkeys(
        listed.path for key in keys for listed in _list_keys(root) if f".{listed.path}".endswith(f".{key}")
    )
    return f"; did you mean {' or '.join(paths)}?" if paths else ""


def _name_key(section: KeyPath, value: Any, root: type[Section]) -> str:
    """`; did you mean ...?` with the keys of a section that take a value: its first if it is text, and who lists it."""
    keys = [listed for listed in _list_keys(root) if listed.path.startswith(f"{'.'.join(section)}.")]
    texts = [listed for listed in keys[:1] if isinstance(value, str) and listed.values.startswith("text")]
    taking = dict.fromkeys(
        listed.path for listed in (*texts, *keys) if listed in texts or value in listed.values.split(", ")
    )
    return f"; did you mean {' or '.join(shorten(f'{path}={value}') for path in taking)}?" if taking else ""


@cache
def _list_keys(root: type[Section]) -> list[KeyDescription]:
    return [listed for listed in describe_keys(root) if listed.values]


def _section_at(
    path: Sequence[str], section: type[Section] | None, values: Any
) -> tuple[Kinds | None, tuple[type[Section], ...], type[Section] | None]:
    """The key that tells the kinds of the section at a path apart, the kinds, and its own."""
    mark: Kinds | None = None
    kinds: tuple[type[Section], ...] = ()
    for key in path:
        field = section.model_fields.get(key) if section else None
        values = values.get(key) if isinstance(values, dict) else None
        mark, kinds, section = (*kinds_of(field), find_section(field, values)) if field else (None, (), None)
    return mark, kinds, section
