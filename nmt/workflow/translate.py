"""Lines in, lines out."""

from __future__ import annotations

import codecs
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from nmt.config import DecodeSection, with_search_options
from nmt.corpus.lines import MAX_LINE, OVERLONG
from nmt.decoding.formats import Format
from nmt.decoding.translator import MAX_SOURCE_LENGTH, Translator
from nmt.errors import ConfigError, DataError, when_out_of_memory
from nmt.evaluation.alignment import Alignment, align
from nmt.files import naming
from nmt.model.storage import SavedModel, load_model
from nmt.text.dictionary import read_dictionary
from nmt.text.sentences import SentenceSplitter
from nmt.training.device import resolve_device, use_fast_products
from nmt.workflow.runs import find_model

log = logging.getLogger(__name__)

CHUNK = 1 << 16


class Doubt(NamedTuple):
    """A reason to take a line for something else than text.

    Attributes:
        remedy: What is done about it.
        advice: What to do where that will not do.
    """

    remedy: str
    advice: str


DOUBTS = {
    "not UTF-8": Doubt("unreadable bytes became U+FFFD", "convert it to UTF-8 first"),
    "holds NUL characters, as UTF-16 does": Doubt("convert it to UTF-8 first", "convert it to UTF-8 first"),
    OVERLONG: Doubt("the rest of it was not read", "give one sentence a line"),
}


class Readable(Protocol):
    """A byte stream that gives what is there without waiting for more."""

    def read1(self, size: int = -1, /) -> bytes:
        """At most `size` bytes."""
        ...


