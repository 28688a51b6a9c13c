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
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

from nmt.translation.translation import Translation
from nmt.translation.translator import Translator

THREAD = "nmt model "
"""What the names of the models' threads begin with."""
LONG = 50
"""Sentences with more tokens do not share a batch with shorter ones, which would have to wait for them."""

T = TypeVar("T")


class QueueFull(Exception):
    """Too many sentences are waiting; try again later."""


class ServerStopping(Exception):
    """The server is stopping."""


class Translated(NamedTuple):
    """The translations of the sentences of a request.

    Attributes:
        translations: For each sentence its translations, best first.
        batch: Size of the largest batch that any of them was in; 0 if there are no sentences.
    """

    translations: list[list[Translation]]
    batch: int


@dataclass(eq=False)
class _Job:
    """The sentences of a request.

    Attributes:
        sentences: The tokens of each sentence.
        n_best: Translations per sentence.
        with_alignment: Whether to keep alignments.
        work: Called instead of translating; it does not share a batch.
        result: Receives what `Batcher.translate` or the work returns.
        waiting: Indices of the sentences that wait, in the order in which they are translated: long ones last.
        translations: Those of the sentences that are done, by index.
        batch: Size of the largest batch that any of them was in.
        arrived: When it was queued, in seconds of the monotonic clock.
    """

    sentences: Sequence[list[str]]
    n_best: int = 1
    with_alignment: bool = False
    work: Callable[[], object] | None = None
    result: Future[Any] = field(default_factory=Future)
    waiting: deque[int] = field(init=False)
    translations: dict[int, list[Translation]] = field(default_factory=dict)
    batch: int = 0
    arrived: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.waiting = deque(sorted(range(len(self.sentences)), key=lambda index: len(self.sentences[index]) > LONG))

    @property
    def next_length(self) -> int:
        """Tokens of its next sentence."""
        return len(self.sentences[self.waiting[0]])

    @property
    def kind(self) -> tuple[object, ...]:
        """What its next sentence must have in common with those that share its batch."""
        return self.n_best, self.with_alignment, self.work, self.next_length > LONG

    def finish(self, result: object) -> None:
        """Deliver a result, or an error, unless the request has ended."""
        with contextlib.suppress(InvalidStateError):
            if isinstance(result, Exception):
                self.result.set_exception(result)
            else:
                self.result.set_result(result)


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
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=THREAD + name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of waiting sentences."""
        with self._changed:
            return sum(len(job.waiting) for job in self._jobs)

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
            ServerStopping: The server is stopping.
            Exception: Any error of the translator.
        """
        if not sentences:
            return Translated([], 0)
        return cast(Translated, await self._finish(_Job(sentences, n_best, with_alignment)))

    async def call(self, work: Callable[[], T]) -> T:
        """Call a function in the model's thread, when its turn comes: it counts as one sentence.

        Args:
            work: The function.

        Raises:
            QueueFull: Too many sentences are waiting.
            ServerStopping: The server is stopping.
            Exception: Any error of the function.
        """
        return cast(T, await self._finish(_Job([[]], work=work)))

    async def _finish(self, job: _Job) -> object:
        """Queue a job and wait for it."""
        with self._changed:
            if self._stopping:
                raise ServerStopping
            if self.waiting + len(job.sentences) > self._max_queue:
                raise QueueFull
            self._jobs.append(job)
            self._changed.notify()
        try:
            return await asyncio.wrap_future(job.result)
        finally:
            self._drop(job)

    def stop(self, seconds: float = 0.0) -> None:
        """Accept no more sentences, drop those that are waiting, and give the current batch some time to finish."""
        with self._changed:
            self._stopping = True
            for job in self._jobs:
                job.finish(ServerStopping())
            self._jobs.clear()
            self._changed.notify()
        self._thread.join(seconds)

    def _drop(self, job: _Job) -> None:
        """Remove a job from the queue, if it is still there."""
        with self._changed, contextlib.suppress(ValueError):
            self._jobs.remove(job)

    def _work(self) -> None:
        while batch := self._next_batch():
            self._translate(batch)
            with self._changed:
                for job in dict.fromkeys(job for job, _ in batch):
                    if job in self._jobs:  # its next sentences come after those of all others that wait
                        self._jobs.remove(job)
                        self._jobs.append(job)

    def _next_batch(self) -> list[tuple[_Job, int]]:
        """The sentences to translate next, each as a job and an index; none when the server is stopping."""
        size = self.translator.options.batch_size
        with self._changed:
            while not self._stopping:
                left = self._jobs[0].arrived + self._batch_wait - time.monotonic() if self._jobs else None
                if left is not None and (left <= 0 or self.waiting >= size):
                    return self._take(size)
                self._changed.wait(left)
            return []

    def _take(self, size: int) -> list[tuple[_Job, int]]:
        """Take sentences from the jobs in turn, only those that may share a batch with the first."""
        batch: list[tuple[_Job, int]] = []
        skipped: list[_Job] = []
        kind, longest = self._jobs[0].kind, 0
        while self._jobs and len(batch) < size:
            job = self._jobs.popleft()
            length = max(longest, job.next_length)
            if batch and (job.kind != kind or (length > LONG and (len(batch) + 1) * length > size * LONG // 4)):
                skipped.append(job)
                continue
            longest = length
            batch.append((job, job.waiting.popleft()))
            if job.waiting:
                self._jobs.append(job)
        self._jobs.extendleft(reversed(skipped))
        return batch

    def _translate(self, batch: list[tuple[_Job, int]]) -> None:
        first, _ = batch[0]
        try:
            if first.work is not None:
                first.finish(first.work())
                return
            sentences = [job.sentences[index] for job, index in batch]
            translations = self.translator.translate_tokens(sentences, first.n_best, first.with_alignment)
        except Exception as error:  # it fails the requests, but does not end the thread
            for job, _ in batch:
                self._drop(job)
                job.finish(error)
            return
        for (job, index), hypotheses in zip(batch, translations, strict=True):
            job.translations[index] = hypotheses
            job.batch = max(job.batch, len(batch))
            if len(job.translations) == len(job.sentences):
                job.finish(Translated([job.translations[n] for n in range(len(job.sentences))], job.batch))
