"""LibreTranslate's HTTP API, as described in its public documentation."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, TypeVar

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.corpus.example import Example
from nmt.inspection.explorer_page import System, make_live_page, page_data
from nmt.inspection.html_page import Page
from nmt.inspection.record import LONGEST, record
from nmt.serving.access import Keys, Pages, Rate, is_host
from nmt.serving.batches import QueueFull, ServerStopping
from nmt.serving.body import read_address, read_body, read_key
from nmt.serving.detection import Detection
from nmt.serving.directions import Directions, ServedDirection
from nmt.serving.downloads import Downloads, FolderFull
from nmt.serving.file_requests import Slice, Upload, divide, find_format, read_document, read_upload
from nmt.serving.http_schema import (
    BINARY,
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
from nmt.serving.markup import read_html
from nmt.serving.metrics import Metrics
from nmt.serving.page import make_front_page, make_reference_page
from nmt.serving.pool import Pool
from nmt.serving.request_limits import Limits
from nmt.system.errors import NmtError, is_out_of_memory, shorten
from nmt.system.messages import Parameter
from nmt.text.languages import language_name
from nmt.translation.document import Document, read_plain_text
from nmt.translation.files.file_format import FileFormat
from nmt.translation.files.registry import supported_suffixes
from nmt.translation.reader import Passage, Reader
from nmt.translation.translation import Translation

AUTO = "auto"
READERS: dict[str, Callable[[str], Document]] = {"text": read_plain_text, "html": read_html}
PAGES = ("/", "/explore", "/docs")
NO_FRAMES = "frame-ancestors 'none'"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": f"default-src 'none'; {NO_FRAMES}",
}
IDENTITY = "model-identity"
"""The header that names the models behind a reply."""
RETRY = {"retry-after": "1"}
DOWNLOAD = "/download_file"
STORED_FILES = 64
"""How many files of the largest size may wait to be fetched."""
# To look into a sentence takes as long as to translate so many tokens in batches, and so many for each of its own:
# measured with the model of `make demo` on a CPU, 0.3 s and 4 ms.
LOOK_INSIDE = 400
LOOK_AT_TOKEN = 5

M = TypeVar("M", bound=AnyRequest)
V = TypeVar("V", bound=BaseModel)
T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass
class Item:
    """A text of a request.

    Attributes:
        document: The text.
        detection: Its language, if it was detected.
        direction: The model that translates it.
        passages: The texts of the document, split into sentences.
        translations: For each passage those of its sentences, best first.
    """

    document: Document
    detection: Detection | None
    direction: ServedDirection
    passages: list[Passage]
    translations: list[list[list[Translation]]] = field(default_factory=list)

    def count_unread(self) -> int:
        """Number of the sentences that stay as they are, as the model knows none of their words."""
        best = [ranked[0] for sentences in self.translations for ranked in sentences]
        return sum(translation.is_copied and translation.unread > 0 for translation in best)

    def render(self) -> list[str]:
        """Translations of the text, best first, without duplicates; a unit with too few repeats its best one."""
        reader = self.direction.translator.reader
        texts = list(map(reader.join, self.passages, self.translations))
        number = max(map(len, texts), default=1)
        ranks = ([ranked[rank] if rank < len(ranked) else ranked[0] for ranked in texts] for rank in range(number))
        return list(dict.fromkeys(self.document.render(rank, reader.processor) for rank in ranks))


class Service:
    """The work of the server for each kind of request.

    Args:
        directions: The models.
        keys: API keys.
        limits: Limits on requests.
    """

    def __init__(self, directions: Directions, keys: Keys, limits: Limits) -> None:
        self.keys = keys
        self.limits = limits
        self._rate = Rate(limits.requests_per_minute)
        self._pool = Pool(directions, limits)
        self.downloads = Downloads(limits.keep_seconds, STORED_FILES * limits.max_file_bytes)
        self.metrics = Metrics(self._pool.count_waiting)
        self.metrics.show_models(directions.served)

    @property
    def directions(self) -> Directions:
        """The models that answer."""
        return self._pool.directions

    def swap(self, served: ServedDirection) -> None:
        """Let another model answer for its direction, without dropping a request; see `Pool.swap`.

        Raises:
            ConfigError: No model of this direction is served.
        """
        self._pool.swap(served)
        self.metrics.show_models(self.directions.served)

    def stop(self, seconds: float) -> None:
        """Stop the threads of the models, all within some time, and delete files that were not fetched."""
        self._pool.stop(seconds)
        self.downloads.close()

    async def read(self, request: Request, model: type[M]) -> M:
        """Read and check a request, and count it; if a key in its head is wrong, its body is not read.

        Args:
            request: The request.
            model: Type of its fields.

        Raises:
            HTTPException: It is invalid, too large or not allowed.
        """
        record: Record = request.scope["nmt.record"]
        address, key = self._read_head(request)
        asked = _validate(address | await read_body(request, self.limits), key, model)
        record.characters = sum(map(len, asked.texts))
        if len(asked.texts) > self.limits.max_sentences:
            raise _invalid(f"{len(asked.texts)} texts exceed the limit of {self.limits.max_sentences}")
        if record.characters > self.limits.max_characters:
            raise _invalid(f"request ({record.characters}) exceeds text limit ({self.limits.max_characters})")
        self.admit(record.client, asked.api_key)
        return asked

    async def read_file(self, request: Request) -> tuple[FileRequest, Upload]:
        """Read and check a request with a file, as `read` does.

        Raises:
            HTTPException: It is invalid, too large or not allowed.
        """
        record: Record = request.scope["nmt.record"]
        address, key = self._read_head(request)
        fields, upload = await read_upload(request, self.limits)
        asked = _validate(address | fields | {"file": upload.name}, key, FileRequest)
        self.admit(record.client, asked.api_key)
        return asked, upload

    def _read_head(self, request: Request) -> tuple[dict[str, Any], str | None]:
        """The fields in the address of a request, and the key in its head.

        Raises:
            HTTPException: The key is wrong.
        """
        record: Record = request.scope["nmt.record"]
        address = read_address(request, self.limits)
        key = read_key(request, address)
        if key is not None and self.keys.required and self.keys.find(key) is None:
            self.admit(record.client, key)
        return address, key

    def admit(self, client: str, api_key: str) -> None:
        """Check the API key of a request that is otherwise valid, and count it.

        Raises:
            HTTPException: The key is missing or wrong, or there are too many requests.
        """
        if seconds := self._rate.wait(self._account(client, api_key)):
            raise HTTPException(429, "Slow down: too many requests", {"retry-after": str(seconds)})
        if self.keys.required and self.keys.find(api_key) is None:
            raise HTTPException(403, "Invalid API key" if api_key else "An API key is required: api_key")

    def _account(self, client: str, api_key: str) -> Hashable:
        """Who shares a rate and takes turns: those with the same key, and without one those with the same address."""
        key = self.keys.find(api_key)
        return client if key is None else key

    async def translate(self, asked: TranslateRequest, record: Record) -> dict[str, Any]:
        """Translate a text or a list of texts."""
        with self._pool.in_use() as directions:
            return await self._translate(asked, record, directions)

    async def _translate(self, asked: TranslateRequest, record: Record, directions: Directions) -> dict[str, Any]:
        items = await asyncio.to_thread(lambda: [_prepare(text, asked, directions) for text in asked.texts])
        record.sentences = sum(len(passage.units) for item in items for passage in item.passages)
        if record.sentences > self.limits.max_sentences:
            raise _invalid(f"{record.sentences} sentences exceed the limit of {self.limits.max_sentences}")
        record.models = Directions(dict.fromkeys(item.direction for item in items)).served
        client = self._account(record.client, asked.api_key)
        with_alignment = any(item.document.needs_alignment for item in items)

        async def translate(direction: ServedDirection) -> None:
            """Give a model all of its sentences at once."""
            items_of_direction = [item for item in items if item.direction is direction]
            units = [unit for item in items_of_direction for passage in item.passages for unit in passage.units]
            n_best = min(1 + asked.alternatives, direction.translator.options.beam_size)
            done = await self._pool.batcher(direction).translate(units, n_best, with_alignment, client)
            record.batch = max(record.batch, done.batch)
            self.metrics.sentences.labels(str(direction)).inc(len(units))
            left = iter(done.translations)
            for item in items_of_direction:
                item.translations = [[next(left) for _ in passage.units] for passage in item.passages]

        await asyncio.gather(*map(translate, dict.fromkeys(item.direction for item in items)))
        texts = await asyncio.to_thread(lambda: [item.render() for item in items])
        reply: dict[str, list[Any]] = {"translatedText": [best for best, *_ in texts]}
        unread = [item.count_unread() for item in items]
        if any(unread):
            reply["unreadSentences"] = unread
        if asked.source == AUTO:
            reply["detectedLanguage"] = [item.detection for item in items]
        if asked.alternatives:
            reply["alternatives"] = [others[: asked.alternatives] for _, *others in texts]
        return {name: values[0] for name, values in reply.items()} if isinstance(asked.q, str) else reply

    async def translate_file(self, asked: FileRequest, upload: Upload, record: Record, root: str) -> FileReply:
        """Translate a file, all of which stays but its texts; the translation can be fetched for an hour."""
        kind = find_format(upload)
        with self._pool.in_use() as directions:
            direction = await asyncio.to_thread(self._choose_direction, directions, upload, kind, asked)
            languages = direction.direction
            document = await asyncio.to_thread(
                read_document, upload, kind, languages.source, languages.target, self.limits
            )
            record.models = direction.served
            client = self._account(record.client, asked.api_key)
            reader = _reader(direction, asked.glossary)
            rendered: list[str] = []
            slices = divide(document.segments, reader, self.limits)
            while (part := await asyncio.to_thread(next, slices, None)) is not None:
                rendered += await self._translate_slice(part, direction, reader, record, client)
        content = await asyncio.to_thread(document.write, rendered)
        name = PurePath(upload.name)
        try:
            key = await asyncio.to_thread(self.downloads.add, f"{name.stem}_{asked.target}{name.suffix}", content)
        except FolderFull:
            raise HTTPException(503, "too many translated files wait to be fetched; try again later", RETRY) from None
        asyncio.get_running_loop().call_later(self.limits.keep_seconds + 1, self.downloads.delete_old)
        return FileReply(translatedFileUrl=f"{root}{DOWNLOAD}/{key}")

    def _choose_direction(
        self, directions: Directions, upload: Upload, kind: FileFormat | None, asked: FileRequest
    ) -> ServedDirection:
        """The direction of a request; a language to be detected takes a reading of the file of its own."""
        if asked.source != AUTO:
            return _find(directions, asked.source, asked.target)
        document = read_document(upload, kind, "", asked.target, self.limits)
        sample = " ".join(segment.text for segment in document.segments)[: self.limits.max_characters]
        return _find(directions, _detect(directions, sample, asked.target).language, asked.target)

    async def _translate_slice(
        self, part: Slice, direction: ServedDirection, reader: Reader, record: Record, client: Hashable
    ) -> list[str]:
        """Some texts of a file, rendered."""
        units = [unit for passage in part.passages for unit in passage.units]
        record.characters += sum(len(segment.text) for segment in part.segments)
        record.sentences += len(units)
        done = await self._pool.batcher(direction).translate(units, 1, part.needs_alignment, client)
        record.batch = max(record.batch, done.batch)
        self.metrics.sentences.labels(str(direction)).inc(len(units))
        return await asyncio.to_thread(part.render, done.translations, reader)

    def download(self, name: str) -> Response:
        """A translated file, by the name in the address that `/translate_file` replied."""
        file = self.downloads.find(name)
        if file is None:
            raise HTTPException(404, "there is no such file; a translated file can be fetched for an hour")
        return FileResponse(file.path, media_type=BINARY, filename=file.name)

    async def detect(self, asked: TextRequest, record: Record) -> list[Detection]:
        """Detect the language of a text, of those that the server translates."""
        record.models = self.directions.served
        return await asyncio.to_thread(self.directions.detect, asked.q)

    async def explore(self, asked: ExploreRequest, record: Record) -> dict[str, Any]:
        """A model's work on a sentence, for the page that shows it."""
        record.sentences = 1
        client = self._account(record.client, asked.api_key)
        with self._pool.in_use() as directions:
            direction = _find(directions, asked.source, asked.target)
            if not direction.translator.searcher.models:
                raise _invalid(f"{direction} is an export, which does not show the inside of its model")
            tokens = await asyncio.to_thread(_count_tokens, direction, asked.q, asked.given)
            record.models = direction.served
            cost = len(direction.models) * (LOOK_INSIDE + LOOK_AT_TOKEN * tokens)
            batcher = self._pool.batcher(direction)
            return await batcher.call(lambda: _explore(direction, asked.q, asked.given), cost, client)

    def languages(self) -> list[Language]:
        """The languages, and those they can be translated into."""
        targets = self.directions.targets.items()
        return [Language(code=code, name=language_name(code), targets=into) for code, into in targets]

    def health(self) -> Health:
        """True if the server answers, and with which models."""
        return Health(status="ok", models=self.directions.served)

    def settings(self) -> dict[str, Any]:
        """Limits and defaults for user interfaces."""
        first = next(iter(self.directions))
        languages = {"source": first.source, "target": first.target}
        return {
            "apiKeys": self.keys.required,
            "charLimit": self.limits.max_characters,
            "fileLimit": self.limits.max_file_bytes,
            "filesTranslation": True,
            "frontendTimeout": 500,
            "keyRequired": self.keys.required,
            "language": {side: {"code": code, "name": language_name(code)} for side, code in languages.items()},
            "suggestions": False,
            "supportedFilesFormat": [".txt", *supported_suffixes()],
        }


