"""The directory of a run: who may write it, how far the run is, its checkpoints and its models."""

import contextlib
import dataclasses
import logging
import math
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from nmt.config import Config, dump_config
from nmt.config.outputs import RUN, check_directory
from nmt.corpus.dataset import DataDirectory
from nmt.corpus.marker_schema import combine_checksums
from nmt.models.lookup import BEST, MARKER, MODELS, TIME, path_from, read_value
from nmt.models.seq2seq import Seq2Seq
from nmt.models.storage import save_model
from nmt.system.device import describe_environment
from nmt.system.errors import DataError, RunInterrupted, TrainingError, add_remedy
from nmt.system.files import append_text, check_file, write_json, write_text
from nmt.system.messages import Message, Parameter
from nmt.system.replacement import clean_up, discard_earlier, locked, reading, replacing, set_aside
from nmt.text.processor import TEXT
from nmt.training.checkpoint import clean_up_checkpoints, has_checkpoint, write_checkpoint
from nmt.training.checkpoint_schema import OriginMetadata
from nmt.training.distributed import Workers, launch_id, restarts
from nmt.training.metrics_log import MetricsLog
from nmt.training.ranking import rank, stored_rank
from nmt.training.resume import call_to_resume
from nmt.training.state import TrainState, capture
from nmt.training.text_files import keep_text

log = logging.getLogger(__name__)


@contextlib.contextmanager
def claimed(
    output: Path, config: Config, data: Path, workers: Workers, *, overwrite: bool, resume: bool
) -> Iterator[bool]:
    """Keep other commands from writing to a run directory and to its data in a block.

    Args:
        output: The run directory, which need not exist.
        config: Config of the run.
        data: Its data directory.
        workers: The processes of the run.
        overwrite: True if an earlier run is replaced; it is deleted if the block succeeds.
        resume: True if a run is continued if there is one.

    Yields:
        True if there is something to resume.

    Raises:
        DataError: The folder contains something else, is in use, or has a run that the user has to decide about.
    """
    with contextlib.ExitStack() as stack:

        def decide() -> bool:
            stack.enter_context(locked(output))
            if read_value(output, "state") == "finished":
                discard_earlier(output)
            stack.enter_context(replacing(output))
            return _decide_to_resume(output, config, data, overwrite, resume)

        if workers.is_first:
            stack.enter_context(reading(data, output))
        resuming = workers.decide_on_first(decide)
        try:
            yield resuming
        # The first process shows the message.
        except RunInterrupted:
            if workers.is_first:
                raise
            raise RunInterrupted("") from None
        except TrainingError:
            if workers.is_first:
                raise
            raise TrainingError from None


def _decide_to_resume(output: Path, config: Config, data: Path, overwrite: bool, resume: bool) -> bool:
    """True if there is something to resume; reject a folder that must not be replaced or cannot be resumed.

    Raises:
        DataError: See `claimed`.
    """
    state = read_value(output, "state")
    resumable = has_checkpoint(output)
    parent = config.parent.run
    replace = Parameter("overwrite", True)
    needed: dict[str | Parameter, Path | None] = {
        Parameter("data"): data,
        "parent": None if parent is None else Path(parent),
    }
    if resume or (restarts() and read_value(output, "launch") == launch_id()):
        for path in output.glob("*"):
            check_file(path, output)
        if resumable:
            return True
        if state in ("finished", "stopped"):
            raise DataError(
                "{run}: this run is {state}, but its checkpoints are missing; restore them, or start over with "
                "{replace}",
                run=output,
                state=state,
                replace=replace,
            )
        log.info(f"{output}: no checkpoint yet; starting from scratch")
        overwrite = state is not None
    elif not overwrite and _is_unfinished(state, resumable=resumable):
        way = Message("resume with: {call}; or", call=call_to_resume(output, data))
        if not resumable:
            way = Message("it has no checkpoint;")
        raise DataError(
            "{run}: contains an unfinished run; {way} replace it with {replace}", run=output, way=way, replace=replace
        )
    check_directory(output, RUN, overwrite=overwrite, needed=needed)
    return False


def _is_unfinished(state: object, *, resumable: bool) -> bool:
    """True if a folder has a run that did not end; without a readable `run.json`, if it has checkpoints."""
    if state is None:
        return resumable
    return state != "finished"


