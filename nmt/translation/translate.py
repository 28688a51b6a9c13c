"""Translating a sentence, a stream or a file; files in little memory, and resumable after a kill."""

from __future__ import annotations

import hashlib
import io
import itertools
import logging
import math
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from nmt.system.errors import ConfigError, as_nmt_errors
from nmt.system.files import AnyPath, AnyPaths, as_path, is_stream, sha256
from nmt.system.messages import Message, Parameter
from nmt.system.process import open_output
from nmt.system.progress import progress_bar
from nmt.system.resumable import Origin, is_unfinished, open_resumable
from nmt.system.surroundings import plain_torch
from nmt.system.version import __version__
from nmt.translation.input import Line, open_input, stream_lines
from nmt.translation.loading import load
from nmt.translation.stream import number_windows, translate_window, warn_of_cut
from nmt.translation.workers import check_workers, open_workers

if TYPE_CHECKING:
    from nmt.config import Overrides
    from nmt.translation.files.file_format import FileFormat
    from nmt.translation.formats import Format
    from nmt.translation.translator import Translator

log = logging.getLogger(__name__)

WINDOW = 16
"""Batches that are read ahead and sorted by length, to reduce padding."""
CHECKSUM = 16
"""Hexadecimal digits of a checksum that are kept."""
WINDOW_CHARACTERS = 1 << 19
"""A window ends at this many characters, as lines and their alignments may be long."""


def translate(
    sentence: str | None = None,
    *,
    model: AnyPaths | None = None,
    input: AnyPath | None = None,
    output: AnyPath | None = None,
    beam_size: int | None = None,
    batch_size: int | None = None,
    n_best: int = 1,
    precision: str | None = None,
    overrides: Overrides = (),
    format: str | None = None,
    with_attention: bool = False,
    attention: AnyPath | None = None,
    dictionary: AnyPath | None = None,
    keep: AnyPath | None = None,
    glossary: AnyPath | None = None,
    protect: bool = True,
    split_sentences: bool = True,
    prefix: str | None = None,
    retranslate: bool = False,
    workers: int = 1,
    overwrite: bool = False,
    resume: bool = False,
    device: str = "auto",
    allowed_classes: Collection[str] = (),
) -> None:
    """Translate a sentence, a file or standard input. One line in, one line out.

    Example: nmt translate "She kissed him." --attention kiss.png

    Args:
        sentence: Sentence to translate. None is standard input; a session at a terminal.
        model: Run or model directories.
        input: File to translate, one sentence per line; or a file with markup, whose suffix shows its format.
        output: File to write instead of standard output.
        beam_size: Hypotheses that remain at each step.
        batch_size: Sentences translated at once.
        n_best: Translations per sentence, as `format` nbest unless given.
        precision: float32 or bfloat16.
        overrides: Other search settings.
        format: text: the translation. nbest: number ||| translation ||| score. jsonl: a JSON object per line, with
            tokens, scores and word alignment. pharaoh: word alignment, i-j. Or the format of a file with markup, which
            comes back translated: srt, vtt, po, xliff, html, md, json, yaml, docx or odt. None goes by the suffix of
            `input`, and is text for others.
        with_attention: Write the attention weights into `format` jsonl too.
        attention: Draw the attention weights of the sentence.
        dictionary: Translations of words that the model does not know: source word, tab, translation on each line.
        keep: Names that stay as they are, one on each line.
        glossary: Terms and the translations that they must have: term, tab, translation on each line.
        protect: Take placeholders, addresses, tags, emoji and numbers over as they are.
        split_sentences: Translate the sentences of a line one by one, and long ones in parts.
        prefix: Words that the translation begins with, for one sentence, which is not split. The last one may go on,
            unless a space follows it.
        retranslate: Translate texts of a file with markup again that have a translation.
        workers: Processes that translate, each with its share of the processor's threads.
        overwrite: Replace outputs that are not empty.
        resume: Continue an unfinished translation of `input` into `output`, or start one.
        device: Where to compute.
        allowed_classes: Classes that the model's config may use.

    Raises:
        NmtError: Options conflict, or the model, the input or the output cannot be used.
    """
    source, target, picture, entries = map(as_path, (input, output, attention, dictionary))
    names, terms = map(as_path, (keep, glossary))
    whole = source is not None and target is not None and source.is_file() and not is_stream(target)
    _check_conflicts(
        sentence=sentence is not None,
        input=source is not None,
        attention=picture is not None,
        several=format is not None or n_best > 1 or with_attention,
        prefix=prefix is not None,
        resume=resume,
        whole=whole,
        workers=workers > 1,
    )
    from nmt.config.outputs import check_files
    from nmt.translation.alignment import draw_attention
    from nmt.translation.formats import choose_format
    from nmt.translation.session import converse

    kind = None if source is None else _find_format(source, format, n_best, with_attention)
    if retranslate and kind is None:
        raise ConfigError(
            "{retranslate} is for files with markup: give one as {input}",
            retranslate=Parameter("retranslate", True),
            input=Parameter("input"),
        )
    warn_of_file(sentence or "", "input")
    read = [] if sentence is not None else [source or Path("/dev/stdin")]
    replace = overwrite or (resume and target is not None and is_unfinished(target))
    check_files({"output": target, "attention": picture}, [*read, entries, names, terms], overwrite=replace)
    name, opened = _open_text(sentence, source) if kind is None else (str(source), nullcontext(io.BytesIO()))
    with opened as stream:
        translator = load(
            model,
            device=device,
            beam_size=beam_size,
            batch_size=batch_size,
            precision=precision,
            overrides=overrides,
            split_sentences=split_sentences,
            dictionary=entries,
            protect=protect,
            keep=names,
            glossary=terms,
            allowed_classes=allowed_classes,
        )
        translator.check_n_best(n_best)
        check_workers(translator, workers)
        if kind is not None and source is not None:
            _translate_markup(translator, source, target, kind, retranslate=retranslate, resume=resume, workers=workers)
            return
        shape = choose_format(format, translator.processor, n_best=n_best, with_attention=with_attention)
        if whole and source is not None and target is not None:
            _translate_whole(translator, source, target, shape, resume=resume, workers=workers)
            return
        lines = stream_lines(stream, name, log.warning)
        typed = sentence is None and source is None and sys.stdin.isatty()
        with open_output(target) as file:
            if typed and target is None and format is None and file.isatty():
                converse(translator, file, n_best)
            elif picture is not None:
                file.write(draw_attention(translator, next(lines)[0].text, picture).text + "\n")
                log.info(f"attention: {picture}")
            elif prefix is not None:
                text = next(lines)[0].text
                (ranked,) = translator.complete([text], [prefix], n_best=n_best, with_alignment=shape.needs_alignment)
                warn_of_cut(1, ranked[0])
                file.write(shape.render(1, text, ranked))
            else:
                if typed:
                    log.info("reading standard input, one sentence per line; end with Ctrl-D")
                if source is not None and source.is_file():
                    groups = iter([_divide(lines, translator)])
                else:
                    groups = _divide_available(lines, translator, workers)
                if not _translate_stream(translator, groups, file, shape, workers):
                    log.info(f"{name}: is empty; nothing is translated")


