"""Interruptions of training: signals that ask for a checkpoint or the end of the run, and the clock."""

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType

from nmt.config import CheckpointSection
from nmt.system.signals import ENDING, handled_signals, raise_when_safe

# What is asked of a run, in order of urgency; a stop includes a checkpoint.
NOTHING = 0
CHECKPOINT = 1
STOP = 2


class Interruptions:
    """Remembers a request to a run until it is done.

    Args:
        options: When a checkpoint is due.
    """

    def __init__(self, options: CheckpointSection) -> None:
        self.options = options
        self.checkpoint = self.stop = False  # separate flags: a signal may arrive at any time
        self._since = time.monotonic()

    def due(self, update: int) -> int:
        """The request to follow after an update, including a checkpoint for which it is time."""
        every = self.options.every
        minutes = self.options.minutes
        if (every and update % every == 0) or (minutes and time.monotonic() - self._since > 60 * minutes):
            self.checkpoint = True
        if self.stop:
            return STOP
        return CHECKPOINT if self.checkpoint else NOTHING

    def done(self) -> None:
        """Restart the clock after a checkpoint; a request to stop made meanwhile is kept."""
        self.checkpoint = False
        self._since = time.monotonic()

    @contextlib.contextmanager
    def by_signals(self) -> Iterator[None]:
        """Let SIGINT, SIGTERM and SIGHUP ask for the end of the run in a block, SIGUSR1 for a checkpoint.

        A second Ctrl-C raises KeyboardInterrupt. Outside the main thread no signal is handled.
        """
        interrupted = False

        def note(number: int, frame: FrameType | None) -> None:
            nonlocal interrupted
            if number == signal.SIGINT and interrupted:
                raise_when_safe(KeyboardInterrupt(), number, frame)
            interrupted = interrupted or number == signal.SIGINT
            if number == getattr(signal, "SIGUSR1", None):
                self.checkpoint = True
            else:
                self.stop = True

        with handled_signals((*ENDING, "SIGUSR1"), note):
            yield
