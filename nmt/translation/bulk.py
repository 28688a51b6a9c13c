"""Translate a file into a file: in order, in little memory, and resumable after a kill."""

from __future__ import annotations

import hashlib
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from nmt.system.files import sha256
from nmt.system.progress import progress_bar
from nmt.system.resumable import Origin, open_resumable
from nmt.system.version import __version__
from nmt.translation.formats import Format
from nmt.translation.translate import open_input, read_lines, translate_stream
from nmt.translation.translator import Translator

log = logging.getLogger(__name__)

Row = TypeVar("Row")

WINDOW = 16
"""Batches that are read ahead and sorted by length, to reduce padding."""
CHECKSUM = 16
"""Hexadecimal digits of a checksum that are kept."""
WINDOW_CHARACTERS = 1 << 19
"""A window ends at this many characters, as lines and their alignments may be long."""


def translate_file(
    translator: Translator, source: Path, target: Path, output: Format, *, n_best: int = 1, resume: bool = False
) -> None:
    """Translate a file line by line in order; the translation appears only when it is complete.

    Args:
        translator: Model and search settings.
        source: Lines of UTF-8.
        target: The file to write.
        output: Its format.
        n_best: Translations per line.
        resume: Resume an unfinished translation, with the same result as without interruption; if there is none,
            begin it.

    Raises:
        ConfigError: `n_best` is more than the beam size.
        DataError: The file cannot be read, another command is writing the translation, or the unfinished one was made
            from other inputs or options.
    """
    with open_input(source) as stream:
        made_from = describe(translator, source, output, n_best)
        with open_resumable(target, made_from, resume=resume) as file:
            if file.lines:
                log.info(f"{target}: resuming after {file.lines:,} lines")
            before = file.lines
            lines = read_lines(stream, str(source), log.warning)
            windows = in_windows(lines, WINDOW * translator.options.batch_size, len)
            windows = itertools.islice(windows, file.steps, None)
            begin = time.perf_counter()
            with progress_bar(unit=" lines", desc="translating", initial=before) as bar:
                for window in windows:
                    write = partial(file.write, lines=len(window))
                    translate_stream(
                        translator, [window], write, output, n_best=n_best, first=file.lines + 1, advance=bar.update
                    )
            seconds = time.perf_counter() - begin
            number = file.lines - before
    plural = "" if number == 1 else "s"
    log.info(f"{number:,} line{plural} in {seconds:.2f} s ({number / max(seconds, 1e-9):,.0f} per second)")


def in_windows(batches: Iterable[Iterable[Row]], size: int, count: Callable[[Row], int]) -> Iterator[list[Row]]:
    """Group lines into windows that depend only on the lines, not on how they were read.

    Args:
        batches: Lines, or pairs of them, several at a time.
        size: Maximum number of lines of a window.
        count: Number of characters of a line.
    """
    window: list[Row] = []
    characters = 0
    for line in itertools.chain.from_iterable(batches):
        window.append(line)
        characters += count(line)
        if len(window) == size or characters >= WINDOW_CHARACTERS:
            yield window
            window, characters = [], 0
    if window:
        yield window


def describe(translator: Translator, source: Path, output: Format, n_best: int) -> Origin:
    """Everything that determines a translation: two with the same description are identical."""
    return {
        "version": __version__,
        "input": sha256(source)[:CHECKSUM],
        "model": _model_identity(translator),
        **translator.options.model_dump(),
        "split_sentences": translator.splitter is not None,
        "dictionary": _dictionary_identity(translator.dictionary),
        "device": translator.model.device.type,
        "format": output.name,
        "with_attention": output.with_attention,
        "n_best": n_best,
    }


def _dictionary_identity(entries: Mapping[str, str] | None) -> str | None:
    if entries is None:
        return None
    return hashlib.sha256(repr(sorted(entries.items())).encode()).hexdigest()[:CHECKSUM]


def _model_identity(translator: Translator) -> str:
    """A checksum of the weights of all models, and of their vocabularies."""
    digest = hashlib.sha256()
    for model in translator.searcher.models:
        for name, tensor in model.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().data)
    processor = translator.processor
    for tokens in (processor.src_vocabulary.tokens, processor.tgt_vocabulary.tokens):
        digest.update("\n".join(tokens).encode())
    digest.update(repr(processor.normalizer.settings).encode())
    return digest.hexdigest()[:CHECKSUM]
