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
.ass .csl .dfxp .dita .doc .epub .fodt .idml .ini .ipynb .jsonl .mif .odp .ods .pdf .plist .pptx .properties .resx .rst
.rtf .sbv .ssa .strings .svg .tex .tmx .toml .ts .ttml .xlsx .xml .zip
"""
OTHERS = frozenset(_OTHERS.split())
"""Suffixes of files with markup that no format reads."""
HEAD = 4096
"""Bytes of a file that show its format."""
_MARKUP = re.compile(
    rb"""(?:\xef\xbb\xbf)?(?:\s*(?:<\?xml|<!doctype|<html|<xliff|\{\\rtf|%PDF-|WEBVTT\b|PK\x03\x04)"""
    rb"""|(?:.*\n){0,40}?msgid[ \t]+"|\s*\d+[ \t]*\r?\n[ \t]*\d+:\d\d:\d\d[,.]\d+[ \t]*-->)""",
    re.IGNORECASE,
)
"""How files with markup begin."""


def find_file_format(path: Path, name: str | None = None) -> FileFormat | None:
    """The format of a file; None for plain text, which has a sentence on each line.

    Args:
        path: The file. Its suffix shows the format.
        name: Name of a format; None goes by the suffix.

    Raises:
        ConfigError: A library that the format needs is not installed.
        DataError: The file has markup that no format reads.
    """
    if name is not None:
        chosen = FILE_FORMATS.get(name)
    else:
        suffix = path.suffix.lower()
        chosen = _BY_SUFFIX.get(suffix)
        if chosen is None and (suffix in OTHERS or (suffix != ".txt" and _looks_like_markup(path))):
            raise DataError(
                "{path}: has markup that would be translated; files are read as {names}: name one by {format}, or "
                "take it as plain text with {text}",
                path=path,
                names=", ".join(FILE_FORMATS),
                format=Parameter("format"),
                text=Parameter("format", "text"),
            )
    if chosen is not None and chosen.library[0] and importlib.util.find_spec(chosen.library[0]) is None:
        package = chosen.library[1]
        raise ConfigError(f"{path}: {chosen.title} needs {package}, which is not installed: pip install {package}")
    return chosen


def supported_suffixes() -> list[str]:
    """The suffixes of all formats."""
    return list(_BY_SUFFIX)


def _looks_like_markup(path: Path) -> bool:
    """True if a file begins like one with markup; one that cannot be read is refused where it is translated."""
    if not path.is_file():  # a pipe can be read only once
        return False
    try:
        with path.open("rb") as file:
            return _MARKUP.match(file.read(HEAD)) is not None
    except OSError:
        return False
