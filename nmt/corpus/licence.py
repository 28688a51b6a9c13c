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
    own = config.data.source
    same = keep_licence or (len(own) == len(sources) and all(map(_is_copy, own, sources)))
    licence = config.data.licence if same else None
    data = config.data.model_copy(update={"source": tuple(sources), "licence": licence})
    return config.model_copy(update={"data": data})


def _is_copy(own: str, other: str) -> bool:
    """True if a file has the name of that at a URL, or is an archive whose `_about.txt` names the folder of the URL."""
    scheme, _, address = own.partition("://")
    if own == other or scheme not in ("http", "https"):
        return own == other
    folder, _, name = address.rpartition("/")
    if Path(other).name == name and "://" not in other:
        return True
    if Path(other).suffix.lower() == ".zip":
        # What is damaged, or has no such file, fails in many ways.
        with contextlib.suppress(Exception), zipfile.ZipFile(other) as archive:
            return f"{folder}/".encode() in archive.open("_about.txt").read(MAX_ABOUT)
    return False
