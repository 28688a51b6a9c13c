"""Sentences of many requests, gathered into batches for one model.

A translation does not depend on its batch, so that sharing one changes no answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from nmt.decoding.translator import Translation, Translator

LONG = 400
"""Characters of a sentence that gets a batch of its own, as the others would have to wait for it."""


class QueueFull(Exception):
    """More sentences wait than may; try again later."""


class Stopped(Exception):
    """The server is about to end."""


@dataclass(eq=False)
class _Job:
    """Sentences of one request.

    Attributes:
        texts: The sentences.
        n_best: Translations of each.
        with_alignment: Whether to keep alignments.
        future: Receives the translations of all, in order.
        taken: How many sentences have been put into a batch.
        found: Translations of those that are done, by number.
        largest: Sentences of the largest batch that one of them was in.
        arrived: When it was queued, in seconds of the monotonic clock.
    """

    texts: Sequence[str]
    n_best: int
    with_alignment: bool
    future: asyncio.Future[None]
    taken: int = 0
    found: dict[int, list[Translation]] = field(default_factory=dict)
    largest: int = 0
    arrived: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Translated:
    """What came of the sentences of a request.

    Attributes:
        translations: For each sentence its translations, best first.
        batch: Sentences of the largest batch that one of them was in; 0 where there was none.
    """

    translations: list[list[Translation]]
    batch: int


class Batcher:
    """One model, one thread, one queue. Requests take turns sentence by sentence, so that a large one holds up none.

    Args:
        translator: The model; its batch size bounds a batch.
        max_queue: Sentences that may wait.
        batch_wait: Seconds that a sentence waits for others.
        name: Name of the thread.
    """

    def __init__(self, translator: Translator, max_queue: int, batch_wait: float, name: str = "batcher") -> None:
        self.translator = translator
        self._max_queue = max_queue
        self._batch_wait = batch_wait
        self._jobs: deque[_Job] = deque()
        self._waiting = 0
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Sentences that wait."""
        return self._waiting

    async def translate(self, texts: Sequence[str], n_best: int = 1, with_alignment: bool = False) -> Translated:
        """Translate sentences; if the caller is cancelled, those that have not begun are dropped.

        Args:
            texts: The sentences.
            n_best: Translations of each, at most the beam size.
            with_alignment: Keep alignments.

        Raises:
            QueueFull: Too many sentences wait already.
            Stopped: The server is about to end.
            Exception: Whatever the translator raised.
        """
        if not texts:
            return Translated([], 0)
        job = _Job(texts, n_best, with_alignment, asyncio.get_running_loop().create_future())
        with self._changed:
            if self._stopping:
                raise Stopped
            if self._waiting + len(texts) > self._max_queue:
                raise QueueFull
            self._jobs.append(job)
            self._waiting += len(texts)
            self._changed.notify()
        try:
            await job.future
        finally:
            self._drop(job)
        return Translated([job.found[number] for number in range(len(texts))], job.largest)

    def stop(self, seconds: float) -> None:
        """Take no more sentences, drop those that wait, and give the batch at work some time to end."""
        with self._changed:
            self._stopping = True
            for job in list(self._jobs):
                _deliver(job, Stopped())
            self._jobs.clear()
            self._waiting = 0
            self._changed.notify()
        self._thread.join(seconds)

    def _drop(self, job: _Job) -> None:
        """Take a job out of the queue, if it is still there."""
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)
                self._waiting -= len(job.texts) - job.taken

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            self._translate(batch)

    def _next_batch(self) -> list[tuple[_Job, int]] | None:
        """The sentences to translate next, as a job and a number each; None when it is time to end."""
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
        """One sentence of each job in turn; only such as may share a batch with the first."""
        batch: list[tuple[_Job, int]] = []
        passed: list[_Job] = []
        while self._jobs and len(batch) < size:
            job = self._jobs.popleft()
            if batch and not _may_share(batch[0], (job, job.taken)):
                passed.append(job)
                continue
            batch.append((job, job.taken))
            job.taken += 1
            if job.taken < len(job.texts):
                self._jobs.append(job)
        self._jobs.extendleft(reversed(passed))
        self._waiting -= len(batch)
        return batch

    def _translate(self, batch: list[tuple[_Job, int]]) -> None:
        first, _ = batch[0]
        texts = [job.texts[number] for job, number in batch]
        try:
            found = self.translator.translate(texts, first.n_best, first.with_alignment)
        except Exception as error:  # whatever it is, the requests end with it and the thread goes on
            for job, _ in batch:
                self._drop(job)
                _deliver(job, error)
            return
        for (job, number), translations in zip(batch, found, strict=True):
            job.found[number] = translations
            job.largest = max(job.largest, len(batch))
            if len(job.found) == len(job.texts):
                _deliver(job, None)


def _may_share(one: tuple[_Job, int], other: tuple[_Job, int]) -> bool:
    """Whether two sentences are translated alike, and neither would hold up the other."""
    kinds = {(job.n_best, job.with_alignment) for job, _ in (one, other)}
    return len(kinds) == 1 and all(len(job.texts[number]) <= LONG for job, number in (one, other))


def _deliver(job: _Job, error: Exception | None) -> None:
    """Wake whoever waits for a job, in its own thread."""

    def wake() -> None:
        if job.future.done():
            return
        if error is None:
            job.future.set_result(None)
        else:
            job.future.set_exception(error)

    with contextlib.suppress(RuntimeError):  # its event loop is closed: nobody waits
        job.future.get_loop().call_soon_threadsafe(wake)
