"""The text files of a run, which are copied from its data when it starts, so that it does not depend on them."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from nmt.config import Config
from nmt.corpus.dataset import DataDirectory
from nmt.corpus.identity import load_seen, save_seen
from nmt.models.lookup import find_model
from nmt.system.errors import DataError
from nmt.system.files import check_file, sha256
from nmt.system.limits import MAX_TEXT_FILE
from nmt.system.messages import Message, Parameter
from nmt.system.replacement import atomic_directory
from nmt.text.names import load_words, most_frequent, save_words
from nmt.text.processor import SEEN, TEXT, TEXT_FILES, WORDS, copy_text_files


def keep_text(config: Config, data: DataDirectory, run: Path) -> None:
    """Copy vocabularies, tokenizers and traces of the training sources into a run, or check that it has them.

    With a parent, the fingerprints and words of the training sources of both models are kept, or none if one has none.

    Args:
        config: Config of the run.
        data: Its data.
        run: Existing run directory.

    Raises:
        DataError: It has others than those that `nmt preprocess` wrote.
    """
    parent = config.parent.run
    folder = check_file(run / TEXT, run)
    if folder.exists():
        checksums = {name: sum for name, sum in data.checksums.items() if name not in (SEEN, WORDS) or parent is None}
        overwrite = Parameter("overwrite", True)
        check_text(folder, checksums, Message("restore it, or start over with {overwrite}", overwrite=overwrite))
        return
    with atomic_directory(folder) as temporary:
        copy_text_files(data.text, temporary)
        if parent is not None:
            text_of_parent = find_model(Path(parent)) / TEXT
            _add_seen(temporary / SEEN, text_of_parent / SEEN)
            _add_words(temporary / WORDS, text_of_parent / WORDS)


def check_text(folder: Path, checksums: Mapping[str, str], advice: str | Message) -> None:
    """Compare text files with the checksums of `nmt preprocess`, if there are any.

    Raises:
        DataError: A file is missing or has changed; the message ends with the advice.
    """
    for name in TEXT_FILES:
        path = check_file(folder / name, folder)
        if name in checksums and not (path.is_file() and sha256(path) == checksums[name]):
            raise DataError(
                "{path}: is missing or has changed since nmt preprocess wrote it; {advice}", path=path, advice=advice
            )


def _add_seen(path: Path, source: Path) -> None:
    here = load_seen(path)
    there = load_seen(check_file(source, source.parent, MAX_TEXT_FILE))
    if here is None or there is None:
        path.unlink(missing_ok=True)
    else:
        save_seen(path, np.concatenate([here, there]))


def _add_words(path: Path, source: Path) -> None:
    here = load_words(path)
    there = load_words(source)
    if here and there:
        save_words(path, most_frequent(Counter(here | there)))
    else:
        path.unlink(missing_ok=True)
