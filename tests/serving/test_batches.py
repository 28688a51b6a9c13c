"""Sentences of many requests in shared batches: same translations, fair turns, bounded queue."""

import asyncio
import re
import socket
import threading
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

import httpx
import pytest
from real_server import GOLDEN_MODEL, SENTENCES, Gated, golden, recording, serving, wait_until

import nmt
from nmt.serving.batches import LONG, Batcher, QueueFull, ServerStopping, Translated
from nmt.system.errors import ConfigError
from nmt.text.sentences import SentenceSplitter
from nmt.translation.reader import Unit

T = TypeVar("T")
LONG_SENTENCE = ["word"] * (2 * LONG)
BODY = {"source": "en", "target": "de"}


@pytest.fixture
def gated() -> Iterator[Gated]:
    found = Gated()
    yield found
    found.open.set()


@pytest.fixture
def batcher(gated: Gated) -> Iterator[Batcher]:
    found = Batcher(gated, max_queue=200, batch_wait=0)
    yield found
    gated.open.set()
    found.stop(10)


def units(sentences: Sequence[list[str]]) -> list[Unit]:
    return [Unit(tokens) for tokens in sentences]


async def ask(batcher: Batcher, *texts: str, n_best: int = 1) -> Translated:
    """Translate texts of one sentence each."""
    return await batcher.translate(
        [unit for passage in batcher.translator.reader.read(texts) for unit in passage.units], n_best
    )


def meanwhile(gated: Gated, first: Coroutine[Any, Any, T], *others: Coroutine[Any, Any, T]) -> list[T]:
    """The replies to a request and to those that come while the model works for it."""

    async def work() -> list[T]:
        tasks = [asyncio.create_task(first)]
        await asyncio.to_thread(gated.started.wait)
        tasks += map(asyncio.create_task, others)
        await asyncio.sleep(0.02)
        gated.open.set()
        return await asyncio.gather(*tasks)

    return asyncio.run(work())


@pytest.mark.parametrize("number", [60, pytest.param(200, marks=pytest.mark.soak)])
def test_concurrent_requests_get_the_same_translations_as_one_by_one(number: int) -> None:
    translator = nmt.load(GOLDEN_MODEL, device="cpu", beam_size=2, max_length=12)
    chosen = SENTENCES[::100][:20] + [" ".join(SENTENCES[n : n + 3]) for n in range(10)]
    expected = {text: translator.translate(text).text for text in chosen}

    async def ask_all(url: str) -> list[tuple[str, str]]:
        limits = httpx.Limits(max_connections=number)
        async with httpx.AsyncClient(base_url=url, timeout=30, limits=limits) as client:

            async def ask(place: int) -> tuple[str, str]:
                text = chosen[place % len(chosen)]
                kind = {"alternatives": 1} if place % 7 == 0 else {}
                reply = await client.post("/translate", json={**BODY, "q": text, **kind})
                return text, reply.json()["translatedText"]

            return await asyncio.gather(*map(ask, range(number)))

    with recording() as records, serving(("en", "de", translator), limits={"batch_wait": 0.05}) as client:
        found = asyncio.run(ask_all(str(client.base_url)))
    assert [answer for _, answer in found] == [expected[text] for text, _ in found]
    assert max(int(line.split('"batch": ')[1].split("}")[0]) for line in records.lines) > 1


def test_requests_take_turns(gated: Gated, batcher: Batcher) -> None:
    gated.options = gated.options.model_copy(update={"batch_size": 3})
    large = ask(batcher, *(f"a{n}" for n in range(5)))
    meanwhile(gated, ask(batcher, "go"), large, ask(batcher, "b"), ask(batcher, "c0", "c1", n_best=2))
    assert gated.batches == [["go"], ["b", "a0", "a1"], ["c0", "c1"], ["a2", "a3", "a4"]]


def test_clients_take_turns_whatever_the_number_of_their_requests(gated: Gated, batcher: Batcher) -> None:
    gated.options = gated.options.model_copy(update={"batch_size": 1})

    def sentences(name: str) -> list[list[str]]:
        return [[f"{name}{number}"] for number in range(3)]

    many = [batcher.translate(units(sentences(name)), client="many") for name in "abc"]
    one = batcher.translate(units(sentences("d")), client="one")
    meanwhile(gated, batcher.translate(units([["go"]])), *many, one)
    found = [text for (text,) in gated.batches]
    assert found[:7] == ["go", "a0", "d0", "b0", "d1", "c0", "d2"]
    assert found[7:] == ["a1", "b1", "c1", "a2", "b2", "c2"]


def test_a_client_that_comes_later_is_not_owed_what_others_have_had(gated: Gated, batcher: Batcher) -> None:
    gated.options = gated.options.model_copy(update={"batch_size": 1})
    first = batcher.translate(units([["go"] * 20, ["a0"], ["a1"], ["a2"]]), client="first")
    meanwhile(gated, first, batcher.translate(units([["b0"], ["b1"], ["b2"]]), client="later"))
    assert [text for (text,) in gated.batches[1:]] == ["a0", "b0", "a1", "b1", "a2", "b2"]


