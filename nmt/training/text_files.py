"""The text files of a run, which are copied from its data when it starts, so that it does not depend on them."""

import os
from pathlib import Path

import numpy as np

from nmt.config import Config
from nmt.corpus.dataset import DataDirectory
from nmt.corpus.identity import load_seen, save_seen
from nmt.models.run_records import find_model
from nmt.system.errors import CheckpointError, DataError
from nmt.system.files import check_file, read_bytes, sha256, write_text
from nmt.system.limits import MAX_JSON, MAX_TEXT_FILE
from nmt.system.replacement import atomic_directory
from nmt.text.processor import SEEN, TEXT, TEXT_FILES, copy_text_files

CHECKSUMS = "SHA256SUMS"


def copy_text(config: Config, data: DataDirectory, run: Path) -> None:
    """Copy vocabularies, tokenizers and fingerprints of the training sources into a run, with their checksums.

    With `train.init_from`, the fingerprints of both models are kept, or none if one has none.

    Args:
        config: Config of the run.
        data: Its data.
        run: Existing run directory.

    Raises:
        DataError: The files differ from those that `nmt preprocess` wrote.
    """
    with atomic_directory(run / TEXT) as folder:
        copy_text_files(data.text, folder)
        check_written(data, folder)
        if config.train.init_from is not None:
            _add_seen(folder / SEEN, find_model(Path(config.train.init_from)) / TEXT / SEEN)
        sums = (f"{sha256(path)}  {path.name}\n" for path in sorted(folder.iterdir()))
        write_text(folder / CHECKSUMS, "".join(sums))


def check_written(data: DataDirectory, folder: Path) -> None:
    """Compare text files with the checksums of `nmt preprocess`, if there are any.

    Args:
        data: Has the checksums.
        folder: Its text folder, or a copy of it.

    Raises:
        DataError: A file has changed.
    """
    for path in folder.iterdir():
        if path.is_file() and data.checksums.get(path.name, sha256(path)) != sha256(path):
            raise DataError(f"{data.text / path.name}: has changed since nmt preprocess wrote it; preprocess again")


def _add_seen(path: Path, other: Path) -> None:
    here, there = load_seen(path), load_seen(check_file(other, other.parent, MAX_TEXT_FILE))
    if here is None or there is None:
        path.unlink(missing_ok=True)
    else:
        save_seen(path, np.concatenate([here, there]))


def check_text(config: Config, data: DataDirectory, run: Path) -> None:
    """Check that a run to resume still has its text files; a run of an older version copies them now.

    Raises:
        CheckpointError: A file is missing or has changed.
        DataError: See `copy_text`.
    """
    folder = check_file(run / TEXT, run)
    if not folder.exists():
        copy_text(config, data, run)
        return
    listing = read_bytes(folder / CHECKSUMS, MAX_JSON, folder).decode("utf-8", errors="replace")
    sums = dict(line.split("  ", 1)[::-1] for line in listing.splitlines() if "  " in line)
    if unlisted := sorted({path.name for path in folder.iterdir() if path.name in TEXT_FILES} - sums.keys()):
        advice = "restore the original file, or start over with `overwrite=True`"
        raise CheckpointError(f"{folder / CHECKSUMS}: does not list {unlisted[0]}; {advice}")
    for name in sums:
        path = check_file(folder / os.path.basename(name), folder)  # noqa: PTH119 - always a file in this folder
        if not path.is_file() or sums[name] != sha256(path):
            what = "is missing or has changed since the run started"
            raise CheckpointError(f"{path}: {what}; restore it, or start over with `overwrite=True`")