class RunDirectory:
    """The files that a run writes; of several processes only the first one writes.

    Args:
        path: The run directory.
        config: Config of the run.
        data: Its data.
        state: Its training state.
        metrics: Its log.
    """

    def __init__(
        self, path: Path, config: Config, data: DataDirectory, state: TrainState[Seq2Seq], metrics: MetricsLog
    ) -> None:
        self.path = path
        self.config = config
        self.data = data
        self.state = state
        self.metrics = metrics
        self.parameters = sum(parameter.numel() for parameter in state.model.parameters())
        environment = describe_environment(state.workers.device)
        self._origin = OriginMetadata(dump_config(config), dict(data.checksums), environment, 0, 0.0)
        self._saved = state.progress.update  # update of the last checkpoint

    @contextlib.contextmanager
    def opened(self, origin: OriginMetadata | None) -> Iterator[None]:
        """Create the directory, or open that of a run to resume, and record the outcome of a block.

        Args:
            origin: From the checkpoint; None creates the directory.

        Raises:
            NmtError: The text of the run cannot be used.
        """
        if not self.state.workers.is_first:
            yield
            return
        try:
            if origin is None:
                set_aside(self.path)
                self.path.resolve().mkdir(parents=True, exist_ok=True)
            else:
                clean_up_checkpoints(self.path, self._saved)
                self._clean_up_models()
                keep_text(self.config, self.data, self.path)
                self.metrics.cut(origin.metrics_size)
            self.record("running")
            write_text(self.path / "config.yaml", self._origin.config)
            write_json(self.path / "environment.json", self._origin.environment)
            if origin is None:
                keep_text(self.config, self.data, self.path)
                append_text(self.metrics.path, "")  # the learning curve reads it even if nothing is reported
            with self._outcome_recorded():
                yield
        except OSError as error:
            if (self.path / MARKER).exists():
                remedy = Message("resume with: {call}", call=call_to_resume(self.path, self.data.path))
                if not has_checkpoint(self.path):
                    overwrite = Parameter("overwrite", True)
                    remedy = Message("run the command again with {overwrite}", overwrite=overwrite)
                add_remedy(error, remedy)
            raise

    @contextlib.contextmanager
    def _outcome_recorded(self) -> Iterator[None]:
        try:
            yield
        except RunInterrupted:
            self.record("stopped")
            raise
        except BaseException as error:
            with contextlib.suppress(OSError):
                self.record("broken", str(error) or type(error).__name__)
            raise
        self.record("finished")

    def record(self, outcome: str, reason: str | None = None) -> None:
        """Write how far the run is to `run.json`.

        Args:
            outcome: running, finished, stopped (can be resumed) or broken.
            reason: Why it is broken.
        """
        progress = self.state.progress
        values = {
            "time": time.strftime(TIME),
            "state": outcome,
            "launch": launch_id(),
            "parameters": self.parameters,
            "updates": progress.update,
            "updates_per_epoch": self.state.updates_per_epoch,
            "total_updates": self.state.total_updates,
            "epochs": progress.epoch,
            "tokens": progress.tokens,
            "metric": self.config.train.validation.metric,
            "best": progress.best,
            "best_update": progress.best_update,
            "training_seconds": round(progress.seconds, 2),
            "total_seconds": round(self.metrics.seconds, 2),
            "tokens_per_second": round(progress.tokens / progress.seconds, 1) if progress.seconds else None,
            "reason": reason,
        }
        write_json(self.path / MARKER, values)

    def save_checkpoint(self) -> None:
        """Write a checkpoint, unless there is one of this update; must be called by all processes together."""
        update = self.state.progress.update
        if update == self._saved:
            return
        checkpoint = capture(self.state)
        if self.state.workers.is_first:
            size = self.metrics.sync()
            seconds = self.metrics.seconds
            origin = dataclasses.replace(self._origin, metrics_size=size, run_seconds=seconds)
            checkpoint.metadata.update(dataclasses.asdict(origin))
            write_checkpoint(self.path, update, checkpoint, self.config.train.checkpoint.keep_last)
            self.record("running")
        self._saved = update

    def save_model(self, path: Path, scores: Mapping[str, float], signatures: Mapping[str, str]) -> None:
        """Write a model directory.

        Args:
            path: The directory.
            scores: Validation scores of the model; none without validation.
            signatures: sacreBLEU's signatures of these scores.
        """
        data = {"identity": combine_checksums(self.data.checksums), "path": path_from(self.path, self.data.path)}
        metadata = {
            "update": self.state.progress.update,
            "epoch": self.state.progress.epoch,
            "scores": dict(scores),
            "signatures": dict(signatures),
            "data": {**data, "pairs": len(self.data.train)},
        }
        save_model(path, self.config, self.state.result, self.path / TEXT, metadata)

    def save_models(self, scores: Mapping[str, float] | None, signatures: Mapping[str, str], *, improved: bool) -> None:
        """Store the model of a validation where it is to be kept: as the best one, and among the best.

        Args:
            scores: Its scores; None without validation data, where the last model is kept, unless an update was just
                skipped.
            signatures: sacreBLEU's signatures of these scores.
            improved: True if the model is the best so far.
        """
        if scores is None:
            if not self.state.last_skipped:
                self.save_model(self.path / BEST, {}, {})
            self.record("running")
            return
        if improved:
            self.save_model(self.path / BEST, scores, signatures)
        self.record("running")
        self._keep_model(scores, signatures)

    def save_model_of_a_stop(self, *, validated: bool) -> None:
        """Store the model of a run that is stopped, if no validation chooses the best one."""
        if self.state.workers.is_first and not validated and not self.state.last_skipped:
            self.save_model(self.path / BEST, {}, {})

    def _keep_model(self, scores: Mapping[str, float], signatures: Mapping[str, str]) -> None:
        """With `train.checkpoint.keep_best` above 1, save the model if it is among the best; delete the others."""
        limit = self.config.train.checkpoint.keep_best
        metric = self.config.train.validation.metric
        if limit == 1:
            return
        new = self.path / MODELS / f"update-{self.state.progress.update:09d}"
        ranks = {path: stored_rank(path, metric) for path in new.parent.glob("update-*") if path.name < new.name}
        if all(map(math.isfinite, scores.values())):
            ranks[new] = rank(metric, scores[metric], scores["loss"])
        # Of equal ones the earlier ones stay, as for `best`.
        best = sorted(sorted(ranks), key=lambda path: ranks[path], reverse=True)[:limit]
        if new in best:
            self.save_model(new, scores, signatures)
        for path in set(ranks) - set(best):
            shutil.rmtree(path, ignore_errors=True)

    def _clean_up_models(self) -> None:
        """Clean up after a killed process, and delete models of later updates, which will be repeated."""
        for folder in (self.path, self.path / MODELS):
            clean_up(folder)
        for path in (self.path / MODELS).glob("update-*"):
            if path.name > f"update-{self._saved:09d}":
                shutil.rmtree(path)
