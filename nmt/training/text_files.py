"""The text files of a run, which are copied from its data when it starts, so that it does not depend on them."""

from pathlib import Path

import numpy as np

from nmt.config import Config
from nmt.corpus.dataset import DataDirectory
from nmt.corpus.identity import load_seen, save_seen
from nmt.models.run_records import find_model
from nmt.system.errors import DataError
from nmt.system.files import check_file, sha256
from nmt.system.limits import MAX_TEXT_FILE
from nmt.system.replacement import atomic_directory
from nmt.text.processor import SEEN, TEXT, copy_text_files


def copy_text(config: Config, data: DataDirectory, run: Path) -> None:
    """Copy vocabularies, tokenizers and fingerprints of the training sources into a run.

    With `train.init_from`, the fingerprints of both models are kept, or none if one has none.

    Args:
        config: Config of the run.
        data: Its data.
        run: Existing run directory.
    """
    with atomic_directory(run / TEXT) as folder:
        copy_text_files(data.text, folder)
        if config.train.init_from is not None:
            _add_seen(folder / SEEN, find_model(Path(config.train.init_from)) / TEXT / SEEN)


def check_written(data: DataDirectory) -> None:
    """Compare the text files of data with the checksums of `nmt preprocess`, if there are any.

    Raises:
        DataError: A file has changed.
    """
    for path in data.text.iterdir():
        if path.is_file() and data.checksums.get(path.name, sha256(path)) != sha256(path):
            raise DataError(f"{path}: has changed since nmt preprocess wrote it; preprocess again")


def _add_seen(path: Path, other: Path) -> None:
    here, there = load_seen(path), load_seen(check_file(other, other.parent, MAX_TEXT_FILE))
    if here is None or there is None:
        path.unlink(missing_ok=True)
    else:
        save_seen(path, np.concatenate([here, there]))
