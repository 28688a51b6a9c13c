"""Limits on the size, number and duration of requests."""

from dataclasses import dataclass, fields

from nmt.system.errors import ConfigError, check_at_least
from nmt.system.limits import KIB, MIB
from nmt.system.messages import Parameter

MAX_CONNECTIONS = 900
"""Maximum number of open connections; more get a 503, as most systems allow a process 1024 open files."""


@dataclass(frozen=True)
class Limits:
    """Limits of a server.

    Attributes:
        max_characters: Characters per request, all its texts together.
        max_sentences: Sentences per request, after its lines, or the pieces of its HTML, are split.
        max_queue: Sentences waiting for a model; more are refused until it has caught up.
        requests_per_minute: Requests per client or API key; None sets no limit.
        batch_wait: Seconds that a sentence waits for others to share its batch.
        max_file_bytes: Bytes of a file to translate; all files that wait to be fetched have at most 64 times as many.
        body_seconds: Time for a request's body to arrive.
        file_seconds: Time for a file to arrive.
        keep_seconds: Time for which a translated file can be fetched.
        idle_seconds: Time in which a client neither finishes its headers nor reads anything of a reply, after which it
            is disconnected.
        stop_seconds: Time for requests to finish when the server stops; those that do not get a 503.

    Raises:
        ConfigError: A number is below 1, or a large request could never fit into the queue.
    """

    max_characters: int = 100_000
    max_sentences: int = 2000
    max_queue: int = 5000
    requests_per_minute: int | None = None
    max_file_bytes: int = 10 * MIB
    batch_wait: float = 0.005
    body_seconds: float = 10.0
    file_seconds: float = 120.0
    keep_seconds: float = 3600.0
    idle_seconds: float = 20.0
    stop_seconds: int = 7

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int):
                check_at_least(field.name, value, 1)
        if self.max_queue < self.max_sentences:
            raise ConfigError(
                "{max_queue} is less than {max_sentences}: a large request would never be accepted",
                max_queue=Parameter("max_queue", self.max_queue),
                max_sentences=Parameter("max_sentences", self.max_sentences),
            )

    @property
    def max_body(self) -> int:
        r"""Bytes of a request's body: a character is at most 12 bytes of JSON (\ud83d\ude00) or of a form."""
        return 12 * self.max_characters + 64 * KIB
