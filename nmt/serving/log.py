"""One line per request on the logger `nmt.serving.requests`: what it cost, but none of its text."""

import json
import logging
import time
from dataclasses import asdict, dataclass
from typing import Literal

from nmt.system.errors import printable

Format = Literal["json", "text", "none"]

UNANSWERED = 499
"""Status in the log of a request whose client disconnected before it got a reply."""

_log = logging.getLogger("nmt.serving.requests")


@dataclass
class Record:
    """What is logged about a request.

    Attributes:
        client: Its address.
        method: GET, POST, ...
        route: The route that it requested; `unknown` if there is no such route.
        status: HTTP status of the reply; 499 if the client disconnected.
        characters: Characters of its texts.
        sentences: Sentences that were translated for it.
        milliseconds: Time from its headers to the end of the reply.
        batch: Size of the largest batch that any of its sentences was in.
        error: What went wrong in the server, if anything: the class of the error, and where.
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


def write(record: Record, kind: Format) -> None:
    """Log a record in a format: as JSON in ASCII, or human-readable, on one line."""
    fields = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **asdict(record)}
    if kind == "json":
        _log.info(json.dumps({name: value for name, value in fields.items() if name != "error" or value}))
    elif kind == "text":
        line = "{time} {client} {method} {route} {status}: {milliseconds} ms, {characters} characters, "
        line += "{sentences} sentences, batch {batch}" + (", {error}" if record.error else "")
        _log.info(printable(line.format(**fields)))
