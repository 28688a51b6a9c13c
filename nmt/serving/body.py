"""The fields of a request, read from its address and its body: JSON or a form, within the limits."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterable
from typing import Any
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from nmt.serving.request_limits import Limits
from nmt.system.limits import KIB

JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
MAX_FIELDS = 100
"""Maximum number of fields of a form besides its texts."""
LINGER = 1.0
"""Seconds to keep reading a body that is refused, so that the client gets to read the error."""
MAX_PARSED_AT_ONCE = 64 * KIB
"""Bytes of a larger body are parsed in a thread of their own, so that other requests need not wait."""
CLOSE = {"connection": "close"}


def read_address(request: Request, limits: Limits) -> dict[str, Any]:
    """Read the fields in the address of a request.

    Raises:
        HTTPException: It is malformed.
    """
    return _form_fields(request.scope["query_string"].decode("ascii", "replace"), limits)


def read_key(request: Request, address: dict[str, Any]) -> str | None:
    """Read the API key in the head of a request: `Authorization: Bearer KEY`, or `api_key` in its address."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return key.strip().encode("latin-1").decode("utf-8", "replace")  # headers are read as Latin-1
    return str(address["api_key"]) if "api_key" in address else None


async def read_body(request: Request, limits: Limits) -> dict[str, Any]:
    """Read the fields in the body of a request.

    Raises:
        HTTPException: The body is too large, too slow or malformed.
        ClientDisconnect: The client has disconnected.
    """
    body = await _receive(request, limits)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == MULTIPART or len(body) > MAX_PARSED_AT_ONCE:
        return await asyncio.to_thread(_parse, request, kind, body, limits)
    return _parse(request, kind, body, limits)


async def _receive(request: Request, limits: Limits) -> bytes:
    body, stream = bytearray(), request.stream()
    if int(request.headers.get("content-length", 0)) <= limits.max_body:
        try:
            async with asyncio.timeout(limits.body_seconds):
                async for chunk in stream:
                    body += chunk
                    if len(body) > limits.max_body:
                        break
                else:
                    return bytes(body)
        except TimeoutError:
            raise HTTPException(408, f"the body did not arrive within {limits.body_seconds:g} seconds", CLOSE) from None
    await discard(stream)
    raise HTTPException(413, f"the body is larger than {limits.max_body} bytes", CLOSE)


async def discard(stream: AsyncGenerator[bytes, None]) -> None:
    """Read the rest of a body that is refused for a moment, so that the client gets to read the error."""
    with contextlib.suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(LINGER):
            async for _ in stream:
                pass


def _parse(request: Request, kind: str, body: bytes, limits: Limits) -> dict[str, Any]:
    if kind == MULTIPART:
        return asyncio.run(_multipart_fields(request, body, limits))
    if kind not in (JSON, FORM):
        if not body:
            return {}
        raise HTTPException(400, f"send JSON with Content-Type: {JSON}, or a form")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise HTTPException(400, "the body is not UTF-8") from None
    if kind == FORM:
        return _form_fields(text, limits)
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        location = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise HTTPException(400, f"the body is not JSON{location}") from None
    if not isinstance(fields, dict):
        raise HTTPException(400, "the body is not a JSON object")
    return fields


def _form_fields(text: str, limits: Limits) -> dict[str, Any]:
    number = limits.max_sentences + MAX_FIELDS
    try:
        return _collect(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=number))
    except UnicodeDecodeError:
        raise HTTPException(400, "the form is not UTF-8") from None
    except ValueError:
        raise HTTPException(400, "the form has too many fields") from None


async def _multipart_fields(request: Request, body: bytes, limits: Limits) -> dict[str, Any]:
    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    number = limits.max_sentences + MAX_FIELDS
    parser = MultiPartParser(request.headers, stream(), max_files=0, max_fields=number, max_part_size=limits.max_body)
    try:
        return _collect((await parser.parse()).multi_items())
    except (MultiPartException, LookupError, ValueError) as error:
        reason = error.message if isinstance(error, MultiPartException) else "it is damaged"
        raise HTTPException(400, f"the form cannot be read: {reason}") from None


def _collect(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Fields by name; the values of one that is repeated become a list."""
    fields: dict[str, list[str]] = {}
    for name, value in items:
        fields.setdefault(name, []).append(str(value))
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}
