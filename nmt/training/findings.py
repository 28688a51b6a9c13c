"""Results of checks."""

from __future__ import annotations

from dataclasses import dataclass

SMALLER_MODEL = "lower the sizes under model"
SMALLER_BATCH = "lower train.batch.size or the sizes under model"
LOSS_TOLERANCE = 0.5  # nats per token


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes:
        name: Name of the check.
        ok: Whether it passed; None if it only informs.
        text: What was found and, if it failed, what to do.
    """

    name: str
    ok: bool | None
    text: str
