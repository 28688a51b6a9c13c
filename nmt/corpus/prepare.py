"""`nmt preprocess`: a corpus becomes a data directory, with only numbers, not text, in memory."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.system.errors import ConfigError, DataError, NmtError, as_nmt_errors, when_out_of_memory
from nmt.system.files import AnyPath, AnyPaths, as_names, sha256, write_text
from nmt.system.messages import Call, Message, Parameter, setting

if TYPE_CHECKING:
    from nmt.config import Config, DataSection, Overrides
    from nmt.corpus.cleaning import CleaningReport
    from nmt.corpus.example import Example
    from nmt.corpus.lines import Rows
    from nmt.corpus.marker_schema import ParentRecord
    from nmt.corpus.report_schema import DataReport
    from nmt.corpus.store import PairStore
    from nmt.corpus.traces import TraceReport
    from nmt.text.normalization import Normalizer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PreparedData:
    """A data directory written by `preprocess`.

    Attributes:
        path: The folder.
        report: Content of `report.json`: pairs, overlap, vocabularies, and the counts of cleaning.
    """

    path: Path
    report: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"<PreparedData {self.path}: {self.report['pairs']['train']:,} training pairs>"


@as_nmt_errors()
def preprocess(
    config: str | Path | Config = "tatoeba",
    *,
    source: AnyPaths = (),
    output: AnyPath | None = None,
    drop_overlap: bool = False,
    overrides: Overrides = (),
    overwrite: bool = False,
) -> PreparedData:
    """Clean, split, tokenise and encode a corpus.

    Without arguments, English-German Tatoeba is downloaded into data/raw.

    Example: nmt preprocess --config tatoeba_small --source deu-eng.zip

    Args:
        config: Name of a shipped config, path of a YAML file, or a config.
        source: Corpus to use instead of the config's: one tab-separated or CSV file (.txt, .csv, .zip, .gz, .xz, .bz2)
            or URL, a translation memory (.tmx), or corpus for corpus.en and corpus.de. Repeat it for 2, 4 or 6 parallel
            files (source and target of train, valid, test), or for the 3 files of a Tatoeba export (source sentences,
            target sentences, links).
        output: Data directory to write; None is data/prepared/NAME.
        drop_overlap: With ready-made splits, drop training pairs that overlap valid or test.
        overrides: Values in place of the config's: `{"train.epochs": 3}` or `["train.epochs=3"]`.
        overwrite: Replace an earlier data directory.

    Raises:
        ConfigError: The config is wrong, or names no source.
        DataError: The corpus or the output folder cannot be used.
        OutOfMemory: Memory ran out.
    """
    from nmt.config import as_settings, load_config, overridden
    from nmt.corpus.licence import with_sources

    settings = load_config(config, [*as_settings(overrides), *(["data.drop_overlap=true"] if drop_overlap else [])])
    sources = as_names(source)
    if sources:
        stated = "data.licence" in overridden(overrides)
        settings = with_sources(settings, sources, keep_licence=stated)
    directory = settings.data_directory if output is None else Path(output)
    return PreparedData(directory, write_data(settings, directory, overwrite=overwrite).as_json())


def write_data(config: Config, output: Path, *, overwrite: bool = False) -> DataReport:
    """Read, clean, split, tokenise and encode a corpus.

    Args:
        config: The whole config, of which `data` and `text` are used.
        output: The data directory to write, completely or not at all.
        overwrite: Replace an earlier data directory there.

    Returns:
        The report, which is also written to `report.json`.

    Raises:
        DataError: The corpus or the output folder cannot be used.
        ConfigError: No source is configured, or no tokenizer fits the language.
    """
    from nmt.config.outputs import DATA, check_directory
    from nmt.corpus.data_report import find_warnings, summarise
    from nmt.corpus.source_files import bundled, open_sources
    from nmt.system.replacement import check_not_in_use, locked

    if not config.data.source:
        source = Parameter("source")
        raise ConfigError("data.source: is empty; list files in the config or give them with {source}", source=source)
    direction = _describe_direction(config.data)
    others = {f"data.extra.{name}.source": corpus.source for name, corpus in config.data.extra.items()}
    corpora = {"data.source": config.data.source, "data.test": config.data.test, **others}
    for files in filter(None, corpora.values()):
        if not any("://" in source for source in files):
            open_sources(files, config.data)  # what is missing is said before the output folder is looked at
    log.info(direction)
    fewer = " or lower data.workers" if config.data.workers != 1 else ""
    with locked(output), when_out_of_memory(f"set data.first_lines to read less{fewer}"):
        check_not_in_use(output)
        numbered = ((key, *place) for key, files in corpora.items() for place in enumerate(files, 1))
        needed = {f"{key} {number}": Path(bundled(source)) for key, number, source in numbered}
        check_directory(output, DATA, overwrite=overwrite, needed=needed)
        traces: list[TraceReport] = []
        try:
            report = _write_directory(config, output, traces)
        except NmtError:
            for trace in traces:  # they may be the reason
                log.warning(str(trace))
            raise
    for line in summarise(report):
        log.info(line)
    if config.data.licence is None:
        licence = setting(data__licence="LICENCE; ORIGIN")
        log.info("%s", Message("licence of the data: not stated; state it with {licence}", licence=licence))
    for line in find_warnings(report):
        log.warning(line)
    return report


def _describe_direction(data: DataSection) -> str:
    """The direction in codes and in words, and whether it is that of a config which sets no languages."""
    from nmt.text.direction import Direction

    direction = Direction.of(data)
    text = f"{direction.source} to {direction.target}: {direction.name}"
    if data.model_fields_set.isdisjoint(("src_language", "tgt_language")):
        text += ", as the config sets no languages; set data.src_language and data.tgt_language"
    return text


def _write_directory(config: Config, output: Path, trace_reports: list[TraceReport]) -> DataReport:
    """Write the data directory: from files to ids, stage by stage.

    Args:
        config: The whole config.
        output: The data directory.
        trace_reports: Receives the traces of other tools in the text.
    """
    import numpy as np

    from nmt.config import automatic_keys, choose_split, dump_config, resolve_auto
    from nmt.config.amount_of_text import PIECES
    from nmt.corpus import augmentation, cleaning, data_report, extra, known_words, splitting, token_ids, traces
    from nmt.corpus.example import write_examples
    from nmt.corpus.marker_schema import CONFIG, FORMAT_VERSION, Marker, compute_checksums, write_marker
    from nmt.corpus.report_schema import DataReport
    from nmt.corpus.source_files import open_sources, record_sources
    from nmt.corpus.store import PairStore
    from nmt.system.replacement import atomic_directory
    from nmt.text.placeholders import make_placeholders
    from nmt.text.tokenizers import TooLittleText

    evaluation_sources = open_sources(config.data.source, config.data)
    corpus = evaluation_sources.pop("train")
    whole = config.data.model_copy(update={"first_lines": None})
    if config.data.test:
        evaluation_sources["test"] = open_sources(config.data.test, whole)["train"]
    others = {name: open_sources(corpus.source, whole)["train"] for name, corpus in config.data.extra.items()}
    source_files = record_sources(config.data)  # before they are read: a file that grows meanwhile then differs
    reused = token_ids.load_pieces(config)
    with atomic_directory(output) as directory:
        store = PairStore(directory / "work")
        # Sources -> cleaning -> identity: pairs are decoded once, repaired or dropped, fingerprinted and stored.
        sample = traces.Sample()
        lines, cleaned = cleaning.clean_corpus(config.data, corpus, store, sample=sample)
        trace_reports += traces.search_splits(config, {"train": sample}, evaluation_sources)
        rows = cleaning.drop_repeated(config.data.cleaning, store, cleaned)
        warnings = [*_find_swapped(config, store, rows[:: 1 + len(rows) // 1000])]
        config = resolve_auto(config, choose_split(len(rows)))
        # Splitting: from here on, a pair is a row of the store. Copies of training pairs come after all others.
        splits = splitting.split_corpus(config.data, evaluation_sources, store, rows, cleaned)
        normalizer = cleaning.make_text_normalizer(config.data.cleaning)
        for name, examples in splits.evaluation.items():
            warnings += _find_unwritable(name, examples, normalizer, cleaned)
        copies, augmented = augmentation.add_copies(
            config.data, store, splits, make_placeholders(config.text.placeholders)
        )
        copies = np.concatenate([copies, np.repeat(np.concatenate([splits.train, copies]), config.data.weight - 1)])
        samples = {name: traces.Sample() for name in others}
        splits, repetitions, extra_pairs = extra.add_corpora(config.data, others, store, splits, samples)
        trace_reports += traces.search_splits(config, {f"data.extra.{name}": samples[name] for name in samples}, {})
        copies = np.concatenate([copies, repetitions])
        # Encoding: training pairs become ids, sentences of valid and test also stay text.
        is_auto = PIECES in automatic_keys(config)
        config = _fit(config, len(splits.train), token_ids.choose_sizes(config, store, splits.train, copies))
        words = frozenset[str]()
        names = None
        if config.text.placeholders:
            words, names = known_words.find_known_words(store, splits.train)
        try:
            encoded = token_ids.encode_splits(config, store, splits, copies, reused, directory, words, fewer=is_auto)
        except TooLittleText as error:
            lost = splitting.explain_overlap(splits.dropped_overlap or 0, len(rows))
            if not lost:
                raise
            raise DataError("{lost}; {error}", lost=lost, error=error) from None
        for name, examples in splits.evaluation.items():
            if examples:
                write_examples(directory / f"{name}.jsonl", examples)
        split = splitting.report_splits(store, rows, splits, normalizer)
        del store, rows, splits, copies  # the report's picture needs the memory of the mapped texts
        shutil.rmtree(directory / "work")
        report = DataReport(
            corpus=str(corpus),
            languages=list(config.data.languages),
            lines=lines,
            cleaning=cleaned,
            **vars(split),
            augmented=augmented or None,
            extra=extra_pairs or None,
            traces=trace_reports or None,
            names=names,
            **{**vars(encoded), "warnings": [*warnings, *encoded.warnings]},
        )
        write_text(directory / CONFIG, dump_config(config))
        checksums = compute_checksums(directory)
        data_report.write_report(directory, report)
        marker = Marker(FORMAT_VERSION, report.pairs, checksums, report.copies, _record_parent(config), source_files)
        write_marker(directory, marker)
    return report


def _record_parent(config: Config) -> ParentRecord | None:
    from nmt.config.parent import find_weights
    from nmt.corpus.marker_schema import ParentRecord

    run = config.parent.run
    weights = None if run is None else find_weights(run)
    return None if run is None or weights is None else ParentRecord(run, sha256(weights))


def check_parent_of_data(config: Config, directory: Path) -> None:
    """Refuse new weights for data that was prepared for a parent, unless the config asks for them.

    Args:
        config: Config of a run, before defaults take the place of values that it does not set.
        directory: Its data directory.

    Raises:
        ConfigError: The data has a parent and the config says nothing of one.
    """
    from nmt.config import read_config
    from nmt.config.parent import settings_of_recorded
    from nmt.corpus.marker_schema import CONFIG, read_marker

    there = read_marker(directory).parent
    run = config.parent.run
    if there is None:
        return
    recorded = read_config(directory / CONFIG).parent
    if run is None:
        if "run" in config.parent.model_fields_set:
            return
        ways = Message("{none} for new weights", none=setting(parent=None))
        if keys := settings_of_recorded(recorded, config.parent):
            ways = Message(
                "{recorded} to begin from its weights, or {ways}",
                recorded=Parameter("overrides", keys),
                ways=ways,
            )
        raise ConfigError(
            "{directory}: was prepared from {run}, but the config names no parent; add {ways}",
            directory=directory,
            run=there.run,
            ways=ways,
        )
    if recorded.pieces == "own" and "pieces" not in config.parent.model_fields_set:
        raise ConfigError(
            "{directory}: has pieces of its own, but the config says nothing of them; add {pieces}, or preprocess "
            "again with the pieces of the parent",
            directory=directory,
            pieces=setting(parent__pieces="own"),
        )


def warn_of_other_parent(config: Config, directory: Path) -> None:
    """Warn of data that was prepared for a parent with other weights than that of a run.

    Args:
        config: Config of the run.
        directory: Its data directory.
    """
    from nmt.config.parent import find_weights
    from nmt.corpus.marker_schema import read_marker

    there = read_marker(directory).parent
    run = config.parent.run
    if there is None or run is None or Path(run) == Path(there.run):
        return
    weights = find_weights(run)
    if weights is not None and sha256(weights) != there.weights:
        log.warning(f"{directory}: was prepared from {there.run}, but the config names the parent {run}")


def _find_unwritable(
    name: str, examples: Sequence[Example], normalizer: Normalizer, cleaned: CleaningReport
) -> Iterator[str]:
    """A warning of references that no model of this data can write, with the ways out.

    To keep such text in training text is a way only if the targets of training pairs have some.
    """
    from nmt.corpus.references import REPAIR, find_unwritable

    if unwritable := find_unwritable(examples, normalizer):
        pairs = cleaned.changed_targets[unwritable.step]
        keep = (
            f"set {unwritable.setting} to keep it in training text, which has it in {pairs:,} of {cleaned.read:,} pairs"
        )
        repair = f"set {REPAIR}=true to score repaired references, which signatures then name"
        ways = [keep, repair] if 2 * pairs > cleaned.read else [repair, keep]
        if not pairs:
            ways = [repair]
        yield f"{name}: {unwritable}: {', or '.join(ways)}"


def _find_swapped(config: Config, store: PairStore, rows: Rows) -> Iterator[str]:
    """A warning if each side has far more frequent words of the other side's language than of its own."""
    from nmt.text.direction import Direction
    from nmt.text.languages import FREQUENT, base_language

    def count(side: str, language: str) -> int:
        words = " ".join(store.lines(side).texts(rows)).casefold().split()
        return sum(map(words.count, FREQUENT.get(base_language(language), ())))

    direction = Direction.of(config.data)
    sides = (("src", direction.source, direction.target), ("tgt", direction.target, direction.source))
    if all(count(side, opposite) > 20 + 3 * count(side, language) for side, language, opposite in sides):
        looks = f"the source looks like {direction.target_name}, and the target like {direction.source_name}"
        columns = [*config.data.columns[::-1]]
        yield f"{looks}: set data.columns={columns} for a table, or swap the two languages"


