"""Messages that name parameters of public functions, which each front end names in its own way.

A message keeps its parameters apart from its words until a front end says it: Python says `n_best`, a command --n-best,
the server the name of a field. `Dialect` is the way in which a front end says them, and `PYTHON` is the usual one;
a command says its own while it runs (`speaking`), as a program sets its locale.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from os import PathLike
from typing import Protocol

SHOWN_CHARACTERS = 100
"""Maximum length of user text in a message."""
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Escape text so that it stays on one line and cannot control a terminal.

    Control characters, line and paragraph separators, direction marks and lone surrogates become escapes such as \n,
    \x1b or \u2028. For names and text from untrusted files.
    """
    return _UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text)


def shorten(text: str) -> str:
    """Truncate and escape untrusted text."""
    cut = len(text) > SHOWN_CHARACTERS
    return printable(text[:SHOWN_CHARACTERS]) + ("..." if cut else "")


class _Unset(Enum):
    UNSET = "unset"


UNSET = _Unset.UNSET
"""The value of a parameter that is named without a value."""


class Dialect(Protocol):
    """How a front end says the parameters and functions that a message names."""

    def say_parameter(self, name: str, value: object) -> str:
        """A parameter; `UNSET` as the value says only its name."""

    def say_call(self, call: Call) -> str:
        """A call of a public function, to be copied."""


class Sayable(Protocol):
    """A part of a message that depends on the dialect."""

    def say(self, dialect: Dialect) -> str:
        """The text in a dialect."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a public function, without or with the value that it has or should have.

    Attributes:
        name: Its name in Python.
        value: The value; without one, a message says only the name.
    """

    name: str
    value: object = UNSET

    def say(self, dialect: Dialect) -> str:
        """The parameter in a dialect."""
        return dialect.say_parameter(self.name, self.value)

    def __str__(self) -> str:
        return self.say(_front_end.dialect)


def setting(**values: object) -> Parameter:
    """The parameter `overrides` with values of config keys, with two underscores for each point: train__epochs=3."""
    return Parameter("overrides", {name.replace("__", "."): value for name, value in values.items()})


@dataclass(frozen=True)
class Call:
    """A call of a public function, which messages give to be copied.

    Attributes:
        function: Its name.
        arguments: Its arguments by name; the first one is given without its name in Python.
        launcher: Words before the command at the command line; none are `nmt` itself.
    """

    function: str
    arguments: Mapping[str, object]
    launcher: tuple[str, ...] = ("nmt",)

    def say(self, dialect: Dialect) -> str:
        """The call in a dialect."""
        return dialect.say_call(self)

    def __str__(self) -> str:
        return self.say(_front_end.dialect)


class Message:
    """A problem as words with the values that they speak of.

    Args:
        text: The words. With values, {name} stands for each, as for `str.format`, and {{ for a brace; without values
            it is text as it is, and may hold braces.
        values: Parameters, calls and problems, which depend on the dialect; and text, which does not.
    """

    def __init__(self, text: str, /, **values: object) -> None:
        self.text = text
        self.values = values

    @property
    def parameters(self) -> Iterator[Parameter]:
        """The parameters that it names, the first one first."""
        for value in self.values.values():
            if isinstance(value, Parameter):
                yield value
            elif hasattr(value, "parameters"):  # another message, or an error that is part of this one
                yield from value.parameters

    def say(self, dialect: Dialect) -> str:
        """The problem in a dialect."""
        if not self.values:
            return self.text
        parts = {name: say_part(value, dialect) for name, value in self.values.items()}
        return self.text.format(**parts)

    def __str__(self) -> str:
        return self.say(_front_end.dialect)

    def __repr__(self) -> str:
        return f"Message({str(self)!r})"


def say_part(part: object, dialect: Dialect) -> str:
    """A part of a message in a dialect; a part that does not depend on the dialect is plain text."""
    say: Callable[[Dialect], str] | None = getattr(part, "say", None)
    return str(part) if say is None else say(dialect)


class _Python:
    """Parameters as keywords."""

    def say_parameter(self, name: str, value: object) -> str:
        return f"`{name}`" if value is UNSET else f"`{name}={_literal(value)}`"

    def say_call(self, call: Call) -> str:
        arguments: list[str] = []
        for name, value in call.arguments.items():
            is_first = not arguments
            arguments.append(_literal(value) if is_first else f"{name}={_literal(value)}")
        return f"nmt.{call.function}({', '.join(arguments)})"


PYTHON: Dialect = _Python()
"""Parameters as the keywords of functions: `beam_size=5`."""


class _FrontEnd:
    """The front end that the process speaks for now: one for all threads, as a command and its threads speak alike."""

    dialect: Dialect = PYTHON


_front_end = _FrontEnd()


@contextlib.contextmanager
def speaking(dialect: Dialect) -> Iterator[None]:
    """Say messages in a dialect during the block, in all threads, wherever their text is asked for."""
    before = _front_end.dialect
    _front_end.dialect = dialect
    try:
        yield
    finally:
        _front_end.dialect = before


def _literal(value: object) -> str:
    """A value as Python source text; a path as a string."""
    if isinstance(value, PathLike):
        return repr(str(value))
    if isinstance(value, Mapping):
        items = [f"{_literal(key)}: {_literal(item)}" for key, item in value.items()]
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return repr(value)
