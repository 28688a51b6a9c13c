"""The fields of a request, read from JSON, a form or the query string within the limits."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from nmt.serving.limits import Limits
from nmt.system.limits import KIB

MAX_FIELDS = 100
"""Maximum number of fields of a form besides its texts."""
LINGER = 1.0
"""Seconds to keep reading a body that is refused, so that the client gets to read the error."""
MAX_PARSED_AT_ONCE = 64 * KIB
"""Bytes of a larger body are parsed in a thread of their own, so that other requests need not wait."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class RequestError(Exception):
    """A request that is refused.

    Args:
        status: HTTP status.
        message: What is wrong and what to do.
        headers: Additional headers of the reply.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


async def read_fields(request: Request, limits: Limits) -> dict[str, Any]:
    """Read the fields of a request; those of the body take precedence over those of the query string.

    Raises:
        RequestError: The body is too large, too slow or malformed.
        ClientDisconnect: The client has disconnected.
    """
    body = await _read_body(request, limits)
    fields = _query_fields(request, limits)
    if len(body) > MAX_PARSED_AT_ONCE:
        fields.update(await asyncio.to_thread(_body_fields, request, body, limits))
    else:
        fields.update(_body_fields(request, body, limits))
    return fields


def head_key(request: Request, limits: Limits) -> str | None:
    """The API key in the head of a request: `Authorization: Bearer KEY`, or `api_key` in its address.

    Raises:
        RequestError: The address is malformed.
    """
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return key.strip().encode("latin-1").decode("utf-8", "replace")  # headers are read as Latin-1
    fields = _query_fields(request, limits)
    return text_field(fields, "api_key") if "api_key" in fields else None


def _query_fields(request: Request, limits: Limits) -> dict[str, Any]:
    return _form_fields(request.scope["query_string"].decode("ascii", "replace"), limits)


def _body_fields(request: Request, body: bytes, limits: Limits) -> dict[str, Any]:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == "application/json":
        return _json_fields(body)
    if content_type == "multipart/form-data":
        return _multipart_fields(request, body, limits)
    if content_type == "application/x-www-form-urlencoded":
        return _form_fields(_text(body), limits)
    if body:
        raise RequestError(400, "send JSON with Content-Type: application/json, or a form")
    return {}


async def _read_body(request: Request, limits: Limits) -> bytes:
    """The whole body, if it arrives in time and is not too large."""
    too_large = RequestError(413, f"the body is larger than {limits.max_body} bytes", {"connection": "close"})
    length = request.headers.get("content-length", "")
    body = bytearray()
    stream = request.stream()
    try:
        async with asyncio.timeout(limits.body_seconds):
            if not (length.isascii() and length.isdigit() and int(length[:20]) > limits.max_body):
                async for chunk in stream:
                    body += chunk
                    if len(body) > limits.max_body:
                        break
                else:
                    return bytes(body)
            await discard(stream)
            raise too_large
    except TimeoutError:
        message = f"the body did not arrive within {limits.body_seconds:g} seconds"
        raise RequestError(408, message, {"connection": "close"}) from None


async def discard(stream: AsyncGenerator[bytes, None]) -> None:
    """Read the rest of a body that is refused for a moment, so that the client gets to read the error."""
    try:
        async with asyncio.timeout(LINGER):
            async for _ in stream:
                pass
    except (TimeoutError, ClientDisconnect):
        pass


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(400, "the body is not UTF-8") from None


def _json_fields(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(_text(body))
    except (ValueError, RecursionError) as error:
        place = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise RequestError(400, f"the body is not JSON{place}") from None
    if not isinstance(fields, dict):
        raise RequestError(400, "the body is not a JSON object")
    return fields


def _form_fields(text: str, limits: Limits) -> dict[str, Any]:
    """Fields of a query string or a URL-encoded form; repeated ones become a list."""
    try:
        found = parse_qs(
            text, keep_blank_values=True, errors="strict", max_num_fields=limits.max_sentences + MAX_FIELDS
        )
    except UnicodeDecodeError:
        raise RequestError(400, "the form is not UTF-8") from None
    except ValueError:
        raise RequestError(400, "the form has too many fields") from None
    return _single(found)


def _multipart_fields(request: Request, body: bytes, limits: Limits) -> dict[str, Any]:
    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    parser = MultiPartParser(
        request.headers,
        stream(),
        max_files=0,
        max_fields=limits.max_sentences + MAX_FIELDS,
        max_part_size=limits.max_body,
    )
    parsing = parser.parse()
    try:
        parsing.send(None)  # it waits for nothing, as the whole body is there
        raise AssertionError("the parser waits for more")
    except StopIteration as end:
        form = end.value
    except (MultiPartException, KeyError, LookupError, UnicodeDecodeError, ValueError) as error:
        reason = error.message if isinstance(error, MultiPartException) else "it is damaged"
        raise RequestError(400, f"the form cannot be read: {reason}") from None
    found: dict[str, list[str]] = {}
    for key, value in form.multi_items():
        found.setdefault(key, []).append(str(value))
    return _single(found)


def _single(fields: Mapping[str, list[str]]) -> dict[str, Any]:
    return {key: values[0] if len(values) == 1 else values for key, values in fields.items()}


def text_field(fields: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """A field that holds one text.

    Raises:
        RequestError: It is missing and has no default, or holds something else.
    """
    value = fields.get(name)
    if value is None:
        if default is None:
            raise RequestError(400, f"Invalid request: missing {name} parameter")
        return default
    if not isinstance(value, str):
        raise RequestError(400, f"Invalid request: {name} is not a string")
    return _SURROGATE.sub("\ufffd", value)


def texts_field(fields: Mapping[str, Any], limits: Limits) -> tuple[list[str], bool]:
    """The texts of `q`, and whether it is a list of them.

    Raises:
        RequestError: It is missing, holds something else, or is too long.
    """
    value = fields.get("q")
    if value is None:
        raise RequestError(400, "Invalid request: missing q parameter")
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise RequestError(400, "Invalid request: q is neither a string nor a list of strings")
    if len(texts) > limits.max_sentences:
        raise RequestError(400, f"Invalid request: {len(texts)} texts exceed the limit of {limits.max_sentences}")
    characters = sum(map(len, texts))
    if characters > limits.max_characters:
        raise RequestError(400, f"Invalid request: request ({characters}) exceeds text limit ({limits.max_characters})")
    return [_SURROGATE.sub("\ufffd", text) for text in texts], isinstance(value, list)


def count_field(fields: Mapping[str, Any], name: str) -> int:
    """A field that holds a non-negative integer, as digits in a form; 0 if it is missing.

    Raises:
        RequestError: It holds something else.
    """
    value = fields.get(name, 0)
    if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value):
        value = int(value)
    if value is None or value == "":
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RequestError(400, f"Invalid request: {name} is not a non-negative integer")
    return value
