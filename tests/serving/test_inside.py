"""The page of the server that explores what a model does with a sentence."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from browser import Page, needs_chromium
from real_server import golden, golden_config, serving

from nmt.corpus.example import Example
from nmt.evaluation.metrics import ScoringRules
from nmt.inspection.explorer_page import System, page_data
from nmt.inspection.record import record
from nmt.serving.batches import Batcher, QueueFull
from nmt.translation.reader import Unit

PICTURES = os.environ.get("NMT_TEST_PICTURES")
"""A folder for screenshots, to look at."""
SENTENCE = "The old woman reads a book."


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with serving() as made:
        yield made


def ask(client: httpx.Client, **fields: object) -> httpx.Response:
    return client.post("/explore", json={"q": SENTENCE, "source": "en", "target": "de", **fields})


def cells(page: Page, place: str) -> list[list[str]]:
    """The text of a table, row by row, without its head."""
    rows = f"[...document.querySelectorAll('{place} tbody tr')].map((row) => [...row.cells].map((e) => e.textContent))"
    found: list[list[str]] = page.evaluate(rows)
    return found


@pytest.mark.parametrize("given", ["", "Die Frau schläft."])
def test_a_sentence_is_recorded_as_for_a_page(client: httpx.Client, given: str) -> None:
    translator, config = golden(), golden_config()
    example = Example(SENTENCE, (given,) if given else ())
    recorded = record(translator, example, ScoringRules.for_text(config.text, "de"), all_heads=True)
    recorded.measures.pop("BLEU", None)
    expected = page_data([example], [System.of_model("en-de", config, translator, [recorded])])
    shown = ask(client, given=given).json()
    found = shown["items"][0]["of"][0]
    assert found["text"] == {str(n): text for n, text in recorded.texts.items()}
    assert found["measures"] == pytest.approx(expected["items"][0]["of"][0]["measures"], abs=2e-3)
    assert shown["systems"] == json.loads(json.dumps(expected["systems"]))
    assert (found["ref"] is not None) is bool(given)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"q": ""}, "q has 0 tokens"),
        ({"q": "a " * 300}, "q has 300 tokens; give 1 to 200"),
        ({"given": "a " * 300}, "given has 300 tokens"),
        ({"given": 3}, "given: Input should be a valid string"),
        ({"q": ["a"]}, "q: Input should be a valid string"),
        ({"q": "a", "given": "b" * 100_000}, "(100001) exceeds text limit (100000)"),
        ({"target": "fr"}, "en-fr is not supported"),
    ],
)
def test_bad_requests(client: httpx.Client, fields: dict[str, object], message: str) -> None:
    reply = ask(client, **fields)
    assert reply.status_code == 400
    assert message in reply.json()["error"]


def test_a_key_is_required() -> None:
    with serving(api_keys=["secret"]) as client:
        assert ask(client).status_code == 403
        assert ask(client, api_key="secret").status_code == 200


def test_work_takes_its_turn_and_its_errors_are_its_own() -> None:
    async def work() -> None:
        batcher = Batcher(golden(), 2, 0.0)
        try:
            both = await asyncio.gather(batcher.call(lambda: 7), batcher.translate([Unit(["I am old."])]))
            assert both[0] == 7
            with pytest.raises(ZeroDivisionError):
                await batcher.call(lambda: 1 // 0)
            crowd = await asyncio.gather(*(batcher.call(lambda: 6) for _ in range(3)), return_exceptions=True)
            assert crowd[:2] == [6, 6]
            assert isinstance(crowd[2], QueueFull)
            assert await batcher.call(lambda: 8) == 8
        finally:
            batcher.stop(5)

    asyncio.run(work())


@pytest.mark.soak
@needs_chromium
@pytest.mark.parametrize("width", [1200, 320])
def test_sentences_are_typed_and_explored(page: Page, width: int) -> None:
    with serving() as client:
        page.open(f"{client.base_url}/explore", width)
        page.wait_for("document.activeElement.id === 'sentence' && at('direction').options.length === 1")
        assert page.evaluate("document.querySelector('main').hidden")
        page.type(SENTENCE)
        page.press("Enter", 13)
        page.wait_for("!document.querySelector('main').hidden")
        assert page.evaluate("at('source').textContent") == SENTENCE
        best = golden().translate(SENTENCE)
        steps = page.evaluate("[...document.querySelectorAll('#lines [data-step] text')].map((e) => e.textContent)")
        assert steps == [*best.tokens, "⟨eos⟩"]
        page.evaluate("at('given').value = '<b>Die</b> Frau'; at('form').requestSubmit()")
        page.wait_for("data.items.length === 2")
        (forced,) = golden().score([SENTENCE], ["<b>Die</b> Frau"])
        loss = page.evaluate("Number(document.querySelector('[data-name=loss] td').textContent)")
        assert loss == pytest.approx(-forced.token_log_probs[0], abs=0.011)
        assert page.evaluate("at('target').selectedOptions[0].text") == "given: <b>Die</b> Frau"
        page.evaluate("go({ t: 1 })")
        address = page.evaluate("location.href")
        page.evaluate("go({ s: 0, y: '0' })")
        assert page.evaluate("new URLSearchParams(location.hash.slice(1)).has('p')") is False
        page.open("about:blank", width)
        page.open(address, width)
        page.wait_for("data.items.length === 1")
        assert page.evaluate("[at('source').textContent, at('given').value]") == [SENTENCE, "<b>Die</b> Frau"]
        page.wait_for("state.t === 1 && at('target').value === 'r'")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if PICTURES:
            page.save_picture(Path(PICTURES) / f"inside-{width}.png")
        page.evaluate("at('sentence').value = 'a '.repeat(300); at('form').requestSubmit()")
        page.wait_for("at('asked').textContent.startsWith('Not translated: Invalid request: q has 300 tokens')")
        assert [entry for entry in page.problems if "400 (Bad Request)" not in entry] == []


@needs_chromium
def test_every_column_of_each_sentence_can_be_read(page: Page) -> None:
    translator, sources = golden(), [SENTENCE, "I am old."]
    with serving() as client:
        page.open(f"{client.base_url}/explore", 1200)
        page.wait_for("document.activeElement.id === 'sentence' && at('direction').options.length === 1")
        for number, source in enumerate(sources, start=1):
            page.evaluate(f"at('sentence').value = {source!r}; at('form').requestSubmit()")
            page.wait_for(f"data.items.length === {number}")
        for number in (1, 0):  # and back to the first: each reply numbers its words anew
            page.evaluate(f"at('item').value = {number}; at('item').dispatchEvent(new Event('change'))")
            recorded = record(translator, Example(sources[number], ()), rules=None)
            page.evaluate("go({ t: 1 })")
            weights = recorded.best.alignment[1].mean(dim=0).tolist()
            rows = cells(page, "#step")
            assert [row[0] for row in rows] == recorded.src_tokens
            assert [float(row[1]) for row in rows] == pytest.approx(weights, abs=0.005)
            likely = cells(page, "#top")
            top = [
                (token, share)
                for n, (token, share) in enumerate(recorded.best.top[1])
                if n < 3 or round(share, 3) >= 0.001
            ]
            assert [row[0] for row in likely] == [token for token, _ in top]
            assert [float(row[1].rstrip("%")) for row in likely] == pytest.approx(
                [100 * share for _, share in top], abs=0.1
            )
            for row in (*rows, *likely):
                assert not {"undefined", "NaN", "null"} & set(row)
        assert page.problems == []


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_is_legible_while_it_is_empty(page: Page, scheme: str) -> None:
    with serving() as client:
        page.prefer(scheme)
        page.open(f"{client.base_url}/explore", 360)
        page.wait_for("at('direction').options.length === 1")
        seen = {text["text"]: text for text in page.read_legibility() if text["contrast"] is not None}
        assert {"given", "sentence", "Look"} <= seen.keys()
        assert [text for text in seen.values() if text["size"] < 11 or text["contrast"] < 4.5] == []


@pytest.mark.soak
@needs_chromium
def test_the_address_names_the_direction(page: Page) -> None:
    with serving(("en", "de", golden()), ("de", "en", golden())) as client:
        page.open(f"{client.base_url}/explore", 1200)
        page.wait_for("at('direction').options.length === 2")
        page.evaluate("at('direction').selectedIndex = 1; at('sentence').value = 'a b'; at('form').requestSubmit()")
        page.wait_for("data.items.length === 1")
        source, target = page.evaluate("JSON.parse(at('direction').value)")
        address = page.evaluate("location.href")
        assert f"from={source}&to={target}" in address
        page.open("about:blank", 1200)
        page.open(address, 1200)
        page.wait_for("data.items.length === 1")
        shown = page.evaluate("[...JSON.parse(at('direction').value), at('source').textContent]")
        assert shown == [source, target, "a b"]
        page.open("about:blank", 1200)
        page.open(address.replace(f"to={target}", "to=fr"), 1200)
        page.wait_for(f"at('asked').textContent.endsWith('this server shows no model from {source} to fr')")
        assert page.evaluate("[data.items.length, at('direction').selectedIndex]") == [0, 0]
        assert page.problems == []
