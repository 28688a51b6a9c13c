"""Numbers for Prometheus, read as Prometheus reads them."""

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from conftest import wait_until
from real_server import Gated, Records, golden, recording, serving

from nmt.translation.translator import Translator

parser = pytest.importorskip("prometheus_client.parser")

COUNTED = ("nmt_requests_total", "nmt_sentences_total", "nmt_queue_sentences")
FIELDS = {"q": "I am old.\nShe sleeps.", "source": "en", "target": "de"}


@pytest.fixture(autouse=True)
def records() -> Iterator[Records]:
    with recording() as found:
        yield found


def read(client: httpx.Client, **headers: str) -> dict[tuple[str, ...], float]:
    """The value of each sample, by its name and the values of its labels in the order of their names."""
    reply = client.get("/metrics", headers=headers)
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = (sample for family in parser.text_string_to_metric_families(reply.text) for sample in family.samples)
    return {(sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value for sample in samples}


def test_requests_sentences_and_durations_are_counted(records: Records) -> None:
    with serving(("en", "de", golden()), ("de", "en", golden())) as client:
        for more in ({}, {"q": ["a", "b", "c"]}, {"source": "de", "target": "en"}, {"target": "fr"}, {"q": 5}):
            client.post("/translate", json={**FIELDS, **more})
        client.get("/translate")
        client.get("/nowhere/I%20am%20old")
        wait_until(lambda: len(records.lines) == 7)
        lines = list(records.lines)
        found = read(client)
    assert {sample: value for sample, value in found.items() if sample[0] in COUNTED} == {
        ("nmt_requests_total", "/translate", "200"): 3,
        ("nmt_requests_total", "/translate", "400"): 2,
        ("nmt_requests_total", "/translate", "405"): 1,
        ("nmt_requests_total", "unknown", "404"): 1,
        ("nmt_sentences_total", "en-de"): 5,
        ("nmt_sentences_total", "de-en"): 2,
        ("nmt_queue_sentences", "en-de"): 0,
        ("nmt_queue_sentences", "de-en"): 0,
    }
    buckets = [value for (name, *labels), value in found.items() if name.endswith("_bucket") and "/translate" in labels]
    assert buckets == sorted(buckets)
    assert buckets[-1] == found["nmt_request_seconds_count", "/translate"] == 6
    logged = sum(line["milliseconds"] for line in map(json.loads, lines) if line["route"] == "/translate") / 1000
    assert found["nmt_request_seconds_sum", "/translate"] == pytest.approx(logged)
    assert not any("old" in part for sample in found for part in sample)


def test_the_process_is_measured_and_nothing_useless() -> None:
    with serving() as client:
        client.get("/health")
        found = {sample[0] for sample in read(client)}
        assert not [name for name in found if name.endswith("_created")]
        assert "_created" not in client.get("/metrics").text
    if sys.platform == "linux":
        assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"} <= found


def test_waiting_sentences_are_counted_while_they_wait() -> None:
    gated = Gated()
    with ThreadPoolExecutor() as pool, serving(("en", "de", gated)) as client:
        address = f"{client.base_url}/translate"
        replies = [pool.submit(httpx.post, address, json=FIELDS, timeout=20)]
        assert gated.started.wait(20)
        replies.append(pool.submit(httpx.post, address, json={**FIELDS, "q": ["a", "b", "c"]}, timeout=20))
        wait_until(lambda: read(client)["nmt_queue_sentences", "en-de"] == 3, 20)
        assert read(client)["nmt_sentences_total", "en-de"] == 0
        gated.open.set()
        assert [reply.result().status_code for reply in replies] == [200, 200]
        wait_until(lambda: read(client)["nmt_sentences_total", "en-de"] == 5, 20)
        assert read(client)["nmt_queue_sentences", "en-de"] == 0


def test_errors_are_counted_by_their_status(records: Records) -> None:
    class Broken(Translator):
        def translate_units(self, *arguments: Any, **options: Any) -> Any:
            raise ValueError("the secret text")

    broken = Broken(golden().model, golden().processor, golden().options)
    with serving(("en", "de", broken), limits={"max_sentences": 2, "max_queue": 2}) as client:
        client.post("/translate", json=FIELDS)
        wait_until(lambda: len(records.lines) == 1)
        found = read(client)
    assert found["nmt_requests_total", "/translate", "500"] == 1
    assert found["nmt_sentences_total", "en-de"] == 0


def test_servers_count_on_their_own(records: Records) -> None:
    with serving() as one, serving() as other:
        one.get("/health")
        wait_until(lambda: len(records.lines) == 1)
        assert read(one)["nmt_requests_total", "/health", "200"] == 1
        assert ("nmt_requests_total", "/health", "200") not in read(other)


def test_a_key_is_required_and_counted_where_there_are_keys() -> None:
    with serving(api_keys=["one", "two"], limits={"requests_per_minute": 2}) as client:
        assert client.get("/metrics").status_code == 403
        assert client.get("/metrics", headers={"Authorization": "Bearer three"}).status_code == 403
        assert client.get("/metrics?api_key=four").status_code == 429
        for _ in range(2):
            assert read(client, Authorization="Bearer one")
        assert client.get("/metrics?api_key=one").status_code == 429
        assert client.get("/metrics?api_key=two").status_code == 200
    with serving() as client:
        assert client.get("/metrics", headers={"Host": "evil.example"}).status_code == 400
        assert client.get("/metrics", headers={"Origin": "https://evil.example"}).status_code == 403
