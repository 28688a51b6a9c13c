"""What the server does for a request: the operations of LibreTranslate's HTTP API, by its public documentation."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from nmt.corpus.example import Example
from nmt.inspection.explorer_page import System, page_data
from nmt.inspection.record import LONGEST, record
from nmt.serving.access import Keys, Rate
from nmt.serving.body import read_address, read_body, read_key
from nmt.serving.detection import Detection
from nmt.serving.directions import Directions, ServedDirection
from nmt.serving.downloads import Downloads, FolderFull
from nmt.serving.file_requests import Slice, Upload, divide, divide_units, find_format, read_document, read_upload
from nmt.serving.http_schema import (
    BINARY,
    AnyRequest,
    ExploreRequest,
    FileReply,
    FileRequest,
    Health,
    Language,
    TextRequest,
    TranslateRequest,
)
from nmt.serving.log import Record
from nmt.serving.markup import read_html
from nmt.serving.metrics import Metrics
from nmt.serving.pool import Pool
from nmt.serving.request_limits import Limits
from nmt.system.errors import shorten
from nmt.text.languages import language_name
from nmt.translation.document import Document, read_plain_text
from nmt.translation.files.file_format import FileFormat
from nmt.translation.files.registry import supported_suffixes
from nmt.translation.reader import Passage, Reader
from nmt.translation.translation import Translation

AUTO = "auto"
READERS: dict[str, Callable[[str], Document]] = {"text": read_plain_text, "html": read_html}
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


class Unchanged(NamedTuple):
    """Sentences that stay as they are.

    Attributes:
        unread: Number of those of which the model knows no word.
        loops: Number of those for which the model only repeats words.
    """

    unread: int
    loops: int

    @classmethod
    def among(cls, translations: Iterable[Sequence[Translation]]) -> Self:
        """Count them in the translations of some sentences, best first."""
        best = [ranked[0] for ranked in translations]
        unread = sum(
            translation.is_copied and translation.unread > 0 and not translation.is_loop for translation in best
        )
        return cls(unread, sum(translation.is_loop for translation in best))


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

    @property
    def unchanged(self) -> Unchanged:
        """The sentences that stay as they are."""
        return Unchanged.among(ranked for sentences in self.translations for ranked in sentences)

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
        unchanged = [item.unchanged for item in items]
        if any(counts.unread for counts in unchanged):
            reply["unreadSentences"] = [counts.unread for counts in unchanged]
        if any(counts.loops for counts in unchanged):
            reply["loopedSentences"] = [counts.loops for counts in unchanged]
        if asked.source == AUTO:
            reply["detectedLanguage"] = [item.detection for item in items]
        if asked.alternatives:
            reply["alternatives"] = [others[: asked.alternatives] for _, *others in texts]
        whole: dict[str, Any] = dict(reply)
        if isinstance(asked.q, str):
            whole = {name: values[0] for name, values in reply.items()}
        if warnings := asked.warn_of_others():
            whole["warnings"] = warnings
        return whole

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
            unread = loops = 0
            slices = divide(document.segments, reader, self.limits)
            while (part := await asyncio.to_thread(next, slices, None)) is not None:
                texts, unchanged = await self._translate_slice(part, direction, reader, record, client)
                rendered += texts
                unread += unchanged.unread
                loops += unchanged.loops
        content = await asyncio.to_thread(document.write, rendered)
        name = PurePath(upload.name)
        try:
            key = await asyncio.to_thread(self.downloads.add, f"{name.stem}_{asked.target}{name.suffix}", content)
        except FolderFull:
            raise HTTPException(503, "too many translated files wait to be fetched; try again later", RETRY) from None
        asyncio.get_running_loop().call_later(self.limits.keep_seconds + 1, self.downloads.delete_old)
        return FileReply(
            translatedFileUrl=f"{root}{DOWNLOAD}/{key}",
            unreadSentences=unread or None,
            loopedSentences=loops or None,
            warnings=asked.warn_of_others() or None,
        )

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
    ) -> tuple[list[str], Unchanged]:
        """Some texts of a file, rendered, and their sentences that stay as they are."""
        units = [unit for passage in part.passages for unit in passage.units]
        record.characters += sum(len(segment.text) for segment in part.segments)
        record.sentences += len(units)
        translations: list[list[Translation]] = []
        for portion in divide_units(units, self.limits.max_sentences):
            done = await self._pool.batcher(direction).translate(portion, 1, part.needs_alignment, client)
            record.batch = max(record.batch, done.batch)
            translations += done.translations
        self.metrics.sentences.labels(str(direction)).inc(len(units))
        return await asyncio.to_thread(part.render, translations, reader), Unchanged.among(translations)

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
            if not direction.is_explorable:
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
            "explorable": [(served.source, served.target) for served in self.directions if served.is_explorable],
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
