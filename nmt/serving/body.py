"""The fields of a request, read from its address and its body: JSON or a form, within the limits."""

import asyncio
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from nmt.serving.request_limits import Limits

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
MAX_FIELDS = 100
"""Maximum number of fields of a form besides its texts."""


def read_address(request: Request, limits: Limits) -> dict[str, Any]:
    """Read the fields in the address of a request.

    Raises:
        HTTPException: It is malformed.
    """
    return _form_fields(request.scope["query_string"], limits)


def read_key(request: Request, address: dict[str, Any]) -> str | None:
    """Read the API key in the head of a request: `Authorization: Bearer KEY`, or `api_key` in its address."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        raw = key.strip().encode("latin-1")  # headers are read as Latin-1
        return raw.decode("utf-8", "replace")
    return str(address["api_key"]) if "api_key" in address else None


async def read_body(request: Request, limits: Limits) -> dict[str, Any]:
    """Read the fields in the body of a request.

    Raises:
        HTTPException: The body is too large, too slow or malformed.
        ClientDisconnect: The client has disconnected.
    """
    size = 0

    async def receive() -> Message:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > limits.max_body:
            raise HTTPException(413, f"the body is larger than {limits.max_body} bytes")
        return message

    limited = Request(request.scope, receive)
    try:
        async with asyncio.timeout(limits.body_seconds):
            body = await limited.body()
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {limits.body_seconds:g} seconds") from None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == MULTIPART:
        fields = limits.max_sentences + MAX_FIELDS
        form = await limited.form(max_files=0, max_fields=fields)
        return _collect(form.multi_items())
    if kind == FORM:
        return _form_fields(body, limits)
    if kind == JSON:
        return _json_fields(body)
    if body:
        raise HTTPException(400, f"send JSON with Content-Type: {JSON}, or a form")
    return {}


def _json_fields(body: bytes) -> dict[str, Any]:
    try:
        fields = from_json(body)
    except ValueError as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise HTTPException(400, "the body is not a JSON object")
    return fields


def _form_fields(form: bytes, limits: Limits) -> dict[str, Any]:
    most = limits.max_sentences + MAX_FIELDS
    try:
        items = parse_qsl(form.decode(), keep_blank_values=True, errors="strict", max_num_fields=most)
        return _collect(items)
    except ValueError as error:
        raise HTTPException(400, f"the form cannot be read: {error}") from None


def _collect(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Fields by name; the values of one that is repeated become a list."""
    fields: dict[str, list[str]] = {}
    for name, value in items:
        fields.setdefault(name, []).append(str(value))
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}
