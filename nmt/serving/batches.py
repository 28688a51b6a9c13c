"""Batches of sentences from many requests, for one model.

A translation does not depend on its batch, so batching requests together does not change their results.
"""

import asyncio
import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, cast

from nmt.translation.reader import Unit
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator

THREAD = "nmt model "
"""Beginning of the names of the models' threads."""
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


def count_places(tokens: int) -> int:
    """Places that a sentence takes in the queue: one for each `LONG` tokens, a part counting as a whole."""
    return max(1, math.ceil(tokens / LONG))


class _Waiting(NamedTuple):
    """A sentence in the queue, or a function that is called in place of translating.

    Attributes:
        number: Its index in its request; 0 of a function.
        tokens: Its length; of a function, the number of tokens that could be translated meanwhile.
    """

    number: int
    tokens: int

    @property
    def cost(self) -> int:
        """Tokens that its client has had when it is done: the end of a sentence is one."""
        return self.tokens + 1

    @property
    def places(self) -> int:
        """Places that it takes in the queue."""
        return count_places(self.tokens)


@dataclass(eq=False)
class _Job:
    """The sentences of a request.

    Attributes:
        units: Its sentences.
        client: Whose request it is.
        n_best: Translations per sentence.
        with_alignment: True if alignments are kept.
        work: Called instead of translating; it does not share a batch.
        cost: Tokens that could be translated in the time of the work.
        waiting: The sentences that have not begun, long ones last.
        places: Places that these take in the queue.
        had: Tokens that it has had, on the clock of its client.
        result: Receives the result of `Batcher.translate` or of the work.
        translations: Those of the sentences that are done, by index.
        batch: Size of the largest batch that any of them was in.
        arrived: When it was queued, in seconds of the monotonic clock.
    """

    units: Sequence[Unit]
    client: Hashable
    n_best: int = 1
    with_alignment: bool = False
    work: Callable[[], object] | None = None
    cost: int = 0
    waiting: deque[_Waiting] = field(init=False)
    places: int = field(init=False)
    had: int = 0
    result: Future[Any] = field(default_factory=Future)
    translations: dict[int, list[Translation]] = field(default_factory=dict)
    batch: int = 0
    arrived: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        lengths = [self.cost] if self.work else [len(unit) for unit in self.units]
        waiting = [_Waiting(number, length) for number, length in enumerate(lengths)]
        waiting.sort(key=lambda sentence: sentence.tokens > LONG)
        self.waiting = deque(waiting)
        self.places = sum(sentence.places for sentence in waiting)

    @property
    def end(self) -> int:
        """Tokens that it will have had after its next sentence."""
        return self.had + self.waiting[0].cost

    @property
    def kind(self) -> tuple[object, ...]:
        """The properties that its next sentence shares with all of its batch."""
        return self.n_best, self.with_alignment, self.work, self.waiting[0].tokens > LONG

    def finish(self, result: object) -> None:
        """Deliver a result, or an error, unless the request has ended."""
        with contextlib.suppress(InvalidStateError):
            if isinstance(result, Exception):
                self.result.set_exception(result)
            else:
                self.result.set_result(result)


@dataclass(eq=False)
class _Client:
    """Someone who sends requests.

    Attributes:
        jobs: Its requests with sentences in the queue.
        had: Tokens that it has had, on the clock of the batcher.
        clock: Tokens that its request with the latest turn had after it; a new request begins there.
    """

    jobs: list[_Job] = field(default_factory=list)
    had: int = 0
    clock: int = 0