@pytest.mark.parametrize(("client", "second"), [("one", 9), ("many", 5)])
def test_heavy_work_counts_as_many_tokens(gated: Gated, batcher: Batcher, client: str, second: int) -> None:
    gated.options = gated.options.model_copy(update={"batch_size": 1})

    def work() -> None:
        gated.batches.append(["work"])

    heavy = [batcher.call(work, 40, "many") for _ in range(3)]
    light = batcher.translate(units([["word"] * 9] * 8), client=client)  # 80 tokens with the ends of the sentences
    meanwhile(gated, batcher.translate(units([["go"]])), *heavy, light)
    found = ["work" if text == "work" else "light" for (text,) in gated.batches[1:]]
    # Of two clients, the light one has had 40 tokens when the first work begins, and 80 when the second does. Among
    # requests of one client, each work has an equal share.
    assert found[:5] == ["light"] * 4 + ["work"]
    assert sorted(found) == ["light"] * 8 + ["work"] * 3
    assert found.index("work", 5) == second


def test_small_requests_do_not_delay_heavy_work_for_ever(gated: Gated, batcher: Batcher) -> None:
    async def work() -> None:
        gated.open.set()
        done = []
        heavy = asyncio.create_task(batcher.call(lambda: done.append("heavy"), 40, "a"))
        for number in range(60):
            waiting = [asyncio.create_task(batcher.translate(units([["b"]]), client="b")) for _ in range(3)]
            await asyncio.gather(*waiting)
            done.append(str(number))
        await heavy
        assert done.index("heavy") < 30

    asyncio.run(work())


def test_long_and_short_sentences_do_not_share_a_batch(gated: Gated, batcher: Batcher) -> None:
    gated.options = gated.options.model_copy(update={"batch_size": 16})
    others = [batcher.translate(units(sentences)) for sentences in ([["a"]], [LONG_SENTENCE] * 5, [["b"]])]
    assert [reply.batch for reply in meanwhile(gated, ask(batcher, "go"), *others)] == [1, 2, 2, 2]
    whole = "".join(LONG_SENTENCE)  # 16 / 4 * LONG tokens have room for two of these
    assert gated.batches == [["go"], ["a", "b"], [whole] * 2, [whole] * 2, [whole]]


def test_long_sentences_do_not_split_the_batches_of_their_request(gated: Gated, batcher: Batcher) -> None:
    gated.open.set()
    sentences = [LONG_SENTENCE if number % 2 else ["word"] for number in range(8)]
    found = asyncio.run(batcher.translate(units(sentences)))
    assert [len(batch) for batch in gated.batches] == [4, 4]
    assert [len(each[0].src_tokens) for each in found.translations] == [len(each) for each in sentences]


def test_a_short_request_waits_for_one_batch_of_a_long_one(gated: Gated, batcher: Batcher) -> None:
    gated.options = gated.options.model_copy(update={"batch_size": 2})
    meanwhile(gated, batcher.translate(units([LONG_SENTENCE] * 3)), ask(batcher, "a"))
    whole = "".join(LONG_SENTENCE)
    assert gated.batches == [[whole], ["a"], [whole], [whole]]


def test_a_long_line_is_split_before_it_waits(gated: Gated) -> None:
    body = {**BODY, "q": "I am old. " * 5}
    with recording() as records, serving(("en", "de", gated), limits={"max_sentences": 4, "max_queue": 4}) as client:
        gated.reader.splitter = SentenceSplitter("en", "de")
        reply = client.post("/translate", json=body)
        gated.open.set()
        assert reply.status_code == 400
        assert "5 sentences exceed the limit of 4" in reply.json()["error"]
        reply = client.post("/translate", json={**body, "q": "I am old. She sleeps. I am old."})
        expected = [golden().translate(text).text for text in ("I am old.", "She sleeps.", "I am old.")]
        assert reply.json() == {"translatedText": " ".join(expected)}
        wait_until(lambda: len(records.lines) == 2)
        assert records.last["sentences"] == 3
    assert gated.batches == [["Iamold.", "Shesleeps.", "Iamold."]]


def test_cancelled_sentences_are_not_translated(gated: Gated, batcher: Batcher) -> None:
    async def work() -> None:
        first = asyncio.create_task(ask(batcher, "go"))
        await asyncio.to_thread(gated.started.wait)
        tasks = [asyncio.create_task(ask(batcher, *texts)) for texts in (["a", "b"], ["c"])]
        await asyncio.sleep(0.02)
        assert len(batcher) == 3
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        assert len(batcher) == 1
        first.cancel()
        gated.open.set()
        assert len((await tasks[1]).translations) == 1

    asyncio.run(work())
    assert gated.batches == [["go"], ["c"]]
    assert len(batcher) == 0


def test_the_queue_is_bounded(gated: Gated, batcher: Batcher) -> None:
    async def work() -> None:
        first = asyncio.create_task(ask(batcher, "go"))
        await asyncio.to_thread(gated.started.wait)
        waiting = asyncio.create_task(ask(batcher, *["a"] * 150))
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            await ask(batcher, *["a"] * 51)
        gated.open.set()
        assert len((await waiting).translations) == 150
        assert len((await ask(batcher, *["a"] * 200)).translations) == 200
        assert (await batcher.translate([])).translations == []
        await first

    asyncio.run(work())


