"""The OpenAPI document, and the page that shows it, against the routes that a server answers."""

import html
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from real_server import golden, golden_config, serving

import nmt
from nmt.serving.access import Keys, Pages
from nmt.serving.app import App
from nmt.serving.directions import Directions, ServedDirection
from nmt.serving.http_schema import TranslateReply
from nmt.serving.request_limits import Limits
from nmt.serving.service import Service
from nmt.text.direction import Direction

TEXT = "I am old."
FIELDS = {"q": TEXT, "source": "en", "target": "de"}
HTML = "text/html; charset=utf-8"
FILE = {"file": ("film.txt", b"I am old.")}


def ask(client: httpx.Client, method: str, path: str, key: str = "", **options: Any) -> httpx.Response:
    """A request of a route with what it needs, and with a key for what must be there before."""
    languages = {name: FIELDS[name] for name in ("source", "target")}
    if "{name}" in path:
        made = client.post("/translate_file", files=FILE, data={**languages, "api_key": key})
        path = httpx.URL(made.json()["translatedFileUrl"]).path
    if path == "/translate_file":
        return client.post(path, files=FILE, data=languages, **options)
    return client.request(method, path, json=FIELDS if method == "post" else None, **options)


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a server of one direction."""
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def document(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def test_requests_and_replies_are_described(client: httpx.Client, document: dict[str, Any]) -> None:
    posts = {path: operations.get("post") for path, operations in document["paths"].items()}
    assert [path for path, post in posts.items() if post] == ["/translate", "/translate_file", "/detect", "/explore"]
    schemas = document["components"]["schemas"]
    assert set(re.findall("#/components/schemas/([A-Za-z]+)", json.dumps(document))) <= set(schemas)
    fields = {"q", "source", "target", "format", "alternatives", "glossary", "api_key"}
    assert set(schemas["TranslateRequest"]["properties"]) == fields
    assert schemas["TranslateRequest"]["required"] == ["q", "source", "target"]
    assert len(posts["/translate"]["requestBody"]["content"]) == 3
    for more in ({}, {"q": [TEXT], "source": "auto", "alternatives": 2}):
        reply = client.post("/translate", json={**FIELDS, **more}).json()
        assert TranslateReply.model_validate(reply).model_dump(exclude_none=True) == reply
    assert "of those that the server translates" in posts["/detect"]["summary"]
    (detected,) = client.post("/detect", data={"q": TEXT}).json()
    assert set(detected) == set(schemas["Detection"]["properties"])
    assert all(set(each) == set(schemas["Language"]["properties"]) for each in client.get("/languages").json())


def test_every_operation_has_an_id_of_its_own(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(set(ids)) == len(ids) == 13
    assert {"postTranslate", "getExplore", "postExplore", "getFrontendSettings", "getOpenapiJson", "getPage"} < set(ids)
    assert all(map(str.isalnum, ids))


def test_keys_are_described_where_they_are_needed(document: dict[str, Any]) -> None:
    assert "security" not in json.dumps(document)
    with serving(api_keys=["KEY"]) as client:
        document = client.get("/openapi.json").json()
        schemes = document["components"]["securitySchemes"]
        assert (schemes["bearer"]["type"], schemes["bearer"]["scheme"]) == ("http", "bearer")
        assert (schemes["api_key"]["type"], schemes["api_key"]["in"], schemes["api_key"]["name"]) == (
            *("apiKey", "query", "api_key"),
        )
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                replies = [
                    ask(client, method, path, "KEY"),
                    ask(client, method, path, "KEY", headers={"Authorization": "Bearer KEY"}),
                    ask(client, method, path, "KEY", params={"api_key": "KEY"}),
                ]
                needed = operation.get("security") == [{"bearer": []}, {"api_key": []}]
                assert [reply.status_code for reply in replies] == [403 if needed else 200, 200, 200]


def test_null_is_described_where_it_is_accepted(document: dict[str, Any]) -> None:
    for name in ("TranslateRequest", "TextRequest", "ExploreRequest"):
        schema = document["components"]["schemas"][name]
        nullable = {
            field for field, value in schema["properties"].items() if {"type": "null"} in value.get("anyOf", [])
        }
        assert nullable == set(schema["properties"]) - set(schema["required"])


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(document, cls=validator.OpenAPIV31SpecValidator)
    del document["paths"]["/health"]["get"]["responses"]["200"]["description"]
    with pytest.raises(Exception, match="'description' is a required property"):
        validator.validate(document, cls=validator.OpenAPIV31SpecValidator)


def test_every_documented_route_answers_as_documented(client: httpx.Client, document: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            reply = ask(client, method, path)
            assert reply.status_code == 200
            ((kind, content),) = operation["responses"]["200"]["content"].items()
            assert reply.headers["content-type"].partition(";")[0] == kind
            value = reply.json() if kind == "application/json" else reply.text
            schema = {**content["schema"], "components": document["components"]}
            jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)
            assert operation["summary"]
    wrong = client.post("/translate", json={"q": TEXT}).json()
    error = document["paths"]["/translate"]["post"]["responses"]["default"]["content"]["application/json"]["schema"]
    jsonschema.validate(wrong, {**error, "components": document["components"]}, cls=jsonschema.Draft202012Validator)


def test_every_served_route_is_documented(document: dict[str, Any]) -> None:
    direction = ServedDirection(Direction("en", "de"), golden(), {"golden": (golden_config(), golden())})
    service = Service(Directions([direction]), Keys(), Limits())
    app = App(service, Pages("127.0.0.1"), lambda record: None)
    service.stop(5)
    served = {(method, route.path) for route in app._app.routes for method in route.methods - {"HEAD"}}
    documented = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert documented == served
    guide = (Path(nmt.__file__).parents[1] / "docs/guides/serving.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(GET|POST) (/\S*)` \|", guide, re.MULTILINE)) == served


def test_the_page_for_people_names_every_route_and_field(client: httpx.Client, document: dict[str, Any]) -> None:
    reply = client.get("/docs")
    assert reply.headers["content-type"] == HTML
    routes = [f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods]
    assert re.findall("<h2>(.*?)</h2>", reply.text) == routes
    section = reply.text.split("<h2>")[1]
    schemas = document["components"]["schemas"]
    fields = [*schemas["TranslateRequest"]["properties"], *schemas["TranslateReply"]["properties"]]
    assert re.findall("<code>(.*?)</code>", section) == fields
    assert "Code of the language of the text; auto detects it." in section
    assert "<code>confidence</code>: The probability" in reply.text
    assert all(re.findall(r"<code>.*?</code>.*?: (.*?)</li>", reply.text))
    assert client.get(re.search(r'href="(\.)"', reply.text)[1]).url.path == "/"  # type: ignore[index]
    assert "://" not in reply.text
    assert "script-src 'none'" in reply.headers["content-security-policy"]


@pytest.mark.parametrize("keys", [[], ["KEY"]])
def test_the_page_for_people_marks_what_is_required_and_its_examples_work(keys: list[str]) -> None:
    with serving(api_keys=keys) as client:
        page, document = client.get("/docs").text, client.get("/openapi.json").json()
        examples = re.findall(r"<pre.*?>curl 127.0.0.1:5000(\S+) (.*?)</pre>", page)
        for path, line in examples:
            words = [word for word in shlex.split(html.unescape(line)) if word not in ("-d", "-F")]
            fields = dict(word.split("=", 1) for word in words)
            files = {"file": ("film.srt", b"")} if fields.pop("file", "") == "@film.srt" else None
            assert client.post(path, data=fields, files=files).status_code == 200
            content = document["paths"][path]["post"]["requestBody"]["content"]
            schema = content["multipart/form-data"]["schema"]
            known = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            needed = {*known["required"], *(["api_key"] if keys else [])}
            section = page.split(f"<h2>POST {path}</h2>")[1].partition("<pre")[0]
            marks = re.findall(r"<code>(\w+)</code> \((\w+)\): ", section)
            assert marks == [(name, "required" if name in needed else "optional") for name in known["properties"]]
    assert [path for path, _ in examples] == ["/translate", "/translate_file", "/detect", "/explore"]
