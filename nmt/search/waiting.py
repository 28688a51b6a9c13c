"""Searches in many batches: sentences that outlast most of their batch wait for those of other batches.

A step reads all weights of the decoder whether it continues one hypothesis or sixty, and nearly every batch has a
sentence whose translation is much longer than the others. Serving systems let new sentences join at each step (Yu et
al., 2022, section 3.1); here those that join have the same number of words, so that no state has positions by row.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from nmt.search.hypothesis import Hypothesis
from nmt.search.search import Search, SearchSettings

PAUSE = 8
"""Words between two pauses, at which a search may wait; divisible by each of `STEPS_PER_WAIT`."""
FEW = 0.5
"""A search waits if its unfinished sentences are no more than this share of a full batch."""

Numbers = Sequence[int]
"""Indices of sources."""


class BatchSize(NamedTuple):
    """The size of a full batch.

    Attributes:
        sentences: Maximum number of sentences.
        tokens: Maximum number of source tokens, including padding.
    """

    sentences: int
    tokens: int

    def share(self, search: Search) -> float:
        """The unfinished sentences of a search as a share of a full batch: the larger one of the two."""
        return max(len(search.unfinished) / self.sentences, search.size / self.tokens)


class _Running(NamedTuple):
    """A search, and the index of each of its sources among all."""

    search: Search
    sources: Numbers

    @property
    def unfinished(self) -> set[int]:
        """Indices of the sources that are not finished."""
        return {self.sources[n] for n in self.search.unfinished}


def search_together(
    batches: Iterable[tuple[Numbers, Search]],
    choose: Callable[[Numbers], SearchSettings],
    size: BatchSize,
    advance: Callable[[Numbers], object],
) -> Iterator[tuple[Numbers, list[list[Hypothesis]]]]:
    """Finish searches, those of few sentences together.

    Args:
        batches: The sources of each search, and the search before its first word.
        choose: The settings of a search for these sources.
        size: That of a full batch.
        advance: Called with the indices of sources as they are finished.

    Yields:
        Indices of sources, and the hypotheses of each.
    """
    waiting: dict[int, list[_Running]] = {}  # by number of words

    def run(running: _Running) -> Iterator[tuple[Numbers, list[list[Hypothesis]]]]:
        """Continue a search until it is finished or waits."""
        while not running.search.is_finished:
            before = running.unfinished
            words = len(running.search.steps) + PAUSE
            running.search.run(words)
            advance(sorted(before - running.unfinished))
            if running.search.is_finished or size.share(running.search) > FEW:
                continue
            queue = waiting.setdefault(words, [])
            queue.append(running)
            if sum(size.share(part.search) for part in queue) < 1:
                return
            running = _join(waiting.pop(words), choose)
        yield running.sources, running.search.hypotheses()

    for sources, search in batches:
        yield from run(_Running(search, sources))
    # No other sentences come. Those with the fewest words first, so that they reach the others that wait.
    while waiting:
        yield from run(_join(waiting.pop(min(waiting)), choose))


def _join(waiting: Sequence[_Running], choose: Callable[[Numbers], SearchSettings]) -> _Running:
    """Searches as one."""
    if len(waiting) == 1:
        return waiting[0]
    sources = [source for running in waiting for source in running.sources]
    return _Running(Search.join([running.search for running in waiting], choose(sources)), sources)
