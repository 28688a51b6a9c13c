"""The state of training, and its conversion to a checkpoint and back."""

import dataclasses
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from nmt.models.base import Task
from nmt.training.checkpoint import Checkpoint
from nmt.training.checkpoint_schema import Progress, RateMetadata, StateMetadata, parse_metadata
from nmt.training.distributed import Workers
from nmt.training.loss_scale import NoLossScale
from nmt.training.schedules import LearningRateSchedule


class Meter:
    """Sums since the last report; they stay on the device until then.

    Attributes:
        sums: Loss of this process and gradient norms, [2].
        counts: Target tokens of all processes, and updates, [2].
        skipped: One scalar per update, 1 if it was skipped, otherwise 0. The sums exclude skipped updates.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.reset()

    def reset(self) -> None:
        """Start from zero."""
        self.sums = torch.zeros(2, device=self.device)
        self.counts = torch.zeros(2, dtype=torch.int64, device=self.device)
        self.skipped: list[Tensor] = []
        self.seconds = 0.0

    def resume(self) -> None:
        """Start the clock of an update."""
        self._begin = time.perf_counter()

    def add(self, loss: Tensor, norm: Tensor, tokens: Tensor, skipped: Tensor) -> None:
        """Add a finished update."""
        made = skipped == 0
        self.sums += torch.stack([loss, norm]).where(made, 0)
        self.counts += torch.stack([tokens, torch.ones_like(tokens)]).where(made, 0)
        self.skipped.append(skipped)
        self.seconds += time.perf_counter() - self._begin


Model = TypeVar("Model", bound=Task)


@dataclass
class TrainState(Generic[Model]):
    """A model in training.

    Attributes:
        model: On its device.
        learner: The module that training calls in place of the model; see `with_consistency`.
        optimizer: Over all weights.
        rate: Learning rate over time.
        workers: The processes that train it.
        average: Moving average of its weights, which is then validated and stored in their place; None is off.
        scale: Scaling of the loss.
        updates_per_epoch: Updates per epoch.
        total_updates: Updates of the whole run, unless it stops early.
        progress: Progress of the run.
        replica: The learner in this process.
        meter: Sums since the last report.
    """

    model: Model
    learner: nn.Module
    optimizer: torch.optim.Optimizer
    rate: LearningRateSchedule
    workers: Workers
    average: AveragedModel | None
    scale: NoLossScale
    updates_per_epoch: int
    total_updates: int
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self.replica: nn.Module = self.workers.replicate(self.learner)
        self.meter = Meter(self.model.device)

    @property
    def result(self) -> Model:
        """The model to validate and to store: the average of the weights if there is one."""
        return self.model if self.average is None else cast("Model", self.average.module)

    @property
    def last_skipped(self) -> bool:
        """True if the last update was skipped; waits for the device."""
        skipped = self.meter.skipped
        return bool(skipped[-1]) if skipped else self.progress.skipped_in_row > 0


def average_weights(model: nn.Module, decay: float) -> AveragedModel:
    """Start an exponential moving average of a model's weights (Polyak & Juditsky, 1992).

    After update t, average = d average + (1 - d) weights, with d = min(decay, (1 + t) / (10 + t)), so that the initial
    weights, at which the average starts, are soon forgotten.
    """

    def add(averages: Sequence[Tensor], weights: Sequence[Tensor], _: Tensor | int) -> None:
        updates = int(average.n_averaged)  # on the CPU, so that the host waits for no device
        share = 1 - min(decay, (1 + updates) / (10 + updates))
        torch._foreach_lerp_(list(averages), list(weights), share)  # on a GPU a few kernels for all weights

    average = AveragedModel(model, multi_avg_fn=add)
    average.n_averaged += 1  # otherwise the average would start at the weights after the first update
    return average


def capture(state: TrainState[Any]) -> Checkpoint:
    """Capture all that the rest of the run depends on; must be called by all processes together."""
    tensors = {f"model.{name}": parameter.detach() for name, parameter in state.model.named_parameters()}
    if state.average:
        tensors |= {f"average.{name}": weight.detach() for name, weight in state.result.named_parameters()}
    for index, values in state.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in values.items()}
    tensors |= {f"loss_scale.{name}": tensor for name, tensor in state.scale.tensors().items()}
    for name, tensor in _process_tensors(state).items():
        tensors |= {f"{name}.{rank}": part for rank, part in enumerate(state.workers.gather(tensor))}
    rate = RateMetadata(state.rate.reduction, state.rate.waited)
    metadata = StateMetadata(state.progress, rate, state.meter.seconds, state.workers.size)
    return Checkpoint({name: tensor.cpu() for name, tensor in tensors.items()}, dataclasses.asdict(metadata))


def restore(state: TrainState[Any], checkpoint: Checkpoint) -> bool:
    """Restore the state that `capture` captured.

    Args:
        state: A new state with the model, optimiser and schedule of the same config.
        checkpoint: From `capture`.

    Raises:
        CheckpointError: The checkpoint's metadata is damaged.

    Returns:
        True if the run continues as if it had never stopped; False with another number of processes or another kind of
        device, as the random numbers are then those of a new run.
    """
    tensors = checkpoint.tensors
    metadata = parse_metadata(StateMetadata, checkpoint.metadata)
    with torch.no_grad():
        for name, parameter in state.model.named_parameters():
            parameter.copy_(tensors[f"model.{name}"])
        if state.average:
            state.average.n_averaged.fill_(1 + metadata.progress.update)
            for name, parameter in state.result.named_parameters():
                parameter.copy_(tensors[f"average.{name}"])
    for name, tensor in state.scale.tensors().items():
        tensor.copy_(tensors[f"loss_scale.{name}"])
    optimizer = state.optimizer.state_dict() | {"state": defaultdict(dict)}
    for key, tensor in tensors.items():
        if key.startswith("optimizer."):
            _, index, name = key.split(".")
            optimizer["state"][int(index)][name] = tensor.clone()
    state.optimizer.load_state_dict(optimizer)
    state.progress = metadata.progress
    state.rate.reduction = metadata.rate.reduction
    state.rate.waited = metadata.rate.waited
    rank = state.workers.rank
    meter = state.meter
    if metadata.workers != state.workers.size or f"random.{meter.device.type}.{rank}" not in tensors:
        return False
    torch.set_rng_state(tensors[f"random.cpu.{rank}"])
    if meter.device.type == "cuda":
        torch.cuda.set_rng_state(tensors[f"random.cuda.{rank}"], meter.device)
    meter.sums, meter.counts = (tensors[f"meter.{name}.{rank}"].to(meter.device) for name in ("sums", "counts"))
    meter.skipped = list(tensors[f"meter.skipped.{rank}"].to(meter.device))
    meter.seconds = metadata.meter_seconds
    return True


def _process_tensors(state: TrainState[Any]) -> dict[str, Tensor]:
    """The state that differs between processes."""
    device = state.meter.device
    meter = state.meter
    tensors = {"random.cpu": torch.get_rng_state(), "meter.sums": meter.sums, "meter.counts": meter.counts}
    tensors["meter.skipped"] = torch.stack(meter.skipped) if meter.skipped else torch.zeros(0, device=device)
    if device.type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(device)
    return tensors
