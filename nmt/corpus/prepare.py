"""Turning a corpus into a data directory, with only numbers, not text, in memory."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config import CleaningSection, Config, differing_keys, dump_config, read_config
from nmt.corpus import Pair
from nmt.corpus.augmentation import add_copies
from nmt.corpus.cleaning import Cleaner, CleaningReport
from nmt.corpus.dataset import CONFIG, FORMAT_VERSION, MARKER, TEXT, compute_checksums, write_examples
from nmt.corpus.download import UNREADABLE, resolve_sources
from nmt.corpus.encoding import encode
from nmt.corpus.identity import Fingerprints, take_fingerprints
from nmt.corpus.parallel import map_chunks
from nmt.corpus.report import describe, warn_of_unknown, write_report
from nmt.corpus.sources import Chunk, Corpus, LineReport, Source, open_corpus, parse_chunk, read_pairs
from nmt.corpus.splitting import (
    Example,
    SplitError,
    Splits,
    as_examples,
    count_references,
    measure_overlap,
    naive_overlap,
    split_pairs,
    without_overlap,
)
from nmt.corpus.store import PairStore, PairWriter, Rows, most_frequent
from nmt.system.errors import ConfigError, DataError, when_out_of_memory
from nmt.system.files import check_file, shipped, write_json, write_text
from nmt.system.outputs import DATA, check_directory
from nmt.system.progress import progress_bar
from nmt.system.replacement import atomic_directory, check_not_in_use, locked
from nmt.text.languages import language_name
from nmt.text.normalization import Normalizer
from nmt.text.processor import TextProcessor, load_processor

log = logging.getLogger(__name__)

RAW_DIRECTORY = Path("data/raw")
MAX_ABOUT = 1 << 16
"""Bytes that are read of an archive's `_about.txt`."""
FREQUENT = 10
"""How many of the most frequent sentences are in the report."""


def preprocess(config: Config, output: Path, *, overwrite: bool = False) -> dict[str, Any]:
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
    fewer = " or lower data.workers" if config.data.workers != 1 else ""
    with locked(output), when_out_of_memory(f"set data.first_lines to read less{fewer}"):
        check_not_in_use(output)
        report = _write_data(config, output, overwrite)
    for line in describe(report):
        log.info(line)
    if config.data.licence is None:
        log.info('licence of the data: not stated; state it with --set "data.licence=LICENCE; ORIGIN"')
    for line in warn_of_unknown(report):
        log.warning(line)
    return report


def _write_data(config: Config, output: Path, overwrite: bool) -> dict[str, Any]:
    """Write the data directory; see `preprocess`."""
    begin = time.perf_counter()
    needed = {f"data.source {number}": Path(source) for number, source in enumerate(config.data.source, 1)}
    check_directory(output, DATA, overwrite=overwrite, needed=needed)
    if not config.data.source:
        raise ConfigError("data.source: is empty; list files in the config or give them with --source")
    paths = resolve_sources([_bundled(source) for source in config.data.source], RAW_DIRECTORY)
    corpus = open_corpus(
        paths,
        columns=config.data.columns,
        first_lines=config.data.first_lines,
        reverse=config.data.reverse,
        languages=[*config.data.languages, *map(language_name, config.data.languages)],
    )
    reused = _load_reused(config, Path(config.text.reuse)) if config.text.reuse else None
    normalizer = make_normalizer(config.data.cleaning)
    with atomic_directory(output) as temporary:
        work = temporary / "work"
        work.mkdir()
        (temporary / TEXT).mkdir()
        store, rows, cleaned, report = _clean(config, corpus.train, work)
        try:
            splits, split_report = _split(config, corpus, store, rows, cleaned)
            report |= split_report
            store, copies, counts = add_copies(config, store, splits, work)
            report |= {"augmented": counts} if counts else {}
            report |= encode(config, store, splits, copies, normalizer, reused, temporary)
        finally:
            store.close()
        shutil.rmtree(work)
        for name in ("valid", "test"):
            if getattr(splits, name):
                write_examples(temporary / f"{name}.jsonl", getattr(splits, name))
        write_text(temporary / CONFIG, dump_config(config))
        report["seconds"] = round(time.perf_counter() - begin, 2)
        write_report(temporary, report)
        facts = {"format_version": FORMAT_VERSION, "pairs": report["pairs"], "sha256": compute_checksums(temporary)}
        facts |= {"copies": report["copies"]} if counts else {}
        write_json(temporary / MARKER, facts)
    return report


def _bundled(source: str) -> str:
    """The path of a file that ships with the project, unless the working folder has a file of that name."""
    bundled = source.startswith("data/sample/") and not Path(source).exists()
    return str(shipped(source)) if bundled else source


def make_normalizer(cleaning: CleaningSection) -> Normalizer:
    """The normalizer of a config."""
    return Normalizer(
        unicode=cleaning.unicode,
        control_characters=cleaning.control_characters,
        html_entities=cleaning.html_entities,
        quotes=cleaning.quotes,
        dashes=cleaning.dashes,
    )