def _translate_stream(
    translator: Translator, groups: Iterable[Iterator[list[Line]]], file: TextIO, shape: Format, workers: int
) -> int:
    """Translate windows of lines, each group as soon as it is there.

    Returns:
        The number of lines.
    """
    work = partial(translate_window, translator, shape)
    number = 0
    with open_workers(work, translator, workers) as pool:
        for windows in groups:
            for text, count in pool.map(number_windows(windows, number + 1)):
                print(text, end="", file=file, flush=True)
                number += count
    return number


def _divide_available(
    lines: Iterator[list[Line]], translator: Translator, workers: int
) -> Iterator[Iterator[list[Line]]]:
    """For lines that are there, windows that processes share; no window waits for further lines."""
    from nmt.corpus.lines import in_blocks

    for available in lines:
        share = math.ceil(len(available) / workers)
        yield in_blocks(available, _length, WINDOW_CHARACTERS, max(share, translator.options.batch_size))


def _find_format(source: Path, name: str | None, n_best: int, with_attention: bool) -> FileFormat | None:
    """The format of a file with markup, None for lines of text.

    Raises:
        ConfigError: More is asked for than it can show.
        DataError: No format reads its markup.
    """
    from nmt.translation.files.registry import find_file_format

    shows_lines = n_best > 1 or with_attention
    kind = find_file_format(source, name)
    if kind is None or not shows_lines:
        return kind
    raise ConfigError(
        "{more}: {title} has one translation of each text; leave it out, or take the file as lines with {text}",
        more=Parameter("n_best", n_best) if n_best > 1 else Parameter("with_attention", True),
        title=kind.title,
        text=Parameter("format", "jsonl"),
    )


