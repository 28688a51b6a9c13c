"""Turning a corpus into a data directory, with only numbers, not text, in memory."""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.system.errors import ConfigError, when_out_of_memory

if TYPE_CHECKING:
    from nmt.config import Config
    from nmt.corpus.schema import DataReport

log = logging.getLogger(__name__)

RAW_DIRECTORY = Path("data/raw")


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
    from nmt.corpus.data_report import summarise, warn_of_unknown
    from nmt.system.outputs import DATA, check_directory
    from nmt.system.replacement import check_not_in_use, locked

    fewer = " or lower data.workers" if config.data.workers != 1 else ""
    with locked(output), when_out_of_memory(f"set data.first_lines to read less{fewer}"):
        check_not_in_use(output)
        needed = {f"data.source {number}": Path(source) for number, source in enumerate(config.data.source, 1)}
        check_directory(output, DATA, overwrite=overwrite, needed=needed)
        if not config.data.source:
            raise ConfigError("data.source: is empty; list files in the config or give them with --source")
        report = _write_directory(config, output)
    for line in summarise(report):
        log.info(line)
    if config.data.licence is None:
        log.info('licence of the data: not stated; state it with --set "data.licence=LICENCE; ORIGIN"')
    for line in warn_of_unknown(report):
        log.warning(line)
    return report


def _write_directory(config: Config, output: Path) -> DataReport:
    """Write the data directory: from files to ids, stage by stage."""
    from nmt.config import dump_config
    from nmt.corpus.augmentation import add_copies
    from nmt.corpus.cleaning import clean_corpus, drop_repeated
    from nmt.corpus.data_report import write_report
    from nmt.corpus.dataset import CONFIG, FORMAT_VERSION, compute_checksums, write_examples, write_marker
    from nmt.corpus.download import resolve_sources
    from nmt.corpus.schema import DataReport, Marker
    from nmt.corpus.sources import open_corpus
    from nmt.corpus.splitting import report_splits, split_corpus
    from nmt.corpus.store import PairStore
    from nmt.corpus.token_ids import encode, load_reused
    from nmt.system.files import write_text
    from nmt.system.replacement import atomic_directory

    begin = time.perf_counter()
    corpus = open_corpus(
        resolve_sources([_bundled(source) for source in config.data.source], RAW_DIRECTORY), config.data
    )
    reused = load_reused(config, Path(config.text.reuse)) if config.text.reuse else None
    with atomic_directory(output) as directory:
        store = PairStore(directory / "work")
        # Sources -> cleaning -> identity: pairs are decoded once, repaired or dropped, fingerprinted and stored.
        lines, cleaned = clean_corpus(config.data, corpus.train, store)
        rows = drop_repeated(config.data.cleaning, store, cleaned)
        # Splitting: from here on, a pair is a row of the store. Copies of training pairs come after all others.
        splits = split_corpus(config.data, corpus.given, store, rows, cleaned)
        copies, augmented = add_copies(config.data, store, splits)
        # Encoding: training pairs become ids, sentences of valid and test also stay text.
        encoded = encode(config, store, splits, copies, reused, directory)
        for name, examples in splits.evaluation.items():
            if examples:
                write_examples(directory / f"{name}.jsonl", examples)
        split = report_splits(store, rows, splits, given=bool(corpus.given))
        del store, rows, splits, copies  # the report's picture needs the memory of the mapped texts
        shutil.rmtree(directory / "work")
        report = DataReport(
            corpus=corpus.train.description,
            languages=[*config.data.languages],
            lines=lines,
            cleaning=cleaned,
            **vars(split),
            augmented=augmented or None,
            **vars(encoded),
            seconds=round(time.perf_counter() - begin, 2),
        )
        write_text(directory / CONFIG, dump_config(config))
        write_report(directory, report)
        write_marker(directory, Marker(FORMAT_VERSION, report.pairs, compute_checksums(directory), report.copies))
    return report


def _bundled(source: str) -> str:
    """The path of a file that ships with the project, unless the working folder has a file of that name."""
    from nmt.system.files import shipped

    bundled = source.startswith("data/sample/") and not Path(source).exists()
    return str(shipped(source)) if bundled else source
