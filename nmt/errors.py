"""What can go wrong for a user. A message says where, what was found and what to do."""

from __future__ import annotations


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


def is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out: PyTorch has no one class for it on all devices."""
    known = ("can't allocate memory", "bad_alloc", "out of memory", "could not create a primitive")
    return isinstance(error, MemoryError) or any(words in str(error) for words in known)
