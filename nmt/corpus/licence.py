"""Other sources in place of those of a config, and whether the licence that it states is theirs."""

import contextlib
import zipfile
from collections.abc import Sequence
from pathlib import Path

from nmt.config import Config

MAX_ABOUT = 1 << 16
"""Bytes that are read of an archive's `_about.txt`."""


def with_sources(config: Config, sources: Sequence[str], *, keep_licence: bool = False) -> Config:
    """The config with other sources.

    Args:
        config: The config.
        sources: Files or URLs.
        keep_licence: True if its licence is theirs; otherwise it stays only with files that are recognisably the
            config's own.
    """
    files = config.data.source
    same = keep_licence or (len(files) == len(sources) and all(map(_is_copy, files, sources)))
    licence = config.data.licence if same else None
    data = config.data.model_copy(update={"source": tuple(sources), "licence": licence})
    return config.model_copy(update={"data": data})


def _is_copy(given: str, source: str) -> bool:
    """True if a file has the name of that at a URL, or is an archive whose `_about.txt` names the folder of the URL."""
    scheme, _, address = given.partition("://")
    if given == source or scheme not in ("http", "https"):
        return given == source
    folder, _, name = address.rpartition("/")
    if Path(source).name == name and "://" not in source:
        return True
    if Path(source).suffix.lower() == ".zip":
        # What is damaged, or has no such file, fails in many ways.
        with contextlib.suppress(Exception), zipfile.ZipFile(source) as archive:
            return f"{folder}/".encode() in archive.open("_about.txt").read(MAX_ABOUT)
    return False
