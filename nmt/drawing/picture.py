"""Writing a figure atomically."""

from __future__ import annotations

import functools
import importlib.util
import io
import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.system.errors import DataError, list_names
from nmt.system.files import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

DPI = 130  # of PNG and other pixel formats
FONT_PACKAGES = ("matplotlib_fontja",)
"""Packages of pip whose fonts are used if they are installed; they are not imported."""


def check_picture(path: Path) -> str:
    """The format that a file name's suffix stands for, checked before the work that leads to the picture.

    Raises:
        DataError: matplotlib does not support it.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    kind = path.suffix.lstrip(".").lower()
    known = FigureCanvasBase.get_supported_filetypes()
    if kind not in known:
        raise DataError(f"{path}: not a picture format; use one of {', '.join(sorted(known))}")
    return kind


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file name's suffix, in fonts that have its letters if they are installed.

    Raises:
        DataError: matplotlib does not support the format.
    """
    kind = check_picture(path)
    missing = choose_fonts(figure)
    if missing:
        shown = list_names(sorted(missing))
        advice = "install a font that has them, such as the system's package fonts-noto-cjk for Chinese, Japanese and "
        advice += "Korean, pip's matplotlib-fontja for Japanese, or fonts-noto-core for other scripts"
        log.warning(f"{path}: no installed font has {shown}, drawn as boxes; {advice}")
    picture = io.BytesIO()  # some formats go back to earlier bytes, and the path may be a pipe, which cannot
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # our own warning names the characters
        figure.savefig(picture, format=kind, dpi=DPI, bbox_inches="tight")
    with atomic_file(path) as temporary:
        temporary.write_bytes(picture.getvalue())


def choose_fonts(figure: Figure) -> set[str]:
    """Let the texts of a figure fall back to installed fonts that have the characters that the usual font lacks.

    Returns:
        Characters that no installed font has.
    """
    from matplotlib.font_manager import FontProperties, findfont, fontManager
    from matplotlib.text import Text

    texts = figure.findobj(Text)
    characters = {character for text in texts for character in text.get_text() if not character.isspace()}
    missing = _lacking(findfont(FontProperties()), characters)
    if not missing:
        return missing
    # Each font that has some of the characters becomes a fallback, until none is missing.
    families: list[str] = []
    for file in _font_files():
        still_missing = _lacking(file, missing)
        if still_missing != missing:
            fontManager.addfont(file)
            families.append(FontProperties(fname=file).get_name())
            missing = still_missing
        if not missing:
            break
    if families:
        for text in texts:
            text.set_fontfamily([*text.get_fontfamily(), *families])
    return missing


@functools.cache
def _font_files() -> list[str]:
    """The files of installed fonts, in the order of their names; matplotlib's own list can be older than a font."""
    from matplotlib.font_manager import findSystemFonts

    folders = [str(folder) for folder in _font_folders()]
    return [*sorted(findSystemFonts()), *sorted(findSystemFonts(folders))]


def _font_folders() -> list[Path]:
    """Folders of installed packages that bring a font along."""
    packages = [importlib.util.find_spec(name) for name in FONT_PACKAGES]
    return [Path(spec.origin).parent for spec in packages if spec is not None and spec.origin is not None]


def _lacking(file: str, characters: set[str]) -> set[str]:
    """The characters that a font does not have as outlines: all, if the font is damaged or has only bitmaps."""
    from matplotlib.ft2font import FT2Font

    try:
        font = FT2Font(file)
    except (OSError, RuntimeError):
        return characters
    if not font.scalable:
        return characters
    return {character for character in characters if not font.get_char_index(ord(character))}
