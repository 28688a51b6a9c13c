"""Loading models, and building the translator that uses them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.system.errors import CheckpointError, ConfigError, as_nmt_errors
from nmt.system.files import AnyPath, AnyPaths, as_path, as_paths, check_file, sha256
from nmt.system.messages import Parameter
from nmt.system.surroundings import plain_torch
from nmt.text.direction import Direction

if TYPE_CHECKING:
    from nmt.config import Overrides
    from nmt.models.seq2seq import Seq2Seq
    from nmt.models.storage import ModelFolder
    from nmt.search.searcher import Searcher
    from nmt.text.processor import TextProcessor
    from nmt.text.sentences import SentenceSplitter
    from nmt.translation.protection import Protection
    from nmt.translation.translator import Translator


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadSettings:
    """How models are loaded, and how their translator works.

    Attributes:
        device: As in a config.
        allowed_classes: Dotted paths of classes that a model's config may use; their code runs.
        search: Search options; None keeps the config of the first model.
        overrides: More search options, as for `with_search_options`.
        split_sentences: True if the sentences of a line are translated one by one.
        dictionary: File with translations of words that the model does not know.
        protect: True if spans such as addresses and numbers are taken over, where sentences are split.
        keep: File with names that stay as they are.
        glossary: File with terms and the translations that they must have.
    """

    device: str = "auto"
    allowed_classes: Collection[str] = ()
    search: Mapping[str, Any] = field(default_factory=dict)
    overrides: Overrides = ()
    split_sentences: bool = False
    dictionary: Path | None = None
    protect: bool = True
    keep: Path | None = None
    glossary: Path | None = None


@as_nmt_errors()
@plain_torch()
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
    protect: bool = True,
    keep: AnyPath | None = None,
    glossary: AnyPath | None = None,
    dictionary: AnyPath | None = None,
    allowed_classes: Collection[str] = (),
) -> Translator:
    """Load a model. Safe for untrusted models: no code of theirs is run.

    Args:
        model: Run or model directory, or an export for ctranslate2 or onnx, which then translates; None is the newest
            finished run under `runs`. Several models with the same vocabularies translate together: the probability of
            a word is the mean of theirs.
        device: auto, cpu, cuda, cuda:N or mps.
        beam_size: Hypotheses kept at each step; 1 is greedy. None, here and below, is the value in the model's config.
        batch_size: Sentences translated at once.
        length_penalty: Alpha of Wu et al. (2016).
        max_length: Maximum length of a translation in tokens.
        replace_unknown: True if an unknown word is replaced by the source word attended most.
        precision: float32, or bfloat16, which is faster.
        overrides: Other search settings: `{"decode.sampling.temperature": 0.8}` or `["decode.min_length=3"]`.
        split_sentences: Translate the sentences of a text one by one, as the model was trained, and parts of sentences
            that are too long. `evaluate` never does, so that scores do not depend on it.
        protect: Take placeholders, addresses, tags, handles, emoji and numbers over as they are, where texts are split
            into sentences.
        keep: File with names that stay as they are, one on each line.
        glossary: File with terms that must have a translation: a term, a tab and its translation on each line.
        dictionary: For models of words: a file with a source word, a tab and its translation on each line. An unknown
            word that attends to a source word becomes its translation, or the word itself if it has none.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Raises:
        CheckpointError: The model does not exist, is damaged, or uses a class that is not allowed.
        ConfigError: A search option is invalid, the device is not available, or the model cannot use a dictionary.
        DataError: The dictionary cannot be read.
    """
    search = {
        "beam_size": beam_size,
        "batch_size": batch_size,
        "length_penalty": length_penalty,
        "max_length": max_length,
        "replace_unknown": replace_unknown,
        "precision": precision,
    }
    settings = LoadSettings(
        device,
        allowed_classes,
        search,
        overrides,
        split_sentences,
        as_path(dictionary),
        protect,
        as_path(keep),
        as_path(glossary),
    )
    _, translator = open_translator(as_paths(model), settings)
    return translator


def open_translator(paths: Sequence[Path], settings: LoadSettings) -> tuple[list[ModelFolder], Translator]:
    """Load models, or one that was exported, and build their translator.

    Args:
        paths: Each as for `find_model`; none is the newest finished run, several translate together.
        settings: How they are loaded and used.

    Raises:
        CheckpointError: There is no such model, it is damaged, or two of them have different vocabularies.
        ConfigError: An option is not allowed, an export would translate together with others, or the model or the
            options have no use for a dictionary.
        DataError: The dictionary cannot be read.
    """
    from nmt.config import with_search_options
    from nmt.models.lookup import find_model
    from nmt.models.storage import load_model
    from nmt.runtimes.folder import find_runtime, load_export
    from nmt.system.device import resolve_device
    from nmt.text.dictionary import read_dictionary
    from nmt.translation.translator import Translator

    directories = [find_model(path) for path in paths] or [find_model(None)]
    device = resolve_device(settings.device)
    exports = [directory for directory in directories if find_runtime(directory)]
    if exports and len(directories) > 1:
        raise ConfigError(f"{exports[0]}: is an export, which translates by itself; give no other model beside it")
    loaded = [load_model(directory, device, settings.allowed_classes) for directory in directories if not exports]
    exported = [load_export(directory, settings.allowed_classes) for directory in exports]
    models: list[ModelFolder] = [*exported, *loaded]
    saved, *others = models
    for further in others:
        if text_of(further) != text_of(saved):
            raise CheckpointError(
                f"{further.path}: has other vocabularies or another tokenizer than {saved.path}; models that translate "
                "together must share them"
            )
    options = with_search_options(saved.config, settings.search, settings.overrides)
    processor = saved.load_processor()
    direction = Direction.of(saved.config.data)
    splitter = None
    if settings.split_sentences:
        splitter = make_splitter(processor, direction)
    entries = None
    if settings.dictionary is not None:
        file = Parameter("dictionary", settings.dictionary)
        if processor.tgt_tokenizer.kind == "subword" or processor.src_tokenizer.kind == "subword":
            raise ConfigError("{file}: is for models of words; this one writes unknown words in pieces", file=file)
        if not options.replace_unknown:
            raise ConfigError("{file}: needs decode.replace_unknown, which is off in this model", file=file)
        entries = read_dictionary(settings.dictionary, processor)
        vocabulary = saved.config.text.vocabulary
        if vocabulary.min_count <= 1 and vocabulary.max_size is None:
            log.warning(
                f"{saved.path}: its vocabulary has every training word, so that it never learnt to write an unknown "
                "word, for which the dictionary is; train with text.vocabulary.min_count=2"
            )
    protection = _read_protection(settings)
    paths_of_models = ", ".join(str(model.path) for model in models)
    score = saved.config.model.mechanism.score
    described = f"{paths_of_models}: {direction.source} to {direction.target}, {score} attention"
    first: Seq2Seq | Searcher
    if exported:
        described += f", in {exported[0].runtime.program}"
        first = exported[0].open_searcher(options, device)
    else:
        first = loaded[0].model
    translator = Translator(
        first,
        processor,
        options,
        [further.model for further in loaded[1:]],
        splitter=splitter,
        dictionary=entries,
        protection=protection,
        frozen=True,
        description=described,
        direction=direction,
    )
    if protection and protection.inflected and not translator.reader.has_term_marks:
        log.warning(
            f"{settings.glossary}: {len(protection.inflected)} terms are inflected, which {saved.path} has not learnt: "
            "it takes their translations over as they are; train with text.term_marks=true and data.augment.terms=0.25"
        )
    return models, translator


def make_splitter(processor: TextProcessor, direction: Direction) -> SentenceSplitter:
    """A splitter for the texts of a model; where spaces separate tokens, they separate sentences too."""
    from nmt.text.sentences import SentenceSplitter

    is_spaced = processor.tgt_tokenizer.kind == "whitespace"
    return SentenceSplitter(direction.source, "" if is_spaced else direction.target)


def _read_protection(settings: LoadSettings) -> Protection | None:
    """The spans that translations take over; None if there are none.

    Raises:
        ConfigError: There are names or terms, but sentences are not split, or spans not protected.
        DataError: A file cannot be read.
    """
    from nmt.translation.protection import read_protection

    is_on = settings.split_sentences and settings.protect
    for name in ("keep", "glossary"):
        path = getattr(settings, name)
        if path is not None and not is_on:
            needed = "split_sentences" if settings.protect else "protect"
            raise ConfigError(
                "{file}: needs {needed}; set it to true",
                file=Parameter(name, path),
                needed=Parameter(needed, True),
            )
    if not is_on:
        return None
    return read_protection(settings.keep, settings.glossary)


def text_of(saved: ModelFolder) -> tuple[Any, ...]:
    """What two models that translate together must have in common."""
    from nmt.text.processor import SIDES

    config = saved.config
    vocabularies = saved.src_vocabulary.tokens, saved.tgt_vocabulary.tokens
    settings = Direction.of(config.data).key, config.data.cleaning, config.text.tokenizer, config.text.lowercase
    return (*vocabularies, *settings, *(_pieces(saved.text, side) for side in SIDES))


def _pieces(text: Path, side: str) -> str | None:
    """The checksum of the subwords of a side, which may differ between equal vocabularies; None for words."""
    path = check_file(text / f"{side}.subwords.model", text)
    return sha256(path) if path.exists() else None
