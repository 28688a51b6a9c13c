"""The JSON of a checkpoint, which is checked when a run is resumed, as it may come from anyone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from nmt.system.errors import CheckpointError, shorten

MAX_COUNT = 10**15
"""Updates, tokens and the like of one run."""
Count = Annotated[int, Field(strict=True, ge=0, lt=MAX_COUNT)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]


@dataclass
class Progress:
    """Progress of a run.

    Attributes:
        update: Updates so far, including skipped ones.
        epoch: Current epoch, from 1.
        position: Updates so far in this epoch.
        best: Best value of the chosen metric so far; None before the first validation.
        best_loss: Validation loss of the model with that value; None if unknown.
        best_update: Update of that model.
        waited: Validations since then, not counting those while the best score was at its floor.
        learnt: True if any validation had a loss below that of uniform guessing.
        skipped_in_row: Consecutive skipped updates, as of the last report.
        seconds: Time spent on updates, without validation.
        tokens: Target tokens trained on, without padding.
    """

    update: Count = 0
    epoch: Count = 1
    position: Count = 0
    best: Number | None = None
    best_loss: Number | None = None
    best_update: Count = 0
    waited: Count = 0
    learnt: Flag = False
    skipped_in_row: Count = 0
    seconds: Number = 0.0
    tokens: Count = 0


@dataclass(frozen=True)
class RateMetadata:
    """State of a schedule of the learning rate, see `LearningRateSchedule`."""

    reduction: Number
    waited: Count


@dataclass(frozen=True)
class StateMetadata:
    """The metadata of a checkpoint on the training state, beside its tensors.

    Attributes:
        progress: Progress of the run.
        rate: State of the schedule.
        meter_seconds: Seconds of updates since the last report.
        workers: Number of processes.
    """

    progress: Progress
    rate: RateMetadata
    meter_seconds: Number
    workers: Count


@dataclass(frozen=True)
class OriginMetadata:
    """The metadata of a checkpoint on the run that wrote it.

    Attributes:
        config: The run's config, YAML.
        data: Checksums of the data's files.
        environment: Versions and hardware.
        metrics_size: Bytes of the log.
        run_seconds: Seconds of the run.
    """

    config: Annotated[str, Field(strict=True)]
    data: dict[str, Any]
    environment: dict[str, Any]
    metrics_size: Count
    run_seconds: Number


Kind = TypeVar("Kind", StateMetadata, OriginMetadata)


def parse_metadata(kind: type[Kind], metadata: Mapping[str, Any]) -> Kind:
    """One part of a checkpoint's metadata.

    Raises:
        CheckpointError: A value is missing or invalid.
    """
    try:
        return TypeAdapter(kind).validate_python(dict(metadata))
    except ValidationError as error:
        problem = error.errors()[0]
        value = None if problem["type"] == "missing" else problem["input"]
        name = problem["loc"][-1] if problem["loc"] else "metadata"
        raise CheckpointError(f"its checkpoint is damaged: {name} is {shorten(repr(value))}") from None
