"""Scoring given translations: how probable a model finds them."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nmt.system.errors import DataError
from nmt.system.progress import progress_bar
from nmt.translation.bulk import WINDOW, in_windows
from nmt.translation.formats import Format
from nmt.translation.translate import open_input, read_lines, warn_of_cut, within_memory
from nmt.translation.translator import Translator

log = logging.getLogger(__name__)


def score_files(
    translator: Translator, src: Path, tgt: Path, write: Callable[[str], object], output: Format | None = None
) -> None:
    """Score the lines of a file as translations of those of another; the perplexity of all is logged.

    Args:
        translator: The model.
        src: Source sentences, one per line.
        tgt: A translation of each.
        write: Called with the output of several lines.
        output: How to write each translation; None writes its log-probability in nats.

    Raises:
        DataError: A file cannot be read, or they have different numbers of lines, or none.
    """
    number, log_prob, tokens = 0, 0.0, 0
    with (
        open_input(src) as sources,
        open_input(tgt) as targets,
        progress_bar(unit=" pairs", desc="scoring", leave=False) as bar,
    ):
        pairs = _pairs(src, read_lines(sources, str(src), log.warning), tgt, read_lines(targets, str(tgt), log.warning))
        for window in in_windows([pairs], WINDOW * translator.options.batch_size, lambda pair: sum(map(len, pair))):
            with within_memory(translator.options, len(window)):
                found = translator.score(*zip(*window, strict=True), with_alignment=output is not None)
            lines = []
            for (source, _), each in zip(window, found, strict=True):
                number += 1
                warn_of_cut(number, each)
                log_prob += each.log_prob
                tokens += len(each.token_log_probs)
                lines.append(output.render(number, source, [each]) if output else f"{each.log_prob:z.4f}\n")
            write("".join(lines))
            bar.update(len(window))
    if not number:
        raise DataError(f"{src}: has no lines; give one source sentence per line")
    log.info(f"{number:,} pairs, {tokens:,} tokens: perplexity {math.exp(-log_prob / tokens):.4f} per token")


def _pairs(
    src: Path, sources: Iterable[list[str]], tgt: Path, targets: Iterable[list[str]]
) -> Iterator[tuple[str, str]]:
    """The lines of both files side by side."""
    lines = itertools.zip_longest(*map(itertools.chain.from_iterable, (sources, targets)))
    for number, (source, target) in enumerate(lines):
        if source is None or target is None:
            shorter, longer = (src, tgt) if source is None else (tgt, src)
            raise DataError(f"{shorter}: has {number:,} lines, fewer than {longer}; give one translation per line")
        yield source, target
