"""Translating files with markup: they come back as they were, but for their texts."""

from __future__ import annotations

import itertools
import json
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.system.errors import DataError
from nmt.system.files import is_stream, read_bytes
from nmt.system.process import open_output
from nmt.system.progress import progress_bar
from nmt.system.resumable import Origin, open_resumable
from nmt.translation.files.file_format import MAX_FILE, Task
from nmt.translation.stream import within_memory
from nmt.translation.workers import open_workers

if TYPE_CHECKING:
    from nmt.translation.document import Segment
    from nmt.translation.files.file_format import FileDocument, FileFormat
    from nmt.translation.translator import Translator

log = logging.getLogger(__name__)

WINDOW = 16
"""Batches that are translated together, sorted by length, and then stored."""
WINDOW_CHARACTERS = 1 << 19
"""A window ends at this many characters."""


def read_file(translator: Translator, source: Path, kind: FileFormat, *, retranslate: bool = False) -> FileDocument:
    """Read a file of a format.

    Args:
        translator: The translator of its texts.
        source: The file.
        kind: Its format.
        retranslate: True if texts that have a translation are translated again.

    Raises:
        DataError: It cannot be read, is too large, or is not in this format.
    """
    content = read_bytes(source, MAX_FILE)
    direction = translator.direction
    languages = ("", "") if direction is None else (direction.source, direction.target)
    return kind.read(content, Task(str(source), *languages, retranslate))


def translate_file_as(
    translator: Translator,
    source: Path,
    target: Path | None,
    kind: FileFormat,
    make_origin: Callable[[], Origin],
    *,
    retranslate: bool = False,
    resume: bool = False,
    workers: int = 1,
) -> None:
    """Translate a file of a format; the translation appears whole when it is done.

    Args:
        translator: The translator.
        source: The file.
        target: File to write; None is standard output.
        kind: The format.
        make_origin: Describes the origin of the translation, for one that is resumed.
        retranslate: True if texts that have a translation are translated again.
        resume: Continue an unfinished translation, or start one.
        workers: Processes that translate.

    Raises:
        DataError: A file cannot be used, or the unfinished translation was made from something else.
        OutOfMemory: Memory ran out.
    """
    document = read_file(translator, source, kind, retranslate=retranslate)
    begin = time.perf_counter()
    if target is None or is_stream(target):
        rendered = _translate(translator, document, [], lambda texts: None, workers)
        content = document.write(rendered)
        with open_output(target) as file:
            file.flush()
            file.buffer.write(content)
    else:

        def assemble(stored: bytes) -> bytes:
            """The file from its segments as they were stored, one on each line."""
            return document.write([json.loads(line) for line in stored.splitlines()])

        with open_resumable(target, make_origin(), resume=resume, unit="texts", assemble=assemble) as partial:
            finished = partial.read_lines()
            if finished:
                log.info(f"{target}: resuming after {len(finished):,} texts")
            rendered = _translate(
                translator,
                document,
                [json.loads(line) for line in finished],
                lambda texts: partial.write("".join(f"{json.dumps(text)}\n" for text in texts), lines=len(texts)),
                workers,
            )
            rendered = rendered[len(finished) :]
    seconds = time.perf_counter() - begin
    number = len(rendered)
    if not document.segments:
        log.info(f"{source}: has no text to translate")
        return
    plural = "" if number == 1 else "s"
    log.info(f"{number:,} text{plural} in {seconds:.2f} s ({number / max(seconds, 1e-9):,.0f} per second)")


def _translate(
    translator: Translator,
    document: FileDocument,
    finished: Sequence[str],
    store: Callable[[Sequence[str]], object],
    workers: int,
) -> list[str]:
    """The segments of a document as they are rendered.

    Args:
        translator: The translator.
        document: The document.
        finished: Those that are finished.
        store: Receives further ones, several at a time.
        workers: Processes that translate.
    """
    from nmt.corpus.lines import in_blocks

    rendered = list(finished)
    segments = document.segments
    if len(rendered) > len(segments):
        raise DataError("the unfinished translation has more texts than the file; begin again without resuming it")
    left = itertools.islice(segments, len(rendered), None)
    windows = in_blocks(left, _length, WINDOW_CHARACTERS, WINDOW * translator.options.batch_size)
    with (
        progress_bar(total=len(segments), unit=" texts", desc="translating", initial=len(rendered)) as bar,
        open_workers(partial(translate_segments, translator), translator, workers) as pool,
    ):
        for texts in pool.map(windows, bar.update):
            document.check(texts)  # at once, not when all is translated
            store(texts)
            rendered += texts
    return rendered


def _length(segment: Segment) -> int:
    return len(segment.text)


def translate_segments(
    translator: Translator, segments: Sequence[Segment], advance: Callable[[int], object] = lambda count: None
) -> list[str]:
    """Segments of a document as they are rendered with their translations.

    Args:
        translator: The translator.
        segments: The segments.
        advance: Called with the number of finished ones.
    """
    needs_alignment = any(segment.elements for segment in segments)
    texts = [segment.text for segment in segments]
    with within_memory(translator.options, len(segments)):
        translations = translator.translate(texts, with_alignment=needs_alignment, advance=advance)
    pairs = zip(segments, translations, strict=True)
    return [segment.render(translation, translator.processor) for segment, translation in pairs]
