"""Third-party clients of LibreTranslate, against the real server."""

from collections.abc import Iterator
from urllib.error import HTTPError

import httpx
import pytest
from real_server import golden, serving

libretranslatepy = pytest.importorskip("libretranslatepy")
deep_translator = pytest.importorskip("deep_translator")

TEXT = "The old woman reads a book."
# They leave closing connections to Python.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with serving(api_keys=["key"]) as found:
        yield found


def test_libretranslatepy(client: httpx.Client) -> None:
    api = libretranslatepy.LibreTranslateAPI(str(client.base_url), "key")
    assert api.translate(TEXT, "en", "de") == golden().translate(TEXT).text
    assert api.translate(TEXT, "auto", "de") == golden().translate(TEXT).text
    assert api.detect(TEXT)[0]["language"] == "en"
    assert api.languages()[0] == {"code": "en", "name": "English", "targets": ["de"]}
    with pytest.raises(HTTPError, match="403"):
        libretranslatepy.LibreTranslateAPI(str(client.base_url)).translate(TEXT, "en", "de")


def test_deep_translator(client: httpx.Client) -> None:
    def translator(key: str, **options: str) -> object:
        url = f"{str(client.base_url).rstrip('/')}/"
        return deep_translator.LibreTranslator(**options, api_key=key, custom_url=url)

    found = translator("key", source="en", target="de")
    assert found.translate(TEXT) == golden().translate(TEXT).text  # type: ignore[attr-defined]
    assert found.translate_batch(["I am old.", "She sleeps."]) == [  # type: ignore[attr-defined]
        each.text for each in golden().translate(["I am old.", "She sleeps."])
    ]
    with pytest.raises(deep_translator.exceptions.AuthorizationException):
        translator("wrong", source="en", target="de").translate(TEXT)  # type: ignore[attr-defined]


def test_a_fediverse_server_sends_a_list_of_html(client: httpx.Client) -> None:
    body = {"source": "auto", "target": "de", "format": "html", "api_key": "key"}
    found = client.post("/translate", json={**body, "q": ["<p>I am old.</p>", "She sleeps."]}).json()
    old, sleeps = (each.text for each in golden().translate(["I am old.", "She sleeps."]))
    assert found["translatedText"] == [f"<p>{old}</p>", sleeps]
    assert [each["language"] for each in found["detectedLanguage"]] == ["en", "en"]