def test_long_sentences_and_heavy_work_take_more_places_in_the_queue(gated: Gated) -> None:
    batcher = Batcher(gated, max_queue=10, batch_wait=0)

    async def work() -> None:
        first = asyncio.create_task(ask(batcher, "go"))
        await asyncio.to_thread(gated.started.wait)
        tasks = [asyncio.create_task(batcher.translate(units([["a"] * (LONG + 1)] * 3)))]  # 6 places
        await asyncio.sleep(0)
        assert len(batcher) == 3
        with pytest.raises(QueueFull):
            await batcher.call(lambda: None, 4 * LONG + 1)
        tasks.append(asyncio.create_task(batcher.call(lambda: None, 4 * LONG)))
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            await ask(batcher, "a")
        gated.open.set()
        await asyncio.gather(first, *tasks)
        await batcher.call(lambda: None, 100 * LONG)  # a request that waits for no other always has room

    try:
        asyncio.run(work())
    finally:
        gated.open.set()
        batcher.stop(10)


def test_many_looks_inside_do_not_delay_another_client() -> None:
    asked = {**BODY, "q": "The old woman reads a book."}
    with serving(api_keys=["many", "one"]) as client, ThreadPoolExecutor(20) as pool:
        looks = [pool.submit(client.post, "/explore", json={**asked, "api_key": "many"}) for _ in range(20)]

        def waiting() -> float:
            metrics = client.get("/metrics?api_key=one").text
            return float(re.findall(r'nmt_queue_sentences{direction="en-de"} ([\d.]+)', metrics)[0])

        wait_until(lambda: waiting() >= 12, 20)
        before = sum(look.done() for look in looks)
        assert client.post("/translate", json={**asked, "api_key": "one"}).status_code == 200
        after = sum(look.done() for look in looks)
        assert [look.result().status_code for look in looks] == [200] * 20
    assert after - before <= 4


def test_an_error_ends_only_its_batch(batcher: Batcher, gated: Gated) -> None:
    gated.open.set()

    async def work() -> None:
        with pytest.raises(ConfigError, match="beam size"):
            await ask(batcher, *["a"] * 130, n_best=1000)
        assert len(batcher) == 0
        assert (await ask(batcher, "I am old.")).translations[0][0].text

    asyncio.run(work())
    assert len(gated.batches) == 2


def test_waiting_requests_fail_when_the_server_stops(gated: Gated, batcher: Batcher) -> None:
    async def work() -> None:
        first = asyncio.create_task(ask(batcher, "go"))
        await asyncio.to_thread(gated.started.wait)
        waiting = asyncio.create_task(ask(batcher, "a"))
        await asyncio.sleep(0.02)
        threading.Timer(0.05, gated.open.set).start()
        await asyncio.to_thread(batcher.stop, 10)
        assert len((await first).translations) == 1
        for task in (waiting, asyncio.create_task(ask(batcher, "b"))):
            with pytest.raises(ServerStopping):
                await task

    asyncio.run(work())


def test_the_sentences_of_a_disconnected_client_are_dropped(gated: Gated, monkeypatch: pytest.MonkeyPatch) -> None:
    batchers: list[Batcher] = []

    class Listed(Batcher):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            batchers.append(self)

    monkeypatch.setattr("nmt.serving.pool.Batcher", Listed)
    body = {**BODY, "q": ["never"] * 20}
    with recording() as records, serving(("en", "de", gated)) as client, ThreadPoolExecutor() as pool:
        pool.submit(client.post, "/translate", json={**body, "q": "go"})
        assert gated.started.wait(10)
        request = client.build_request("POST", "/translate", json=body)
        with socket.create_connection((client.base_url.host, client.base_url.port or 80)) as other:
            headers = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
            other.sendall(f"POST /translate HTTP/1.1\r\n{headers}\r\n".encode() + request.content)
            wait_until(lambda: len(batchers[0]) == 20)
        wait_until(lambda: len(records.lines) == 1)
        assert (records.last["status"], records.last["sentences"]) == (499, 20)
        gated.open.set()
    assert len(records.lines) == 2
    assert gated.batches == [["go"]]


def test_a_request_to_a_full_queue_is_refused(gated: Gated) -> None:
    body = {**BODY, "q": ["a"] * 3}
    with (
        serving(("en", "de", gated), limits={"max_queue": 3, "max_sentences": 3}) as client,
        ThreadPoolExecutor() as pool,
    ):
        replies = [pool.submit(client.post, "/translate", json=body)]
        assert gated.started.wait(10)
        replies += [pool.submit(client.post, "/translate", json=body) for _ in range(2)]
        refused = next(as_completed(replies))  # of two, one is refused
        gated.open.set()
        found = [refused.result(), *(reply.result() for reply in replies if reply is not refused)]
    assert [reply.status_code for reply in found] == [503, 200, 200]
    assert "wait" in found[0].json()["error"]
    assert int(found[0].headers["retry-after"]) > 0
