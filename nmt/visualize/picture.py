"""Writing a figure, whole or not at all."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_figure(figure: Figure, path: Path, dpi: int = 130) -> None:
    """Write a figure in the format of the name's ending.

    Raises:
        DataError: The ending is none that matplotlib writes.
    """
    kind = path.suffix.lstrip(".").lower()
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise DataError(f"{path}: a picture's name ends in one of {', '.join(sorted(known))}")
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with warnings.catch_warnings():
            # Emoji and other characters that the font lacks are drawn as boxes; that is no news to the user.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            figure.savefig(temporary, format=kind, dpi=dpi, bbox_inches="tight")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
