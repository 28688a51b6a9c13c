"""A served model is replaced while requests are answered."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import GOLDEN_MODEL
from real_server import Gated, golden, golden_config, wait_until

import nmt
from nmt.serving.access import Keys
from nmt.serving.batches import THREAD
from nmt.serving.directions import Directions, ServedDirection, ServedModel
from nmt.serving.http_schema import TranslateRequest
from nmt.serving.log import Record
from nmt.serving.request_limits import Limits
from nmt.serving.service import Service
from nmt.system.errors import ConfigError
from nmt.text.direction import Direction
from nmt.translation.translator import Translator


def served(translator: Translator, name: str, source: str = "en") -> ServedDirection:
    model = ServedModel(f"{source}-de", name, 1, name)
    models = {name: (golden_config(), translator)}
    return ServedDirection(Direction(source, "de"), translator, models, (model,))


@pytest.fixture
def gated() -> Iterator[Gated]:
    translator = Gated()
    yield translator
    translator.open.set()


@pytest.fixture
def service(gated: Gated) -> Iterator[Service]:
    service = Service(Directions([served(gated, "old"), served(golden(), "french", "fr")]), Keys(()), Limits())
    yield service
    gated.open.set()
    service.stop(10)


async def ask(service: Service, source: str = "en") -> tuple[Any, list[str]]:
    """The reply to a request, and the identities of the models that made it."""
    asked = TranslateRequest(q="I am old.", source=source, target="de")
    record = Record("client", "POST", "/translate")
    reply = await service.translate(asked, record)
    return reply["translatedText"], [model.identity for model in record.models]


def threads(name: str) -> int:
    return sum(thread.name == THREAD + name for thread in threading.enumerate())


def test_requests_are_answered_by_the_model_that_was_there_when_they_came(service: Service, gated: Gated) -> None:
    short = nmt.load(GOLDEN_MODEL, device="cpu", max_length=1)
    expected = golden().translate("I am old.").text
    assert short.translate("I am old.").text != expected
    before = threads("en-de")

    async def work() -> list[tuple[Any, list[str]]]:
        waiting = [asyncio.create_task(ask(service)) for _ in range(3)]
        await asyncio.to_thread(gated.started.wait, 20)
        service.swap(served(short, "new"))
        replies = [await ask(service), await ask(service, "fr")]
        assert not any(task.done() for task in waiting)
        gated.open.set()
        return [*await asyncio.gather(*waiting), *replies]

    *old, new, french = asyncio.run(work())
    assert old == [(expected, ["old"])] * 3
    assert new == (short.translate("I am old.").text, ["new"])
    assert french == (expected, ["french"])
    wait_until(lambda: threads("en-de") == before, 20)  # the thread of the old model has ended
    assert [model.identity for model in service.health().models] == ["new", "french"]
    metrics = service.metrics.render().decode()
    assert 'identity="new"' in metrics
    assert 'identity="old"' not in metrics
    assert 'nmt_sentences_total{direction="en-de"} 4.0' in metrics


def test_only_a_direction_that_is_served_can_be_replaced(service: Service) -> None:
    before = threads("es-de")
    with pytest.raises(ConfigError, match=r"^es-de: no model .*; replace one of en-de, fr-de$"):
        service.swap(served(golden(), "new", "es"))
    wait_until(lambda: threads("es-de") == before, 20)
    assert [model.identity for model in service.health().models] == ["old", "french"]
