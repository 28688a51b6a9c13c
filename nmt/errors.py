"""What can go wrong for a user. A message says where, what was found and what to do."""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Iterator, Sequence

SHOWN_NAMES = 5
"""How many names a message lists."""
SHOWN_CHARACTERS = 100
"""How much of a text from outside a message shows."""

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class NmtError(Exception):
    """Base of every error that a user can cause and mend."""


class ConfigError(NmtError):
    """The configuration is wrong, or does not fit the data or model it is used with."""


class DataError(NmtError):
    """A corpus, a data directory or an input file is missing, unreadable or unusable."""


class CheckpointError(NmtError):
    """A run or model directory is missing, incomplete or inconsistent."""


class TrainingError(NmtError):
    """A run diverged, or learnt nothing. The message is empty where another process of the run has said it."""


class RunInterrupted(NmtError):
    """A run was asked to stop; it did, after a checkpoint. The message says how to go on; it is empty
    in all but the first of several processes.
    """


class OutOfMemory(NmtError):
    """Memory ran out; the message says what to lower, where that would help."""


@contextlib.contextmanager
def when_out_of_memory(advice: str) -> Iterator[None]:
    """Let the block raise `OutOfMemory` with advice if memory runs out in it.

    Args:
        advice: What the user can do about it; empty where there is nothing.
    """
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise OutOfMemory("; ".join(filter(None, ["out of memory", advice]))) from error


def is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out: PyTorch has no one class for it on all devices."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, NmtError):  # it says already what to do
        return False
    known = (
        "can't allocate memory",
        "cannot allocate memory",
        "not enough memory",
        "bad_alloc",
        "out of memory",
        "could not create a primitive",
    )
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in known)


def printable(text: str) -> str:
    r"""Text that stays on its line and that a terminal shows rather than obeys.

    Control characters, line and paragraph separators, changes of direction and lone surrogates become escapes such as
    \n, \x1b or \u2028. For names and text from files that somebody else may have made.
    """
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def shorten(text: str) -> str:
    """The beginning of a text from outside, printable."""
    cut = len(text) > SHOWN_CHARACTERS
    return printable(text[:SHOWN_CHARACTERS]) + ("..." if cut else "")


def list_names(names: Sequence[str], most: int = SHOWN_NAMES) -> str:
    """The first few names, each shortened, and how many more there are."""
    more = len(names) - most
    shown = ", ".join(map(shorten, names[:most]))
    return f"{shown} and {more:,} more" if more > 0 else shown
