"""LibreTranslate's HTTP API, as described in its public documentation."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.inspection.page import make_live_page
from nmt.serving.access import Keys, Pages, Rate
from nmt.serving.batches import Batcher, QueueFull, Stopped, Translated
from nmt.serving.directions import Detection, Direction, Directions
from nmt.serving.document import Document, read_lines
from nmt.serving.fields import RequestError, count_field, discard, head_key, read_fields, text_field, texts_field
from nmt.serving.inside import look_inside
from nmt.serving.limits import Limits
from nmt.serving.log import UNANSWERED, Record
from nmt.serving.markup import read_html
from nmt.serving.page import PAGE, PAGE_POLICY
from nmt.system.errors import NmtError, is_out_of_memory, shorten
from nmt.text.languages import language_name
from nmt.text.processor import TextProcessor
from nmt.translation.translation import Translation

AUTO = "auto"
FORMATS: dict[str, Callable[[str], Document]] = {"text": read_lines, "html": read_html}
PAGES = ("/", "/explore")
POLICY = "default-src 'none'; frame-ancestors 'none'"
HEADERS = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}
RETRY = {"retry-after": "1"}
STOPPING = "the server is stopping"

T = TypeVar("T")


class Service:
    """The handlers of the server's routes.

    Args:
        directions: The models.
        keys: API keys.
        pages: Web pages that may use the server.
        limits: Limits on requests.
    """

    def __init__(self, directions: Directions, keys: Keys, pages: Pages, limits: Limits) -> None:
        self.directions = directions
        self.pages = pages
        self.limits = limits
        self._keys = keys
        self._rate = Rate(limits.requests_per_minute)
        self._batchers = {
            direction: Batcher(direction.translator, limits.max_queue, limits.batch_wait, str(direction))
            for direction in directions
        }

    def stop(self, seconds: float) -> None:
        """Stop the threads of the models, all within some time."""
        end = time.monotonic() + seconds
        for batcher in self._batchers.values():
            batcher.stop()
        for batcher in self._batchers.values():
            batcher.stop(max(0.0, end - time.monotonic()))

    async def translate(self, request: Request) -> Response:
        """`POST /translate`."""
        fields = await self._read(request)
        texts, several = texts_field(fields, self.limits)
        record = _record(request)
        record.characters = sum(map(len, texts))
        source, target = text_field(fields, "source"), text_field(fields, "target")
        kind = text_field(fields, "format", "text")
        alternatives = count_field(fields, "alternatives")
        if kind not in FORMATS:
            raise RequestError(400, f"Invalid request: format {shorten(kind)} is neither text nor html")
        self._admit(request, fields)
        documents = await asyncio.to_thread(lambda: [FORMATS[kind](text) for text in texts])
        detections = await self._detect(documents, target) if source == AUTO else None
        sources = [source] * len(texts) if detections is None else [each.language for each in detections]
        directions = [self._direction(each, target) for each in sources]
        sentences = await asyncio.to_thread(lambda: list(map(_sentences, documents, directions)))
        record.sentences = sum(len(parts) for lines in sentences for parts in lines)
        if record.sentences > self.limits.max_sentences:
            limit = self.limits.max_sentences
            raise RequestError(400, f"Invalid request: {record.sentences} sentences exceed the limit of {limit}")
        with_alignment = any(document.needs_alignment for document in documents)
        work = self._translations(sentences, directions, 1 + alternatives, with_alignment, record)
        found = await _while_connected(request, work)
        processors = [direction.translator.processor for direction in directions]
        rendered = await asyncio.to_thread(lambda: list(map(_renderings, documents, found, processors)))
        reply: dict[str, Any] = {"translatedText": [best for best, *_ in rendered]}
        if detections is not None:
            reply["detectedLanguage"] = [_as_json(detection) for detection in detections]
        if alternatives:
            reply["alternatives"] = [others[:alternatives] for _, *others in rendered]
        return JSONResponse(reply if several else {key: values[0] for key, values in reply.items()})

    async def detect(self, request: Request) -> Response:
        """`POST /detect`."""
        fields = await self._read(request)
        texts, several = texts_field(fields, self.limits)
        if several:
            raise RequestError(400, "Invalid request: q is not a string")
        self._admit(request, fields)
        _record(request).characters = len(texts[0])
        found = await asyncio.to_thread(self.directions.detect, texts[0])
        return JSONResponse([_as_json(detection) for detection in found])

    async def languages(self, request: Request) -> Response:
        """`GET /languages`."""
        targets = self.directions.targets
        return JSONResponse(
            [
                {"code": code, "name": language_name(code), "targets": targets.get(code, [])}
                for code in self.directions.languages
            ]
        )

    async def health(self, request: Request) -> Response:
        """`GET /health`."""
        return JSONResponse({"status": "ok"})

    async def settings(self, request: Request) -> Response:
        """`GET /frontend/settings`."""
        first = next(iter(self.directions))
        languages = {"source": first.source, "target": first.target}
        return JSONResponse(
            {
                "apiKeys": self._keys.required,
                "charLimit": self.limits.max_characters,
                "filesTranslation": False,
                "frontendTimeout": 500,
                "keyRequired": self._keys.required,
                "language": {side: {"code": code, "name": language_name(code)} for side, code in languages.items()},
                "suggestions": False,
                "supportedFilesFormat": [],
            }
        )

    async def page(self, request: Request) -> Response:
        """`GET /`."""
        return HTMLResponse(PAGE, headers={"content-security-policy": PAGE_POLICY})

    async def explorer(self, request: Request) -> Response:
        """`GET /explore`."""
        page = make_live_page()
        return HTMLResponse(page.html, headers={"content-security-policy": f"{page.policy}; frame-ancestors 'none'"})

    async def explore(self, request: Request) -> Response:
        """`POST /explore`."""
        fields = await self._read(request)
        texts, several = texts_field(fields, self.limits)
        if several:
            raise RequestError(400, "Invalid request: q is not a string")
        given = text_field(fields, "given", "")
        direction = self._direction(text_field(fields, "source"), text_field(fields, "target"))
        record = _record(request)
        record.characters, record.sentences = len(texts[0]) + len(given), 1
        if record.characters > self.limits.max_characters:
            raise RequestError(400, f"Invalid request: more than {self.limits.max_characters} characters")
        self._admit(request, fields)
        work = self._batchers[direction].call(lambda: look_inside(direction, texts[0], given))
        return JSONResponse(await _while_connected(request, work))

    async def _read(self, request: Request) -> dict[str, Any]:
        """The fields of a request; if it has a wrong key in its head, its body is not read."""
        key = head_key(request, self.limits)
        if key is not None and self._keys.required and self._keys.find(key) is None:
            await discard(request.stream())
            self._admit(request, {"api_key": key})
        fields = await read_fields(request, self.limits)
        if key is not None and not fields.get("api_key"):
            fields["api_key"] = key
        return fields

    def _admit(self, request: Request, fields: Mapping[str, Any]) -> None:
        """Check the API key of a request that is otherwise valid, and count it."""
        key = self._keys.find(text_field(fields, "api_key", ""))
        client = key if key is not None else _record(request).client
        if seconds := self._rate.wait(client):
            raise RequestError(429, "Slow down: too many requests", {"retry-after": str(seconds)})
        if self._keys.required and key is None:
            message = "Invalid API key" if fields.get("api_key") else "An API key is required: api_key"
            raise RequestError(403, message, {"connection": "close"})

    async def _detect(self, documents: Sequence[Document], target: str) -> list[Detection]:
        """The most probable language of each document, among those that can be translated into the target."""

        def work() -> list[list[Detection]]:
            return [self.directions.detect(" ".join(document.texts), target) for document in documents]

        found = await asyncio.to_thread(work)
        if not all(found):
            raise RequestError(400, f"{shorten(target)} is not supported as a target")
        return [each[0] for each in found]

    def _direction(self, source: str, target: str) -> Direction:
        found = self.directions.find(source, target)
        if found is None:
            raise RequestError(400, f"{shorten(source)}-{shorten(target)} is not supported; see /languages")
        return found

    async def _translations(
        self,
        sentences: Sequence[list[list[list[str]]]],
        directions: Sequence[Direction],
        n_best: int,
        with_alignment: bool,
        record: Record,
    ) -> list[list[list[Translation]]]:
        """The translations of each line of each document; each model gets all of its sentences at once."""

        async def translate(direction: Direction) -> list[list[Translation]]:
            own = (lines for lines, each in zip(sentences, directions, strict=True) if each is direction)
            parts = [part for lines in own for line in lines for part in line]
            number = min(n_best, direction.translator.options.beam_size)
            done: Translated = await self._batchers[direction].translate(parts, number, with_alignment)
            record.batch = max(record.batch, done.batch)
            return done.translations

        models = list(dict.fromkeys(directions))
        found = dict(zip(models, map(iter, await asyncio.gather(*map(translate, models))), strict=True))
        return [
            [direction.translator.join([next(found[direction]) for _ in line]) for line in lines]
            for lines, direction in zip(sentences, directions, strict=True)
        ]


def _sentences(document: Document, direction: Direction) -> list[list[list[str]]]:
    """The sentences of each line of a document, as tokens."""
    return direction.translator.read(document.texts)


def _renderings(document: Document, translations: list[list[Translation]], processor: TextProcessor) -> list[str]:
    """Translations of a document, best first, without duplicates; a sentence with too few repeats its best one."""
    number = max(map(len, translations), default=1)
    chosen = ([each[k] if k < len(each) else each[0] for each in translations] for k in range(number))
    return list(dict.fromkeys(document.render(each, processor) for each in chosen))


def _as_json(detection: Detection) -> dict[str, Any]:
    return {"confidence": detection.confidence, "language": detection.language}


def _record(request: Request) -> Record:
    record: Record = request.scope["nmt.record"]
    return record


async def _while_connected(request: Request, work: Awaitable[T]) -> T:
    """Await some work, and cancel it if the client disconnects.

    Raises:
        ClientDisconnect: The client has disconnected.
    """

    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, watch = asyncio.ensure_future(work), asyncio.ensure_future(disconnected())
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        for each in (task, watch):
            each.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


def build_app(service: Service, write: Callable[[Record], None]) -> ASGIApp:
    """The server as an ASGI application.

    Args:
        service: The handlers of the routes.
        write: Receives a record of each request.
    """
    routes = [
        Route("/", service.page, methods=["GET"]),
        Route("/explore", service.explorer, methods=["GET"]),
        Route("/explore", service.explore, methods=["POST"]),
        Route("/translate", service.translate, methods=["POST"]),
        Route("/detect", service.detect, methods=["POST"]),
        Route("/languages", service.languages, methods=["GET"]),
        Route("/health", service.health, methods=["GET"]),
        Route("/frontend/settings", service.settings, methods=["GET"]),
    ]
    handlers: Mapping[Any, Any] = {
        HTTPException: _refuse_http,
        RequestError: _refuse,
        QueueFull: _refuse_busy,
        Stopped: _refuse_stopped,
        NmtError: _refuse_failed,
        Exception: _refuse_unexpected,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    with_cors = CORSMiddleware(
        app,
        allow_origins=service.pages.origins,
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization"],
        max_age=3600,
    )
    paths = [route.path for route in routes]
    return Gate(app, with_cors if service.pages.origins else app, service.pages, write, paths)


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": message}, status, headers)


async def _refuse(request: Request, error: RequestError) -> Response:
    return _error(error.status, error.message, error.headers)


async def _refuse_http(request: Request, error: HTTPException) -> Response:
    return _error(error.status_code, error.detail, error.headers)


async def _refuse_busy(request: Request, error: QueueFull) -> Response:
    return _error(503, "too many sentences are waiting; try again later", RETRY)


async def _refuse_stopped(request: Request, error: Stopped) -> Response:
    return _error(503, STOPPING, RETRY)


async def _refuse_failed(request: Request, error: NmtError) -> Response:
    return _error(500, str(error))


async def _refuse_unexpected(request: Request, error: Exception) -> Response:
    if is_out_of_memory(error):
        return _error(503, "out of memory; send less text", RETRY)
    return _error(500, "internal error")


class Gate:
    """Middleware that checks access, adds headers to replies and records each request.

    Args:
        app: The routes.
        with_cors: The routes with CORS headers for pages of other origins.
        pages: The web pages and host names that are allowed.
        write: Receives a record of each request.
        paths: Paths of the routes.
    """

    def __init__(
        self, app: ASGIApp, with_cors: ASGIApp, pages: Pages, write: Callable[[Record], None], paths: Sequence[str]
    ) -> None:
        self._app, self._with_cors = app, with_cors
        self._pages = pages
        self._write = write
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            return
        path = scope["path"]
        client = scope["client"][0] if scope["client"] else ""
        record = Record(client, scope["method"], path if path in self._paths else "unknown")
        scope["nmt.record"] = record
        begin = time.monotonic()

        async def reply(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in {**HEADERS, "content-security-policy": POLICY}.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._refusal(Request(scope)) or (self._app if path in PAGES else self._with_cors)
        try:
            await app(scope, receive, reply)
        except ClientDisconnect:
            record.status = UNANSWERED
        except asyncio.CancelledError:  # the server's time to stop is over
            if record.status != UNANSWERED:
                raise
            await _error(503, STOPPING, RETRY)(scope, receive, reply)
        except Exception as error:  # it has been answered
            record.error = _where(error)
        finally:
            record.milliseconds = round(1000 * (time.monotonic() - begin), 1)
            self._write(record)

    def _refusal(self, request: Request) -> Response | None:
        """The reply to a request that is not allowed, None for others."""
        host = request.headers.get("host", "")
        if not self._pages.allows_host(host):
            return _error(400, f"this server is not known as {shorten(host)}; start it with --allow-host")
        if not self._pages.allows_origin(request.headers.get("origin"), host):
            return _error(403, "pages of other origins may not use this server; start it with --allow-origin")
        return None


def _where(error: Exception) -> str:
    """The class of an error and the line that raised it, without its message, which may contain a user's text."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
