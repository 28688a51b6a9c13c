"""The state of training, and its conversion to a checkpoint and back."""

from __future__ import annotations

import dataclasses
import random
import time
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from nmt.config import AdamSection, AdamWSection, OptimizerSection
from nmt.models.seq2seq import Seq2Seq
from nmt.training.averaging import WeightAverage
from nmt.training.checkpoint import Checkpoint
from nmt.training.distributed import Workers
from nmt.training.schedules import LearningRate


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
        learnt: Whether any validation had a loss below that of uniform guessing.
        skipped_in_row: Consecutive skipped updates, as of the last report.
        seconds: Time spent on updates, without validation.
        tokens: Target tokens trained on, without padding.
    """

    update: int = 0
    epoch: int = 1
    position: int = 0
    best: float | None = None
    best_loss: float | None = None
    best_update: int = 0
    waited: int = 0
    learnt: bool = False
    skipped_in_row: int = 0
    seconds: float = 0.0
    tokens: int = 0


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
        kept = skipped == 0
        self.sums += torch.stack([loss, norm]).where(kept, 0)
        self.counts += torch.stack([tokens, torch.ones_like(tokens)]).where(kept, 0)
        self.skipped.append(skipped)
        self.seconds += time.perf_counter() - self._begin


@dataclass
class TrainState:
    """A model in training.

    Attributes:
        model: On its device.
        optimizer: Over all weights.
        rate: Learning rate over time.
        workers: The processes that train it.
        average: Moving average of its weights, which is what is validated and stored.
        updates_per_epoch: Updates per epoch.
        total_updates: Updates of the whole run, unless it stops early.
        progress: Progress of the run.
        replica: The model as training calls it.
        meter: Sums since the last report.
    """

    model: Seq2Seq
    optimizer: torch.optim.Optimizer
    rate: LearningRate
    workers: Workers
    average: WeightAverage
    updates_per_epoch: int
    total_updates: int
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self.replica: nn.Module = self.workers.replicate(self.model)
        self.meter = Meter(self.model.device)

    @property
    def last_skipped(self) -> bool:
        """Whether the last update was skipped; waits for the device."""
        skipped = self.meter.skipped
        return bool(skipped[-1]) if skipped else self.progress.skipped_in_row > 0


def make_optimizer(config: OptimizerSection, model: nn.Module) -> torch.optim.Optimizer:
    """The optimiser over all weights, with fused kernels, which can skip an update without waiting for the host."""
    rate, decay, parameters = config.learning_rate, config.weight_decay, list(model.parameters())
    if config.name == "sgd":
        sgd = torch.optim.SGD(parameters, lr=rate, momentum=config.momentum, weight_decay=decay, fused=True)
        if config.momentum:
            for parameter in parameters:  # torch would leave it uninitialised if the first update is skipped
                sgd.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        return sgd
    if not isinstance(config, AdamSection | AdamWSection):
        raise NotImplementedError(config.name)
    kind: type[torch.optim.Adam] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config.name]
    return kind(parameters, lr=rate, betas=config.betas, eps=config.epsilon, weight_decay=decay, fused=True)


def capture(state: TrainState) -> Checkpoint:
    """Capture all that the rest of the run depends on; must be called by all processes together."""
    tensors = {f"model.{name}": parameter.detach() for name, parameter in state.model.named_parameters()}
    tensors |= {f"average.{name}": average for name, average in state.average.averages.items()}
    for index, values in state.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in values.items()}
    for name, tensor in _of_each_process(state).items():
        tensors |= {f"{name}.{rank}": part for rank, part in enumerate(state.workers.gather(tensor))}
    numpy_state = np.random.get_state(legacy=False)
    facts = {
        "progress": dataclasses.asdict(state.progress),
        "rate": {"reduction": state.rate.reduction, "waited": state.rate.waited},
        "meter_seconds": state.meter.seconds,
        "workers": state.workers.size,
        "python_random": random.getstate(),
        "numpy_random": {**numpy_state, "state": {**numpy_state["state"], "key": numpy_state["state"]["key"].tolist()}},
    }
    return Checkpoint({name: tensor.cpu() for name, tensor in tensors.items()}, facts)


def restore(state: TrainState, checkpoint: Checkpoint) -> bool:
    """Restore what `capture` captured.

    Args:
        state: A new state with the model, optimiser and schedule of the same config.
        checkpoint: From `capture`.

    Returns:
        Whether the run continues as if it had never stopped; False with another number of processes or another kind of
        device, as the random numbers are then those of a new run.
    """
    tensors, facts = checkpoint.tensors, checkpoint.facts
    with torch.no_grad():
        for name, parameter in state.model.named_parameters():
            parameter.copy_(tensors[f"model.{name}"])
        for name, average in state.average.averages.items():
            average.copy_(tensors[f"average.{name}"])
    optimizer: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimizer."):
            _, index, name = key.split(".")
            optimizer.setdefault(int(index), {})[name] = tensor.clone()
    groups = state.optimizer.state_dict()["param_groups"]
    state.optimizer.load_state_dict({"state": optimizer, "param_groups": groups})
    # Older checkpoints lack `learnt`: a best model has to suffice.
    state.progress = Progress(**{"learnt": facts["progress"]["best"] is not None, **facts["progress"]})
    state.rate.reduction, state.rate.waited = facts["rate"]["reduction"], facts["rate"]["waited"]
    version, numbers, gauss = facts["python_random"]
    random.setstate((version, tuple(numbers), gauss))
    np.random.set_state(facts["numpy_random"])
    rank = state.workers.rank
    if facts["workers"] != state.workers.size or f"random.{state.meter.device.type}.{rank}" not in tensors:
        return False
    torch.set_rng_state(tensors[f"random.cpu.{rank}"])
    if state.meter.device.type == "cuda":
        torch.cuda.set_rng_state(tensors[f"random.cuda.{rank}"], state.meter.device)
    meter = state.meter
    meter.sums, meter.counts = (tensors[f"meter.{name}.{rank}"].to(meter.device) for name in ("sums", "counts"))
    meter.skipped = list(tensors[f"meter.skipped.{rank}"].to(meter.device))
    meter.seconds = facts["meter_seconds"]
    return True


def _of_each_process(state: TrainState) -> dict[str, Tensor]:
    """The state that differs between processes."""
    device, meter = state.meter.device, state.meter
    own = {"random.cpu": torch.get_rng_state(), "meter.sums": meter.sums, "meter.counts": meter.counts}
    own["meter.skipped"] = torch.stack(meter.skipped) if meter.skipped else torch.zeros(0, device=device)
    if device.type == "cuda":
        own["random.cuda"] = torch.cuda.get_rng_state(device)
    return own
