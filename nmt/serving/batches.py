"""Batches of sentences from many requests, for one model.

A translation does not depend on its batch, so batching requests together does not change their results.
"""

import asyncio
import contextlib
import threading
import time
from bisect import insort
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from operator import attrgetter
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
        translations: Those of the sentences that are done, by index.
        batch: Size of the largest batch that any of them was in.
        arrived: When it was queued, in seconds of the monotonic clock.
    """

    sentences: Sequence[list[str]]
    n_best: int = 1
    with_alignment: bool = False
    work: Callable[[], object] | None = None
    result: Future[Any] = field(default_factory=Future)
    translations: dict[int, list[Translation]] = field(default_factory=dict)
    batch: int = 0
    arrived: float = field(default_factory=time.monotonic)

    def finish(self, result: object) -> None:
        """Deliver a result, or an error, unless the request has ended."""
        with contextlib.suppress(InvalidStateError):
            if isinstance(result, Exception):
                self.result.set_exception(result)
            else:
                self.result.set_result(result)


class _Waiting(NamedTuple):
    """A sentence in the queue.

    Attributes:
        turn: Its place: the sentences of a request have one turn after another, those of several requests share them.
        job: Its request.
        number: Its index there.
        length: Its tokens.
    """

    turn: int
    job: _Job
    number: int
    length: int

    @property
    def kind(self) -> tuple[object, ...]:
        """What it must have in common with the sentences that share its batch."""
        return self.job.n_best, self.job.with_alignment, self.job.work, self.length > LONG


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
        self.queue: list[_Waiting] = []  # in the order of their turns
        self._turn = 0  # of the sentences that are translated now
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=THREAD + name, daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """Number of waiting sentences."""
        return len(self.queue)

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
            if len(self.queue) + len(job.sentences) > self._max_queue:
                raise QueueFull
            lengths = sorted(enumerate(map(len, job.sentences)), key=lambda pair: pair[1] > LONG)  # long ones last
            for turn, pair in enumerate(lengths, start=self._turn):
                insort(self.queue, _Waiting(turn, job, *pair), key=attrgetter("turn"))
            self._changed.notify()
        try:
            return await asyncio.wrap_future(job.result)
        except BaseException:  # it failed, or nobody waits for it any more
            self._drop(job)
            raise

    def stop(self, seconds: float = 0.0) -> None:
        """Accept no more sentences, drop those that are waiting, and give the current batch some time to finish."""
        with self._changed:
            self._stopping = True
            for job in {waiting.job for waiting in self.queue}:
                job.finish(ServerStopping())
            self.queue.clear()
            self._changed.notify()
        self._thread.join(seconds)

    def _drop(self, job: _Job) -> None:
        """Remove the sentences of a job from the queue."""
        with self._changed:
            self.queue = [waiting for waiting in self.queue if waiting.job is not job]

    def _work(self) -> None:
        while batch := self._next_batch():
            self._translate(batch)

    def _next_batch(self) -> list[_Waiting]:
        """The sentences to translate next; none when the server is stopping."""
        with self._changed:
            while not self._stopping:
                size = self.translator.options.batch_size
                left = self.queue[0].job.arrived + self._batch_wait - time.monotonic() if self.queue else None
                if left is not None and (left <= 0 or len(self.queue) >= size):
                    return self._take(size)
                self._changed.wait(left)
            return []

    def _take(self, size: int) -> list[_Waiting]:
        """Take the first sentence from the queue, and those after it that may share its batch."""
        first, longest = self.queue[0], 0
        batch: list[_Waiting] = []
        skipped: list[_Waiting] = []
        for waiting in self.queue:
            length = max(longest, waiting.length)
            is_crowded = batch and length > LONG and (len(batch) + 1) * length > size * LONG // 4
            if len(batch) == size or waiting.kind != first.kind or is_crowded:
                skipped.append(waiting)
            else:
                longest = length
                batch.append(waiting)
        self.queue, self._turn = skipped, first.turn
        return batch

    def _translate(self, batch: Sequence[_Waiting]) -> None:
        first = batch[0].job
        try:
            if first.work is not None:
                first.finish(first.work())
                return
            sentences = [job.sentences[number] for _, job, number, _ in batch]
            translations = self.translator.translate_tokens(sentences, first.n_best, first.with_alignment)
        except Exception as error:  # it fails the requests, but does not end the thread
            for waiting in batch:
                self._drop(waiting.job)
                waiting.job.finish(error)
            return
        for (_, job, number, _), hypotheses in zip(batch, translations, strict=True):
            job.translations[number] = hypotheses
            job.batch = max(job.batch, len(batch))
            if len(job.translations) == len(job.sentences):
                job.finish(Translated([job.translations[n] for n in range(len(job.sentences))], job.batch))
