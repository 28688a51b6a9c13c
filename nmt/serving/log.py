"""One line per request on the logger `nmt.serving.requests`: what it cost, but none of its text."""

import datetime
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from nmt.serving.directions import ServedModel
from nmt.system.errors import printable

Format = Literal["json", "text", "none"]

UNANSWERED = 499
"""Status in the log of a request whose client disconnected before it got a reply."""

PROBES = ("/health", "/metrics")
"""Routes that programs ask again and again to watch a server."""

_log = logging.getLogger("nmt.serving.requests")


@dataclass
class Record:
    """The log entry of a request.

    Attributes:
        client: Its address.
        method: GET, POST, ...
        route: The route that it requested; `unknown` if there is no such route.
        status: HTTP status of the reply; 499 if the client disconnected.
        characters: Characters of its texts.
        sentences: Sentences that were translated for it.
        milliseconds: Time from its headers to the end of the reply.
        batch: Size of the largest batch that any of its sentences was in.
        error: The fault in the server, if any: the class of the error, and its place.
        models: The models that answered.
    """

    client: str
    method: str
    route: str
    status: int = UNANSWERED
    characters: int = 0
    sentences: int = 0
    milliseconds: float = 0.0
    batch: int = 0
    error: str = ""
    models: Sequence[ServedModel] = ()


def write(record: Record, kind: Format, probes: bool = True) -> None:
    """Log a record in a format: as JSON in ASCII, or human-readable, on one line.

    Args:
        record: The record.
        kind: The format.
        probes: True if answered health checks and scrapes are logged.
    """
    if not probes and record.route in PROBES and record.status == 200:
        return
    now = datetime.datetime.now().astimezone().isoformat(timespec="milliseconds")  # as in RFC 3339
    fields = {"time": now, **asdict(record)}
    if kind == "json":
        optional = ("error", "models")
        _log.info(json.dumps({name: value for name, value in fields.items() if value or name not in optional}))
    elif kind == "text":
        line = "{time} {client} {method} {route} {status}: {milliseconds} ms, {characters} characters, "
        line += "{sentences} sentences, batch {batch}"
        parts = [line.format(**fields), *map(str, record.models), record.error]
        _log.info(printable("; ".join(filter(None, parts))))
