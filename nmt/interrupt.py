"""Ctrl-C while libraries are imported, which may take seconds.

An extension that is being loaded may swallow a KeyboardInterrupt, and be without a part of it from then on. As long as
nothing but imports happens, Ctrl-C therefore ends the process at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType
from typing import NoReturn

INTERRUPTED = "interrupted; what was finished before is still there"


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, f"nmt: error: {INTERRUPTED}\n".encode())
    os._exit(128 + number)


def leave_on_interrupt() -> None:
    """From now on Ctrl-C ends the process at once; not where it is ignored, as in a shell's background job."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_on_interrupt() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt again, as there is something to tidy up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
