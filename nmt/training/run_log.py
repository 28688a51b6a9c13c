"""The reports of a run while it trains: the log, a progress bar, TensorBoard, the learning curve and the live page."""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from nmt.drawing.charts import LearningCurve
from nmt.evaluation.validator import Validator
from nmt.system.progress import ProgressLog, progress_bar
from nmt.training.attention_history import add_attention
from nmt.training.board import FOLDER, Board
from nmt.training.live_page import PAGE, LiveView, following
from nmt.training.loop import Event, Reported, Skipped, Stopped
from nmt.training.metrics_log import MetricsLog

log = logging.getLogger(__name__)

BAR = "{percentage:3.0f}%|{bar:12}| {n_fmt}/{total_fmt}, {remaining} left{postfix}"
"""Progress of a run at a terminal, of a width that does not change; it fits 80 columns."""
LARGEST = 1e6
"""A larger score, such as the perplexity of new weights, is written with an exponent."""


class RunLog:
    """The reports of the first process of a run; the others report nothing.

    Args:
        output: The run directory.
        metrics: Its log of numbers.
        before: Updates before the run began, or was resumed.
        total: Updates of the whole run.
    """

    def __init__(self, output: Path, metrics: MetricsLog, before: int, total: int) -> None:
        self.output = output
        self.metrics = metrics
        self.before = before
        self.total = total
        self._losses: list[float] = []  # of the reports since the last validation

    @contextlib.contextmanager
    def opened(self, *, shown: bool, board: bool) -> Iterator[None]:
        """Open the bar and the pages for a block, and finish them after it.

        Args:
            shown: True in the first process.
            board: True if TensorBoard's files are written.
        """
        folder = self.output / FOLDER if board and shown else None
        with (
            following(self.output) if shown else contextlib.nullcontext(),
            contextlib.closing(Board(folder, self.before)) as self._board,
            contextlib.closing(LearningCurve(self.output)) as self._curve,
        ):
            style = {"bar_format": BAR, "dynamic_ncols": True, "smoothing": 0}
            self._lines = ProgressLog("update", self.total, self.before)
            with progress_bar(total=self.total, initial=self.before, shown=shown, **style) as self._bar:
                yield

    def reported(self, event: Reported) -> None:
        """Tell the means since the last report."""
        self._board.add_values(self.metrics.write("train", asdict(event)))
        self._losses.append(event.loss)
        measures = f"loss {event.loss:z.3f}, {event.tokens_per_second:,.0f} tokens/s"
        self._bar.set_postfix_str(measures)
        if self._bar.disable:
            self._lines.report(event.update, self.metrics.seconds, measures)

    def skipped(self, event: Skipped) -> None:
        """Tell of an update that was skipped."""
        self._board.add_values(self.metrics.write("skipped", asdict(event)))
        log.warning(f"update {event.update}: skipped, its loss or gradient was not finite")

    def validated(
        self, event: Event, scores: Mapping[str, float] | None, validator: Validator, *, improved: bool
    ) -> None:
        """Tell the scores of a validation, one sentence with its translation, and the attention of watched sentences.

        Args:
            event: When it was due.
            scores: The scores; None of training text, which is only translated.
            validator: The validator that has translated.
            improved: True if the model is the best so far.
        """
        where = f"epoch {event.epoch}, update {event.update}"
        if scores is None:
            mean_loss = sum(self._losses) / len(self._losses)
            log.info(f"{where}: training loss {mean_loss:z.2f}")
        else:
            values = {"update": event.update, "epoch": event.epoch, "improved": improved, **scores}
            self._board.add_values(self.metrics.write("valid", values))
            written = (f"{name} {value:{'.2f' if abs(value) < LARGEST else '.3g'}}" for name, value in scores.items())
            log.info(f"{where}: {', '.join(written)}{' (best)' if improved else ''}")
        self._losses.clear()
        self._show_sentences(event.update, validator)

    def _show_sentences(self, update: int, validator: Validator) -> None:
        """Show one sentence with its translation, and store the attention of those that are watched."""
        if validator.sample:
            source, translation, reference = validator.sample
            self._board.add_sample(update, source, translation, reference)
            for line in (source, f"-> {translation}", f"== {reference}"):
                log.info(f"    {line}")
        if validator.attention:
            if not (self.output / PAGE).exists():
                log.info(f"live page: {self.output / PAGE}")
            view = LiveView(validator.written, validator.self_attention)
            add_attention(self.output, update, validator.watched, validator.attention, view)
            self._board.add_attention(update, validator.attention)

    def draw(self) -> None:
        """Draw the learning curve, if the last picture is old enough."""
        self._curve.update()

    def updated(self) -> None:
        """Move the bar on by an update."""
        self._bar.update()

    def stopped(self, event: Stopped) -> None:
        """Tell why the run is over, and how to continue one that had nothing left to do."""
        advice = ""
        if event.update == self.before:
            advice = "; to continue, raise train.epochs, train.max_updates or train.validation.patience"
        log.info(f"stopped at update {event.update:,}: {event.reason}{advice}")
