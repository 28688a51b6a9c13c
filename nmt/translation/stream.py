"""Translating lines of text."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from nmt.system.errors import when_out_of_memory

if TYPE_CHECKING:
    from nmt.config import DecodeSection
    from nmt.translation.formats import Format
    from nmt.translation.translation import Translation
    from nmt.translation.translator import Translator

log = logging.getLogger(__name__)


def within_memory(options: DecodeSection, lines: int) -> contextlib.AbstractContextManager[None]:
    """If memory runs out in the block, say which options make the search for so many lines smaller."""
    sizes = {"--batch-size": min(lines, options.batch_size), "--beam-size": options.beam_size}
    lower = " or ".join(name for name, size in sizes.items() if size > 1)
    return when_out_of_memory(f"lower {lower}" if lower else "")


def translate_stream(
    translator: Translator,
    batches: Iterable[list[str]],
    write: Callable[[str], object],
    output: Format,
    *,
    n_best: int = 1,
    first: int = 1,
    advance: Callable[[int], object] = lambda count: None,
) -> int:
    """Translate line by line in order.

    Args:
        translator: Model and search settings.
        batches: Lines, several at a time, which are translated and written together.
        write: Called with the output of each batch.
        output: Format of the output.
        n_best: Translations per line.
        first: Number of the first line.
        advance: Called with the number of finished lines.

    Returns:
        The number of the line after the last.

    Raises:
        ConfigError: `n_best` is more than the beam size.
    """
    translator.check_n_best(n_best)
    number = first
    for lines in batches:
        with within_memory(translator.options, len(lines)):
            translated = translator.translate(lines, n_best, output.needs_alignment, advance=advance)
        written = []
        for line, translations in zip(lines, translated, strict=True):
            warn_of_cut(number, translations[0])
            written.append(output.render(number, line, translations))
            number += 1
        write("".join(written))
    return number


def warn_of_cut(number: int, translation: Translation) -> None:
    """Warn if only a part of a line was read."""
    from nmt.translation.translator import MAX_SOURCE_LENGTH

    if translation.truncated:
        log.warning(f"line {number}: longer than {MAX_SOURCE_LENGTH} tokens; the rest was ignored")
