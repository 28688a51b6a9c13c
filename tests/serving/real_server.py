"""A real server with a real model, in a thread of this process."""

import contextlib
import functools
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import GOLDEN_MODEL, wait_until

for name in ("starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(name, reason="nmt serve needs the extra serve: pip install '.[serve]'")
import httpx

import nmt
from nmt.config import Config
from nmt.models.storage import load_model
from nmt.serving.access import Keys, Pages
from nmt.serving.directions import Directions, ServedDirection
from nmt.serving.request_limits import Limits
from nmt.serving.server import Server, bind
from nmt.serving.service import Service
from nmt.text.direction import Direction
from nmt.translation.translator import Translator

SENTENCES = [
    line.split("\t")[0]
    for line in (Path(__file__).parents[2] / "data/sample/deu.txt").read_text(encoding="utf-8").splitlines()
]


class Gated(Translator):
    """A translator that waits until it is opened, and keeps the sentences it was given, without spaces."""

    def __init__(self) -> None:
        translator = golden()
        super().__init__(translator.model, translator.processor, translator.options)
        self.open = threading.Event()
        self.started = threading.Event()
        self.batches: list[list[str]] = []

    def translate_units(self, units: Any, *arguments: Any, **options: Any) -> Any:
        self.batches.append(["".join(unit.tokens).replace("▁", "") for unit in units])
        self.started.set()
        assert self.open.wait(20)
        return super().translate_units(units, *arguments, **options)


@functools.cache
def golden() -> Translator:
    """English to German: poor, but deterministic."""
    return nmt.load(GOLDEN_MODEL, device="cpu")


@functools.cache
def golden_config() -> Config:
    """The config of that model."""
    return load_model(GOLDEN_MODEL).config


def served(direction: Direction, translator: Translator) -> ServedDirection:
    """A translator as the only model of its direction."""
    return ServedDirection(direction, translator, {"golden": (golden_config(), translator)})


@contextlib.contextmanager
def serving(*translators: tuple[str, str, Translator] | ServedDirection, **options: Any) -> Iterator[httpx.Client]:
    """A client of a server of translators, each with its languages, or of directions; else of the golden model.

    Its `base_url` is the server's.
    """
    limits, host = Limits(**options.pop("limits", {})), options.pop("host", "127.0.0.1")
    pages = Pages(host, options.pop("allowed_hosts", ()), options.pop("allowed_origins", ()))
    models = translators or [("en", "de", golden())]
    directions = Directions(
        model if isinstance(model, ServedDirection) else served(Direction(model[0], model[1]), model[2])
        for model in models
    )
    service = Service(directions, Keys(options.pop("api_keys", ())), limits)
    with bind(host, 0) as listener:
        server = Server(listener, host, service, pages, **options)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            wait_until(lambda: server.started, 20)
            with httpx.Client(base_url=server.url, timeout=20, verify=False) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


class Records(logging.Handler):
    """The request log of servers that start from now on; earlier ones may still have requests to log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.earlier = threading.enumerate()

    def emit(self, record: logging.LogRecord) -> None:
        if threading.current_thread() not in self.earlier:
            self.lines.append(record.getMessage())

    @property
    def last(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.lines[-1])
        return found


@contextlib.contextmanager
def recording() -> Iterator[Records]:
    """The request log of the servers that start in the block."""
    handler, logger = Records(), logging.getLogger("nmt.serving.requests")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