def _prepare(text: str, asked: TranslateRequest, directions: Directions) -> Item:
    """A text of a request, read for the model that will translate it."""
    document = READERS[asked.format](text)
    detection = None
    source = asked.source
    if source == AUTO:
        detection = _detect(directions, " ".join(document.texts), asked.target)
        source = detection.language
    direction = _find(directions, source, asked.target)
    passages = _reader(direction, asked.glossary).read(document.texts)
    return Item(document, detection, direction, passages)


def _reader(direction: ServedDirection, glossary: str) -> Reader:
    """The reader of a direction, with the glossary of a name unless that is empty."""
    reader = direction.translator.reader
    if not glossary:
        return reader
    protection = direction.glossaries.get(glossary)
    if protection is None:
        known = ", ".join(direction.glossaries) or "none"
        raise _invalid(f"glossary: {direction} has no glossary {shorten(glossary)}; known: {known}")
    return reader.with_protection(protection)


def _detect(directions: Directions, text: str, target: str) -> Detection:
    detection = next(iter(directions.detect(text, target)), None)
    if detection is None:
        raise HTTPException(400, f"{shorten(target)} is not supported as a target")
    return detection


def _validate(fields: dict[str, Any], key: str | None, model: type[V]) -> V:
    """The fields of a request, checked; a key in its head counts if they have none."""
    if fields.get("api_key") in (None, ""):
        fields["api_key"] = key
    try:
        return model.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise _invalid(_describe(error)) from None


