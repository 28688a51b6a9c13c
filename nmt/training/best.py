"""The best models of a run."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from pathlib import Path

from nmt.config import Config
from nmt.corpus.dataset import DataDirectory, combine_checksums
from nmt.models.run_records import MODELS, path_from
from nmt.models.storage import MARKER, save_model
from nmt.system.errors import DataError
from nmt.system.files import read_json
from nmt.system.replacement import clean_up
from nmt.text.processor import TEXT
from nmt.training.ranking import rank
from nmt.training.state import TrainState


class BestModels:
    """Model directories of a run: `best`, and with `train.checkpoint.keep_best` above 1 those in `models`.

    Args:
        run: Existing run directory.
        config: Config of the run.
        data: Its data.
    """

    def __init__(self, run: Path, config: Config, data: DataDirectory) -> None:
        self.run, self.config, self.data = run, config, data

    def save(self, name: str, state: TrainState, scores: Mapping[str, float], signatures: Mapping[str, str]) -> None:
        """Save the model of a state.

        Args:
            name: Path of the model directory in the run directory.
            state: The state.
            scores: Its validation scores; none without validation.
            signatures: sacreBLEU's signatures of these scores.
        """
        path = path_from(self.run, self.data.path)
        metadata = {
            "update": state.progress.update,
            "epoch": state.progress.epoch,
            "scores": dict(scores),
            "signatures": dict(signatures),
            "data": {"identity": combine_checksums(self.data.checksums), "path": path, "pairs": len(self.data.train)},
        }
        save_model(self.run / name, self.config, state.result, self.run / TEXT, metadata)

    def keep(self, state: TrainState, scores: Mapping[str, float], signatures: Mapping[str, str]) -> None:
        """Save the model in `models` if it is among the best ones, and delete those that no longer are."""
        limit, metric = self.config.train.checkpoint.keep_best, self.config.train.validation.metric
        if limit == 1:
            return
        new = self.run / MODELS / f"update-{state.progress.update:09d}"
        ranks = {path: _stored_rank(path, metric) for path in new.parent.glob("update-*") if path.name < new.name}
        if all(map(math.isfinite, scores.values())):
            ranks[new] = rank(metric, scores[metric], scores["loss"])
        # Of equal ones the earlier ones stay, as for `best`.
        best = sorted(sorted(ranks), key=lambda path: ranks[path], reverse=True)[:limit]
        if new in best:
            self.save(str(new.relative_to(self.run)), state, scores, signatures)
        for path in set(ranks) - set(best):
            shutil.rmtree(path, ignore_errors=True)

    def cut(self, update: int) -> None:
        """Clean up after a killed process, and delete models of updates after `update`, which will be repeated."""
        for folder in (self.run, self.run / MODELS):
            clean_up(folder)
        for path in (self.run / MODELS).glob("update-*"):
            if path.name > f"update-{update:09d}":
                shutil.rmtree(path)


def stored_number(model: Path, *keys: str) -> float | None:
    """A number nested in the metadata of a stored model; None if it cannot be read."""
    try:
        value = read_json(model / MARKER)
        for key in keys:
            value = value[key]
        return float(value)
    except (DataError, OSError, ValueError, KeyError, TypeError):
        return None


def _stored_rank(model: Path, metric: str) -> tuple[float, float]:
    """Rank of a stored model; a damaged one is the worst."""
    score = stored_number(model, "scores", metric)
    return (-math.inf, -math.inf) if score is None else rank(metric, score, stored_number(model, "scores", "loss"))