def make_cleaner(cleaning: CleaningSection) -> Cleaner:
    """The cleaner of a config."""
    return Cleaner(
        make_normalizer(cleaning),
        min_length=cleaning.min_length,
        max_length=cleaning.max_length,
        max_characters=cleaning.max_characters,
        max_ratio=cleaning.max_ratio,
        min_letters=cleaning.min_letters,
        copies=cleaning.copies,
    )


_Cleaned = tuple[tuple[list[bytes], list[bytes]], Fingerprints, LineReport, CleaningReport]


def _clean_chunk(cleaning: CleaningSection, seed: int, chunk: Chunk) -> _Cleaned:
    """Parse and clean the lines of a chunk: the work of one process."""
    raw, lines = parse_chunk(chunk)
    pairs, report = make_cleaner(cleaning).clean(raw)
    sides = [f"{pair.src}\n".encode() for pair in pairs], [f"{pair.tgt}\n".encode() for pair in pairs]
    return sides, take_fingerprints(pairs, seed), lines, report


def _clean(config: Config, source: Source, work: Path) -> tuple[PairStore, Rows, CleaningReport, dict[str, Any]]:
    """Clean a corpus into a store.

    Returns:
        The store, the rows of the distinct pairs, the cleaning report, and the report.
    """
    cleaning, seed = config.data.cleaning, config.data.split.seed
    lines, cleaned = LineReport(), CleaningReport()
    chunks, clean_chunk = source.chunks(lines), partial(_clean_chunk, cleaning, seed)
    bar = progress_bar(desc="cleaning", unit=" lines", leave=False)
    with bar, contextlib.closing(PairWriter(work)) as writer:
        for sides, fingerprints, found, judged in map_chunks(clean_chunk, chunks, config.data.workers):
            writer.write(sides, fingerprints)
            lines.add(found)
            cleaned.add(judged)
            bar.update(found.lines)
        store = writer.finish()
    if not cleaned.read and "not_utf8" not in lines.malformed:
        source.reject_empty(lines)
    lines.check(config.data.max_malformed if cleaned.read else None)
    rows = _drop_repeated(store, cleaning, cleaned)
    if not len(rows):
        raise DataError(f"corpus: no pair is left, as {cleaned.explain_loss()}")
    report = {
        "corpus": source.description,
        "languages": list(config.data.languages),
        "lines": {"read": lines.lines, "blank": lines.blank, "malformed": lines.malformed, "places": lines.places},
        "cleaning": asdict(cleaned),
    }
    return store, rows, cleaned, report


def _drop_repeated(store: PairStore, cleaning: CleaningSection, report: CleaningReport) -> Rows:
    """Rows of the first occurrence of each pair; the others are counted as dropped."""
    rows = np.arange(len(store))
    rules = {"keep": [], "drop": ["duplicate"], "drop_casefold": ["duplicate", "caseless_duplicate"]}
    columns = {"duplicate": "pair_draw", "caseless_duplicate": "caseless_pair"}
    for rule in rules[cleaning.duplicates]:
        keys = store.prints(columns[rule])[rows]
        first = np.zeros(len(rows), dtype=bool)
        first[np.unique(keys, return_index=True)[1]] = True
        repeated = rows[~first]
        if len(repeated):
            report.drop(rule, len(repeated), store.pairs(repeated[:3]))
        rows = rows[first]
    return rows


def _split(
    config: Config, corpus: Corpus, store: PairStore, rows: Rows, cleaned: CleaningReport
) -> tuple[Splits, dict[str, Any]]:
    """Split the clean pairs, unless the corpus has ready-made splits."""
    split = config.data.split
    dropped = None
    try:
        if corpus.given:
            splits, dropped = _take_given(config, corpus, store, rows)
        else:
            splits = split_pairs(
                store,
                rows,
                valid_size=split.valid_size,
                test_size=split.test_size,
                train_size=split.train_size,
                seed=split.seed,
            )
    except SplitError as error:
        if loss := cleaned.explain_loss():
            raise DataError(f"{error.found}, as {loss}") from None
        raise
    report = _describe_splits(corpus, store, splits)
    if dropped is not None:
        report["dropped_overlap"] = dropped
    if not corpus.given and splits.test:
        report["naive_overlap"] = asdict(naive_overlap(store, rows, report["pairs"]["test"]))
    return splits, report