def _fit(config: Config, pairs: int, values: Mapping[str, Any]) -> Config:
    """The config with values that fit the number of pairs in place of `auto`; they are logged."""
    from nmt.config import automatic_keys, resolve_auto
    from nmt.config.tree import in_one_line

    chosen = [f"{path} {in_one_line(values[path])}" for path in automatic_keys(config) if path in values]
    if chosen:
        log.info(f"auto: with {pairs:,} pairs {', '.join(chosen)}")
    return resolve_auto(config, values)


def fit_to_data(config: Config, directory: Path) -> Config:
    """The config with values that fit a data directory in place of `auto` that depends on the amount of text."""
    from nmt.config import automatic_keys, choose_by_amount, read_config, resolve_auto, value_at
    from nmt.corpus.marker_schema import CONFIG, read_marker

    if automatic := automatic_keys(config):
        made = read_config(directory / CONFIG)
        pairs = max(1, read_marker(directory).pairs.get("train", 1))
        of_data = {path: value_at(made, path) for path in automatic if path.startswith(("data.", "text."))}
        config = resolve_auto(config, {**choose_by_amount(pairs), **of_data})
    return config


def find_prepared_data(config: str | Path | Config, overrides: Overrides, data: AnyPath | None) -> tuple[Config, Path]:
    """The config, with values in place of `auto` that depends on the amount of text, and the data directory to use.

    Raises:
        ConfigError: The config is wrong, or overrides do not match the data.
        DataError: The data does not exist.
    """
    from nmt.config import load_config, overridden, read_config, value_at
    from nmt.corpus.marker_schema import CONFIG, check_is_data

    settings = load_config(config, overrides)
    directory = settings.data_directory if data is None else Path(data)
    # The call in the error: to the usual folder, to the one that is given, or, if that has other files, to any other.
    if directory == settings.data_directory:
        output = None
    elif directory.exists():
        output = Path("DIR")
    else:
        output = directory
    check_is_data(directory, Message("create it with: {call}", call=_make_call(config, overrides, settings, output)))
    asked = [key for key in overridden(overrides) if key.startswith(("data.", "text.")) and key != "data.directory"]
    check_parent_of_data(settings, directory)
    settings = fit_to_data(settings, directory)
    made = read_config(directory / CONFIG) if asked else settings
    differing = []
    for key in asked:
        there = value_at(made, key)
        here = value_at(settings, key)
        if there != here:
            differing.append(f"{key} ({there!r} there, {here!r} here)")
    if differing:
        raise ConfigError(
            "{directory}: was preprocessed with other settings: {differing}; preprocess again with: {call}, and use "
            "{data}",
            directory=directory,
            differing=", ".join(differing),
            call=_make_call(config, overrides, settings, Path("DIR")),
            data=Parameter("data", "DIR"),
        )
    return settings, directory