def warn_of_file(sentence: str, parameter: str) -> None:
    """Say that a sentence is also the name of a file, and which parameter reads it."""
    with suppress(OSError):  # a sentence may be too long for a name
        if sentence and Path(sentence).is_file():
            file = Parameter(parameter, sentence)
            text = "{sentence}: taken as a sentence, but is a file too; for that: {file}"
            log.warning("%s", Message(text, sentence=sentence, file=file))


def _check_conflicts(
    *,
    sentence: bool,
    input: bool,
    attention: bool,
    several: bool,
    prefix: bool,
    resume: bool,
    whole: bool,
    workers: bool,
) -> None:
    """Refuse parameters that do not go together.

    Args:
        sentence: True if a sentence is given.
        input: True if a file is given.
        attention: True if the weights are drawn.
        several: True if more than the text of the best translation is asked for.
        prefix: True if the beginning of the translation is given.
        resume: True if an unfinished translation is continued.
        whole: True if a file is translated into another.
        workers: True if several processes translate.

    Raises:
        ConfigError: Two of them conflict; the first conflict is named.
    """
    names = (
        "sentence",
        "input",
        "output",
        "attention",
        "format",
        "n_best",
        "with_attention",
        "prefix",
        "resume",
        "workers",
    )
    parameters = {name: Parameter(name) for name in names}
    problems = {
        "give {sentence} or {input}, not both": sentence and input,
        "{attention} draws one sentence: give {sentence}": attention and not sentence,
        "{attention} draws the best translation: leave {format}, {n_best} and {with_attention} out": (
            attention and several
        ),
        "{prefix} is for one sentence: give {sentence}, and leave {attention} out": (
            prefix and (not sentence or attention)
        ),
        "{resume} continues a file: give {input} and {output}, neither of them a device or pipe": (
            resume and not whole
        ),
        "{workers} divide the lines of a file or of standard input: leave {sentence} out": workers and sentence,
    }
    for text, is_conflict in problems.items():
        if is_conflict:
            raise ConfigError(text, **parameters)


def _open_text(sentence: str | None, path: Path | None) -> tuple[str, AbstractContextManager[io.BufferedIOBase]]:
    """The name of what is to be translated, for messages, and its bytes."""
    if sentence is not None:
        # Bytes of the argument that are not UTF-8 arrive escaped; they are treated like those of a file.
        return "the sentence", io.BytesIO(sentence.replace("\n", " ").encode("utf-8", "surrogateescape") + b"\n")
    if path is not None:
        return str(path), open_input(path)
    if sys.stdin is None:
        raise ConfigError(
            "standard input is closed; give {sentence} or {input}",
            sentence=Parameter("sentence"),
            input=Parameter("input"),
        )
    return "standard input", nullcontext(cast("io.BufferedIOBase", sys.stdin.buffer))


@as_nmt_errors()
@plain_torch()
def translate_file(
    translator: Translator,
    source: AnyPath,
    target: AnyPath,
    *,
    format: str | None = None,
    n_best: int = 1,
    with_attention: bool = False,
    retranslate: bool = False,
    workers: int = 1,
    overwrite: bool = False,
    resume: bool = False,
) -> None:
    """Translate a file line by line, in order and in little memory; the translation appears whole when it is done.

    A file with markup, such as subtitles, comes back as it is, but for its texts.

    Args:
        translator: What `load` returned.
        source: Lines of UTF-8, or a file with markup.
        target: File to write.
        format: text, nbest, jsonl or pharaoh; or the format of a file with markup: srt, vtt, po, xliff, html, md, json,
            yaml, docx or odt. None goes by the suffix of the source, and for others is text for one translation per
            line and nbest for several.
        n_best: Translations per line.
        with_attention: Write the attention weights too; only jsonl can.
        retranslate: Translate texts of a file with markup again that have a translation.
        workers: Processes that translate, each with its share of torch's threads. Only on Linux they share the memory
            of the models; elsewhere, a script with several calls this below `if __name__ == "__main__":`.
        overwrite: Replace a file that is not empty.
        resume: Continue an unfinished translation, with the same result, or start one. What is finished is kept when
            this command fails, and after a kill whether this is set or not.

    Raises:
        ConfigError: The format cannot show what is asked for, or `n_best` is more than the beam size.
        DataError: A file cannot be used, or the unfinished translation was made from something else.
        OutOfMemory: Memory ran out.
    """
    from nmt.config.outputs import check_files
    from nmt.translation.formats import choose_format

    source = Path(source)
    target = Path(target)
    check_files({"target": target}, [source], overwrite=overwrite or (resume and is_unfinished(target)))
    translator.check_n_best(n_best)
    check_workers(translator, workers)
    kind = _find_format(source, format, n_best, with_attention)
    if kind is not None:
        _translate_markup(translator, source, target, kind, retranslate=retranslate, resume=resume, workers=workers)
        return
    shape = choose_format(format, translator.processor, n_best=n_best, with_attention=with_attention)
    _translate_whole(translator, source, target, shape, resume=resume, workers=workers)


