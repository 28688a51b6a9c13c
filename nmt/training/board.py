"""TensorBoard: scalars, a sample and attention, while a run trains."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from nmt.drawing.heatmap import EOS_LABEL, make_heatmap
from nmt.system.errors import ConfigError

if TYPE_CHECKING:
    from nmt.translation.alignment import Alignment

FOLDER = "tensorboard"


def check_board(wanted: bool) -> None:
    """Check that TensorBoard's writer is installed if it is wanted.

    Raises:
        ConfigError: It is not.
    """
    if wanted and importlib.util.find_spec("tensorboard") is None:
        raise ConfigError("train.tensorboard: tensorboard is not installed: pip install tensorboard")


class Board(Protocol):
    """Where a run shows what happens; a context manager."""

    def add_values(self, kind: str, values: Mapping[str, Any]) -> None:
        """Show the numbers of a report or a validation.

        Args:
            kind: What reports them: train or valid.
            values: The numbers by name, with the update.
        """

    def add_sample(self, update: int, source: str, translation: str, reference: str) -> None:
        """Show a translation of a validation sentence."""

    def add_attention(self, update: int, alignments: Sequence[Alignment]) -> None:
        """Show heat maps of the watched sentences."""

    def __enter__(self) -> Board: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class NoBoard:
    """Shows nothing."""

    def add_values(self, kind: str, values: Mapping[str, Any]) -> None:
        """Ignore them."""

    def add_sample(self, update: int, source: str, translation: str, reference: str) -> None:
        """Ignore it."""

    def add_attention(self, update: int, alignments: Sequence[Alignment]) -> None:
        """Ignore it."""

    def __enter__(self) -> NoBoard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class TensorBoard:
    """Writes event files for TensorBoard.

    Args:
        folder: Folder of the event files.
        update: Update that the run begins after; events of later ones, before it was resumed, are discarded.
    """

    def __init__(self, folder: Path, update: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library's own deprecations
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder), purge_step=update + 1 if update else None)

    def add_values(self, kind: str, values: Mapping[str, Any]) -> None:
        """Write every number but the update as a curve over the updates."""
        for name, value in values.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and name != "update":
                self._writer.add_scalar(f"{kind}/{name}", value, values["update"])

    def add_sample(self, update: int, source: str, translation: str, reference: str) -> None:
        """Write source, translation and reference as text, in which nothing is markup."""
        texts = {"source": source, "translation": translation, "reference": reference}
        lines = (f"    {name}: {' '.join(text.split())}" for name, text in texts.items())
        self._writer.add_text("sample", "\n".join(lines), update)

    def add_attention(self, update: int, alignments: Sequence[Alignment]) -> None:
        """Write a heat map of each sentence, averaged over heads."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            for number, each in enumerate(alignments, 1):
                weights = each.weights.mean(dim=1).double().numpy()
                tgt_tokens = [*each.tgt_tokens, EOS_LABEL][: len(weights)]
                figure = make_heatmap(weights, [*each.src_tokens, EOS_LABEL], tgt_tokens)
                self._writer.add_figure(f"attention/{number}", figure, update)

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()


def open_board(run: Path, update: int, *, wanted: bool) -> Board:
    """A board of a run directory; one that shows nothing unless it is wanted.

    Args:
        run: The run directory.
        update: Update that the run begins after.
        wanted: Whether events are written.
    """
    return TensorBoard(run / FOLDER, update) if wanted else NoBoard()
