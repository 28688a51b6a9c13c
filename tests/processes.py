"""`nmt` in processes of its own that start at once, as they are forked from a server that has imported the libraries.

They can be killed, signalled and limited like any other. `python -m nmt` is started where the start, the imports or the
memory of the whole process are what is tested.
"""

import contextlib
import fcntl
import functools
import importlib
import itertools
import multiprocessing
import os
import pty
import resource
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import reduction
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import IO, Any
from unittest import mock

PIPE = subprocess.PIPE
DEVNULL = subprocess.DEVNULL

LIBRARIES = [
    *("matplotlib.backends.backend_agg", "matplotlib.figure", "pytest", "sacrebleu.metrics.bleu", "sentencepiece"),
    "spacy",
    *(
        "nmt.interface.app",
        "nmt.corpus.data_report",
        "nmt.corpus.download",
        "nmt.corpus.token_ids",
        "nmt.evaluation.evaluate",
    ),
    *(
        "nmt.evaluation.validator",
        "nmt.training.readiness",
        "nmt.training.run",
        "nmt.translation.stream",
        "torch._dynamo",
    ),
]
"""What commands and tests import. None of them computes anything or starts a thread, which a fork would lose."""


class Descriptor:
    """A file descriptor that goes to the new process; there it is a number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Callable[[Any], int], tuple[Any]]:
        return _received, (reduction.DupFd(self.number),)


def _received(descriptor: Any) -> int:
    return int(descriptor.detach())


@functools.cache
def _server() -> ForkServerContext:
    """The server, one for each process that runs tests. It starts with the first process asked of it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    return context


def _main(
    streams: list[int],
    arguments: list[str],
    directory: str,
    environment: dict[str, str],
    file_size: tuple[int, int],
    new_session: bool,
    prepare: Callable[[], object] | None,
    program: Callable[[], object] | None,
) -> None:
    """Become what the command would be, and run it."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    sys.stdin = os.fdopen(0, "r", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    if new_session:
        os.setsid()
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = True  # under a limit, Python keeps truncated files, for others to stumble over
    resource.setrlimit(resource.RLIMIT_FSIZE, file_size)
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["nmt", *arguments]
    if prepare is not None:
        prepare()
    if program is None:
        from nmt.__main__ import main as program
    try:
        program()
    finally:
        try:
            sys.stderr.flush()
        except OSError:  # which Python does not mind when it ends
            sys.stderr = None


class Running:
    """A process that has been started: what the tests need of `subprocess.Popen`."""

    def __init__(self, process: Any, arguments: list[str], streams: list[IO[Any] | None]) -> None:
        self._process = process
        self.args = arguments
        self.pid: int = process.pid
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = streams

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        if self.returncode is None:
            self.returncode = self._process.exitcode
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; -9 after SIGKILL."""
        if self.poll() is None:
            self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, given: str = "", timeout: float | None = None) -> tuple[Any, Any]:
        """Write its standard input, read its other streams to their ends and wait for its own."""
        pool = ThreadPoolExecutor(2)
        reading = [stream and pool.submit(stream.read) for stream in (self.stdout, self.stderr)]
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError), self.stdin as stream:
                stream.write(given)
        out, err = (each and each.result(timeout) for each in reading)
        self.wait(timeout)
        return out, err

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is not None:
            self.kill()
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.close()
        self.wait()
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()


