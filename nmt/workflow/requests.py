"""What a run is asked to do while it runs: by signals, and by the clock."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from nmt.config import CheckpointSection

NOTHING, CHECKPOINT, STOP = 0, 1, 2
"""What can be asked, the more urgent the higher; a stop comes with a checkpoint."""


class Requests:
    """Keeps what was asked until the run comes to a place where it can be done.

    Args:
        options: When the clock asks for a checkpoint.
    """

    def __init__(self, options: CheckpointSection) -> None:
        self.options = options
        self._checkpoint = self._stop = False  # apart: a signal may come between any two steps of ours
        self._since = time.monotonic()

    def ask(self, request: int) -> None:
        """Note a request."""
        if request == STOP:
            self._stop = True
        elif request == CHECKPOINT:
            self._checkpoint = True

    def due(self, update: int) -> int:
        """What is to be done after an update: what was asked, or a checkpoint where it is time for one."""
        every, minutes = self.options.every, self.options.minutes
        if (every and update % every == 0) or (minutes and time.monotonic() - self._since > 60 * minutes):
            self.ask(CHECKPOINT)
        return STOP if self._stop else CHECKPOINT if self._checkpoint else NOTHING

    def done(self) -> None:
        """A checkpoint was made, and the clock starts anew; a stop that was asked for meanwhile stays asked."""
        self._checkpoint, self._since = False, time.monotonic()


@contextlib.contextmanager
def listening(requests: Requests) -> Iterator[None]:
    """Turn signals into requests: SIGINT, SIGTERM and SIGHUP ask to stop, SIGUSR1 asks for a checkpoint.

    A second Ctrl-C raises KeyboardInterrupt at once. Signals that are ignored (interrupts in a shell's background job,
    SIGHUP under nohup) stay ignored; outside the main thread, where Python allows no handlers, nothing is listened to.
    """
    interrupted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        if number == signal.SIGINT and interrupted:
            raise KeyboardInterrupt
        interrupted = interrupted or number == signal.SIGINT
        requests.ask(CHECKPOINT if number == getattr(signal, "SIGUSR1", None) else STOP)

    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")  # the last two are not known everywhere
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    before = {number: signal.getsignal(number) for number in numbers}
    listened = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in listened:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number in listened:
            signal.signal(number, before[number])
