"""Batches of sentences from many requests, for one model.

A translation does not depend on its batch, so batching requests together does not change their results.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from nmt.translation.translation import Translation
from nmt.translation.translator import Translator

THREAD = "nmt model "
"""What the names of the models' threads begin with."""
LONG = 50
"""Sentences with more tokens do not share a batch with shorter ones, which would have to wait for them."""


T = TypeVar("T")


class QueueFull(Exception):
    """Too many sentences are waiting; try again later."""


class Stopped(Exception):
    """The server is stopping."""


@dataclass(eq=False)
class _Job:
    """Sentences of one request.

    Attributes:
        sentences: The tokens of each sentence.
        n_best: Translations per sentence.
        with_alignment: Whether to keep alignments.
        future: Done when all sentences are translated.
        order: Indices of the sentences in the order in which they are translated: long ones last.
        taken: How many sentences have been put into a batch.
        found: Translations of the sentences that are done, by index.
        largest: Size of the largest batch that any of them was in.
        work: Called instead of translating; it does not share a batch.
        arrived: When it was queued, in seconds of the monotonic clock.
    """

    sentences: Sequence[list[str]]
    n_best: int
    with_alignment: bool
    future: asyncio.Future[None]
    order: list[int] = field(init=False)
    taken: int = 0
    found: dict[int, list[Translation]] = field(default_factory=dict)
    largest: int = 0
    work: Callable[[], object] | None = None
    arrived: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.order = sorted(range(len(self.sentences)), key=lambda number: len(self.sentences[number]) > LONG)


@dataclass(frozen=True)
class Translated:
    """The translations of the sentences of a request.

    Attributes:
        translations: For each sentence its translations, best first.
        batch: Size of the largest batch that any of them was in; 0 if there are no sentences.
    """

    translations: list[list[Translation]]
    batch: int


class Batcher:
    """One model, one thread, one queue. Requests take turns sentence by sentence: a large one delays no other by more
    than a batch.

    Args:
        translator: The model; its batch size bounds a batch.
        max_queue: Maximum number of waiting sentences.
        batch_wait: Seconds that a sentence waits for others to share its batch.
        name: Name of the model, for that of the thread.
    """

    def __init__(self, translator: Translator, max_queue: int, batch_wait: float, name: str = "batcher") -> None:
        self.translator = translator
        self._max_queue = max_queue
        self._batch_wait = batch_wait
        self._jobs: deque[_Job] = deque()
        self._waiting = 0
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=THREAD + name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of waiting sentences."""
        return self._waiting

    async def translate(
        self, sentences: Sequence[list[str]], n_best: int = 1, with_alignment: bool = False
    ) -> Translated:
        """Translate sentences; if the caller is cancelled, those not yet begun are dropped.

        Args:
            sentences: The tokens of each, as `Translator.read` finds them.
            n_best: Translations per sentence, at most the beam size.
            with_alignment: Keep alignments.

        Raises:
            QueueFull: Too many sentences are waiting.
            Stopped: The server is stopping.
            Exception: Any error of the translator.
        """
        if not sentences:
            return Translated([], 0)
        job = _Job(sentences, n_best, with_alignment, asyncio.get_running_loop().create_future())
        await self._finish(job)
        return Translated([job.found[number] for number in range(len(sentences))], job.largest)

    async def call(self, work: Callable[[], T]) -> T:
        """Call a function in the model's thread, when its turn comes: it counts as one sentence.

        Args:
            work: The function.

        Raises:
            QueueFull: Too many sentences are waiting.
            Stopped: The server is stopping.
            Exception: Any error of the function.
        """
        results: list[T] = []
        future = asyncio.get_running_loop().create_future()
        await self._finish(_Job([[]], 1, False, future, work=lambda: results.append(work())))
        return results[0]

    async def _finish(self, job: _Job) -> None:
        """Queue a job and wait for it."""
        with self._changed:
            if self._stopping:
                raise Stopped
            if self._waiting + len(job.sentences) > self._max_queue:
                raise QueueFull
            self._jobs.append(job)
            self._waiting += len(job.sentences)
            self._changed.notify()
        try:
            await job.future
        finally:
            self._drop(job)

    def stop(self, seconds: float = 0.0) -> None:
        """Accept no more sentences, drop those that are waiting, and give the current batch some time to finish."""
        with self._changed:
            self._stopping = True
            for job in list(self._jobs):
                _deliver(job, Stopped())
            self._jobs.clear()
            self._waiting = 0
            self._changed.notify()
        self._thread.join(seconds)

    def _drop(self, job: _Job) -> None:
        """Remove a job from the queue, if it is still there."""
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)
                self._waiting -= len(job.sentences) - job.taken

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            self._translate(batch)
            with self._changed:
                for job in dict.fromkeys(job for job, _ in batch):
                    if job in self._jobs:  # its next sentences come after those of all others that wait
                        self._jobs.remove(job)
                        self._jobs.append(job)

    def _next_batch(self) -> list[tuple[_Job, int]] | None:
        """The sentences to translate next, each as a job and an index; None when the server is stopping."""
        size = self.translator.options.batch_size
        with self._changed:
            while not self._stopping:
                if self._jobs:
                    left = self._jobs[0].arrived + self._batch_wait - time.monotonic()
                    if left <= 0 or self._waiting >= size:
                        return self._take(size)
                    self._changed.wait(left)
                else:
                    self._changed.wait()
            return None

    def _take(self, size: int) -> list[tuple[_Job, int]]:
        """Take sentences from the jobs in turn, only those that may share a batch with the first."""
        batch: list[tuple[_Job, int]] = []
        skipped: list[_Job] = []
        longest = 0
        while self._jobs and len(batch) < size:
            job = self._jobs.popleft()
            number = job.order[job.taken]
            length = max(longest, len(job.sentences[number]))
            fits = length <= LONG or (len(batch) + 1) * length <= size * LONG // 4
            if batch and not (fits and _may_share(batch[0], (job, number))):
                skipped.append(job)
                continue
            longest = length
            batch.append((job, number))
            job.taken += 1
            if job.taken < len(job.sentences):
                self._jobs.append(job)
        self._jobs.extendleft(reversed(skipped))
        self._waiting -= len(batch)
        return batch

    def _translate(self, batch: list[tuple[_Job, int]]) -> None:
        first, _ = batch[0]
        sentences = [job.sentences[number] for job, number in batch]
        try:
            if first.work is None:
                found = self.translator.translate_tokens(sentences, first.n_best, first.with_alignment)
            else:
                first.work()
                found = [[]]
        except Exception as error:  # it fails the requests, but does not end the thread
            for job, _ in batch:
                self._drop(job)
                _deliver(job, error)
            return
        for (job, number), translations in zip(batch, found, strict=True):
            job.found[number] = translations
            job.largest = max(job.largest, len(batch))
            if len(job.found) == len(job.sentences):
                _deliver(job, None)


def _may_share(one: tuple[_Job, int], other: tuple[_Job, int]) -> bool:
    """Whether two sentences are translated with the same options, and both are long or neither is."""
    kinds = {
        (job.n_best, job.with_alignment, job.work, len(job.sentences[number]) > LONG) for job, number in (one, other)
    }
    return len(kinds) == 1


def _deliver(job: _Job, error: Exception | None) -> None:
    """Complete the future of a job, in its own thread."""

    def complete() -> None:
        if job.future.done():
            return
        if error is None:
            job.future.set_result(None)
        else:
            job.future.set_exception(error)

    with contextlib.suppress(RuntimeError):  # its event loop is closed
        job.future.get_loop().call_soon_threadsafe(complete)