def _translate_whole(
    translator: Translator, source: Path, target: Path, shape: Format, *, resume: bool, workers: int
) -> None:
    """Translate a file in windows of lines, each of which is stored."""
    work = partial(translate_window, translator, shape)
    with open_input(source) as stream:
        made_from = {
            **describe(translator, source),
            "format": shape.name,
            "with_attention": shape.with_attention,
            "n_best": shape.n_best,
        }
        with open_resumable(target, made_from, resume=resume) as file:
            if file.lines:
                log.info(f"{target}: resuming after {file.lines:,} lines")
            before = file.lines
            windows = _divide(stream_lines(stream, str(source), log.warning), translator)
            left = number_windows(itertools.islice(windows, file.steps, None), before + 1)
            begin = time.perf_counter()
            with (
                progress_bar(unit=" lines", desc="translating", initial=before) as bar,
                open_workers(work, translator, workers) as pool,
            ):
                for text, count in pool.map(left, bar.update):
                    file.write(text, lines=count)
            seconds = time.perf_counter() - begin
            number = file.lines - before
    plural = "" if number == 1 else "s"
    log.info(f"{number:,} line{plural} in {seconds:.2f} s ({number / max(seconds, 1e-9):,.0f} per second)")


def _translate_markup(
    translator: Translator,
    source: Path,
    target: Path | None,
    kind: FileFormat,
    *,
    retranslate: bool,
    resume: bool,
    workers: int,
) -> None:
    """Translate the texts of a file with markup."""
    from nmt.translation.file_translation import translate_file_as

    def make_origin() -> Origin:
        return {**describe(translator, source), "format": kind.name, "retranslate": retranslate}

    translate_file_as(
        translator, source, target, kind, make_origin, retranslate=retranslate, resume=resume, workers=workers
    )


def _divide(lines: Iterator[list[Line]], translator: Translator) -> Iterator[list[Line]]:
    """Windows of the lines of a file, which depend on nothing but the lines and the batch size."""
    from nmt.corpus.lines import in_blocks

    return in_blocks(
        itertools.chain.from_iterable(lines), _length, WINDOW_CHARACTERS, WINDOW * translator.options.batch_size
    )


def _length(line: Line) -> int:
    return len(line.text)


def describe(translator: Translator, source: Path) -> Origin:
    """Everything that determines a translation but its format: two with the same description are identical."""
    reader = translator.reader
    entries = None if reader.dictionary is None else repr(sorted(reader.dictionary.items()))
    kept = reader.protection
    protection = None if kept is None else repr((kept.names, kept.terms, sorted(kept.inflected)))
    return {
        "version": __version__,
        "input": sha256(source)[:CHECKSUM],
        "model": _model_identity(translator),
        **translator.options.model_dump(),
        "split_sentences": reader.splitter is not None,
        "protection": protection and hashlib.sha256(protection.encode()).hexdigest()[:CHECKSUM],
        "dictionary": entries and hashlib.sha256(entries.encode()).hexdigest()[:CHECKSUM],
        "device": translator.searcher.device.type,
    }


def _model_identity(translator: Translator) -> str:
    """A checksum of the weights of all models, and of their vocabularies."""
    digest = hashlib.sha256(translator.searcher.fingerprint().encode())
    processor = translator.processor
    for tokens in (processor.src_vocabulary.tokens, processor.tgt_vocabulary.tokens):
        digest.update("\n".join(tokens).encode())
    digest.update(repr(processor.normalizer.settings).encode())
    return digest.hexdigest()[:CHECKSUM]
