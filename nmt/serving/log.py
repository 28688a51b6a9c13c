"""One line a request, on the logger `nmt.serving.requests`: what it cost, and nothing of what it said."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from nmt.errors import printable

Format = Literal["json", "text", "none"]

_log = logging.getLogger("nmt.serving.requests")


@dataclass
class Record:
    """What is told about a request.

    Attributes:
        client: Its address.
        method: GET, POST, ...
        route: Which of the server's routes it asked for; unknown if none.
        status: HTTP status of the reply; 499 if the client had gone.
        characters: Characters of its texts.
        sentences: Sentences that were translated for it.
        milliseconds: From its headers to the end of the reply.
        batch: Sentences of the largest batch that it had a part in.
        error: What went wrong in the server, if anything: the class of the error, and where.
    """

    client: str
    method: str
    route: str
    status: int = 499
    characters: int = 0
    sentences: int = 0
    milliseconds: float = 0.0
    batch: int = 0
    error: str = ""


def as_json(record: Record) -> str:
    """A record as one line of JSON in ASCII."""
    facts = {"time": _now(), **asdict(record)}
    return json.dumps({key: value for key, value in facts.items() if value != "" or key != "error"})


def as_text(record: Record) -> str:
    """A record as one line for people."""
    counts = f"{record.characters} characters, {record.sentences} sentences, batch {record.batch}"
    line = f"{_now()} {record.client} {record.method} {record.route} {record.status}"
    return printable(f"{line}: {record.milliseconds} ms, {counts}{record.error and f', {record.error}'}")


def writer(kind: Format) -> Callable[[Record], None]:
    """A function that logs a record."""
    if kind == "none":
        return lambda record: None
    render = as_json if kind == "json" else as_text
    return lambda record: _log.info(render(record))


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