def read_lines(stream: Readable, name: str, warn: Callable[[str], object] | None) -> Iterator[list[str]]:
    """Lines of a byte stream as soon as they are there, several at a time.

    Ill-formed UTF-8 becomes U+FFFD, and of a line only `MAX_LINE` bytes are read and held in memory. Only a line feed
    ends a line, so that there are as many as `wc -l` counts, and one more if the last is open. A carriage return
    before it goes.

    Args:
        stream: Where bytes come from.
        name: What to call it in an error.
        warn: Receives a sentence about the first line of each of `DOUBTS`; None refuses such a line.

    Raises:
        DataError: It is UTF-16, or a line is refused.
    """
    number = 0
    warned: set[str] = set()

    def decode(line: bytes) -> str:
        nonlocal number
        number += 1
        if number == 1:
            refuse_utf16(line, name)
        text, doubts = decode_line(line)
        for doubt in doubts:
            if warn is None:
                raise DataError(f"{name}: line {number}: {doubt}; {DOUBTS[doubt].advice}")
            if doubt not in warned:
                warned.add(doubt)
                warn(f"line {number}: {doubt}; {DOUBTS[doubt].remedy}")
        return text

    rest = b""
    while chunk := stream.read1(CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        rest = rest[: MAX_LINE + 1]  # enough to tell that the line is too long
        if warn is None and len(rest) > MAX_LINE:
            decode(rest)  # refuses it, as the line may never end
        if lines:
            yield [decode(line) for line in lines]
    if rest:
        yield [decode(rest)]


def decode_line(line: bytes) -> tuple[str, list[str]]:
    """The text of a line without its end, and which of `DOUBTS` it raises."""
    longer = len(line) > MAX_LINE
    line = line[:MAX_LINE]
    text, _ = codecs.utf_8_decode(line, "replace", not longer)  # a character that the cut went through is left out
    found = {
        "not UTF-8": text.count("\ufffd") != line.count("\ufffd".encode()),
        "holds NUL characters, as UTF-16 does": b"\0" in line,
        OVERLONG: longer,
    }
    return text.lstrip("\ufeff").removesuffix("\r"), [doubt for doubt, present in found.items() if present]


def refuse_utf16(text: bytes, name: str) -> None:
    """Stop where text begins with the byte order mark of UTF-16, of which nothing can be read as UTF-8.

    Raises:
        DataError: It does.
    """
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{name}: is UTF-16, not UTF-8; convert it first, as with: iconv -f UTF-16 -t UTF-8")


def open_input(path: Path) -> BufferedReader:
    """Open a file to translate.

    Raises:
        DataError: It cannot be read.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def open_translator(
    path: Path | None,
    device: str,
    options: Mapping[str, Any],
    allowed_classes: Collection[str],
    *,
    split_sentences: bool = False,
    dictionary: Path | None = None,
) -> tuple[SavedModel, Translator]:
    """The model that a user means, and the same ready to translate.

    Args:
        path: As for `find_model`.
        device: As in a config.
        options: Search options that are not those of the model's config; None leaves the config's.
        allowed_classes: As for `load_model`.
        split_sentences: Translate the sentences of a line one by one.
        dictionary: File with translations of words that the model does not know.

    Raises:
        ConfigError: The model or the options have no use for a dictionary.
        NmtError: A file cannot be used, or an option is not allowed.
    """
    directory = find_model(path)
    use_fast_products()
    saved = load_model(directory, resolve_device(device), allowed_classes)
    settings = with_search_options(saved.config.decode, options)
    processor = saved.load_processor()
    src, tgt = saved.config.data.languages
    spaced = processor.tgt_tokenizer.kind == "whitespace"  # between tokens, and so between sentences
    splitter = SentenceSplitter(src, "" if spaced else tgt) if split_sentences else None
    entries = None
    if dictionary is not None:
        if processor.tgt_tokenizer.kind == "subword" or processor.src_tokenizer.kind == "subword":
            raise ConfigError(
                f"--dictionary {dictionary}: is for models of words; this one writes unknown words in pieces"
            )
        if not settings.replace_unknown:
            raise ConfigError(f"--dictionary {dictionary}: needs decode.replace_unknown, which is off in this model")
        entries = read_dictionary(dictionary, processor)
    return saved, Translator(saved.model, processor, settings, splitter=splitter, dictionary=entries)


def within_memory(options: DecodeSection, lines: int) -> contextlib.AbstractContextManager[None]:
    """Let the block, should memory run out in it, say which options make the search for so many lines smaller."""
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
        write: Receives what is to be written about each batch.
        output: How.
        n_best: Translations a line.
        first: Number of the first line.
        advance: Called with the number of lines done.

    Returns:
        The number of the line after the last.

    Raises:
        ConfigError: `n_best` is more than the beam size.
    """
    translator.check_n_best(n_best)
    number = first
    for lines in batches:
        with within_memory(translator.options, len(lines)):
            found = translator.translate(lines, n_best, output.needs_alignment, advance=advance)
        written = []
        for line, translations in zip(lines, found, strict=True):
            if translations[0].truncated:
                log.warning(f"line {number}: longer than {MAX_SOURCE_LENGTH} tokens, the rest of it was not read")
            written.append(output.render(number, line, translations))
            number += 1
        write("".join(written))
    return number


def draw_attention(translator: Translator, sentence: str, picture: Path) -> Alignment:
    """Translate one sentence and draw where the model looked, averaged over heads.

    Raises:
        ConfigError: The model has no attention to show.
        DataError: The sentence has no words.
    """
    from nmt.visualize.heatmap import EOS_LABEL, draw_heatmap

    with within_memory(translator.options, 1):
        (found,) = align(translator, [sentence])
    weights = found.weights.double().mean(dim=1)
    if not len(weights):
        raise DataError("the sentence has no words: there is no attention to draw")
    if not bool(weights.any()):
        raise ConfigError("this model has no attention (model.attention.score: none): nothing to draw")
    rows = [*found.tgt_tokens, EOS_LABEL][: len(weights)]
    with naming(picture, picture.parent):
        draw_heatmap(weights.numpy(), [*found.src_tokens, EOS_LABEL], rows, picture)
    return found
