"""Requests with a file: LibreTranslate's `/translate_file`, as described in its public documentation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from nmt.serving.batches import count_places
from nmt.serving.body import MAX_FIELDS, MULTIPART
from nmt.serving.request_limits import Limits
from nmt.system.errors import NmtError, printable
from nmt.system.limits import KIB
from nmt.translation.document import Segment, read_plain_text
from nmt.translation.files.encoded_text import EncodedText, decode
from nmt.translation.files.file_format import FileDocument, FileFormat, Task
from nmt.translation.files.registry import find_file_format, supported_suffixes
from nmt.translation.reader import Passage, Reader, Unit
from nmt.translation.translation import Translation

UNPACKED = 10
"""How many times as large as an upload may be, all that a ZIP archive holds may be."""


class Upload(NamedTuple):
    """A file of a request.

    Attributes:
        name: Its name, without folders.
        content: Its bytes.
    """

    name: str
    content: bytes


async def read_upload(request: Request, limits: Limits) -> tuple[dict[str, Any], Upload]:
    """Read the fields and the file of a request; nothing of it is stored.

    Raises:
        HTTPException: It is no form with a file, or is too large, too slow or malformed.
        ClientDisconnect: The client has disconnected.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MULTIPART:
        raise HTTPException(400, f"send {MULTIPART} with the fields file, source and target")
    try:
        async with asyncio.timeout(limits.file_seconds):
            body = await _read_limited(request, limits)
    except TimeoutError:
        raise HTTPException(408, f"the file did not arrive within {limits.file_seconds:g} seconds") from None
    parser = MultiPartParser(request.headers, _as_stream(body), max_files=1, max_fields=MAX_FIELDS)
    parser.spool_max_size = limits.max_file_bytes + 64 * KIB  # in memory
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise HTTPException(400, f"the form cannot be read: {error.message}") from None
    fields: dict[str, Any] = {}
    upload: Upload | None = None
    for name, value in form.multi_items():
        if not isinstance(value, UploadFile):
            fields[name] = value
        elif name == "file":
            upload = Upload(PurePath((value.filename or "").replace("\\", "/")).name, await value.read())
    await form.close()
    if upload is None:
        raise HTTPException(400, "Invalid request: file: is missing")
    if len(upload.content) > limits.max_file_bytes:
        raise _too_large(limits)
    return fields, upload


async def _read_limited(request: Request, limits: Limits) -> bytes:
    """The body of a request.

    Raises:
        HTTPException: It is larger than allowed.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limits.max_file_bytes + 64 * KIB:
            raise _too_large(limits)
    return bytes(body)


async def _as_stream(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


def _too_large(limits: Limits) -> HTTPException:
    return HTTPException(413, f"the file is larger than {limits.max_file_bytes} bytes")


def find_format(upload: Upload) -> FileFormat | None:
    """The format of a file; None is plain text.

    Raises:
        HTTPException: It is none that is read, or needs a library that is not installed.
    """
    path = PurePath(upload.name)
    if path.suffix.lower() == ".txt":
        return None
    suffixes = ", ".join([".txt", *supported_suffixes()])
    if path.suffix.lower() not in supported_suffixes():
        raise HTTPException(400, f"{printable(path.suffix) or 'a name without a suffix'}: files may be {suffixes}")
    try:
        return find_file_format(Path(upload.name))
    except NmtError as error:
        raise HTTPException(400, str(error)) from None


def read_document(upload: Upload, kind: FileFormat | None, source: str, target: str, limits: Limits) -> FileDocument:
    """A file as a document.

    Raises:
        HTTPException: It is not in its format, or too large when it is unpacked.
    """
    task = Task(printable(upload.name), source, target, max_unpacked=UNPACKED * limits.max_file_bytes)
    try:
        if kind is None:
            text, encoding = decode(upload.content, task)
            return EncodedText(read_plain_text(text), task, encoding)
        return kind.read(upload.content, task)
    except NmtError as error:
        raise HTTPException(400, str(error)) from None


class Slice(NamedTuple):
    """Some texts of a file, which wait for a model together.

    Attributes:
        segments: The texts.
        passages: They as the reader split them.
        needs_alignment: True if there are tags to place among their words.
    """

    segments: Sequence[Segment]
    passages: Sequence[Passage]
    needs_alignment: bool

    @property
    def number(self) -> int:
        """Number of sentences."""
        return sum(len(passage.units) for passage in self.passages)

    def render(self, translations: Sequence[Sequence[Translation]], reader: Reader) -> list[str]:
        """The texts with the translations of their sentences, best first.

        Args:
            translations: Those of each sentence.
            reader: The reader that split the texts.
        """
        remaining = iter(translations)
        rendered = []
        for segment, passage in zip(self.segments, self.passages, strict=True):
            best, *_ = reader.join(passage, [next(remaining) for _ in passage.units])
            rendered.append(segment.render(best, reader.processor))
        return rendered


def divide(segments: Sequence[Segment], reader: Reader, limits: Limits) -> Iterator[Slice]:
    """The texts of a file in slices of at most as many sentences as a request may have, or of one text."""
    passages: list[Passage] = []
    chosen: list[Segment] = []
    count = 0
    for segment in segments:
        (passage,) = reader.read([segment.text])
        if chosen and count + len(passage.units) > limits.max_sentences:
            yield _slice(chosen, passages)
            passages = []
            chosen = []
            count = 0
        passages.append(passage)
        chosen.append(segment)
        count += len(passage.units)
    if chosen:
        yield _slice(chosen, passages)


def divide_units(units: Sequence[Unit], places: int) -> Iterator[list[Unit]]:
    """Sentences in portions that take at most so many places in a queue, or of one sentence.

    One line of a file can have more sentences than a queue holds.
    """
    portion: list[Unit] = []
    taken = 0
    for unit in units:
        needed = count_places(len(unit))
        if portion and taken + needed > places:
            yield portion
            portion = []
            taken = 0
        portion.append(unit)
        taken += needed
    if portion:
        yield portion


def _slice(segments: Sequence[Segment], passages: Sequence[Passage]) -> Slice:
    return Slice(segments, passages, any(segment.elements for segment in segments))
