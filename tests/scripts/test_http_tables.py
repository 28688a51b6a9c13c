"""The page of HTTP fields: its tables are those of the types, and every type has one."""

import re

import pytest

pytest.importorskip("starlette")

from http_tables import PAGE, markdown_table, with_tables
from pydantic import BaseModel

from nmt.serving import http_schema

TEXT = PAGE.read_text(encoding="utf-8")
WITHOUT_TABLE = {"Fields", "AnyRequest", "Error"}
"""The base classes of requests, and the reply of one field that the guide to serving shows."""


def test_the_page_has_the_fields_as_they_are() -> None:
    assert with_tables(TEXT) == TEXT, "docs/reference/http.md is out of date; run scripts/http_tables.py --write"


def test_every_type_of_a_request_or_a_reply_has_a_table() -> None:
    types = {
        name
        for name, value in vars(http_schema).items()
        if isinstance(value, type) and issubclass(value, BaseModel) and value is not BaseModel
    }
    shown = re.findall(r"^<!-- fields: (\w+) -->$", TEXT, re.MULTILINE)
    assert {*shown} == types - WITHOUT_TABLE | {"Detection", "ServedModel"}


def test_requests_have_defaults_and_replies_have_none() -> None:
    request = markdown_table("TranslateRequest").splitlines()
    assert request[0] == "| field | type | default | meaning |"
    assert "| `q` | string or list of strings | required | The text, or a list of texts. |" in request
    assert '| `format` | `text` or `html` | `"text"` | text (the default), or html, whose tags are kept. |' in request
    reply = markdown_table("TranslateReply").splitlines()
    assert reply[0] == "| field | type | meaning |"
    alternatives = "| `alternatives` | list of strings or list of lists of strings | Further translations"
    assert reply[-2].startswith(alternatives)
    assert "| `models` | list of [ServedModel](#servedmodel) |" in markdown_table("Health")