def _find(directions: Directions, source: str, target: str) -> ServedDirection:
    direction = directions.find(source, target)
    if direction is None:
        raise HTTPException(400, f"{shorten(source)}-{shorten(target)} is not supported; see /languages")
    return direction


def _count_tokens(direction: ServedDirection, source: str, target: str) -> int:
    """Number of tokens of a sentence to look into and of its translation, if there is one.

    Raises:
        HTTPException: There are none, or too many.
    """
    reader = direction.translator.reader
    counts = {"q": len(reader.tokenize([source])[0])}
    if target.strip():
        counts["given"] = len(reader.tokenize_target([target])[0])
    for name, count in counts.items():
        if not 0 < count <= LONGEST:
            raise _invalid(f"{name} has {count} tokens; give 1 to {LONGEST}")
    return sum(counts.values())


def _explore(direction: ServedDirection, source: str, target: str) -> dict[str, Any]:
    """The data of a page with one sentence, and a translation that the model reads too, if there is one."""
    example = Example(source, (target,) if target.strip() else ())
    systems = []
    for run, (config, single) in direction.models.items():
        name = run if len(direction.models) > 1 else str(direction)
        systems.append(System.of_model(name, config, single, [record(single, example, rules=None, all_heads=True)]))
    return page_data([example], systems)


def _describe(error: ValidationError) -> str:
    """The field that is wrong, such as `q`, or `q.1` in a list, and what is wrong with it."""
    first = max(error.errors(include_url=False), key=lambda detail: len(detail["loc"]))  # the most precise one
    name, *path = first["loc"]
    field = ".".join([str(name), *(str(part) for part in path if isinstance(part, int))])
    return f"{field}: {'is empty' if first['type'] == 'string_too_short' else first['msg']}"


def _invalid(problem: str) -> HTTPException:
    return HTTPException(400, f"Invalid request: {problem}")


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
        return _json(await _while_connected(request, service.translate_file(asked, upload, record, root)))

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
