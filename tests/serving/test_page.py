"""The page of the server in a real browser."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from browser import Page, needs_chromium
from real_server import GOLDEN_MODEL, Gated, Records, golden, recording, serving

import nmt
from nmt.serving.serve import open_directions
from nmt.translation.loading import LoadSettings

PICTURES = os.environ.get("NMT_TEST_PICTURES")
"""A folder for screenshots, to look at."""
TEXT = "I am old."
TYPE_SLOWLY = """
(async () => {
  for (const part of ["I ", "am ", "old."]) {
    document.execCommand("insertText", false, part);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
})()
"""
IS_CUT = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d");
  const select = at("direction"), style = getComputedStyle(select), arrow = 16;
  canvas.font = style.font;
  const room = select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - arrow;
  return canvas.measureText(select.selectedOptions[0].text).width > room;
})()
"""


MIDDLES = """
["example", "go", "inside"].map((name) => at(name).getBoundingClientRect()).map(({ top, bottom }) => (top + bottom) / 2)
"""


@pytest.fixture
def records() -> Iterator[Records]:
    with recording() as found:
        yield found


def open_page(page: Page, client: httpx.Client, width: int = 1200) -> None:
    """Open the page, wait for its directions, and keep what is shown as translation."""
    page.open(str(client.base_url), width)
    page.wait_for("document.getElementById('count').textContent !== ''")
    page.evaluate(
        "window.shown = []; new MutationObserver(() => shown.push(at('result').textContent))"
        ".observe(at('result'), { childList: true })"
    )


def shown(page: Page, name: str) -> str:
    """What an element says."""
    return str(page.evaluate(f"at({name!r}).textContent"))


def wait_for_status(page: Page, begin: str = "Done") -> None:
    page.wait_for(f"at('status').textContent.startsWith({begin!r})")


def posts(records: Records, route: str = "/translate") -> list[int]:
    """The statuses of requests for translations."""
    found = map(json.loads, records.lines)
    return [record["status"] for record in found if record["route"] == route]


def use_up(client: httpx.Client) -> None:
    """Make requests until the server refuses more of them for a while."""
    while client.post("/detect", data={"q": "a"}).status_code == 200:
        pass


@needs_chromium
def test_a_text_is_translated_as_it_is_typed_and_taken_along(page: Page, records: Records) -> None:
    with serving() as client:
        open_page(page, client)
        assert shown(page, "count") == "0 of 100,000 characters"
        assert [shown(page, name) for name in ("text-name", "result-name")] == ["English", "German"]
        assert page.evaluate("['swap', 'direction', 'copy'].some((name) => at(name).checkVisibility())") is False
        assert "Ctrl+Enter" in page.evaluate("document.body.innerText")
        middles = page.evaluate(MIDDLES)
        assert max(middles) - min(middles) < 1
        page.evaluate(TYPE_SLOWLY)
        assert shown(page, "count") == "9 of 100,000 characters"
        wait_for_status(page)
        assert page.evaluate("shown") == [golden().translate(TEXT).text]
        page.click("inside")
        page.wait_for(f"document.getElementById('sentence')?.value === {TEXT!r} && data.items.length === 1")
        assert page.evaluate("data.items.map((item) => item.source)") == [TEXT]
        assert page.problems == []
    assert posts(records) == [200]


@needs_chromium
def test_only_a_model_whose_inside_can_be_shown_is_offered_for_it(page: Page, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    exported = nmt.load(nmt.export(GOLDEN_MODEL, to="onnx", output=tmp_path / "export"))
    offered = "['inside', 'about-inside'].map((name) => at(name).checkVisibility())"
    with serving(("en", "de", exported)) as client:
        open_page(page, client)
        assert page.evaluate(offered) == [False, False]
        assert "Look inside" not in page.evaluate("document.body.innerText")
    with serving(("en", "de", golden()), ("de", "en", exported)) as client:
        open_page(page, client)
        assert page.evaluate(offered) == [True, True]
        page.click("swap")
        assert page.evaluate("at('direction').selectedOptions[0].text") == "German to English"
        assert page.evaluate(offered) == [False, True]
        page.open(f"{client.base_url}/explore", 1200)
        page.wait_for("at('direction').options.length > 0")
        assert page.evaluate("[...at('direction').options].map((option) => option.text)") == ["English to German"]
        assert page.evaluate("at('direction').checkVisibility()") is False
        assert page.problems == []


@pytest.mark.soak
@needs_chromium
def test_sentences_that_stay_as_they_are_are_named(page: Page) -> None:
    (direction,) = open_directions([GOLDEN_MODEL], LoadSettings("cpu", split_sentences=True))
    with serving(direction) as client:
        open_page(page, client)
        page.evaluate("fill('hello\\nI am old.\\nthe\\nxx')")
        wait_for_status(page, "1 sentence is unchanged: ")
        reasons = "the model knows none of the words; 2 sentences are unchanged: the model only repeats words"
        assert shown(page, "status") == f"1 sentence is unchanged: {reasons}"


@needs_chromium
def test_what_is_typed_before_the_directions_are_known_is_translated_later(page: Page) -> None:
    with serving() as client:
        page.call("Fetch.enable", patterns=[{"urlPattern": "*/languages"}])
        page.open(str(client.base_url), 1200)
        page.type(TEXT)
        assert page.evaluate("[at('direction').length, at('text').value]") == [0, TEXT]
        page.call("Fetch.disable")  # the request that was held goes on
        wait_for_status(page)
        assert shown(page, "result") == golden().translate(TEXT).text
        assert page.problems == []


@pytest.mark.soak
@needs_chromium
def test_the_translation_of_an_earlier_text_is_never_shown(page: Page, records: Records) -> None:
    gated = Gated()
    with serving(("en", "de", gated)) as client:
        open_page(page, client)
        page.type(TEXT)
        assert gated.started.wait(20)
        page.type("\nShe sleeps.")
        time.sleep(1)  # for the page to ask again, while the first batch is still at work
        gated.open.set()
        wait_for_status(page)
        assert page.evaluate("shown") == ["\n".join(golden().translate(line).text for line in (TEXT, "She sleeps."))]
        assert shown(page, "inside") == "Look inside the first line"
        page.evaluate("at('text').value = ' '; change()")
        assert [shown(page, name) for name in ("result", "status")] == ["", ""]
        assert page.problems == []
    assert sorted(posts(records)) == [200, 499]


@pytest.mark.soak
@needs_chromium
def test_a_busy_server_is_asked_again_when_it_allows_it(page: Page, records: Records) -> None:
    with serving(limits={"requests_per_minute": 20}) as client:
        open_page(page, client)
        use_up(client)
        page.type("I am")
        wait_for_status(page, "Not translated: Slow down: too many requests; trying again in ")
        begin = time.monotonic()
        page.type(" old.")
        wait_for_status(page)
        assert time.monotonic() - begin > 1
        assert page.evaluate("shown") == [golden().translate(TEXT).text]
    assert posts(records) == [429, 200]


@pytest.mark.soak
@needs_chromium
def test_a_file_is_sent_again_when_a_busy_server_allows_it(page: Page, records: Records) -> None:
    with serving(limits={"requests_per_minute": 20}) as client:
        open_page(page, client)
        use_up(client)
        page.evaluate(f"translateFile(new File([{TEXT!r}], 'a.txt'))")
        page.wait_for("at('file-status').textContent.includes('trying again in ')")
        page.wait_for("at('file-status').textContent === 'Done'")
    assert posts(records, "/translate_file") == [429, 200]


@pytest.mark.soak
@needs_chromium
def test_the_example_is_swapped_and_copied(page: Page) -> None:
    with serving(("en", "de", golden()), ("de", "en", golden())) as client:
        open_page(page, client)
        assert shown(page, "example") == "Try “She is reading a book.”"
        page.click("example")
        wait_for_status(page)
        best = golden().translate("She is reading a book.").text
        assert shown(page, "result") == best
        assert not page.evaluate("at('example').checkVisibility()")
        page.click("copy")
        wait_for_status(page, "Copied")
        page.click("swap")
        assert page.evaluate("at('direction').selectedOptions[0].text") == "German to English"
        assert page.evaluate("at('text').value") == best
        wait_for_status(page)
        taken = httpx.QueryParams({"from": "de", "to": "en", "q": best})
        assert page.evaluate("at('inside').hash.slice(1)") == str(taken)
        assert shown(page, "result") == golden().translate(best).text
        page.evaluate("at('text').value = ''; at('text').focus()")
        page.call("Input.dispatchKeyEvent", type="keyDown", commands=["paste"])
        page.wait_for(f"at('text').value === {best!r}")
        assert page.problems == []


@pytest.mark.soak
@needs_chromium
def test_long_texts_and_missing_keys_wait_for_the_user(page: Page, records: Records) -> None:
    with serving(api_keys=["secret"], limits={"max_characters": 3000}) as client:
        open_page(page, client)
        page.type("😀" * 3001)
        assert shown(page, "count") == "3,001 of 3,000 characters"
        assert page.evaluate("[at('count').className, at('status').textContent]") == ["over", "Too long"]
        page.evaluate(f"at('text').value = {TEXT!r}; change()")
        wait_for_status(page, "This server needs an API key")
        time.sleep(1)
        page.evaluate("at('key').value = 'secret'")
        page.evaluate(f"at('text').value = {'I am old. ' * 250!r}; change()")
        wait_for_status(page, "Press Translate")
        time.sleep(1)
        assert posts(records) == []
        page.evaluate(f"at('text').value = {TEXT!r}; at('key').focus()")
        page.press("Enter", 13)
        wait_for_status(page)
        assert shown(page, "result") == golden().translate(TEXT).text
        assert page.problems == []


@needs_chromium
def test_a_server_with_keys_asks_for_one_which_is_taken_along(page: Page, records: Records) -> None:
    with serving(api_keys=["secret"]) as client:
        open_page(page, client)
        needs = "This server needs an API key"
        assert shown(page, "status") == needs
        page.type(TEXT)
        page.click("go")
        assert shown(page, "status") == needs
        assert page.evaluate("document.activeElement.id") == "key"
        page.type("secret")
        page.click("inside")
        page.wait_for(f"document.getElementById('sentence')?.value === {TEXT!r} && data.items.length === 1")
        assert "secret" not in page.evaluate("location.href")
        assert page.problems == []
    asked = [
        (record["route"], record["status"]) for record in map(json.loads, records.lines) if record["method"] == "POST"
    ]
    assert asked[-1] == ("/explore", 200)


DROP = """
((text, name) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  at("text").dispatchEvent(new DragEvent("dragover", { dataTransfer: data, bubbles: true, cancelable: true }));
  const isMarked = at("drop").className.includes("over-it");
  at("text").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  return isMarked;
})
"""


@needs_chromium
def test_a_dropped_file_comes_back_and_a_bad_one_is_explained(page: Page, records: Records) -> None:
    with serving(limits={"max_file_bytes": 3000}) as client:
        open_page(page, client)
        cue = "1\n00:00:01,000 --> 00:00:02,000\nI am old.\n"
        assert page.evaluate(f"{DROP}({cue!r}, 'my film.srt')") is True
        page.wait_for("at('file-status').textContent === 'Done'")
        assert shown(page, "saved") == "Save my_film_de.srt"
        assert "over-it" not in page.evaluate("at('drop').className")
        saved = client.get(page.evaluate("at('saved').href")).text
        assert saved == cue.replace("I am old.", golden().translate("I am old.").text)
        for content, name, problem in (
            ("x", "a.srt", "Not translated: a.srt: has no line with times"),
            ("x", "a.pdf", "Not translated: .pdf: files may be .txt, .srt"),
            ("x" * 3001, "a.txt", "a.txt is larger than 3,000 bytes"),
        ):
            page.evaluate(f"{DROP}({content!r}, {name!r})")
            page.wait_for(f"at('file-status').textContent.startsWith({problem!r})")
            assert page.evaluate("at('saved').checkVisibility()") is False
        assert shown(page, "result") == ""
        assert [problem for problem in page.problems if "400" not in problem] == []
    assert posts(records, "/translate_file") == [200, 400, 400]


@pytest.mark.soak
@needs_chromium
@pytest.mark.parametrize("width", [1400, 360])
def test_the_page_is_legible_in_light_and_dark(page: Page, width: int) -> None:
    with serving(("nb", "pt-BR", golden()), ("de", "en", golden())) as client:
        for scheme, is_dark in (("light", False), ("dark", True)):
            page.prefer(scheme)
            open_page(page, client, width)
            color = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (color == "rgb(22, 24, 28)") is is_dark
            assert page.evaluate("at('direction').selectedOptions[0].text") == "Norwegian Bokmål to Portuguese (BR)"
            assert not page.evaluate(IS_CUT)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            page.evaluate("at('text').value = 'a'.repeat(200); change()")
            wait_for_status(page)
            page.evaluate("at('count').className = 'over'")
            texts = page.read_legibility()
            seen = [text for text in texts if text["contrast"] is not None]
            assert {"Done", "Copy", "200 of 100,000 characters", "Look inside"} <= {text["text"] for text in seen}
            assert [text for text in seen if text["size"] < 11 or text["contrast"] < 4.5] == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.problems == []


@pytest.mark.soak
@needs_chromium
def test_the_policy_stops_other_scripts_and_a_stopped_server_is_named(page: Page) -> None:
    with serving() as client:
        open_page(page, client)
        page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'injected = 1'}))")
        assert page.evaluate("typeof injected") == "undefined"
        assert "Content Security Policy" in page.problems[0]
    page.type(TEXT)
    page.press("Enter", 13, 2)
    wait_for_status(page, "Not translated: ")
