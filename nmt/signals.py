"""Signals: handlers for a while, and Ctrl-C while libraries are imported, which can take seconds.

An extension that is being loaded may swallow a KeyboardInterrupt and stay half loaded. During imports, Ctrl-C
therefore ends the process at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import NoReturn

INTERRUPTED = "interrupted; earlier results are intact"
ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
"""Names of the signals that ask a process to end; not every platform has the last one."""


@contextlib.contextmanager
def handled_signals(names: Sequence[str], handler: Callable[[int, FrameType | None], object] | int) -> Iterator[None]:
    """Handle signals in a block; afterwards they are handled as before.

    Ignored signals stay ignored: interrupts in a shell's background job, SIGHUP under nohup. Outside the main thread,
    where Python allows no handlers, nothing changes.

    Args:
        names: The signals; those that the platform does not have are skipped.
        handler: A handler as for `signal.signal`.
    """
    main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in names if main and hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    handled = [number for number, earlier in before.items() if earlier is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])


_blocks = 0
_waiting: list[BaseException] = []


def raise_when_safe(error: BaseException) -> None:
    """Raise an error in the handler of a signal, or at the end of the `uninterrupted` block that is at work."""
    if not _blocks:
        raise error
    _waiting.append(error)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """A block that signals do not interrupt: an exception that a handler raises inside torch can abort the process."""
    global _blocks
    main = threading.current_thread() is threading.main_thread()  # only there handlers run
    _blocks += main
    try:
        yield
    finally:
        _blocks -= main
        if main and not _blocks and _waiting:
            error = _waiting[0]
            _waiting.clear()
            raise error


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise_when_safe(KeyboardInterrupt())


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, f"nmt: error: {INTERRUPTED}\n".encode())
    os._exit(128 + number)


def exit_on_interrupt() -> None:
    """From now on Ctrl-C ends the process at once, unless it is ignored as in a shell's background job."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


def raise_on_interrupt() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt when that is safe, so that work in progress is cleaned up."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, _interrupt)
