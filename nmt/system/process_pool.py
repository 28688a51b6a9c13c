"""Processes that work on the chunks of a long task: results come in order, and all processes end together."""

from __future__ import annotations

import contextlib
import itertools
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, NamedTuple, Self, TypeVar

from nmt.system.errors import DataError, NmtError, as_nmt_errors
from nmt.system.messages import Parameter
from nmt.system.signals import held_signals

PER_CORE = 4
"""Maximum number of processes per core: more only use memory, and thousands use all there is."""
AHEAD = 2
"""Maximum number of chunks in memory per process, those included whose results wait for an earlier one."""

In = TypeVar("In")
Out = TypeVar("Out")
Advance = Callable[[int], object]
"""Called with the number of finished items of a chunk."""


def available_cores() -> int:
    """Processor cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def ignore(count: int) -> None:
    """Finished items that nobody counts."""


class _Outcome(NamedTuple):
    """The end of the work on a chunk.

    Attributes:
        result: The result; None if the work failed.
        error: The error with which it failed, or None.
        records: Messages that it logged.
    """

    result: Any
    error: Exception | None
    records: list[logging.LogRecord]


@dataclass
class _Task:
    """A chunk that a process has; the outcome is None until it is done."""

    outcome: _Outcome | None = None


@dataclass
class _Worker:
    """A process, its connection, and the task that it works on, if it has one."""

    process: BaseProcess
    connection: Connection
    task: _Task | None = None


class ProcessPool(Generic[In, Out]):
    """Processes that apply the same function to chunks.

    They start when there is more than one chunk, and are killed at the end of the `with` block. On Linux they are
    forked, so that they start at once and share the memory of the function's models. Elsewhere they import everything
    again: a script calls this below `if __name__ == "__main__":`.

    Args:
        work: Called with a chunk and with a function that takes the number of items that it has finished.
        number: Number of processes, limited to `PER_CORE` per core; 1 works in this process.
        prepare: Called in each process with `work`; returns the function that the process uses.
        parameter: The parameter that sets the number, for messages.
    """

    def __init__(
        self,
        work: Callable[[In, Advance], Out],
        number: int,
        prepare: Callable[[Any], Any] | None = None,
        parameter: Parameter = Parameter("workers"),
    ) -> None:
        self._work = work
        self._number = min(number, PER_CORE * available_cores())
        self._prepare = prepare
        self._parameter = parameter
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()

    def map(self, chunks: Iterable[In], advance: Advance = ignore) -> Iterator[Out]:
        """Apply the function to chunks, in order.

        Args:
            chunks: Read as they are needed: at most `AHEAD` per process are in memory at a time. A single one stays in
                this process.
            advance: Called with numbers of finished items.

        Yields:
            The result for each chunk.

        Raises:
            DataError: A process was killed.
        """
        chunks = iter(chunks)
        first = list(itertools.islice(chunks, self._number))
        chunks = itertools.chain(first, chunks)
        if len(first) < 2:
            for chunk in chunks:
                yield self._work(chunk, advance)
            return
        self._start(len(first))
        waiting: deque[_Task] = deque()
        for chunk in chunks:
            waiting.append(self._give(chunk))
            # Before the next chunk is read, a process must be idle, and few results wait for an earlier one.
            while not self._idle() or (len(waiting) >= AHEAD * self._number and waiting[0].outcome is None):
                self._receive(advance)
            while waiting and waiting[0].outcome is not None:
                yield _result(waiting.popleft())
        while waiting:
            while waiting[0].outcome is None:
                self._receive(advance)
            yield _result(waiting.popleft())

    def _start(self, number: int) -> None:
        """Start processes until there are so many."""
        is_linux = sys.platform == "linux"
        context = multiprocessing.get_context("fork") if is_linux else multiprocessing.get_context("spawn")
        with held_signals():
            while len(self._workers) < number:
                ours, theirs = context.Pipe()
                arguments = (theirs, self._work, self._prepare)
                process = context.Process(target=_serve, args=arguments, daemon=True)
                process.start()
                theirs.close()
                self._workers.append(_Worker(process, ours))

    def _idle(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker.task is None]

    def _give(self, chunk: In) -> _Task:
        """Give a chunk to an idle process."""
        worker = self._idle()[0]
        worker.task = _Task()
        with self._naming_the_end_of(worker):
            worker.connection.send_bytes(pickle.dumps(chunk))
        return worker.task

    def _receive(self, advance: Advance) -> None:
        """Wait for messages of processes, which count finished items or are the outcomes of tasks."""
        busy = [worker for worker in self._workers if worker.task is not None]
        ready = wait([worker.connection for worker in busy])
        for worker in busy:
            if worker.connection not in ready:
                continue
            with self._naming_the_end_of(worker):
                message = pickle.loads(worker.connection.recv_bytes())
            if isinstance(message, _Outcome):
                assert worker.task is not None
                worker.task.outcome = message
                worker.task = None
            else:
                advance(message)

    @contextlib.contextmanager
    def _naming_the_end_of(self, worker: _Worker) -> Iterator[None]:
        """Turn the end of a connection into an error about its process."""
        try:
            yield
        except (EOFError, OSError):
            raise DataError(
                "one of {number} processes was killed, perhaps for lack of memory; lower {parameter}",
                number=self._number,
                parameter=self._parameter,
            ) from None


def _result(task: _Task) -> Any:
    """The result of a task that is done; what it logged is logged here.

    Raises:
        Exception: The work failed.
    """
    assert task.outcome is not None
    for record in task.outcome.records:
        logging.getLogger(record.name).handle(record)
    if task.outcome.error is not None:
        raise task.outcome.error
    return task.outcome.result


class _Records(logging.Handler):
    """Keeps logged messages."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self.records.append(record)


def _serve(connection: Connection, work: Callable[[Any, Advance], Any], prepare: Callable[[Any], Any] | None) -> None:
    """Work on chunks in this process, until the process that started it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A thread of a forked process has no threads of OpenMP to wait for; those of the main thread are not there.
    threading.Thread(target=_work_on_chunks, args=(connection, work, prepare), daemon=True).start()
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _work_on_chunks(
    connection: Connection, work: Callable[[Any, Advance], Any], prepare: Callable[[Any], Any] | None
) -> None:
    """Work on chunks until the connection ends."""
    handler = _Records()
    logger = logging.getLogger("nmt")
    logger.handlers = [handler]
    logger.propagate = False

    def send(message: object) -> None:
        # Not Connection.send: tensors would go through shared memory, of which containers have little.
        connection.send_bytes(pickle.dumps(message))

    try:
        while True:
            chunk = pickle.loads(connection.recv_bytes())
            handler.records = []
            result = None
            failure: Exception | None = None
            try:
                with as_nmt_errors():
                    if prepare is not None:
                        work = prepare(work)
                        prepare = None
                    result = work(chunk, send)
            except NmtError as error:
                failure = error
            except Exception as error:  # others cannot always be pickled
                failure = RuntimeError("".join(traceback.format_exception(error)))
            send(_Outcome(result, failure, handler.records))
    finally:
        os._exit(1)  # the other end of the connection has gone
