"""Results of checks."""

from dataclasses import dataclass


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