class Batcher:
    """One model, one thread, one queue. Clients take turns, and so do the requests of each, in equal shares of tokens.

    The turn goes to the sentence that would end first, had each client, and each of its requests, an equal part of the
    model (self-clocked fair queueing; Golestani, 1994). A large request thus delays a small one by at most a batch.

    Args:
        translator: The model; its batch size bounds a batch.
        max_queue: Maximum number of waiting sentences; one of more than `LONG` tokens counts as several.
        batch_wait: Seconds that a sentence waits for others to share its batch.
        name: Name of the model, for that of the thread.
    """

    def __init__(self, translator: Translator, max_queue: int, batch_wait: float, name: str = "batcher") -> None:
        self.translator = translator
        self._max_queue = max_queue
        self._batch_wait = batch_wait
        self._clients: dict[Hashable, _Client] = {}
        self._clock = 0  # tokens that the client with the latest turn had after it; a new client begins there
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=THREAD + name, daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """Number of waiting sentences."""
        with self._changed:
            return sum(len(job.waiting) for job in self._jobs())

    async def translate(
        self, units: Sequence[Unit], n_best: int = 1, with_alignment: bool = False, client: Hashable = None
    ) -> Translated:
        """Translate sentences; if the caller is cancelled, those not yet begun are dropped.

        Args:
            units: The sentences, as the reader finds them.
            n_best: Translations per sentence, at most the beam size.
            with_alignment: Keep alignments.
            client: Whose turn it is to be.

        Raises:
            QueueFull: Too many sentences are waiting.
            ServerStopping: The server is stopping.
            Exception: Any error of the translator.
        """
        if not units:
            return Translated([], 0)
        return cast(Translated, await self._finish(_Job(units, client, n_best, with_alignment)))

    async def call(self, work: Callable[[], T], cost: int = 0, client: Hashable = None) -> T:
        """Call a function in the model's thread, when its turn comes.

        Args:
            work: The function.
            cost: Number of tokens that could be translated meanwhile.
            client: Whose turn it is to be.

        Raises:
            QueueFull: Too many sentences are waiting.
            ServerStopping: The server is stopping.
            Exception: Any error of the function.
        """
        return cast(T, await self._finish(_Job([Unit([])], client, work=work, cost=cost)))

    async def _finish(self, job: _Job) -> object:
        """Queue a job and wait for it."""
        with self._changed:
            if self._stopping:
                raise ServerStopping
            waiting = self._jobs()
            if waiting and sum(job.places for job in waiting) + job.places > self._max_queue:
                raise QueueFull
            self._join(job)
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
            for job in self._jobs():
                job.finish(ServerStopping())
            self._clients.clear()
            self._changed.notify()
        self._thread.join(seconds)

    def _jobs(self) -> list[_Job]:
        """The requests with sentences in the queue."""
        return [job for client in self._clients.values() for job in client.jobs]

    def _join(self, job: _Job) -> None:
        """Let a request wait for its turn."""
        # A client without requests is forgotten when the others have had as much.
        for key, client in list(self._clients.items()):
            if not client.jobs and client.had <= self._clock:
                del self._clients[key]
        client = self._clients.setdefault(job.client, _Client())
        if not client.jobs:
            client.had = max(client.had, self._clock)
        job.had = client.clock
        client.jobs.append(job)

    def _drop(self, job: _Job) -> None:
        """Remove the sentences of a job from the queue."""
        with self._changed:
            for client in self._clients.values():
                client.jobs = [waiting_job for waiting_job in client.jobs if waiting_job is not job]

    def _work(self) -> None:
        while batch := self._next_batch():
            self._translate(batch)

    def _next_batch(self) -> list[tuple[_Job, int]]:
        """The sentences to translate next, by request and index; none when the server is stopping."""
        with self._changed:
            while not self._stopping:
                jobs = self._jobs()
                if not jobs:
                    self._clients.clear()
                    self._clock = 0
                    self._changed.wait()
                    continue
                # A batch begins when it is full, or when its first sentence has waited long enough.
                size = self.translator.options.batch_size
                is_full = sum(len(job.waiting) for job in jobs) >= size
                seconds = min(job.arrived for job in jobs) + self._batch_wait - time.monotonic()
                if is_full or seconds <= 0:
                    return self._take(size)
                self._changed.wait(seconds)
            return []

    def _take(self, size: int) -> list[tuple[_Job, int]]:
        """Take the sentence whose turn it is from the queue, and the next ones that may share its batch."""
        batch: list[tuple[_Job, int]] = []
        kind: object = None
        longest = 0
        # The requests of each client that may still have sentences for this batch.
        candidates = {client: list(client.jobs) for client in self._clients.values() if client.jobs}
        while candidates and len(batch) < size:
            # The turn: of the clients' next requests the one whose client would be the first to have had its sentence.
            turns = [(client, min(jobs, key=attrgetter("end"))) for client, jobs in candidates.items()]
            client, job = min(turns, key=lambda turn: turn[0].had + turn[1].waiting[0].cost)
            is_first = not batch
            if is_first:
                kind = job.kind
            # A batch of long sentences is smaller, as all are padded to the longest.
            length = max(longest, job.waiting[0].tokens)
            is_crowded = length > LONG and (len(batch) + 1) * length > size * LONG // 4
            fits = is_first or (job.kind == kind and not is_crowded)
            if fits:
                longest = length
                batch.append((job, self._begin(client, job, is_first)))
            if not fits or not job.waiting:
                candidates[client].remove(job)
            if not candidates[client]:
                del candidates[client]
        return batch

    def _begin(self, client: _Client, job: _Job, is_first: bool) -> int:
        """Take the next sentence of a request; the first of a batch moves the clocks, and others ride along.

        Returns:
            Its index.
        """
        waiting = job.waiting.popleft()
        job.places -= waiting.places
        job.had += waiting.cost
        client.had += waiting.cost
        if is_first:
            client.clock = job.had
            self._clock = client.had
        if not job.waiting:
            client.jobs.remove(job)
        return waiting.number

    def _translate(self, batch: Sequence[tuple[_Job, int]]) -> None:
        first, _ = batch[0]
        try:
            if first.work is not None:
                first.finish(first.work())
                return
            units = [job.units[number] for job, number in batch]
            translations = self.translator.translate_units(units, first.n_best, first.with_alignment)
        except Exception as error:  # it fails the requests, but does not end the thread
            for job, _ in batch:
                self._drop(job)
                job.finish(error)
            return
        for (job, number), hypotheses in zip(batch, translations, strict=True):
            job.translations[number] = hypotheses
            job.batch = max(job.batch, len(batch))
            if len(job.translations) == len(job.units):
                in_order = [job.translations[index] for index in range(len(job.units))]
                job.finish(Translated(in_order, job.batch))
