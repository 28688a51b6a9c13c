"""The models that a server has in use, of which one can be replaced while requests are answered."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from nmt.serving.batches import Batcher
from nmt.serving.directions import Directions, ServedDirection
from nmt.serving.request_limits import Limits
from nmt.system.errors import ConfigError


class Pool:
    """The directions of a server, each with a batcher that translates for it.

    A request is answered by the models that were there when it came: they stay until the last such request has ended.

    Args:
        directions: The models.
        limits: Limits of the queues.
    """

    def __init__(self, directions: Directions, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._directions = directions
        self._batchers = {direction: self._start(direction) for direction in directions}
        self._uses = Counter(directions)  # one of the pool, and one of each request

    def _start(self, served: ServedDirection) -> Batcher:
        return Batcher(served.translator, self._limits.max_queue, self._limits.batch_wait, str(served))

    @property
    def directions(self) -> Directions:
        """The directions that new requests are answered by."""
        return self._directions

    def batcher(self, served: ServedDirection) -> Batcher:
        """The batcher of a direction that is in use."""
        return self._batchers[served]

    def count_waiting(self) -> dict[str, int]:
        """Number of sentences that wait for each direction, by its name."""
        with self._lock:
            return {str(served): len(self._batchers[served]) for served in self._directions}

    @contextlib.contextmanager
    def in_use(self) -> Iterator[Directions]:
        """The directions for a request, which stay in use until the block ends."""
        with self._lock:
            directions = self._directions
            self._uses.update(directions)
        try:
            yield directions
        finally:
            self._release(directions)

    def swap(self, served: ServedDirection) -> ServedDirection:
        """Let another model answer new requests for its direction.

        Args:
            served: The model, of a direction that is served.

        Returns:
            The model that it replaces; its thread ends with the last request that uses it.

        Raises:
            ConfigError: No model of this direction is served.
        """
        batcher = self._start(served)
        with self._lock:
            replaced = [old for old in self._directions if old.direction.is_same(served.direction)]
            if replaced:
                self._batchers[served] = batcher
                self._uses[served] += 1
                self._directions = Directions(served if old in replaced else old for old in self._directions)
        if not replaced:
            batcher.stop()
            names = ", ".join(map(str, self._directions))
            raise ConfigError(f"{served}: no model of this direction is served; replace one of {names}")
        self._release(replaced)
        return replaced[0]

    def _release(self, directions: Sequence[ServedDirection]) -> None:
        """End a use of some directions, and stop those that nobody uses any more."""
        with self._lock:
            self._uses.subtract(directions)
            unused = [served for served in directions if not self._uses[served]]
            batchers = [self._batchers.pop(served) for served in unused]
            for served in unused:
                del self._uses[served]
        for batcher in batchers:
            batcher.stop()

    def stop(self, seconds: float) -> None:
        """Stop the threads of all models, within some time."""
        end = time.monotonic() + seconds
        with self._lock:
            batchers = list(self._batchers.values())
        for batcher in batchers:
            batcher.stop()
        for batcher in batchers:
            batcher.stop(max(0.0, end - time.monotonic()))
