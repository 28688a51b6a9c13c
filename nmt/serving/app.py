"""Routes, replies and refusals of the server: HTTP around the operations of `Service`."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.inspection.explorer_page import make_live_page
from nmt.inspection.html_page import Page
from nmt.serving.access import Pages, is_host
from nmt.serving.batches import QueueFull, ServerStopping
from nmt.serving.body import read_address, read_key
from nmt.serving.detection import Detection
from nmt.serving.http_schema import (
    AnyRequest,
    ExploreRequest,
    FileContent,
    FileReply,
    FileRequest,
    Health,
    Language,
    Operation,
    TextRequest,
    TranslateReply,
    TranslateRequest,
    describe_routes,
)
from nmt.serving.log import UNANSWERED, Record
from nmt.serving.page import make_front_page, make_reference_page
from nmt.serving.service import DOWNLOAD, RETRY, Service
from nmt.system.errors import NmtError, is_out_of_memory, shorten
from nmt.system.messages import Parameter

PAGES = ("/", "/explore", "/docs")
NO_FRAMES = "frame-ancestors 'none'"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": f"default-src 'none'; {NO_FRAMES}",
}
IDENTITY = "model-identity"
"""The header that names the models behind a reply."""

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]


async def _while_connected(request: Request, work: Awaitable[T]) -> T:
    """Await some work, and cancel it if the client disconnects.

    Raises:
        ClientDisconnect: The client has disconnected.
    """

    async def disconnect() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(disconnect())
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


def _by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    """All methods of a path as one, so that a wrong one is told about each of them; HEAD is asked as GET."""

    async def answer(request: Request) -> Response:
        return await endpoints["POST" if request.method == "POST" else "GET"](request)

    return answer


def _add_headers(headers: MutableHeaders, record: Record) -> None:
    """Complete the headers of a reply: the models that translated, and the headers of every reply."""
    if record.models:
        headers[IDENTITY] = ", ".join(model.identity for model in record.models)
    for name, value in HEADERS.items():
        headers.setdefault(name, value)


def _post_endpoint(service: Service, model: type[AnyRequest], work: Callable[..., Awaitable[Any]]) -> Endpoint:
    """An operation that reads a request: the reply is JSON."""

    async def answer(request: Request) -> Response:
        asked = await service.read(request, model)
        reply = await _while_connected(request, work(asked, request.scope["nmt.record"]))
        return _json(reply)

    return answer


def _file_endpoint(service: Service) -> Endpoint:
    """Reads a request with a file; the reply is where the translation is."""

    async def answer(request: Request) -> Response:
        asked, upload = await service.read_file(request)
        root = f"{request.url.scheme}://{request.headers['host']}"
        record = request.scope["nmt.record"]
        reply = await _while_connected(request, service.translate_file(asked, upload, record, root))
        return _json(reply.model_dump(exclude_none=True))

    return answer


def _download_endpoint(service: Service) -> Endpoint:
    """The reply is a file."""

    async def answer(request: Request) -> Response:
        return service.download(request.path_params["name"])

    return answer


def _get_endpoint(service: Service, work: Callable[[], Any]) -> Endpoint:
    """An operation that reads nothing: the reply is a page, JSON, or the metrics, which may need a key."""

    async def answer(request: Request) -> Response:
        value = work()
        if isinstance(value, Page):
            return HTMLResponse(value.html, headers={"content-security-policy": f"{value.policy}; {NO_FRAMES}"})
        if isinstance(value, bytes):
            key = read_key(request, read_address(request, service.limits))
            service.admit(request.scope["nmt.record"].client, key or "")
            return Response(value, media_type=CONTENT_TYPE_PLAIN_0_0_4)
        return _json(value)

    return answer


def _json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json(value), status, headers, "application/json")


def _refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return _json({"error": message}, status, headers)


async def _refuse(request: Request, error: Exception) -> Response:
    """The reply to a request that failed."""
    match error:
        case HTTPException():
            return _refusal(error.status_code, error.detail, error.headers)
        case QueueFull():
            return _refusal(503, "too many sentences are waiting; try again later", RETRY)
        case ServerStopping():
            return _refusal(503, "the server is stopping", RETRY)
        case NmtError():
            return _refusal(500, str(error))
    if is_out_of_memory(error):
        return _refusal(503, "out of memory; send less text", RETRY)
    return _refusal(500, "internal error")


class App:
    """The server as an ASGI application: routes behind checks of access; it records each request.

    Args:
        service: Its work.
        pages: Web pages that may use it.
        write: Receives a record of each request.
    """

    def __init__(self, service: Service, pages: Pages, write: Callable[[Record], None]) -> None:
        self._pages = pages
        self._write = write
        self._count = service.metrics.count
        operations: list[Operation] = [
            ("/translate", TranslateRequest, TranslateReply, service.translate),
            ("/translate_file", FileRequest, FileReply, service.translate_file),
            (f"{DOWNLOAD}/{{name}}", None, FileContent, service.download),
            ("/detect", TextRequest, list[Detection], service.detect),
            ("/explore", ExploreRequest, dict[str, Any], service.explore),
            ("/languages", None, list[Language], service.languages),
            ("/health", None, Health, service.health),
            ("/frontend/settings", None, dict[str, Any], service.settings),
            ("/metrics", None, bytes, service.metrics.render),
            ("/openapi.json", None, dict[str, Any], self.describe),
            ("/docs", None, Page, self.reference),
            ("/", None, Page, make_front_page),
            ("/explore", None, Page, make_live_page),
        ]
        self._document = describe_routes(operations, service.keys.required)
        first = next(iter(service.directions))
        key = {"api_key": "KEY"} if service.keys.required else {}
        self._example = {"q": "Hello.", "source": first.source, "target": first.target, "file": "@film.srt", **key}
        endpoints: dict[str, dict[str, Endpoint]] = {}
        for path, model, reply, work in operations:
            methods = endpoints.setdefault(path, {})
            if model is FileRequest:
                methods["POST"] = _file_endpoint(service)
            elif reply is FileContent:
                methods["GET"] = _download_endpoint(service)
            elif model is None:
                methods["GET"] = _get_endpoint(service, work)
            elif issubclass(model, AnyRequest):
                methods["POST"] = _post_endpoint(service, model, work)
        routes = [Route(path, _by_method(methods), methods=list(methods)) for path, methods in endpoints.items()]
        self._paths = {path.removesuffix("/{name}") for path in endpoints}
        kinds = (HTTPException, QueueFull, ServerStopping, NmtError, Exception)
        self._app = Starlette(routes=routes, exception_handlers=dict.fromkeys(kinds, _refuse))
        self._app.router.redirect_slashes = False
        self._with_cors = CORSMiddleware(
            self._app,
            pages.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization"],
            expose_headers=[IDENTITY],
            max_age=3600,
        )

    def describe(self) -> dict[str, Any]:
        """These routes as an OpenAPI document."""
        return self._document

    def reference(self) -> Page:
        """These routes as a page."""
        return make_reference_page(self._document, self._example)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        path = scope["path"]
        client = scope["client"][0] if scope["client"] else ""
        route = DOWNLOAD if path.startswith(f"{DOWNLOAD}/") else path  # whose name is a secret
        record = Record(client, scope["method"], route if route in self._paths else "unknown")
        scope["nmt.record"] = record
        begin = time.monotonic()

        async def reply(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                _add_headers(MutableHeaders(scope=message), record)
            await send(message)

        try:
            await self._choose_app(scope)(scope, receive, reply)
        except ClientDisconnect:
            record.status = UNANSWERED
        except asyncio.CancelledError:  # the server's time to stop is over
            if record.status != UNANSWERED:  # a part of the reply has been sent
                raise
            refusal = await _refuse(Request(scope), ServerStopping())
            await refusal(scope, receive, reply)
        except Exception as error:  # it has been answered
            record.error = _where(error)
        finally:
            record.milliseconds = round(1000 * (time.monotonic() - begin), 1)
            self._count(record)
            self._write(record)

    def _choose_app(self, scope: Scope) -> ASGIApp:
        """Who replies: a refusal, or the routes; other web pages may use those that are no pages themselves."""
        refusal = self._refuse(Headers(scope=scope))
        if refusal is not None:
            return refusal
        if self._pages.origins and scope["path"] not in PAGES:
            return self._with_cors
        return self._app

    def _refuse(self, headers: Headers) -> Response | None:
        """The reply to a request that is not allowed, None for others."""
        host = headers.get("host", "")
        if not self._pages.allows_host(host):
            if host and not is_host(host):  # which no option could allow
                return _refusal(400, f"the header Host is not the name of a server: {shorten(host)}")
            name = shorten(host) or "(none)"
            option = Parameter("allowed_hosts")
            return _refusal(400, f"unknown host name {name}: start the server with {option}")
        if not self._pages.allows_origin(headers.get("origin"), host):
            option = Parameter("allowed_origins")
            return _refusal(403, f"pages of other origins may not use this server; start it with {option}")
        return None


def _where(error: Exception) -> str:
    """The class of an error and the line that raised it, without its message, which may contain a user's text."""
    frames = traceback.extract_tb(error.__traceback__)
    location = f" at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{location}"
