"""Translating lines of text."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nmt.system.errors import when_out_of_memory
from nmt.system.messages import Message, Parameter
from nmt.system.progress import progress_bar

if TYPE_CHECKING:
    from nmt.config import DecodeSection
    from nmt.translation.formats import Format
    from nmt.translation.input import Line
    from nmt.translation.translation import Translation
    from nmt.translation.translator import Translator

log = logging.getLogger(__name__)


def within_memory(options: DecodeSection, lines: int) -> contextlib.AbstractContextManager[None]:
    """If memory runs out in the block, say which parameters make the search for so many lines smaller."""
    batch_size = Parameter("batch_size")
    beam_size = Parameter("beam_size")
    is_batched = min(lines, options.batch_size) > 1
    if is_batched and options.beam_size > 1:
        advice = Message("lower {batch_size} or {beam_size}", batch_size=batch_size, beam_size=beam_size)
    elif is_batched or options.beam_size > 1:
        advice = Message("lower {size}", size=batch_size if is_batched else beam_size)
    else:
        return when_out_of_memory("")
    return when_out_of_memory(advice)


def translate_texts(
    translator: Translator, texts: Sequence[str], task: str, *, with_alignment: bool = False
) -> list[Translation]:
    """Translate texts, with a progress bar; for the arguments see `Translator.translate`.

    Raises:
        OutOfMemory: Memory ran out.
    """
    with (
        progress_bar(total=len(texts), unit=" sentences", desc=task, leave=False) as bar,
        within_memory(translator.options, len(texts)),
    ):
        return translator.translate(texts, with_alignment=with_alignment, advance=bar.update)


class Window(NamedTuple):
    """Lines that are translated together.

    Attributes:
        first: Number of the first line, from 1.
        lines: The lines.
    """

    first: int
    lines: Sequence[Line]


def number_windows(windows: Iterable[Sequence[Line]], first: int) -> Iterator[Window]:
    """Windows with the numbers of their lines.

    Args:
        windows: The lines of each.
        first: Number of the first line.
    """
    for lines in windows:
        yield Window(first, lines)
        first += len(lines)


def translate_window(
    translator: Translator, output: Format, window: Window, advance: Callable[[int], object]
) -> tuple[str, int]:
    """Translate lines together.

    Args:
        translator: Model and search settings.
        output: Format of the output.
        window: The lines.
        advance: Called with the number of finished lines.

    Returns:
        The output for all of them, in order, and their number.
    """
    texts = [line.text for line in window.lines]
    ends = [line.end for line in window.lines]
    with within_memory(translator.options, len(texts)):
        translated = translator.translate(texts, output.n_best, output.needs_alignment, advance=advance)
    for number, translations in enumerate(translated, start=window.first):
        warn_of_cut(number, translations[0])
    return "".join(map(output.render, itertools.count(window.first), texts, translated, ends)), len(texts)


def warn_of_cut(number: int, translation: Translation) -> None:
    """Warn if only a part of a line was read."""
    if translation.truncated:
        log.warning(f"line {number}: longer than {len(translation.src_tokens)} tokens; the rest was ignored")
