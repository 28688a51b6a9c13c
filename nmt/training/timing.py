"""The speed of training, measured by ordinary updates."""

import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.config import Config, TrainSection
from nmt.corpus.batch_source import open_batches
from nmt.corpus.dataset import EncodedPairs, open_data
from nmt.corpus.noise import Noise, make_noise
from nmt.models.seq2seq import Seq2Seq
from nmt.system.device import resolve_device, restored_products
from nmt.system.progress import progress_bar
from nmt.training.consistency import with_consistency
from nmt.training.distributed import Workers
from nmt.training.loop import count_updates, make_update, plan_epoch
from nmt.training.loss_scale import make_loss_scale
from nmt.training.optimizers import make_optimizer
from nmt.training.schedules import LearningRateSchedule
from nmt.training.setup import make_model, resolve

WARM_UP = 3  # updates
Groups = Sequence[Sequence[NDArray[np.int64]]]
"""The batches of each update of an epoch."""


class Timing(NamedTuple):
    """Losses and speed of ordinary updates.

    Attributes:
        losses: Loss of each update in nats per token.
        updates: Number of timed updates, the last ones.
        tokens: Target tokens of the timed updates.
        seconds: Time of the timed updates.
    """

    losses: list[float]
    updates: int
    tokens: int
    seconds: float


def time_updates(
    options: TrainSection, pairs: EncodedPairs, noise: Noise, groups: Groups, model: Seq2Seq, timed: int, limit: float
) -> Timing:
    """Run a few ordinary updates; fewer if they take long.

    Args:
        options: Training options.
        pairs: Training pairs.
        noise: Noise on training pairs.
        groups: The batches of each update.
        model: The model, which is changed.
        timed: Number of timed updates.
        limit: Seconds after which no further update is made.
    """
    learner = with_consistency(model, options.consistency)
    optimizer = make_optimizer(options.optimizer, model)
    rate = LearningRateSchedule(options.schedule, count_updates(options, len(groups)))
    source = open_batches(pairs, noise, model.device)
    make_step = make_update(learner, optimizer, options, scale=make_loss_scale(options.precision, model.device))
    losses: list[torch.Tensor] = []
    tokens = list[int]()
    begins = [time.perf_counter()]
    with progress_bar(total=WARM_UP + timed, desc="timing updates", unit=" updates", leave=False) as bar:
        for update, group in enumerate(itertools.islice(itertools.cycle(groups), WARM_UP + timed)):
            for parameters in optimizer.param_groups:
                parameters["lr"] = options.optimizer.learning_rate * rate.share(update + 1)
            batches = [source(indices, 1) for indices in group]
            tokens.append(sum(batch.num_tokens for batch in batches))
            step = make_step(batches, update)
            losses.append(step.loss / tokens[-1])
            if update < WARM_UP:
                float(losses[-1])  # waits for the device
                begins.append(time.perf_counter())
            bar.update()
            if time.perf_counter() - begins[0] > limit:
                break
    values = torch.stack(losses).tolist()
    warm = min(WARM_UP, len(values) - 1)
    return Timing(values, len(values) - warm, sum(tokens[warm:]), time.perf_counter() - begins[warm])


@restored_products()
def measure_updates(config: Config, data_directory: Path, limit: float) -> tuple[float, int]:
    """Measure the speed of training by up to 200 ordinary updates.

    Args:
        config: The whole config; its text settings must be those of the data.
        data_directory: Data directory written by `nmt preprocess`.
        limit: Seconds after which no further update is made.

    Returns:
        Seconds per update in the mean over an epoch, and updates per epoch.
    """
    device = resolve_device(config.train.device)
    data = open_data(data_directory)
    config = resolve(config, data, Workers(device=device))
    options = config.train
    groups = plan_epoch(data.train, options, 1)
    model = make_model(config, data).to(device)
    timing = time_updates(options, data.train, make_noise(options, data), groups, model, 200, limit)
    tokens = (len(data.train.tgt.ids) + len(data.train)) / len(groups)  # with EOS, per update
    return tokens * timing.seconds / timing.tokens, len(groups)
