"""Translating lines of text."""

from __future__ import annotations

import codecs
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nmt.corpus.lines import MAX_LINE, OVERLONG
from nmt.system.errors import CheckpointError, ConfigError, DataError, as_nmt_errors, when_out_of_memory
from nmt.system.files import AnyPath, AnyPaths, as_path, as_paths, naming

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.config import DecodeSection, Overrides
    from nmt.models.storage import SavedModel
    from nmt.translation.alignment import Alignment
    from nmt.translation.formats import Format
    from nmt.translation.translation import Translation
    from nmt.translation.translator import Translator

log = logging.getLogger(__name__)

CHUNK = 1 << 16


class LineProblem(NamedTuple):
    """A problem with a line of input.

    Attributes:
        remedy: How the line is handled, for a warning.
        advice: What to do, for an error.
    """

    remedy: str
    advice: str


PROBLEMS = {
    "not UTF-8": LineProblem("invalid bytes became U+FFFD", "convert it to UTF-8 first"),
    "has NUL characters, as UTF-16 does": LineProblem("convert it to UTF-8 first", "convert it to UTF-8 first"),
    OVERLONG: LineProblem("the rest was ignored", "write one sentence per line"),
}


class Readable(Protocol):
    """A byte stream that returns available bytes without waiting for more."""

    def read1(self, size: int = -1, /) -> bytes:
        """At most `size` bytes."""
        ...


def read_lines(stream: Readable, name: str, warn: Callable[[str], object] | None) -> Iterator[list[str]]:
    """Yield the lines of a byte stream as soon as they are available, several at a time.

    Ill-formed UTF-8 becomes U+FFFD, and only the first `MAX_LINE` bytes of a line are read. Only a line feed ends a
    line, as for `wc -l`, but the last line may lack it. A carriage return before it is removed.

    Args:
        stream: The bytes.
        name: Name of the stream for errors.
        warn: Called with a message for the first line with each of `PROBLEMS`; None makes them errors.

    Raises:
        DataError: It is UTF-16, or a line has a problem and `warn` is None.
    """
    number = 0
    warned: set[str] = set()

    def decode(line: bytes) -> str:
        nonlocal number
        number += 1
        if number == 1:
            reject_utf16(line, name)
        text, problems = decode_line(line)
        for problem in problems:
            if warn is None:
                raise DataError(f"{name}: line {number}: {problem}; {PROBLEMS[problem].advice}")
            if problem not in warned:
                warned.add(problem)
                warn(f"line {number}: {problem}; {PROBLEMS[problem].remedy}")
        return text

    rest = b""
    while chunk := _read(stream, name):
        *lines, rest = (rest + chunk).split(b"\n")
        rest = rest[: MAX_LINE + 1]  # enough to tell that the line is too long
        if warn is None and len(rest) > MAX_LINE:
            decode(rest)  # raises at once, as the line may never end
        if lines:
            yield [decode(line) for line in lines]
    if rest:
        yield [decode(rest)]


def _read(stream: Readable, name: str) -> bytes:
    try:
        return stream.read1(CHUNK)
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror})") from None


def decode_line(line: bytes) -> tuple[str, list[str]]:
    """The text of a line without its line end, and which of `PROBLEMS` it has."""
    longer = len(line) > MAX_LINE
    line = line[:MAX_LINE]
    text, _ = codecs.utf_8_decode(line, "replace", not longer)  # a character cut in two is dropped
    found = {
        "not UTF-8": text.count("\ufffd") != line.count("\ufffd".encode()),
        "has NUL characters, as UTF-16 does": b"\0" in line,
        OVERLONG: longer,
    }
    return text.lstrip("\ufeff").removesuffix("\r"), [problem for problem, present in found.items() if present]


def reject_utf16(text: bytes, name: str) -> None:
    """Reject text with the byte order mark of UTF-16.

    Raises:
        DataError: It has one.
    """
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{name}: is UTF-16, not UTF-8; convert it first: iconv -f UTF-16 -t UTF-8")


