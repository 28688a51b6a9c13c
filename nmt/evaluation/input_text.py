"""The sentences that a command is given: one, those of a file, or a split of the data of a model."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.config import read_config
from nmt.corpus.dataset import has_repaired_references
from nmt.corpus.endings import is_of_other_language
from nmt.corpus.example import Example, read_examples
from nmt.corpus.marker_schema import CONFIG, read_marker
from nmt.corpus.references import find_unwritable, read_references
from nmt.corpus.training_pairs import evenly_spaced, read_training_pairs
from nmt.evaluation.gold_links import GoldLinks, read_alignments
from nmt.evaluation.training_text import is_other_data
from nmt.models.lookup import find_data
from nmt.models.storage import ModelFolder
from nmt.system.errors import ConfigError, DataError, check_at_least
from nmt.system.files import AnyPath, AnyPaths, as_path, as_paths
from nmt.system.messages import Message, Parameter
from nmt.text.direction import Direction
from nmt.text.languages import language_name
from nmt.text.processor import TEXT, load_normalizer, load_processor
from nmt.translation.input import read_text
from nmt.translation.translate import warn_of_file

log = logging.getLogger(__name__)

MAX_SEEN = 1000
"""Sources of training text that are read, evenly spaced."""


def read_files(src: Path, references: Sequence[Path]) -> list[Example]:
    """Read sources, and perhaps references, from line-aligned files.

    Raises:
        DataError: A file cannot be read, is not UTF-8, has an overlong line or only empty lines, or they differ in
            length.
    """
    sources = read_text(src)
    columns = [sources, *map(read_text, references)]
    for path, column in zip((src, *references), columns, strict=True):
        if len(column) != len(columns[0]):
            raise DataError(f"{path}: has {len(column)} lines, {src} has {len(columns[0])}; they must match")
        if not any(line.strip() for line in column):
            problem = "has only empty lines" if column else "is empty"
            raise DataError(f"{path}: {problem}; give sentences{' to evaluate' if references else ''}")
    cells = [_split_references(path, column) for path, column in zip(references, columns[1:], strict=True)]
    return [Example(text, sum(row, ())) for text, *row in zip(sources, *cells, strict=True)]


def _split_references(path: Path, lines: Sequence[str]) -> list[tuple[str, ...]]:
    """The references of each line, which may have several with tabs between them, as `nmt evaluate` writes them.

    An empty line is an empty reference; of a line with references, empty ones are left out.
    """
    rows = []
    for line in lines:
        references = tuple(filter(str.strip, line.split("\t")))
        rows.append(references or ("",))
    several = sum("\t" in line.strip() for line in lines)
    if several == len(lines):
        log.info(f"{path}: tabs separate the references of a line, {sum(map(len, rows)):,} in {len(lines):,} lines")
    elif several:
        tabs = f"{several:,} of {len(lines):,} lines have tabs, which separate references"
        log.warning(f"{path}: {tabs}: replace a tab inside a reference by a space")
    return rows


def read_split(data: Path, split: str) -> list[Example]:
    """Read the raw sentences of a split of a data directory, and nothing else; of training text, at most `MAX_SEEN`.

    Raises:
        DataError: There is no such split.
    """
    read_marker(data)
    if split != "train":
        if not (data / f"{split}.jsonl").is_file():
            raise DataError(
                "{data}: has no {name} split; give {split} test, valid or train, or files with {src} and {ref}",
                data=data,
                name=split,
                split=Parameter("split"),
                src=Parameter("src"),
                ref=Parameter("ref"),
            )
        return read_examples(data / f"{split}.jsonl")
    translations: dict[str, list[str]] = {}
    for src, tgt in read_training_pairs(data, load_processor(data / TEXT)):
        translations.setdefault(src, []).append(tgt)
    sources = list(translations)
    chosen = (sources[n] for n in evenly_spaced(len(sources), MAX_SEEN))
    return [Example(src, tuple(dict.fromkeys(translations[src]))) for src in chosen]


@dataclass(frozen=True)
class EvaluationSet:
    """Sentences with references, which translations are scored against.

    Attributes:
        name: Name of the split or the file.
        examples: Sources with references.
        repaired: True if the references were repaired as training text is; signatures then say so.
        data: Data directory whose training text the model is compared with; None is the one it was trained on.
    """

    name: str
    examples: Sequence[Example]
    repaired: bool = False
    data: Path | None = None


@dataclass(frozen=True)
class InputText:
    """Sentences, perhaps with word alignments.

    Attributes:
        name: Name of the split or the file.
        examples: The sentences; None is a split of the data of the model.
        data: Data directory; None is that of the model.
        gold: File with word alignments, and its links; None without them.
        scored: True if translations are compared with the references.
        repair: True if references are repaired as training text is.
        files: File of sources and files of references; empty for a split.
    """

    name: str
    examples: Sequence[Example] | None
    data: Path | None
    gold: tuple[Path, Sequence[GoldLinks]] | None
    scored: bool = False
    repair: bool = False
    files: tuple[Path, ...] = ()

    @classmethod
    def read(
        cls,
        sentence: str | None = None,
        split: str | None = None,
        links_of: str = "words",
        *,
        data: AnyPath | None,
        src: AnyPath | None,
        ref: AnyPaths | None,
        gold: AnyPath | None = None,
        target: str | None = None,
        scored: bool = False,
        repair: bool = False,
    ) -> InputText:
        """Check which text is meant, and read it unless it is a split; a text that is scored has references.

        Raises:
            ConfigError: Arguments conflict.
            DataError: A file cannot be used.
        """
        names = {name: Parameter(name) for name in ("src", "ref", "split", "data", "gold")}
        if sum((sentence is not None, src is not None, bool(split or data))) > 1:
            choice = "{src}, or {split} and {data}"
            raise ConfigError(f"give one of: {'' if scored else 'a sentence, '}{choice}", **names)
        if (ref and src is None) or (scored and src is not None and not ref):
            raise ConfigError("{ref} belongs to {src}: give both", **names)
        if gold is not None and (sentence is not None or (src is not None and not ref)):
            raise ConfigError("{gold} aligns references: give a split, or {src} with {ref}", **names)
        if links_of not in ("words", "tokens"):
            raise ConfigError("{links_of}: must be words or tokens", links_of=Parameter("links_of", links_of))
        examples = None
        if sentence is not None:
            warn_of_file(sentence, "src")
            examples = [Example(sentence, () if target is None else (target,))]
        elif src is not None:
            examples = read_files(Path(src), as_paths(ref))
        links = None if gold is None else (Path(gold), read_alignments(Path(gold)))
        files = () if src is None else (Path(src), *as_paths(ref))
        return cls(str(src or split or "test"), examples, as_path(data), links, scored, repair, files)

    def of(
        self, models: Sequence[ModelFolder], sample: int | None = None
    ) -> tuple[Sequence[Example], Sequence[GoldLinks] | None]:
        """At most `sample` sentences, evenly spaced, and their links; warns if the models were trained on other data.

        Raises:
            ConfigError: `sample` is not positive.
            DataError: The split cannot be read, or there are not as many links as sentences.
        """
        check_at_least("sample", sample, 1)
        examples = self.examples
        if examples is None:
            directory = self.data or find_data(models[0])
            examples = read_split(directory, self.name)
            if self.name == "train":
                log.warning(f"train: {len(examples):,} sentences that a model of this data has learnt from: not a test")
            for saved in models:
                if is_other_data(saved, directory):
                    given = str(Direction.of(read_config(directory / CONFIG).data))
                    expected = str(Direction.of(saved.config.data))
                    direction = "" if given == expected else f"is {given}, not {expected}, and "
                    log.warning(f"{directory}: {direction}differs from the data that the model was trained on")
        examples = self._read_references(models, examples)
        path, links = self.gold or ("", None)
        if links is not None and len(links) != len(examples):
            raise DataError(f"{path}: has {len(links):,} lines, but there are {len(examples):,} sentences")
        if sample is None:
            return examples, links
        chosen = evenly_spaced(len(examples), sample)
        return [examples[n] for n in chosen], None if links is None else [links[n] for n in chosen]

    def evaluation_set(self, models: Sequence[ModelFolder]) -> EvaluationSet:
        """All sentences with their references; for the errors see `of`."""
        examples, _ = self.of(models)
        return EvaluationSet(self.name, examples, self.is_repaired(models), self.data)

    def is_repaired(self, models: Sequence[ModelFolder]) -> bool:
        """True if the references are repaired: here, or where the data of a split was prepared."""
        if self.repair:
            return True
        if self.examples is not None:
            return models[0].config.data.repair_references
        return has_repaired_references(self.data or find_data(models[0]))

    def _read_references(self, models: Sequence[ModelFolder], examples: Sequence[Example]) -> list[Example]:
        """References as those of a split; warns if the first model cannot write them."""
        direction = Direction.of(models[0].config.data)
        for number, path in enumerate(self.files):
            code = direction.target if number else direction.source
            if self.scored and is_of_other_language(path, code):
                side = "references" if number else "sources"
                known = f"the model translates {direction.source} to {direction.target}"
                fault = f"the name ends in a code of another language than {code}, but {known}"
                log.warning(f"{path}: {fault}: give {side} in {language_name(code)}")
        normalizer = load_normalizer(models[0].text)
        read = read_references(examples, normalizer, repair=self.is_repaired(models))
        if self.scored and (writing_fault := find_unwritable(read, normalizer)):
            unwritable = Message(
                "{name}: {found}: give {repair} to score repaired references, which signatures then name, or train "
                "with {setting}",
                name=", ".join(map(str, self.files[1:])) or self.name,
                found=writing_fault,
                repair=Parameter("repair_references", True),
                setting=writing_fault.setting,
            )
            log.warning("%s", unwritable)
        return read
