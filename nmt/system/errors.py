"""Errors for users. A message names the place, what was found and what to do; see `nmt.system.messages`."""

import contextlib
import errno
import re
from collections.abc import Iterable, Iterator, Sequence

from nmt.system.messages import Dialect, Message, Parameter
from nmt.system.messages import printable as printable
from nmt.system.messages import shorten as shorten

_OUT_OF_MEMORY = (
    "cannot allocate memory",
    "can't allocate memory",
    "not enough memory",
    "bad_alloc",
    "out of memory",
    "could not create a primitive",
)
SHOWN_NAMES = 5
"""Maximum number of names that a message lists."""
CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters in an untrusted vocabulary that could control a terminal; white space is not included."""


class NmtError(Exception):
    """Base class of every error that a user can cause and fix.

    Its text is that of its problems, each on a line. They may name untrusted files: see `printable`.

    Args:
        problems: The faults. Text that is given without values is shown as it is.
        values: Values of the fields of a single problem; see `Message`.

    Attributes:
        problems: The faults.
        dialect: How the parameters are named. None is the dialect that the process speaks when the text is asked for;
            a front end sets its own in errors that leave it.
    """

    def __init__(self, *problems: str | Message, **values: object) -> None:
        if values:
            if len(problems) != 1:
                raise TypeError("values belong to a single problem; give each of several as a Message with its own")
            problems = (Message(str(problems[0]), **values),)
        self.problems = tuple(problem if isinstance(problem, Message) else Message(problem) for problem in problems)
        super().__init__(*map(str, self.problems))  # for those who read `args`; `str` of the error asks again
        self.dialect: Dialect | None = None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that it names; the first one usually has the fault."""
        return tuple(parameter for problem in self.problems for parameter in problem.parameters)

    def say(self, dialect: Dialect) -> str:
        """The text in a dialect, a line for each problem."""
        return "\n".join(printable(problem.say(dialect)) for problem in self.problems)

    def __str__(self) -> str:
        if self.dialect is not None:
            return self.say(self.dialect)
        return "\n".join(printable(str(problem)) for problem in self.problems)


class ConfigError(NmtError):
    """The configuration is wrong, or does not fit the data or model it is used with."""


class DataError(NmtError):
    """A corpus, a data directory or an input file is missing, unreadable or unusable."""


class CheckpointError(NmtError):
    """A run or model directory is missing, incomplete or inconsistent."""


class TrainingError(NmtError):
    """A run diverged, or learnt nothing.

    Of several processes the first one shows the message; in others it is empty.
    """


class RunInterrupted(NmtError):
    """A run was stopped by a signal, after a checkpoint. The message says how to continue.

    Of several processes the first one shows the message; in others it is empty.
    """


class OutOfMemory(NmtError):
    """Memory ran out; the message says what to lower if that would help."""


@contextlib.contextmanager
def when_out_of_memory(advice: str | Message) -> Iterator[None]:
    """Raise `OutOfMemory` with advice if memory runs out in the block.

    Args:
        advice: The remedy; may be empty.
    """
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        if not advice:
            raise OutOfMemory("out of memory") from error
        raise OutOfMemory("out of memory; {advice}", advice=advice) from error


@contextlib.contextmanager
def as_nmt_errors() -> Iterator[None]:
    """Turn errors of the system, about a path, a disk or memory, into an `NmtError`; for a block or as a decorator.

    Raises:
        DataError: A file or folder cannot be read or written, or its name cannot be used.
        OutOfMemory: Memory ran out.
    """
    try:
        with when_out_of_memory(""):
            yield
    except OSError as error:
        raise DataError(describe_system_error(error)) from error
    except UnicodeEncodeError as error:
        name = ascii(error.object[-200:])
        raise DataError(f"{name}: holds bytes that are not UTF-8 and cannot be written; rename it") from None
    except ValueError as error:
        if "null byte" not in str(error) and "null character" not in str(error):
            raise
        raise DataError("a path holds a NUL character, which no name can have; rename it") from None


def add_remedy(error: OSError, remedy: Message) -> None:
    """Keep with a system error how to go on once the disk has room, for `describe_system_error`."""
    error.remedy = remedy  # type: ignore[attr-defined]  # an exception takes any attribute


def describe_system_error(error: OSError) -> Message:
    """One line: the message of the system, the file, and the remedy if a disk is full.

    Args:
        error: The error, with the remedy of `add_remedy` if there is one.
    """
    name = printable(str(error.filename2 or error.filename or "input or output"))
    reason = printable(str(error.strerror or error))
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return Message("{name}: {reason}", name=name, reason=reason)
    remedy = getattr(error, "remedy", "run the command again")
    return Message("{name}: {reason}; make room and {remedy}", name=name, reason=reason, remedy=remedy)


def is_out_of_memory(error: Exception) -> bool:
    """True if memory ran out: PyTorch has no single exception class for it on all devices, but uses these words."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, NmtError):  # which has its own advice
        return False
    words = str(error).lower()
    return any(known in words for known in _OUT_OF_MEMORY)


def check_at_least(name: str, value: int | None, least: int) -> None:
    """Check a parameter that is a number, or None if it is not given.

    Raises:
        ConfigError: The value is less than `least`.
    """
    if value is not None and value < least:
        raise ConfigError("{given}: must be at least {least}", given=Parameter(name, value), least=least)


def list_names(names: Sequence[str], most: int = SHOWN_NAMES) -> str:
    """The first few names, each shortened, and the number of further ones."""
    more = len(names) - most
    shown = ", ".join(map(shorten, names[:most]))
    return f"{shown} and {more:,} more" if more > 0 else shown


def name_differences(values: Iterable[tuple[str, object, object]]) -> list[str]:
    """The names whose two values differ, each with both.

    Args:
        values: Names with the value that is stored there and the one that is given here.
    """
    return [f"{name} ({shorten(repr(a))} there, {shorten(repr(b))} here)" for name, a, b in values if a != b]
