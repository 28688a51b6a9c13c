"""Ctrl-C while libraries are imported, which can take seconds.

An extension that is being loaded may swallow a KeyboardInterrupt and stay half loaded. During imports, Ctrl-C
therefore ends the process at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType
from typing import NoReturn

INTERRUPTED = "interrupted; earlier results are intact"


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, f"nmt: error: {INTERRUPTED}\n".encode())
    os._exit(128 + number)


def exit_on_interrupt() -> None:
    """From now on Ctrl-C ends the process at once, unless it is ignored as in a shell's background job."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


def raise_on_interrupt() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt again, so that work in progress is cleaned up."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)
