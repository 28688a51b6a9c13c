"""Validation of settings saved as JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nmt.system.errors import DataError, list_names, shorten


class Kind(NamedTuple):
    """A type of value.

    Attributes:
        name: Description for messages.
        accepts: Whether a value is of this kind.
    """

    name: str
    accepts: Callable[[Any], bool]


FLAG = Kind("true or false", lambda value: isinstance(value, bool))
TEXT = Kind("a string", lambda value: isinstance(value, str))
TEXTS = Kind("a list of strings", lambda value: isinstance(value, list) and all(map(TEXT.accepts, value)))


def one_of(*values: str) -> Kind:
    """The kind that accepts one of some strings."""
    return Kind(" or ".join(values), lambda value: isinstance(value, str) and value in values)


def check_settings(path: Path, settings: Any, kinds: Mapping[str, Kind]) -> None:
    """Reject settings if one is missing or of the wrong kind; further settings are ignored.

    Args:
        path: The file they were read from.
        settings: Its content.
        kinds: Kind of each required setting.

    Raises:
        DataError: The content is not an object, or a setting is missing or wrong.
    """
    if not isinstance(settings, dict):
        raise _damaged(path, f"found {shorten(repr(settings))}, expected an object")
    for key, kind in kinds.items():
        if key not in settings:
            raise _damaged(path, f"{key} is missing, expected {kind.name}")
        if not kind.accepts(settings[key]):
            raise _damaged(path, f"{key}: found {shorten(repr(settings[key]))}, expected {kind.name}")


def check_names(path: Path, settings: Mapping[str, Any], known: Collection[str]) -> None:
    """Reject unknown settings.

    Raises:
        DataError: There is a setting that is not in `known`.
    """
    if unknown := [key for key in settings if key not in known]:
        raise _damaged(path, f"found {list_names(unknown)}, expected only {', '.join(known)}")


def _damaged(path: Path, fault: str) -> DataError:
    return DataError(f"{path}: damaged, or written by another version ({fault})")
