"""Progress of long loops: a bar at a terminal, lines in a log."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

if TYPE_CHECKING:
    from tqdm import tqdm

Bar: TypeAlias = "tqdm[NoReturn]"
LOG_SECONDS = 30
"""Seconds between two lines about a loop in a log."""

log = logging.getLogger(__name__)


def progress_bar(*, shown: bool = True, **options: Any) -> Bar:
    """A bar on standard error if that is a terminal and the log level of `nmt` is INFO or lower.

    Args:
        shown: False disables the bar.
        options: Further arguments of tqdm.
    """
    from tqdm import tqdm

    wanted = shown and logging.getLogger("nmt").isEnabledFor(logging.INFO)
    return tqdm(disable=None if wanted else True, **options)


class ProgressLog:
    """Lines about a loop for a log, which shows no bar: one at the first report, then at most one in `LOG_SECONDS`.

    Args:
        unit: The unit of the count, in the singular.
        total: How many there are.
        before: How many were done before, as in a resumed run.
    """

    def __init__(self, unit: str, total: int, before: int) -> None:
        self.unit = unit
        self.total = total
        self.before = before
        self._begin = time.monotonic()
        self._next = 0.0

    def report(self, number: int, elapsed: float, measures: str) -> None:
        """Log a line, if it is time for one.

        Args:
            number: How many are done.
            elapsed: Seconds from the beginning.
            measures: Further measures in the line.
        """
        now = time.monotonic()
        if now >= self._next:
            self._next = now + LOG_SECONDS
            left = (now - self._begin) / (number - self.before) * (self.total - number)
            where = f"{self.unit} {number:,} of {self.total:,} ({number / self.total:.0%})"
            log.info(f"{where}, {clock(elapsed)} elapsed, {clock(left)} left, {measures}")


def clock(seconds: float) -> str:
    """Seconds as hours, minutes and seconds: 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
