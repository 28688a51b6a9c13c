"""Resuming a run from its newest checkpoint, if config and data allow it."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmt.config import DROPOUT, Config, differing_keys, parse_config
from nmt.corpus.dataset import DataDirectory
from nmt.models.seq2seq import Seq2Seq
from nmt.system.device import describe_environment
from nmt.system.errors import CheckpointError, ConfigError, DataError, list_names, shorten
from nmt.system.messages import Call
from nmt.training.checkpoint import newest_checkpoint
from nmt.training.checkpoint_schema import OriginMetadata, parse_metadata
from nmt.training.distributed import launch_command
from nmt.training.state import TrainState, restore

log = logging.getLogger(__name__)

_DURATION = ("epochs", "max_updates", "validation.patience", "max_skipped")
_LOGGING = ("log_every", "watch", "tensorboard", "checkpoint")
_MACHINE = ("device", "threads")
_BEAM = ("beam_size", "length_penalty", "length_norm", "coverage_penalty", "sampling", "batch_size")
HARMLESS = (
    "name",
    "parent",
    *(f"train.{name}" for name in (*_DURATION, *_LOGGING, *_MACHINE)),
    *(f"decode.{name}" for name in _BEAM),
)
"""Beginnings of keys that may change when a run is resumed, without changing the run itself."""

_LEARNING = (
    *("optimizer.", "schedule", "teacher_forcing", "label_smoothing", "consistency", "noise"),
    *("precision", "graphs", "deterministic"),
)
INFLUENTIAL = (
    "decode.",
    *(f"train.{name}" for name in (*_LEARNING, "validation.every")),
    *(f"model.{name}" for name in (*DROPOUT, "attention.dropout")),
)
"""Beginnings of keys that may change too, but change the rest of the run."""

OTHER_RUN = ("train.optimizer.name",)
"""Beginnings of keys that make another run, although those that begin like them do not; all other keys do as well."""


def call_to_resume(output: Path, data: Path) -> Call:
    """The call that resumes a run."""
    arguments = {"config": output / "config.yaml", "data": data, "output": output, "resume": True}
    return Call("train", arguments, launcher=tuple(launch_command()))


def resume_run(run: Path, state: TrainState[Seq2Seq], config: Config, data: DataDirectory) -> OriginMetadata:
    """Restore a training state from the newest intact checkpoint of a run, and log the changes since.

    Args:
        run: Run directory, which has a checkpoint.
        state: New state of the same config.
        config: Config to continue with.
        data: Data to continue with.

    Returns:
        The checkpoint's metadata of the run that wrote it.

    Raises:
        NmtError: The checkpoint is damaged, or config or data have changed in a way that makes it another run.
    """
    checkpoint = newest_checkpoint(run)
    try:
        origin = parse_metadata(OriginMetadata, checkpoint.metadata)
        changes = describe_changes(origin, config, data.checksums, describe_environment(state.workers.device))
        as_before = restore(state, checkpoint)
    except (CheckpointError, ConfigError, DataError) as error:
        raise type(error)("{run}: {error}", run=run, error=error) from None
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        reason = shorten(f"{type(error).__name__}: {error}")
        raise CheckpointError(f"{run}: its checkpoint does not match the config ({reason})") from None
    for line in changes:
        log.info(f"{run}: {line}")
    if not as_before:
        log.info(f"{run}: resumed on other processes or devices: the rest will use other random numbers")
    log.info(f"{run}: resumed at update {state.progress.update:,}, epoch {state.progress.epoch}")
    return origin


def describe_changes(
    origin: OriginMetadata, config: Config, identity: Mapping[str, str], environment: Mapping[str, Any]
) -> list[str]:
    """Describe the changes since a checkpoint, one line each.

    Args:
        origin: Config, checksums of the data and environment of the checkpoint.
        config: Config to continue with; its data section is that of the data.
        identity: Checksums of the data to continue with.
        environment: Current versions and hardware.

    Raises:
        ConfigError: A key has changed that must not change.
        DataError: The data has changed.
    """
    before = parse_config(origin.config, "the checkpoint's config")
    changed = [key for key in differing_keys(before, config) if not key.startswith("data.")]
    # The length of a run is harmless, unless its schedule depends on the length.
    length_keys = ("train.epochs", "train.max_updates") if config.train.schedule.needs_length else ()
    influential = []
    fatal = []
    for key in changed:
        if key.startswith(HARMLESS) and not key.startswith(length_keys):
            continue
        influential.append(key)
        may_change = key.startswith(INFLUENTIAL + length_keys)
        if not may_change or key.startswith(OTHER_RUN):
            fatal.append(key)
    if fatal:
        advice = "set the old value, or start a new run from the weights with parent=RUN"
        raise ConfigError(f"cannot be resumed with another {', '.join(fatal)}: {advice}")

    differing = sorted(name for name in {**origin.data, **identity} if origin.data.get(name) != identity.get(name))
    if differing:
        advice = "preprocess as before, or start a new run"
        raise DataError(f"the data has changed since the checkpoint: {list_names(differing, 20)}; {advice}")

    lines = []
    if changed:
        lines.append(f"changed since the checkpoint: {', '.join(changed)}")
    if influential:
        lines.append("from here on, the run differs from an unchanged one")
    moved = []
    for key, there in origin.environment.items():
        if key in environment and environment[key] != there:
            moved.append(f"{key} ({shorten(repr(there))} there, {environment[key]!r} here)")
    if moved:
        lines.append(f"another environment: {', '.join(moved)}; results will be close, but not bit for bit the same")
    return lines