def _describe_splits(corpus: Corpus, store: PairStore, splits: Splits) -> dict[str, Any]:
    """The part of the report about the splits and their overlap."""
    report: dict[str, Any] = {
        "given_splits": bool(corpus.given),
        "pairs": {"train": len(splits.train)},
        "sources": {},
        "components": splits.components,
        "largest_component": splits.largest_component,
        "references": {"train": count_references(store, splits.train)},
        "frequent": {
            side: most_frequent(column, store.prints(f"{side}_text"), splits.train, FREQUENT)
            for side, column in (("src", store.src), ("tgt", store.tgt))
        },
        "overlap": {},
    }
    report["sources"]["train"] = sum(report["references"]["train"])
    for name in ("valid", "test"):
        examples: list[Example] = getattr(splits, name)
        report["pairs"][name] = sum(len(example.references) for example in examples)
        report["sources"][name] = len(examples)
        report["references"][name] = np.bincount([len(example.references) for example in examples])[1:].tolist()
        if examples:
            report["overlap"][name] = asdict(measure_overlap(store, splits.train, examples))
    return report


def _take_given(config: Config, corpus: Corpus, store: PairStore, rows: Rows) -> tuple[Splits, int | None]:
    """Use the ready-made splits of a corpus; with `data.drop_overlap`, drop training pairs that valid or test share.

    Returns:
        The splits, and the number of dropped training pairs; None without `data.drop_overlap`.
    """
    plain = Normalizer(control_characters=False, html_entities=False)
    given: dict[str, list[Example]] = {"valid": [], "test": []}
    for name, source in corpus.given.items():
        pairs = [Pair(plain(pair.src), plain(pair.tgt)) for pair in read_pairs(source)]
        for side, texts in (("source", [pair.src for pair in pairs]), ("target", [pair.tgt for pair in pairs])):
            if pairs and not any(text.strip() for text in texts):
                raise DataError(f"{name}: all {len(pairs):,} {side} lines are empty; give text")
        given[name] = as_examples(pairs)
    dropped = None
    if config.data.drop_overlap:
        kept = without_overlap(store, rows, [*given["valid"], *given["test"]])
        rows, dropped = kept, len(rows) - len(kept)
    size = config.data.split.train_size
    if not len(rows):
        raise DataError("data.drop_overlap: every training pair shares a sentence with valid or test; use other splits")
    if size is not None and size > len(rows):
        found = f"data.split.train_size: {size:,} pairs wanted, but the training file has {len(rows):,}"
        raise SplitError(found, "ask for fewer or give more data")
    return Splits(rows[:size], given["valid"], given["test"], components=0, largest_component=0), dropped


def _load_reused(config: Config, path: Path) -> TextProcessor:
    """The tokenizers and vocabularies of a data, run or model directory.

    Raises:
        ConfigError: There are none, or they have other settings: languages, normalisation, casing, subwords.
    """
    folder = next((folder for folder in (path, path / "best") if (folder / TEXT).is_dir()), None)
    if folder is None:
        raise ConfigError(f"text.reuse: {path} is neither a data directory nor a model directory; give one")
    processor = load_processor(check_file(folder / TEXT, folder))
    there = read_config(folder / CONFIG)
    here = config.text.model_copy(update={"reuse": there.text.reuse, "max_length": there.text.max_length})
    differing = differing_keys(there.text, here, "text.")
    if there.data.languages != config.data.languages:
        found, wanted = (" to ".join(data.languages) for data in (there.data, config.data))
        differing.append(f"data.src_language, data.tgt_language and data.reverse ({found} there, {wanted} here)")
    settings = make_normalizer(config.data.cleaning).settings
    differing += [
        f"data.cleaning.{key} ({value!r} there, {settings[key]!r} here)"
        for key, value in processor.normalizer.settings.items()
        if value != settings[key]
    ]
    if differing:
        raise ConfigError(f"text.reuse: {path} has other settings: {', '.join(differing)}; set the same")
    return processor


def with_sources(config: Config, sources: Sequence[str], *, keep_licence: bool = False) -> Config:
    """The config with other sources.

    Args:
        config: The config.
        sources: Files or URLs.
        keep_licence: Whether its licence is theirs; otherwise it stays only with files that are recognisably the
            config's own.

    Raises:
        ConfigError: There is no format with so many files.
    """
    if len(sources) not in (1, 2, 3, 4, 6):
        raise ConfigError(
            "--source: give 1 file, 2 parallel files, 3 of a Tatoeba export, or 4 or 6 of train, valid and test; "
            f"found {len(sources)}"
        )
    own = config.data.source
    same = keep_licence or (len(own) == len(sources) and all(map(_is_copy, own, sources)))
    licence = config.data.licence if same else None
    data = config.data.model_copy(update={"source": tuple(sources), "licence": licence})
    return config.model_copy(update={"data": data})


def _is_copy(own: str, given: str) -> bool:
    """Whether a file has the name of that at a URL, or is an archive whose `_about.txt` names the folder of the URL."""
    scheme, _, address = own.partition("://")
    if own == given or scheme not in ("http", "https"):
        return own == given
    folder, _, name = address.rpartition("/")
    if Path(given).name == name and "://" not in given:
        return True
    if Path(given).suffix.lower() == ".zip":
        with contextlib.suppress(OSError, KeyError, *UNREADABLE), zipfile.ZipFile(given) as archive:
            return f"{folder}/".encode() in archive.open("_about.txt").read(MAX_ABOUT)
    return False
