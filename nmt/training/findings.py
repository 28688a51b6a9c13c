"""Results of checks."""

from dataclasses import dataclass

from nmt.system.messages import Dialect, Message, say


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes:
        name: Name of the check.
        ok: Whether it passed; None if it only informs.
        message: What was found and, if it failed, what to do.
    """

    name: str
    ok: bool | None
    message: str | Message

    @property
    def text(self) -> str:
        """The message, which names parameters as Python does."""
        return str(self.message)

    def say(self, dialect: Dialect) -> str:
        """The message in a dialect."""
        return say(self.message, dialect)