def start(
    *arguments: object,
    stdin: int | IO[Any] | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    environment: Mapping[str, str] | None = None,
    new_session: bool = False,
    prepare: Callable[[], object] | None = None,
    program: Callable[[], object] | None = None,
) -> Running:
    """Start `nmt` with these arguments.

    Args:
        arguments: Of the command line.
        stdin: As for `subprocess.Popen`, like the other two.
        stdout: See there.
        stderr: See there.
        environment: Instead of that of the tests.
        new_session: Begin a session, so that it can have a terminal of its own.
        prepare: A function of a module that the process calls first.
        program: A function of a module to run instead of `nmt`.
    """
    words = [str(argument) for argument in arguments]
    theirs: list[int] = []
    ours: list[IO[Any] | None] = []
    with contextlib.ExitStack() as at_end:
        for number, stream in enumerate((stdin, stdout, stderr)):
            ours.append(None)
            if stream == PIPE:
                reading, writing = os.pipe()
                mine, other = (writing, reading) if number == 0 else (reading, writing)
                ours[-1] = os.fdopen(mine, "w" if number == 0 else "r", encoding="utf-8")
                at_end.callback(os.close, other)
            elif stream == DEVNULL:
                other = os.open(os.devnull, os.O_RDWR)
                at_end.callback(os.close, other)
            elif stream is None:
                other = number
            else:
                other = stream if isinstance(stream, int) else stream.fileno()
            theirs.append(other)
        process = _server().Process(
            target=_main,
            args=(
                [Descriptor(each) for each in theirs],
                words,
                str(Path.cwd()),
                dict(os.environ if environment is None else environment),
                resource.getrlimit(resource.RLIMIT_FSIZE),
                new_session,
                prepare,
                program,
            ),
        )
        with mock.patch.dict(
            os.environ, OMP_NUM_THREADS="1", LRU_CACHE_CAPACITY="128", ONEDNN_PRIMITIVE_CACHE_CAPACITY="128"
        ):  # numpy starts threads when it is imported
            process.start()
    return Running(process, words, ours)


def run(*arguments: object, given: str = "", **options: Any) -> "subprocess.CompletedProcess[Any]":
    """Run `nmt` with these arguments to its end; its streams are read unless `start` is told otherwise."""
    if given:
        options["stdin"] = PIPE
    with start(*arguments, **{"stdout": PIPE, "stderr": PIPE, **options}) as process:
        out, err = process.communicate(given)
    return subprocess.CompletedProcess(process.args, process.wait(), out, err)


def interrupt(running: int) -> None:
    """Do what a terminal does: every process of the group gets the signal."""
    os.killpg(running, signal.SIGINT)


def terminate(running: int) -> None:
    """End a process by a signal that it can handle."""
    os.kill(running, signal.SIGTERM)


def kill(running: int) -> None:
    """End a process by a signal that it cannot handle."""
    os.kill(running, signal.SIGKILL)


def assert_none_outlives(program: Callable[[], object], end: Callable[[int], None]) -> None:
    """Start a program that prints the ids of its processes without an end, and end it: all of them end with it."""
    # Every process holds the pipes: they report their ends only when all of them are gone.
    with start(stdout=PIPE, stderr=PIPE, new_session=True, program=program) as running:
        assert running.stdout
        assert int(running.stdout.readline()) != running.pid
        end(running.pid)
        try:
            _, err = running.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert err.count("Traceback") <= 1  # that of the interrupt in the program itself
    assert "ForkProcess" not in err


def limit_memory(size: int) -> None:
    """From now on this process may take `size` MiB more than it has."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (size << 20),) * 2)


def kill_at(function: str, number: int, word: str = "") -> None:
    """Let this process kill itself at the n-th call of a function, before the function does anything.

    Where a word is given, only calls with a file or folder count whose name has it. If the module is the one that
    defines the function, the calls of all modules count, else those of this module.
    """
    name, _, last = function.rpartition(".")
    place, calls = importlib.import_module(name), itertools.count(1)
    original = getattr(place, last)

    def kill(*given: object, **named: object) -> object:
        counts = not word or any(word in Path(str(value)).name for value in given)
        if counts and next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*given, **named)

    importers = [module for key, module in sys.modules.items() if key.startswith("nmt.")]
    for module in [place, *(importers if original.__module__ == name else [])]:
        if vars(module).get(last) is original:
            setattr(module, last, kill)


def show(*arguments: object, columns: int) -> tuple[int | None, str]:
    """Run `nmt` at a terminal of its own; its exit code, and all that it writes there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    streams: dict[str, Any] = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with start(*arguments, **streams, environment=environment | {"TERM": "xterm"}) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(ours, 4096):
                shown += part
    os.close(ours)
    return process.returncode, shown.decode()
