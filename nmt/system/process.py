"""A command as a process: its signals, standard streams and exit code."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn, TextIO

from nmt.system.errors import ConfigError, NmtError, RunInterrupted, as_nmt_errors
from nmt.system.files import is_stream, naming, open_text
from nmt.system.signals import INTERRUPTED, handled_signals, raise_when_safe
from nmt.system.terminal import write_message

STOPPED = 75
"""Exit code of a run that was stopped and can be resumed: EX_TEMPFAIL of sysexits.h."""


class _Terminated(BaseException):
    """A signal, whose number it has, asked the process to end: unfinished work is cleaned up as it propagates."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise_when_safe(_Terminated(number), number, frame)


class _OutputClosed(Exception):
    """The reader of our output has closed it."""


def run_program(command: Callable[[], int | None]) -> NoReturn:
    """Run a command and exit; a user error results in one clear line and a non-zero exit code, never a traceback.

    Args:
        command: Returns the exit code, or None for 0.
    """
    _use_utf8()
    if sys.stderr is None:  # closed by the caller, but progress bars need it
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    # SIGUSR1 asks a training run for a checkpoint; at other times it has no effect.
    with handled_signals(["SIGTERM", "SIGHUP"], _terminate), handled_signals(["SIGUSR1"], lambda number, frame: None):
        _run(command)


def _run(command: Callable[[], int | None]) -> NoReturn:
    try:
        with as_nmt_errors():
            code = command()
        if code == 128 + signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(code)
    except RunInterrupted as stop:
        if str(stop):
            write_message(str(stop))
        sys.exit(STOPPED)
    except NmtError as error:
        _discard_unwritten()
        _fail(str(error), 1)
    except _Terminated as terminated:
        number = signal.Signals(*terminated.args)
        _fail(f"ended by {number.name}; earlier results are intact", 128 + number)
    except KeyboardInterrupt:
        _fail(INTERRUPTED, 128 + signal.SIGINT)
    except _OutputClosed:
        # nmt translate ... | head -1: stop silently, as other filters do.
        _discard_unwritten()
        sys.exit(128 + signal.SIGPIPE)
    except Exception as error:
        show = getattr(error, "show", None)  # a usage error knows how to show itself
        if show is None:
            raise
        show()
        sys.exit(getattr(error, "exit_code", 2))


def _use_utf8() -> None:
    """Restart in Python's UTF-8 mode if the locale uses another encoding for file names and text."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONUTF8": "1"})


def _discard_unwritten() -> None:
    """Discard text that standard output cannot take, so that Python does not complain at exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> NoReturn:
    for line in filter(None, message.split("\n")):  # none if another process of the run shows it
        write_message(f"nmt: error: {line}")
    sys.exit(code)


@contextlib.contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file written atomically by one command at a time; UTF-8 with line feeds in any locale."""
    if path is not None:
        from nmt.system.replacement import locked

        with contextlib.nullcontext() if is_stream(path) else locked(path), open_text(path, errors="replace") as file:
            yield file
        return
    if sys.stdout is None:
        raise ConfigError("standard output is closed; open it")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n", errors="replace")  # type: ignore[union-attr]
    try:
        with naming(Path("standard output")):
            yield sys.stdout
            sys.stdout.flush()
    except BrokenPipeError:
        raise _OutputClosed from None
