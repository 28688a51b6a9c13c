"""Writing a figure atomically."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.system.errors import DataError
from nmt.system.files import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 130  # of PNG and other pixel formats


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
    """Write a figure in the format of the file name's suffix.

    Raises:
        DataError: matplotlib does not support the format.
    """
    kind = check_picture(path)
    picture = io.BytesIO()  # as formats go back in what they write, and a pipe cannot
    with warnings.catch_warnings():
        # Emoji and other characters that the font lacks are drawn as boxes; the user sees that.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(picture, format=kind, dpi=DPI, bbox_inches="tight")
    with atomic_file(path) as temporary:
        temporary.write_bytes(picture.getvalue())
