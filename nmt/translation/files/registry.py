"""The formats of files that are read, and how the format of a file is found."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from nmt.system.errors import ConfigError, DataError
from nmt.system.messages import Parameter
from nmt.translation.files.docx import DOCX
from nmt.translation.files.file_format import FileFormat
from nmt.translation.files.json_table import JSON_TABLE
from nmt.translation.files.markdown import MARKDOWN
from nmt.translation.files.odt import ODT
from nmt.translation.files.po import PO
from nmt.translation.files.srt import SRT
from nmt.translation.files.vtt import VTT
from nmt.translation.files.web_page import WEB_PAGE
from nmt.translation.files.xliff import XLIFF
from nmt.translation.files.yaml_table import YAML_TABLE

FILE_FORMATS = {
    kind.name: kind for kind in (SRT, VTT, PO, XLIFF, WEB_PAGE, MARKDOWN, JSON_TABLE, YAML_TABLE, DOCX, ODT)
}
"""Every format of files by its name; plain text is none of them."""
_BY_SUFFIX = {suffix: kind for kind in FILE_FORMATS.values() for suffix in kind.suffixes}
_OTHERS = """
.ass .csl .dfxp .dita .fodt .ini .ipynb .jsonl .mif .plist .properties .resx .rst .rtf .sbv .ssa .strings .svg .tex .tmx
.toml .ts .ttml .xml
"""
OTHERS = frozenset(_OTHERS.split())
"""Suffixes of text files with markup that no format reads."""
BINARY = frozenset([".doc", ".epub", ".idml", ".odp", ".ods", ".pdf", ".ppt", ".pptx", ".xls", ".xlsx", ".zip"])
"""Suffixes of files that are no text, and that no format reads."""
HEAD = 4096
"""Bytes of a file that show its format."""
_MARKUP = re.compile(
    rb"""(?:\xef\xbb\xbf)?(?:\s*(?:<\?xml|<!doctype|<html|<xliff|\{\\rtf|WEBVTT\b)"""
    rb"""|(?:.*\n){0,40}?msgid[ \t]+"|\s*\d+[ \t]*\r?\n[ \t]*\d+:\d\d:\d\d[,.]\d+[ \t]*-->)""",
    re.IGNORECASE,
)
"""How text files with markup begin."""
_BINARY_STARTS = (b"PK\x03\x04", b"%PDF-", b"\xd0\xcf\x11\xe0")
"""How office files and archives, PDF, and older office files begin."""


def find_file_format(path: Path, name: str | None = None) -> FileFormat | None:
    """The format of a file; None for plain text, which has a sentence on each line.

    Args:
        path: The file. Its suffix shows the format.
        name: Name of a format; None goes by the suffix.

    Raises:
        ConfigError: A library that the format needs is not installed.
        DataError: The file has markup that no format reads, or is no text.
    """
    if name is not None:
        chosen = FILE_FORMATS.get(name)
    else:
        chosen = _BY_SUFFIX.get(path.suffix.lower())
        if chosen is None:
            _check_plain(path)
    if chosen is not None and chosen.library[0] and importlib.util.find_spec(chosen.library[0]) is None:
        package = chosen.library[1]
        raise ConfigError(f"{path}: {chosen.title} needs {package}, which is not installed: pip install {package}")
    return chosen


def supported_suffixes() -> list[str]:
    """The suffixes of all formats."""
    return list(_BY_SUFFIX)


def _check_plain(path: Path) -> None:
    """Refuse a file that is no plain text, by its suffix or its beginning.

    Raises:
        DataError: It has markup, or is no text.
    """
    suffix = path.suffix.lower()
    head = b"" if suffix == ".txt" else _read_head(path)
    names = ", ".join(FILE_FORMATS)
    if suffix in BINARY or head.startswith(_BINARY_STARTS):
        raise DataError(
            "{path}: is not text; files are read as {names}: name one by {format}, or save it as docx or odt, or its "
            "texts as a text file with one on each line",
            path=path,
            names=names,
            format=Parameter("format"),
        )
    if suffix in OTHERS or _MARKUP.match(head):
        raise DataError(
            "{path}: has markup that would be translated; files are read as {names}: name one by {format}, or "
            "take it as plain text with {text}",
            path=path,
            names=names,
            format=Parameter("format"),
            text=Parameter("format", "text"),
        )


def _read_head(path: Path) -> bytes:
    """The beginning of a file; empty for one that cannot be read, which is refused where it is translated."""
    if not path.is_file():  # a pipe can be read only once
        return b""
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""
