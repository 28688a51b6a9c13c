"""Signals: handlers for a while, and Ctrl-C while libraries are imported, which can take seconds.

An extension that is being loaded may swallow a KeyboardInterrupt and stay half loaded. During imports, Ctrl-C
therefore ends the process at once. Later, a signal waits while a library that we have called is at work.
"""

import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
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
    earlier_handlers = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        for number in numbers:
            earlier = signal.getsignal(number)
            if earlier is not signal.SIG_IGN:
                earlier_handlers[number] = earlier
    for number in earlier_handlers:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in earlier_handlers.items():
            signal.signal(number, earlier)


@contextlib.contextmanager
def held_signals() -> Iterator[None]:
    """Keep the signals that ask a process to end until the block has ended.

    Processes that are started in the block never receive them: whoever started them ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [getattr(signal, name) for name in ENDING])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def without_hangup() -> contextlib.AbstractContextManager[None]:
    """Ignore SIGHUP in a block if there is no terminal that could hang up, as in a service.

    Whoever sends SIGHUP to a service asks it to read its files again. `handled_signals` in the block leaves the signal
    ignored.
    """
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return handled_signals(["SIGHUP"], signal.SIG_IGN)
    return contextlib.nullcontext()


POSTPONED = 0.02
"""Seconds after which a signal that came while a library was at work comes again."""
PATIENCE = 3.0
"""Seconds after which the handler of a postponed signal raises even if the library is still at work."""
_LIBRARY = re.compile(
    r"<frozen importlib|[/\\](?:site|dist)-packages[/\\]"
    r"(?!(?:nmt|typer|click|tqdm|filelock)[/\\]|torch[/\\]utils[/\\]_contextlib)"
)
"""Files of code that must not be interrupted: imports, and libraries but for those that only call our functions."""
_OURS = str(Path(__file__).parents[1])
_deadline = 0.0
"""Time of the monotonic clock at which a postponed signal raises in any case."""
_is_postponed = False
"""True while a timer runs that will raise the signal again."""


def raise_when_safe(error: BaseException, number: int, frame: FrameType | None) -> None:
    """Raise an error in the handler of a signal, or a moment later if a library is at work or being imported.

    An exception inside a library can abort the process, as in C++ that is called by torch, or end as another error.

    Args:
        error: The error to raise.
        number: The signal.
        frame: The frame that the signal interrupted.
    """
    global _deadline, _is_postponed
    if _is_postponed:
        return
    now = time.monotonic()
    # A deadline that is long past is of an earlier signal, which another handler has taken: this signal is a new one.
    if now > _deadline + 1:
        _deadline = now + PATIENCE
    if now < _deadline and _in_library(frame):
        _is_postponed = True
        timer = threading.Timer(POSTPONED, _raise_signal, [number])
        timer.daemon = True
        timer.start()
        return
    _deadline = 0.0
    raise error


def _in_library(frame: FrameType | None) -> bool:
    """True if a library that we have called is at work; one that has called us, such as a notebook, does not count."""
    # From the interrupted function to its callers: a library comes first, and further out the code of ours that called.
    is_library_inside = False
    while frame is not None:
        file = frame.f_code.co_filename
        if is_library_inside and file.startswith(_OURS):
            return True
        if _LIBRARY.search(file):
            is_library_inside = True
        frame = frame.f_back
    return False


def _raise_signal(number: int) -> None:
    """Raise a postponed signal again, in the main thread, which may be waiting for input."""
    global _is_postponed
    _is_postponed = False
    signal.pthread_kill(threading.main_thread().ident or 0, number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise_when_safe(KeyboardInterrupt(), number, frame)


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
