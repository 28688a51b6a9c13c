"""Saved settings: read from JSON, and refused where a value is not what it may be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nmt.errors import DataError, list_names, shorten


class Kind(NamedTuple):
    """What a value may be.

    Attributes:
        name: In words.
        holds: Whether a value is one.
    """

    name: str
    holds: Callable[[Any], bool]


FLAG = Kind("true or false", lambda value: isinstance(value, bool))
TEXT = Kind("a string", lambda value: isinstance(value, str))
TEXTS = Kind("a list of strings", lambda value: isinstance(value, list) and all(map(TEXT.holds, value)))


def one_of(*values: str) -> Kind:
    """One of some strings."""
    return Kind(" or ".join(values), lambda value: isinstance(value, str) and value in values)


def check_settings(path: Path, settings: Any, kinds: Mapping[str, Kind]) -> None:
    """Refuse settings of which one is missing or is not what it may be; others are not looked at.

    Args:
        path: The file they are from.
        settings: What the file holds.
        kinds: What each setting may be.

    Raises:
        DataError: They are no object, or a setting is missing or wrong.
    """
    if not isinstance(settings, dict):
        raise _damaged(path, f"{shorten(repr(settings))} found, not settings with names")
    for key, kind in kinds.items():
        if key not in settings:
            raise _damaged(path, f"{key} is missing; it may be {kind.name}")
        if not kind.holds(settings[key]):
            raise _damaged(path, f"{key}: {shorten(repr(settings[key]))} found; it may be {kind.name}")


def check_names(path: Path, settings: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse settings that nobody knows.

    Raises:
        DataError: There is another one than those known.
    """
    if unknown := [key for key in settings if key not in known]:
        raise _damaged(path, f"{list_names(unknown)} found; there are {', '.join(known)}")


def _damaged(path: Path, fault: str) -> DataError:
    return DataError(f"{path}: damaged, or of another version ({fault})")
