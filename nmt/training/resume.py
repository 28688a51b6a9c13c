"""Checks that a checkpoint can be resumed with the given config and data."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nmt.config import DROPOUT, Config, differing_keys, parse_config
from nmt.system.errors import CheckpointError, ConfigError, DataError, list_names, shorten
from nmt.system.limits import MAX_COUNT
from nmt.training.checkpoint import Checkpoint
from nmt.training.distributed import launch_command

HARMLESS = (
    "name",
    "train.epochs",
    "train.max_updates",
    "train.log_every",
    "train.watch",
    "train.tensorboard",
    "train.max_skipped",
    "train.validation.patience",
    "train.checkpoint",
    "train.device",
    "train.threads",
    "train.init_from",
    "decode.beam_size",
    "decode.length_penalty",
    "decode.length_norm",
    "decode.coverage_penalty",
    "decode.sampling",
    "decode.batch_size",
)
"""Keys that may change when a run is resumed, without changing the run itself."""

INFLUENTIAL = (
    "train.optimizer.learning_rate",
    "train.optimizer.weight_decay",
    "train.optimizer.betas",
    "train.optimizer.epsilon",
    "train.optimizer.momentum",
    "train.optimizer.clip_norm",
    "train.schedule",
    "train.teacher_forcing",
    "train.label_smoothing",
    "train.r_drop",
    "train.noise",
    "train.precision",
    "train.validation.every",
    *(f"model.{name}" for name in DROPOUT),
    "model.attention.dropout",
    "decode.max_length",
    "decode.max_length_ratio",
    "decode.min_length",
    "decode.min_length_ratio",
    "decode.no_repeat_ngram_size",
    "decode.precision",
    "decode.replace_unknown",
)
"""Keys that may change too, but change the rest of the run."""


def command_to_resume(output: Path, data: Path) -> str:
    """The command that resumes a run."""
    arguments = ["--config", str(output / "config.yaml"), "--data", str(data), "--output", str(output), "--resume"]
    return shlex.join([*launch_command(), "train", *arguments])


_COUNTS = ("update", "epoch", "position", "best_update", "waited", "skipped_in_row", "tokens")


def check_facts(facts: Mapping[str, Any]) -> None:
    """Validate the facts of a checkpoint, which may be untrusted.

    Raises:
        CheckpointError: A fact is missing or invalid.
    """

    def is_count(value: Any) -> bool:
        return type(value) is int and 0 <= value < MAX_COUNT

    def is_number(value: Any) -> bool:
        return type(value) in (int, float) and math.isfinite(value)

    progress = facts.get("progress")
    found = {**facts, **progress} if isinstance(progress, dict) else {}
    kinds: dict[str, Callable[[Any], bool]] = {
        **dict.fromkeys((*_COUNTS, "metrics_size"), is_count),
        **dict.fromkeys(("seconds", "run_seconds", "meter_seconds"), is_number),
        **dict.fromkeys(("best", "best_loss"), lambda value: value is None or is_number(value)),
        "learnt": lambda value: isinstance(value, bool),
        "config": lambda value: isinstance(value, str),
        **dict.fromkeys(("data", "environment", "rate"), lambda value: isinstance(value, dict)),
    }
    later = {"best_loss": None, "learnt": False}  # not in checkpoints of older versions
    for name, fits in kinds.items():
        value = found.get(name, later.get(name))
        if not fits(value):
            raise CheckpointError(f"its checkpoint is damaged: {name} is {shorten(repr(value))}")


def describe_changes(
    checkpoint: Checkpoint, config: Config, identity: Mapping[str, str], environment: Mapping[str, Any]
) -> list[str]:
    """Describe what has changed since a checkpoint, one line each.

    Args:
        checkpoint: Has its config, the checksums of its data and its environment.
        config: Config to continue with; its data section is that of the data.
        identity: Checksums of the data to continue with.
        environment: Current versions and hardware.

    Raises:
        ConfigError: A key has changed that must not change.
        DataError: The data has changed.
    """
    before = parse_config(checkpoint.facts["config"], "the checkpoint's config")
    changed = [key for key in differing_keys(before, config) if not key.startswith("data.")]
    length = ("train.epochs", "train.max_updates") if config.train.schedule.name == "cosine" else ()
    influential = [key for key in changed if key.startswith(INFLUENTIAL + length)]
    fatal = [key for key in changed if not key.startswith(HARMLESS + INFLUENTIAL)]
    if fatal:
        raise ConfigError(
            f"cannot be resumed with another {', '.join(fatal)}: set the old value, or start a new run from the "
            "weights with train.init_from=RUN/best"
        )
    known = checkpoint.facts["data"]
    other = sorted(name for name in {**known, **identity} if known.get(name) != identity.get(name))
    if other:
        raise DataError(
            f"the data has changed since the checkpoint: {list_names(other, 20)}; preprocess as before, or start a new "
            "run"
        )
    lines = [f"changed since the checkpoint: {', '.join(changed)}"] if changed else []
    if influential:
        lines.append("from here on, the run differs from an unchanged one")
    there = checkpoint.facts["environment"]
    moved = [
        f"{key} ({shorten(repr(there.get(key)))} there, {here!r} here)"
        for key, here in environment.items()
        if there.get(key) != here
    ]
    if moved:
        lines.append(f"another environment: {', '.join(moved)}; results will be close, but not bit for bit the same")
    return lines
