"""TensorBoard: scalars, a sample and attention, while a run trains."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmt.drawing.heatmap import make_heatmap
from nmt.drawing.picture import choose_fonts
from nmt.system.errors import ConfigError

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

    from nmt.translation.translation import Translation

FOLDER = "tensorboard"


def check_board(wanted: bool) -> None:
    """Check that TensorBoard's writer is installed if it is wanted.

    Raises:
        ConfigError: It is not.
    """
    if wanted and importlib.util.find_spec("tensorboard") is None:
        raise ConfigError("train.tensorboard: tensorboard is not installed: pip install tensorboard")


class Board:
    """Event files for TensorBoard in a run directory; without a folder it does nothing.

    Args:
        folder: Folder of the event files; None writes none.
        update: Update that the run begins after; events of later ones, before it was resumed, are discarded.
    """

    def __init__(self, folder: Path | None, update: int) -> None:
        self._writer: SummaryWriter | None = None
        if folder is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the library's own deprecations
                from torch.utils.tensorboard import SummaryWriter

                self._writer = SummaryWriter(str(folder), purge_step=update + 1 if update else None)

    def close(self) -> None:
        """Write the remaining entries."""
        if self._writer:
            self._writer.close()

    def add_values(self, line: Mapping[str, Any]) -> None:
        """Write every number of a line of the log but the update as a curve over the updates."""
        if self._writer is None:
            return
        for name, value in line.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and name != "update":
                self._writer.add_scalar(f"{line['kind']}/{name}", value, line["update"])

    def add_sample(self, update: int, source: str, translation: str, reference: str) -> None:
        """Write source, translation and reference of a validation sentence as text, in which nothing is markup."""
        if self._writer:
            texts = {"source": source, "translation": translation, "reference": reference}
            lines = (f"    {name}: {' '.join(text.split())}" for name, text in texts.items())
            self._writer.add_text("sample", "\n".join(lines), update)

    def add_attention(self, update: int, translations: Sequence[Translation]) -> None:
        """Write a heat map of each watched sentence, averaged over heads."""
        if self._writer is None:
            return
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            for number, translation in enumerate(translations, 1):
                weights, columns, rows = translation.weights
                figure = make_heatmap(np.array(weights), columns, rows)
                choose_fonts(figure)
                self._writer.add_figure(f"attention/{number}", figure, update)
