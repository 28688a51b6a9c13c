"""What can go wrong for a user. A message says where, what was found and what to do."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class NmtError(Exception):
    """Base of every error that a user can cause and mend."""


class ConfigError(NmtError):
    """The configuration is wrong, or does not fit the data or model it is used with."""


class DataError(NmtError):
    """A corpus, a data directory or an input file is missing, unreadable or unusable."""


class CheckpointError(NmtError):
    """A run or model directory is missing, incomplete or inconsistent."""


class RunInterrupted(NmtError):
    """A run was asked to stop; it did, after a checkpoint. The message says how to go on; it is empty
    in all but the first of several processes.
    """


def is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out: PyTorch has no one class for it on all devices."""
    known = ("can't allocate memory", "bad_alloc", "out of memory", "could not create a primitive")
    return isinstance(error, MemoryError) or any(words in str(error) for words in known)


def printable(text: str) -> str:
    """Text in which characters that control a terminal or the direction of writing are escaped, as in `\\x1b`.

    For names and text from files that somebody else may have made.
    """
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def shorten(text: str, most: int = 200) -> str:
    """Printable text of at most about `most` characters; what is left out is counted."""
    kept = printable(text[:most])
    return kept if len(text) <= most else f"{kept} ... ({len(text) - most:,} more characters)"
