"""The page of the server in a real browser."""

import os
from pathlib import Path

import pytest
from browser import browsing, needs_chromium
from real_server import golden, serving

PICTURES = os.environ.get("NMT_TEST_PICTURES")
"""A folder for screenshots, to look at."""


@pytest.mark.soak
@needs_chromium
@pytest.mark.parametrize("width", [1200, 320])
def test_a_sentence_is_typed_and_translated(width: int) -> None:
    translator = golden()
    text = "I am old.\nThe old woman reads averyveryverylongwordwithoutanyspacesthatiswiderthanatelephone.\n"
    with serving() as client, browsing() as page:
        page.open(str(client.base_url), width)
        page.wait_for("document.getElementById('direction').options.length === 1")
        assert page.evaluate("document.getElementById('direction').selectedOptions[0].text") == "English to German"
        assert page.evaluate("document.activeElement.id") == "text"
        page.type(text)
        page.press("Enter", 13, 2)
        page.wait_for("document.getElementById('status').textContent === 'Done'")
        expected = "\n".join(translator.translate(line).text for line in text.split("\n"))
        assert page.evaluate("document.getElementById('result').textContent") == expected
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if PICTURES:
            page.save_picture(Path(PICTURES) / f"page-{width}.png")
        assert page.problems == []


@pytest.mark.soak
@needs_chromium
def test_the_policy_stops_other_scripts_and_a_stopped_server_is_named() -> None:
    with browsing() as page:
        with serving() as client:
            page.open(str(client.base_url), 800)
            page.wait_for("document.getElementById('direction').options.length === 1")
            page.evaluate(
                "document.body.append(Object.assign(document.createElement('script'), {text: 'injected = 1'}))"
            )
            assert page.evaluate("typeof injected") == "undefined"
            assert "Content Security Policy" in page.problems[0]
        page.type("I am old.")
        page.press("Enter", 13, 2)
        page.wait_for("document.getElementById('status').textContent.startsWith('Not translated: ')")
