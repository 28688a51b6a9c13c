"""A parallel `map` over chunks, in order and in bounded memory."""

import itertools
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from nmt.system.errors import DataError
from nmt.system.process_pool import PER_CORE, available_cores

MANY_CHUNKS = 5
"""With at least so many chunks of 20,000 lines or a megabyte, starting more processes pays off."""

In = TypeVar("In")
Out = TypeVar("Out")


def map_chunks(work: Callable[[In], Out], chunks: Iterable[In], workers: int | None) -> Iterator[Out]:
    """Apply `work` to chunks, in order.

    Args:
        work: A function that can be pickled.
        chunks: Read as they are needed: a few per worker are in memory at a time.
        workers: Number of processes, limited to `PER_CORE` per core; 1 works in this process; None uses every core
            if there are many chunks.

    Yields:
        The result of `work` for each chunk.

    Raises:
        DataError: A process was killed.
    """
    if workers is None:
        chunks = iter(chunks)
        first = list(itertools.islice(chunks, MANY_CHUNKS))
        workers = available_cores() if len(first) == MANY_CHUNKS else 1
        chunks = itertools.chain(first, chunks)
    workers = min(workers, PER_CORE * available_cores())
    if workers == 1:
        yield from map(work, chunks)
        return
    # Forked workers start at once; elsewhere they have to import everything again.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_exit_with_parent) as pool:
        waiting: deque[Future[Out]] = deque()
        try:
            for chunk in chunks:
                waiting.append(pool.submit(work, chunk))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise DataError(
                f"one of {workers} processes was killed, perhaps for lack of memory; lower data.workers"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _exit_with_parent() -> None:
    """Leave Ctrl-C to the parent, and exit when the parent has ended for whatever reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()

    def end() -> None:
        if parent:
            parent.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
