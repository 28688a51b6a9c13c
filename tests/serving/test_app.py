"""Every route over real sockets: the API that LibreTranslate documents, errors, limits, access."""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from real_server import GOLDEN_MODEL, Records, golden, recording, serving
from safetensors.torch import load_file, save_file

import nmt
from nmt.serving.serve import open_directions, read_glossaries
from nmt.system.errors import ConfigError
from nmt.translation.loading import LoadSettings
from nmt.translation.translator import Translator

TEXT = "I am old."
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a server of one direction with the default limits."""
    with serving() as found:
        yield found


@pytest.fixture
def records() -> Iterator[Records]:
    with recording() as found:
        yield found


STRICT = {"max_characters": 40, "max_sentences": 3, "max_queue": 3}


@pytest.fixture(scope="module")
def strict() -> Iterator[httpx.Client]:
    """A client of a server with small limits."""
    with serving(limits=STRICT) as found:
        yield found


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden model as ONNX Runtime reads it."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    return nmt.export(GOLDEN_MODEL, to="onnx", output=tmp_path_factory.mktemp("export") / "golden-onnx")


def test_an_export_is_served_as_its_model_is(exported: Path) -> None:
    texts = [TEXT, "The old woman reads a book. She sleeps.", "Write to info@example.com about 2386 books.", "OPEN IT"]
    (own,) = open_directions([GOLDEN_MODEL], LoadSettings("cpu"))
    with serving(*open_directions([exported], LoadSettings("cpu"))) as served:
        found = ask(served, q=texts, alternatives=2)
        assert found.json()["translatedText"] == [each.text for each in own.translator.translate(texts)]
        assert len(found.json()["alternatives"][0]) == 2
        (model,) = served.get("/health").json()["models"]
        weights = hashlib.sha256((exported / "decoder.onnx").read_bytes()).hexdigest()
        assert model["identity"] == found.headers["model-identity"] == weights[:12]
        assert served.get("/frontend/settings").json()["explorable"] == []
        refused = served.post("/explore", json={"q": TEXT, "source": "en", "target": "de"})
        assert error_of(refused, 400).endswith("en-de is an export, which does not show the inside of its model")


def ask(client: httpx.Client, **fields: Any) -> httpx.Response:
    return client.post("/translate", json={"q": TEXT, "source": "en", "target": "de", **fields})


def error_of(reply: httpx.Response, status: int) -> str:
    assert reply.status_code == status
    assert reply.headers["content-type"] == "application/json"
    found = reply.json()
    assert list(found) == ["error"]
    return str(found["error"])


def test_the_routes_without_text(client: httpx.Client) -> None:
    assert client.get("/health").json() == {"status": "ok", "models": []}
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    settings = client.get("/frontend/settings").json()
    english, german = {"code": "en", "name": "English"}, {"code": "de", "name": "German"}
    assert settings["language"] == {"source": english, "target": german}
    assert settings["charLimit"] == 100_000
    assert settings["explorable"] == [["en", "de"]]
    assert settings["keyRequired"] is settings["apiKeys"] is settings["suggestions"] is False
    assert client.head("/health").status_code == 200


@pytest.mark.parametrize("encoding", ["json", "form", "multipart", "address"])
def test_each_encoding_gives_the_translation(client: httpx.Client, encoding: str) -> None:
    fields = {"q": "The old woman, ä & + 100%.", "source": "en", "target": "de", "format": "text"}
    sent: dict[str, Any] = {
        "json": {"json": fields},
        "form": {"data": fields},
        "multipart": {"files": {key: (None, value) for key, value in fields.items()}},
        "address": {"params": fields},
    }[encoding]
    reply = client.post("/translate", **sent)
    assert reply.json() == {"translatedText": golden().translate(fields["q"]).text}
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_a_list_gives_a_list_in_every_encoding(client: httpx.Client) -> None:
    texts = ["I am old.", "", "She sleeps."]
    expected = {"translatedText": [each.text for each in golden().translate(texts)]}
    assert ask(client, q=texts).json() == expected
    form = urlencode([("q", text) for text in texts] + [("source", "en"), ("target", "de")])
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/translate", content=form, headers=headers).json() == expected
    files = [("q", (None, text)) for text in texts] + [("source", (None, "en")), ("target", (None, "de"))]
    assert client.post("/translate", files=files).json() == expected
    assert ask(client, q=[]).json() == {"translatedText": []}


def test_lines_are_kept(client: httpx.Client) -> None:
    one, two = (golden().translate(text).text for text in ("I am old.", "She sleeps."))
    assert ask(client, q="\nI am old.\r\n \n\nShe sleeps.\n").json()["translatedText"] == f"\n{one}\r\n \n\n{two}\n"


@pytest.mark.parametrize("form", ["{}", "<p>{}</p>"])
def test_capitals_are_answered_in_capitals(client: httpx.Client, form: str) -> None:
    small = golden().translate(["I am old.", "She sleeps."])
    expected = form.format(" ".join(one.text.upper() for one in small))
    found = ask(client, q=form.format("I AM OLD. SHE SLEEPS."), format="html" if "<" in form else "text")
    assert found.json()["translatedText"] == expected


def test_alternatives_are_the_next_best(client: httpx.Client) -> None:
    best, *others = dict.fromkeys(each.text for each in golden().translate(TEXT, 3))
    assert others
    assert ask(client, alternatives=2).json() == {"translatedText": best, "alternatives": others}
    assert ask(client, q=[TEXT], alternatives="2").json() == {"translatedText": [best], "alternatives": [others]}
    assert len(ask(client, alternatives=10**6).json()["alternatives"]) < golden().options.beam_size
    assert "alternatives" not in ask(client, alternatives=0).json()


def test_auto_detects_the_language(client: httpx.Client) -> None:
    found = ask(client, source="auto").json()
    assert found["detectedLanguage"] == {"confidence": 100.0, "language": "en"}
    assert found["translatedText"] == ask(client).json()["translatedText"]
    found = ask(client, source="auto", q=[TEXT, "Ж"]).json()["detectedLanguage"]
    assert [each["language"] for each in found] == ["en", "en"]
    assert found[1]["confidence"] < 100
    assert client.post("/detect", data={"q": TEXT}).json() == [{"confidence": 100.0, "language": "en"}]
    assert client.post("/detect", json={"q": ""}).json() == [{"confidence": 0.0, "language": "en"}]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"q": None}, "q: Field required"),
        ({"q": 5}, "q: Input should be a valid string"),
        ({"q": {"0": TEXT}}, "q: Input should be a valid string"),
        ({"q": [TEXT, 5]}, "q.1: Input should be a valid string"),
        ({"q": [TEXT, None]}, "q.1: Input should be a valid string"),
        ({"q": [None, None]}, "q.0: Input should be a valid string"),
        ({"q": [TEXT, TEXT, [TEXT]]}, "q.2: Input should be a valid string"),
        ({"q": [TEXT, True], "source": 5}, "q.1: Input should be a valid string"),
        ({"source": None}, "source: Field required"),
        ({"source": ""}, "source: is empty"),
        ({"target": " "}, "target: is empty"),
        ({"target": None}, "target: Field required"),
        ({"target": ["de"]}, "target: Input should be a valid string"),
        ({"target": "xx\x1b[2J"}, r"en-xx\x1b[2J is not supported"),
        ({"source": "de", "target": "en"}, "de-en is not supported"),
        ({"format": "pdf"}, "format: Input should be 'text' or 'html'"),
        ({"alternatives": -1}, "alternatives"),
        ({"alternatives": 1.5}, "alternatives"),
        ({"alternatives": "many"}, "alternatives"),
        ({"alternatives": True}, "alternatives: Input should be a valid integer"),
        ({"alternatives": [1]}, "alternatives: Input should be a valid integer"),
        ({"format": ["text"]}, "format: Input should be 'text' or 'html'"),
        ({"api_key": False}, "api_key: Input should be a valid string"),
        ({"api_key": []}, "api_key: Input should be a valid string"),
        ({"api_key": [None]}, "api_key: Input should be a valid string"),
        ({"api_key": 7}, "api_key: Input should be a valid string"),
    ],
)
def test_an_invalid_field_is_named(client: httpx.Client, fields: dict[str, Any], words: str) -> None:
    assert words in error_of(ask(client, **fields), 400)


def test_null_leaves_an_optional_field_out(client: httpx.Client) -> None:
    found = ask(client, api_key=None, format=None, alternatives=None)
    assert found.json() == {"translatedText": golden().translate(TEXT).text}
    reply = client.post("/explore", json={"q": TEXT, "source": "en", "target": "de", "given": None, "api_key": None})
    assert reply.status_code == 200


@pytest.mark.parametrize(
    ("content_type", "body", "words"),
    [
        ("application/json", b"", "not JSON"),
        ("application/json", b'{"q": ', "line 1 column 6"),
        ("application/json", b'{"q": "\\ud800"}', "not JSON"),
        ("application/json", b"\xff\xfe", "not JSON"),
        ("application/json", b"[" * 100_000, "not JSON"),
        ("text/plain", b"{}", "application/json"),
        ("application/x-www-form-urlencoded", b"q=%ff", "utf-8"),
        ("application/x-www-form-urlencoded", b"a=1&" * 3000, "number of fields"),
        ("multipart/form-data; boundary=x", b"nothing of the kind", "Invalid multipart"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="q"; filename="a"\r\n\r\nx\r\n--x--\r\n',
            "Too many files",
        ),
    ],
)
def test_an_invalid_body_is_refused(client: httpx.Client, content_type: str, body: bytes, words: str) -> None:
    assert words in error_of(client.post("/translate", content=body, headers={"Content-Type": content_type}), 400)


def test_odd_characters_do_no_harm(client: httpx.Client) -> None:
    body = json.dumps({"q": "ab\x00\x1b[2J \u2028 😀\r", "source": "en", "target": "de"})
    reply = client.post("/translate", content=body, headers=JSON)
    assert reply.status_code == 200
    assert not re.search("[\x00-\x0c\x0e-\x1f]", reply.json()["translatedText"])


def test_unknown_paths_and_methods(client: httpx.Client) -> None:
    error_of(client.get("/translate_files"), 404)
    error_of(client.get("/translate/"), 404)
    assert "GET" in client.post("/languages").headers["allow"]
    error_of(client.get("/translate"), 405)
    for path, methods in {"/explore": {"GET", "HEAD", "POST"}, "/detect": {"POST"}, "/": {"GET", "HEAD"}}.items():
        reply = client.delete(path)
        error_of(reply, 405)
        assert set(reply.headers["allow"].split(", ")) == methods


def test_limits_of_a_request(strict: httpx.Client) -> None:
    assert ask(strict, q="a" * 40).status_code == 200
    assert "(41) exceeds text limit (40)" in error_of(ask(strict, q=["a" * 20, "a" * 21]), 400)
    assert "4 texts exceed the limit of 3" in error_of(ask(strict, q=["a"] * 4), 400)
    assert "4 sentences exceed the limit of 3" in error_of(ask(strict, q="a\nb\nc\nd"), 400)
    assert "4 sentences" in error_of(ask(strict, q="a<p>b<p>c<p>d", format="html"), 400)


@pytest.mark.parametrize("has_length", [True, False])
def test_a_large_body_is_refused(has_length: bool, records: Records) -> None:
    size = 3_000_000
    content: Any = b"x" * size if has_length else (b"x" * 10_000 for _ in range(size // 10_000))
    with serving(limits=STRICT) as client:
        reply = client.post("/translate", content=content, headers=JSON)
    assert "larger than" in error_of(reply, 413)
    assert len(records.lines) == 1
    assert records.last["status"] == 413


def test_a_key_is_required_if_there_are_keys(records: Records) -> None:
    with serving(api_keys=["first", "zweiter-ä"]) as client:
        assert client.get("/languages").status_code == 200
        assert client.get("/frontend/settings").json()["keyRequired"] is True
        assert ask(client, api_key="first").status_code == 200
        assert client.post("/detect", data={"q": "a", "api_key": "zweiter-ä"}).status_code == 200
        error_of(ask(client), 403)
        for wrong in ("", "fir", "first ", "zweiter"):
            body = json.dumps({"q": TEXT, "source": "en", "target": "de", "api_key": wrong})
            error_of(client.post("/translate", content=body, headers=JSON), 403)
        error_of(client.post("/detect", data={"q": "a"}), 403)
    assert len(records.lines) == 10
    assert not any(secret in "".join(records.lines) for secret in ("first", "zweiter", TEXT))


def test_the_rate_of_each_client_and_key_is_limited() -> None:
    options: dict[str, Any] = {"api_keys": ["one", "two"], "limits": {"requests_per_minute": 2}}
    with serving(**options) as client:
        for key in ("one", "two"):
            assert [ask(client, api_key=key).status_code for _ in range(3)] == [200, 200, 429]
        assert [ask(client, api_key=f"guess {n}").status_code for n in range(3)] == [403, 403, 429]
        assert 1 <= int(ask(client, api_key="one").headers["retry-after"]) <= 30
        assert client.get("/health").status_code == 200


def test_malformed_requests_do_not_count() -> None:
    with serving(limits={"requests_per_minute": 1}) as client:
        for wrong in ({"q": 3}, {"target": None}, {"format": "pdf"}, {"alternatives": -1}):
            error_of(ask(client, **wrong), 400)
        assert [ask(client).status_code for _ in range(2)] == [200, 429]


def test_pages_of_other_origins_are_refused(client: httpx.Client) -> None:
    port = client.base_url.port
    for host in ("localhost", f"localhost:{port}", "127.0.0.1", "[::1]:1"):
        assert client.get("/health", headers={"Host": host}).status_code == 200
    for host in ("evil.example", f"127.0.0.1.evil.example:{port}", ""):
        assert "`allowed_hosts`" in error_of(client.get("/health", headers={"Host": host}), 400)
    for origin in (f"http://127.0.0.1:{port}", "moz-extension://0b1c"):
        reply = client.get("/languages", headers={"Origin": origin})
        assert reply.status_code == 200
        assert "access-control-allow-origin" not in reply.headers
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{port + 1}"):
        error_of(client.get("/languages", headers={"Origin": origin}), 403)


def test_pages_of_allowed_origins_are_accepted() -> None:
    options = {"allowed_hosts": ["mt.example"], "allowed_origins": ["https://page.example"]}
    with serving(**options) as client:
        headers = {"Host": "mt.example", "Origin": "https://page.example"}
        reply = client.post("/translate", data={"q": "a", "source": "en", "target": "de"}, headers=headers)
        assert reply.headers["access-control-allow-origin"] == "https://page.example"
        assert "access-control-allow-credentials" not in reply.headers
        asked = {**headers, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        assert client.options("/translate", headers=asked).status_code == 200
        error_of(client.get("/languages", headers={"Origin": "https://other.example"}), 403)
        assert "access-control-allow-origin" not in client.get("/", headers=headers).headers
    with serving(allowed_origins=["*"]) as client:
        reply = client.get("/languages", headers={"Origin": "null"})
        assert reply.headers["access-control-allow-origin"] == "*"


def test_the_page_loads_nothing_from_elsewhere(client: httpx.Client) -> None:
    reply = client.get("/")
    policy = dict(part.strip().split(" ", 1) for part in reply.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert "unsafe" not in str(policy)
    assert "://" not in reply.text
    assert not re.search(r"innerHTML|document\.write|\bon[a-z]+=|style=", reply.text)
    assert len(reply.content) < 14_000
    assert reply.headers["referrer-policy"] == "no-referrer"


def test_a_request_is_recorded_without_its_text(records: Records) -> None:
    with serving() as client:
        ask(client, q=["I am old.\nShe sleeps.", "Go."])
        client.get("/%1b[2J%0aI am old?q=secret")
    found, unknown = map(json.loads, records.lines)
    request = {"client": "127.0.0.1", "method": "POST", "route": "/translate", "status": 200}
    assert found.items() >= {**request, "characters": 24, "sentences": 3, "batch": 3}.items()
    assert found["milliseconds"] > 0
    assert (unknown["route"], unknown["status"]) == ("unknown", 404)
    assert not any(word in "".join(records.lines) for word in ("old", "secret", "\n", "\x1b"))


TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"  # RFC 3339, with milliseconds


def test_each_format_of_the_log(records: Records) -> None:
    for kind in ("text", "none"):
        with serving(log_format=kind) as client:
            client.get("/health")
    (line,) = records.lines
    assert re.fullmatch(rf"{TIME} 127\.0\.0\.1 GET /health 200: \S+ ms, .*", line)
    with serving() as client:
        client.get("/health")
    assert re.fullmatch(TIME, records.last["time"])


def test_answered_probes_may_be_left_out_of_the_log(records: Records) -> None:
    for probes in (True, False):
        with serving(log_probes=probes, limits={"requests_per_minute": 1}) as client:
            client.get("/health")
            client.get("/languages")
            assert [client.get("/metrics").status_code for _ in range(2)] == [200, 429]
    routes = [(line["route"], line["status"]) for line in map(json.loads, records.lines)]
    logged = [("/health", 200), ("/languages", 200), ("/metrics", 200), ("/metrics", 429)]
    assert routes == [*logged, logged[1], logged[3]]


def test_a_reply_and_its_line_name_the_models(records: Records) -> None:
    (english,) = open_directions([GOLDEN_MODEL], LoadSettings("cpu", split_sentences=True))
    identity = hashlib.sha256((GOLDEN_MODEL / "model.safetensors").read_bytes()).hexdigest()[:12]
    update = json.loads((GOLDEN_MODEL / "model.json").read_text())["update"]
    model = {"direction": "en-de", "path": str(GOLDEN_MODEL), "update": update, "identity": identity}
    fields = {"q": TEXT, "source": "en", "target": "de"}
    for kind in ("json", "text"):
        with serving(english, log_format=kind) as client:
            assert client.get("/health").json() == {"status": "ok", "models": [model]}
            for path in ("/translate", "/explore", "/detect"):
                assert client.post(path, json=fields).headers["model-identity"] == identity
            assert "model-identity" not in client.get("/languages").headers
            assert "model-identity" not in client.post("/translate", json={**fields, "target": "fr"}).headers
            numbers = client.get("/metrics").text
    labels = f'direction="en-de",identity="{identity}",path="{GOLDEN_MODEL}",update="{update}"'
    assert f"nmt_model_info{{{labels}}} 1.0\n" in numbers
    lines = [json.loads(line) for line in records.lines[:7]]
    assert [line.get("models") for line in lines] == [None, [model], [model], [model], None, None, None]
    assert [line.endswith(f", identity {identity}") for line in records.lines[7:]] == [
        False,
        True,
        True,
        True,
        *[False] * 3,
    ]


def test_sentences_without_known_words_are_counted(client: httpx.Client) -> None:
    fields = {"source": "en", "target": "de"}
    texts = ["\u65e5\u672c\u8a9e\u3002 The man sleeps.", "The man sleeps. 42 \U0001f436"]
    reply = client.post("/translate", json={**fields, "q": texts}).json()
    assert reply["translatedText"][0].startswith("\u65e5\u672c\u8a9e\u3002")
    assert reply["unreadSentences"] == [1, 0]
    assert client.post("/translate", json={**fields, "q": texts[0]}).json()["unreadSentences"] == 1
    assert "unreadSentences" not in client.post("/translate", json={**fields, "q": texts[1]}).json()


def test_sentences_of_which_the_model_only_makes_loops_are_counted() -> None:
    (direction,) = open_directions([GOLDEN_MODEL], LoadSettings("cpu", split_sentences=True))
    fields = {"source": "en", "target": "de"}
    texts = ["hello\nI am old.\nthe", "xx", "qzxv kjh asdkjh"]  # of the second one, the model knows no word
    with serving(direction) as client:
        reply = client.post("/translate", json={**fields, "q": texts}).json()
        single, unread = [client.post("/translate", json={**fields, "q": text}).json() for text in texts[:2]]
        file = {"file": ("lines.txt", "\n".join(texts).encode())}
        of_file = client.post("/translate_file", files=file, data=fields).json()
    assert reply["translatedText"] == ["hello\nIch bin jung.\nthe", *texts[1:]]
    assert reply["loopedSentences"] == [2, 0, 1]
    assert reply["unreadSentences"] == [0, 1, 0]
    assert single["loopedSentences"] == 2
    assert "loopedSentences" not in unread
    assert (of_file["loopedSentences"], of_file["unreadSentences"]) == (3, 1)


def test_unknown_fields_are_named_and_have_no_effect(client: httpx.Client) -> None:
    """Also in the query string, in a form, and with names that a program might stumble over."""
    fields = {"q": TEXT, "source": "en", "target": "de"}
    plain = client.post("/translate", json={**fields, "format": "text", "alternatives": 0, "api_key": ""}).json()
    assert "warnings" not in plain
    known = "q, api_key, source, target, format, alternatives, glossary"
    effect = f"unknown field, which has no effect; fields are {known}"
    odd = {"alternatves": 3, "texts": ["a"], "model_config": {}, "a\nb": 1}
    reply = client.post("/translate", json={**fields, **odd}).json()
    names = ["alternatves", "texts", "model_config", r"a\nb"]
    assert reply == {**plain, "warnings": [f"{name}: {effect}" for name in names]}
    reply = client.post("/translate", params={"formality": "less"}, data={**fields, "tag_handling": "html"}).json()
    assert reply == {**plain, "warnings": [f"formality: {effect}", f"tag_handling: {effect}"]}
    many = client.post("/translate", json={**fields, **{f"field{n}": n for n in range(99)}}).json()
    assert len(many["warnings"]) == 10
    assert client.post("/detect", json={**fields}).status_code == 200


def test_a_request_may_name_a_glossary(tmp_path: Path) -> None:
    files = {}
    for name, translation in (("en-de", "ALLES"), ("en-de/legal", "Zeuge"), ("en-de/zoo", "Tier")):
        files[name] = tmp_path / f"{name.replace('/', '-')}.tsv"
        files[name].write_text(f"man\t{translation}\n", encoding="utf-8")
    settings = LoadSettings("cpu", split_sentences=True)
    (english,) = open_directions([GOLDEN_MODEL], settings, files)
    fields = {"q": "The man sleeps.", "source": "en", "target": "de"}
    found = {}
    with serving(english) as client:
        for name in (None, "legal", "zoo"):
            reply = client.post("/translate", json={**fields, "glossary": name})
            found[name] = reply.json()["translatedText"]
        unknown = client.post("/translate", json={**fields, "glossary": "nobody"})
    assert [word in found[name] for name, word in ((None, "ALLES"), ("legal", "Zeuge"), ("zoo", "Tier"))] == [True] * 3
    assert unknown.status_code == 400
    assert unknown.json() == {"error": "Invalid request: glossary: en-de has no glossary nobody; known: legal, zoo"}
    with pytest.raises(ConfigError, match=r"^en-de/=terms.tsv: is not a glossary of a direction"):
        read_glossaries(["en-de/=terms.tsv"])
    with pytest.raises(ConfigError, match="en-fr/legal: a glossary for a direction that is not served"):
        open_directions([GOLDEN_MODEL], settings, {"en-fr/legal": files["en-de"]})


def test_two_models_of_a_direction_are_both_named(tmp_path: Path) -> None:
    other = shutil.copytree(GOLDEN_MODEL, tmp_path / "other")
    tensors = load_file(other / "model.safetensors")
    save_file(
        {name: value * 2 if value.is_floating_point() else value for name, value in tensors.items()},
        other / "model.safetensors",
    )
    (other / "model.json").write_text(json.dumps(json.loads((other / "model.json").read_text()) | {"update": "\x1b"}))
    (together,) = open_directions([GOLDEN_MODEL, other], LoadSettings("cpu", split_sentences=True))
    with serving(together) as client:
        named = client.get("/health").json()["models"]
        found = ask(client).headers["model-identity"]
    assert [model["path"] for model in named] == [str(GOLDEN_MODEL), str(other)]
    assert named[1]["update"] is None
    assert found == f"{named[0]['identity']}, {named[1]['identity']}"
    assert named[0]["identity"] != named[1]["identity"]


def test_only_a_trusted_proxy_names_the_client(records: Records) -> None:
    for trusted in ([], ["127.0.0.1"]):
        with serving(trusted_proxies=trusted) as client:
            client.get("/health", headers={"X-Forwarded-For": "203.0.113.9"})
    assert [json.loads(line)["client"] for line in records.lines] == ["127.0.0.1", "203.0.113.9"]


def test_two_directions_are_two_models() -> None:
    with serving(("en", "de", golden()), ("de", "EN", golden())) as client:
        assert [each["targets"] for each in client.get("/languages").json()[:2]] == [["de"], ["EN"]]
        assert ask(client, source="DE", target="en").status_code == 200
        found = ask(client, source="auto", target="en", q=[TEXT]).json()
        assert found["detectedLanguage"] == [{"confidence": 100.0, "language": "de"}]


def test_an_error_of_the_model_is_one_line(records: Records) -> None:
    class Broken(Translator):
        def translate_units(self, *arguments: Any, **options: Any) -> Any:
            raise ValueError("the secret text")

    with serving(("en", "de", Broken(golden().model, golden().processor, golden().options))) as client:
        assert error_of(ask(client), 500) == "internal error"
        assert client.get("/health").status_code == 200
    error, _ = records.lines
    assert json.loads(error)["error"].startswith("ValueError at test_app.py:")
    assert "secret" not in error
