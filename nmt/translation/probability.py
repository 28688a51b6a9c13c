"""Scoring given translations: how probable a model finds them."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from nmt.system.errors import ConfigError, DataError
from nmt.system.files import AnyPath, AnyPaths, as_path
from nmt.system.messages import Parameter
from nmt.system.process import open_output
from nmt.system.progress import progress_bar
from nmt.translation.input import Line, open_input, stream_lines
from nmt.translation.loading import load
from nmt.translation.stream import warn_of_cut, within_memory
from nmt.translation.translate import WINDOW, WINDOW_CHARACTERS

log = logging.getLogger(__name__)


def score(
    *,
    src: AnyPath,
    tgt: AnyPath,
    model: AnyPaths | None = None,
    output: AnyPath | None = None,
    format: str = "text",
    batch_size: int | None = None,
    precision: str | None = None,
    overwrite: bool = False,
    device: str = "auto",
    allowed_classes: Collection[str] = (),
) -> None:
    """Score given translations: probabilities and perplexity.

    Example: nmt score --src test.en --tgt test.de > test.scores

    Args:
        src: Source sentences, one per line.
        tgt: A translation of each, one per line.
        model: Run or model directories.
        output: File to write instead of standard output.
        format: text: the natural logarithm of the probability. jsonl: a JSON object per line, with those of tokens.
        batch_size: Sentences read at once.
        precision: float32 or bfloat16.
        overwrite: Replace an output that is not empty.
        device: Where to compute.
        allowed_classes: Classes that the model's config may use.

    Raises:
        NmtError: The model or a file cannot be used.
    """
    from nmt.config.outputs import check_files
    from nmt.corpus.lines import in_blocks
    from nmt.translation.formats import FORMATS

    if format not in ("text", "jsonl"):
        raise ConfigError("{format}: must be text or jsonl", format=Parameter("format", format))
    paths = Path(src), Path(tgt)
    check_files({"output": as_path(output)}, paths, overwrite=overwrite)
    translator = load(model, device=device, batch_size=batch_size, precision=precision, allowed_classes=allowed_classes)
    shape = None if format == "text" else FORMATS[format](translator.processor)
    number = 0
    log_prob = 0.0
    tokens = 0
    with (
        open_output(as_path(output)) as file,
        open_input(paths[0]) as sources,
        open_input(paths[1]) as targets,
        progress_bar(unit=" pairs", desc="scoring", leave=False) as bar,
    ):
        sides = (
            stream_lines(stream, str(path), log.warning) for stream, path in zip((sources, targets), paths, strict=True)
        )
        pairs = _pairs(*paths, *map(itertools.chain.from_iterable, sides))
        most = WINDOW * translator.options.batch_size
        for window in in_blocks(pairs, lambda pair: sum(map(len, pair)), WINDOW_CHARACTERS, most):
            with within_memory(translator.options, len(window)):
                scored = translator.score(*zip(*window, strict=True), with_alignment=shape is not None)
            for (source, _), translation in zip(window, scored, strict=True):
                number += 1
                warn_of_cut(number, translation)
                log_prob += translation.log_prob
                tokens += len(translation.token_log_probs)
                file.write(shape.render(number, source, [translation]) if shape else f"{translation.log_prob:z.4f}\n")
            bar.update(len(window))
        if not number:
            raise DataError(f"{src}: has no lines; give one source sentence per line")
    log.info(f"{number:,} pairs, {tokens:,} tokens: perplexity {math.exp(-log_prob / tokens):.4f} per token")


def _pairs(src: Path, tgt: Path, sources: Iterable[Line], targets: Iterable[Line]) -> Iterator[tuple[str, str]]:
    """The texts of the lines of both files side by side."""
    for number, (source, target) in enumerate(itertools.zip_longest(sources, targets)):
        if source is None or target is None:
            shorter, longer = (src, tgt) if source is None else (tgt, src)
            raise DataError(f"{shorter}: has {number:,} lines, fewer than {longer}; give one translation per line")
        yield source.text, target.text
