"""The log of a run: a line of JSON for each report, validation and skipped update."""

import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmt.system.files import append_text, naming

METRICS = "metrics.jsonl"


class MetricsLog:
    """`metrics.jsonl` of a run, and the run's clock.

    Args:
        run: Existing run directory.
        seconds: Seconds that the run took before it was resumed.
    """

    def __init__(self, run: Path, seconds: float = 0.0) -> None:
        self.path = run / METRICS
        self._begin = time.monotonic() - seconds

    @property
    def seconds(self) -> float:
        """Seconds of the run so far, without the time between a stop and its resumption."""
        return time.monotonic() - self._begin

    def write(self, kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Append a line, without values that are not finite.

        Args:
            kind: The kind of line: train, valid or skipped.
            values: Numbers by name, with the update.

        Returns:
            The content of the line.
        """
        line = {
            key: (float(f"{value:.7g}") if isinstance(value, float) else value)
            for key, value in values.items()
            if value is not None and not (isinstance(value, float) and not math.isfinite(value))
        }
        line = {"kind": kind, "seconds": round(self.seconds, 2), **line}
        append_text(self.path, json.dumps(line) + "\n")
        return line

    def sync(self) -> int:
        """Flush the log to disk, and return its size."""
        with naming(self.path), self.path.open("rb") as file:
            os.fsync(file.fileno())
            return file.seek(0, os.SEEK_END)

    def cut(self, size: int) -> None:
        """Remove the lines after the first `size` bytes, as they will be written again."""
        with naming(self.path), self.path.open("a+b") as file:
            file.truncate(min(size, file.tell()))
