"""Requests to a run in progress, by signals and by the clock."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType

from nmt.config import CheckpointSection
from nmt.system.signals import ENDING, handled_signals, raise_when_safe

NOTHING, CHECKPOINT, STOP = 0, 1, 2
"""Requests, in order of urgency; a stop includes a checkpoint."""


class Requests:
    """Keeps requests until the run can fulfil them.

    Args:
        options: When a checkpoint is due.
    """

    def __init__(self, options: CheckpointSection) -> None:
        self.options = options
        self._checkpoint = self._stop = False  # separate flags: a signal may arrive at any time
        self._since = time.monotonic()

    def ask(self, request: int) -> None:
        """Record a request."""
        if request == STOP:
            self._stop = True
        elif request == CHECKPOINT:
            self._checkpoint = True

    def due(self, update: int) -> int:
        """The request to fulfil after an update, including a checkpoint that is due."""
        every, minutes = self.options.every, self.options.minutes
        if (every and update % every == 0) or (minutes and time.monotonic() - self._since > 60 * minutes):
            self.ask(CHECKPOINT)
        return STOP if self._stop else CHECKPOINT if self._checkpoint else NOTHING

    def done(self) -> None:
        """Restart the clock after a checkpoint; a request to stop made meanwhile is kept."""
        self._checkpoint, self._since = False, time.monotonic()


@contextlib.contextmanager
def handling_signals(requests: Requests) -> Iterator[None]:
    """Turn signals into requests: SIGINT, SIGTERM and SIGHUP to stop, SIGUSR1 for a checkpoint.

    A second Ctrl-C raises KeyboardInterrupt. Outside the main thread no signal is handled.
    """
    interrupted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        if number == signal.SIGINT and interrupted:
            raise_when_safe(KeyboardInterrupt(), number, frame)
        interrupted = interrupted or number == signal.SIGINT
        requests.ask(CHECKPOINT if number == getattr(signal, "SIGUSR1", None) else STOP)

    with handled_signals((*ENDING, "SIGUSR1"), note):
        yield
