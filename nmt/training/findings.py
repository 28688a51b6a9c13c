"""Results of checks."""

from dataclasses import dataclass

from nmt.system.messages import Message


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes:
        name: Name of the check.
        ok: True if it passed; None if it only informs.
        message: The finding and, if it failed, the remedy.
    """

    name: str
    ok: bool | None
    message: str | Message

    @property
    def text(self) -> str:
        """The message, as the front end says it."""
        return str(self.message)