def open_input(path: Path) -> BufferedReader:
    """Open a file to translate.

    Raises:
        DataError: It cannot be read.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


@as_nmt_errors()
def load(
    model: AnyPaths | None = None,
    *,
    device: str = "auto",
    beam_size: int | None = None,
    batch_size: int | None = None,
    length_penalty: float | None = None,
    max_length: int | None = None,
    replace_unknown: bool | None = None,
    precision: str | None = None,
    overrides: Overrides = (),
    split_sentences: bool = True,
    dictionary: AnyPath | None = None,
    allowed_classes: Collection[str] = (),
) -> Translator:
    """Load a model. Safe for untrusted models: no code of theirs is run.

    Args:
        model: Run or model directory; None is the newest finished run under `runs`. Several models with the same
            vocabularies translate together: the probability of a word is the mean of theirs.
        device: auto, cpu, cuda, cuda:N or mps.
        beam_size: Hypotheses kept at each step; 1 is greedy. None, here and below, is the value in the model's config.
        batch_size: Sentences translated at once.
        length_penalty: Alpha of Wu et al. (2016).
        max_length: Maximum length of a translation in tokens.
        replace_unknown: Whether to replace an unknown word by the source word attended most.
        precision: float32, or bfloat16, which is faster.
        overrides: Other search settings: `{"decode.sampling.temperature": 0.8}` or `["decode.min_length=3"]`.
        split_sentences: Translate the sentences of a text one by one, as the model was trained, and parts of sentences
            that are too long. `evaluate` never does, so that scores do not depend on it.
        dictionary: For models of words: a file with a source word, a tab and its translation on each line. An unknown
            word that attends to a source word becomes its translation, or the word itself if it has none.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Raises:
        CheckpointError: The model does not exist, is damaged, or uses a class that is not allowed.
        ConfigError: A search option is invalid, the device is not available, or the model cannot use a dictionary.
        DataError: The dictionary cannot be read.
    """
    options = {
        "beam_size": beam_size,
        "batch_size": batch_size,
        "length_penalty": length_penalty,
        "max_length": max_length,
        "replace_unknown": replace_unknown,
        "precision": precision,
    }
    return open_translator(
        as_paths(model),
        device,
        options,
        allowed_classes,
        overrides=overrides,
        split_sentences=split_sentences,
        dictionary=as_path(dictionary),
    )[1]


def open_translator(
    paths: Sequence[Path],
    device: str,
    options: Mapping[str, Any],
    allowed_classes: Collection[str],
    *,
    overrides: Overrides = (),
    split_sentences: bool = False,
    dictionary: Path | None = None,
) -> tuple[list[SavedModel], Translator]:
    """Load models, and build their translator.

    Args:
        paths: Each as for `find_model`; none is the newest finished run, several translate together.
        device: As in a config.
        options: Search options; None keeps the config of the first model.
        allowed_classes: As for `load_model`.
        overrides: More search options, as for `with_search_options`.
        split_sentences: Translate the sentences of a line one by one.
        dictionary: File with translations of words that the model does not know.

    Raises:
        CheckpointError: There is no such model, it is damaged, or two of them have different vocabularies.
        ConfigError: An option is not allowed, or the model or the options have no use for a dictionary.
        DataError: The dictionary cannot be read.
    """
    from nmt.config import with_search_options
    from nmt.models.runs import find_model
    from nmt.models.storage import load_model
    from nmt.system.device import resolve_device, use_fast_products
    from nmt.text.dictionary import read_dictionary
    from nmt.text.sentences import SentenceSplitter
    from nmt.translation.translator import Translator

    directories = [find_model(path) for path in paths] or [find_model(None)]
    use_fast_products()
    models = [load_model(directory, resolve_device(device), allowed_classes) for directory in directories]
    saved, *others = models
    for other in others:
        if text_of(other) != text_of(saved):
            raise CheckpointError(
                f"{other.path}: has other vocabularies or another tokenizer than {saved.path}; models that translate "
                "together must share them"
            )
    settings = with_search_options(saved.config, options, overrides)
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
    found = [other.model for other in others]
    translator = Translator(saved.model, processor, settings, found, splitter=splitter, dictionary=entries, frozen=True)
    return models, translator


def text_of(saved: SavedModel) -> tuple[Any, ...]:
    """What two models that translate together must have in common."""
    config = saved.config
    vocabularies = saved.src_vocabulary.tokens, saved.tgt_vocabulary.tokens
    return (*vocabularies, config.data.languages, config.data.cleaning, config.text.tokenizer, config.text.lowercase)


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
            found = translator.translate(lines, n_best, output.needs_alignment, advance=advance)
        written = []
        for line, translations in zip(lines, found, strict=True):
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


def draw_attention(translator: Translator, sentence: str, picture: Path) -> Alignment:
    """Translate one sentence and draw its attention, averaged over heads.

    Raises:
        ConfigError: The model has no attention.
        DataError: The sentence has no words.
    """
    from nmt.translation.alignment import align

    with within_memory(translator.options, 1):
        (found,) = align(translator, [sentence])
    draw_alignment(found.weights, found.src_tokens, found.tgt_tokens, picture)
    return found


def draw_alignment(weights: Tensor, src_tokens: Sequence[str], tgt_tokens: Sequence[str], picture: Path) -> None:
    """Draw attention, averaged over heads.

    Args:
        weights: [target tokens, heads, source tokens], with EOS last on both sides if it was reached.
        src_tokens: Source tokens without EOS.
        tgt_tokens: Target tokens without EOS.
        picture: File to write.

    Raises:
        ConfigError: The model has no attention.
        DataError: The sentence has no words.
    """
    from nmt.drawing.heatmap import EOS_LABEL, draw_heatmap

    if not len(weights):
        raise DataError("the sentence has no words, so there is no attention to draw; give a sentence")
    if not bool(weights.any()):
        raise ConfigError("this model has no attention to draw (model.attention.score: none); use another model")
    rows = [*tgt_tokens, EOS_LABEL][: len(weights)]
    with naming(picture, picture.parent):
        draw_heatmap(weights.double().mean(dim=1).numpy(), [*src_tokens, EOS_LABEL], rows, picture)