def warn_of_changed_sources(
    config: str | Path | Config, overrides: Overrides, settings: Config, directory: Path
) -> None:
    """Warn of prepared data some of whose source files have changed since, and name the call that prepares it again.

    Args:
        config: The config, as it was given.
        overrides: Values in place of its own, as they were given.
        settings: The config with them.
        directory: The data directory to use.
    """
    from nmt.config import read_config
    from nmt.corpus.marker_schema import CONFIG
    from nmt.corpus.source_files import find_changed, warn_of_earlier_content

    changed = find_changed(directory)
    if not changed:
        return
    output = None if directory == settings.data_directory else directory
    call = _make_call(config, overrides, settings, output)
    if isinstance(call, Call):
        arguments = {**call.arguments, "overwrite": True}
        sources = read_config(directory / CONFIG).data.source
        if sources != settings.data.source:  # they were given to `preprocess`
            arguments["source"] = list(sources)
        call = replace(call, arguments=arguments)
    else:
        call += " and overwrite=True"
    warn_of_earlier_content(directory, changed, Message("preprocess again with: {call}", call=call))


def _make_call(config: str | Path | Config, overrides: Overrides, settings: Config, output: Path | None) -> Call | str:
    """The call that creates the data of a config."""
    from nmt.config import as_values

    if not isinstance(config, str | Path):
        return "nmt.preprocess, with the same config"
    arguments: dict[str, Any] = {"config": str(config)}
    of_data = ("name", "parent", "data", "text")
    values = {key: value for key, value in as_values(overrides).items() if key.partition(".")[0] in of_data}
    if values:
        arguments["overrides"] = values
    if not settings.data.source:
        arguments["source"] = "FILE"
    if output:
        arguments["output"] = output
    return Call("preprocess", arguments)
