"""Training on a GPU: recorded updates, exact resume, batches on the device, NCCL with one process."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from conftest import Project
from torch.nn.parallel import DistributedDataParallel
from training.test_update_graph import (
    MODELS,
    RARE,
    assert_continues,
    make_config,
    make_state,
    random_pairs,
    until,
)
from training_runs import stop_and_resume

from nmt.config import load_config
from nmt.corpus.batch_source import DeviceBatches, HostBatches, open_batches
from nmt.corpus.batching import make_batch
from nmt.corpus.noise import no_noise
from nmt.evaluation.loss import mean_loss
from nmt.layers.self_attention import SelfAttention
from nmt.system.device import fixed_order
from nmt.training.loop import Reported, Skipped, start, train_step
from nmt.training.optimizers import make_optimizer
from nmt.training.update_graph import GraphRecorder, make_recorder

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic products; read when CUDA starts
CUDA = torch.device("cuda")


@pytest.fixture(autouse=True)
def _deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


def on_gpu(config: Any, pairs: Any, seed: int = 0) -> Any:
    """The state of a run on the GPU, with the initial weights of one on the CPU."""
    return start(make_state(config, pairs, seed).model.to(CUDA), pairs, config.train)


def test_a_gpu_records_graphs() -> None:
    assert isinstance(make_recorder(CUDA), GraphRecorder)


@pytest.mark.parametrize("model", MODELS)
def test_recorded_updates_have_the_losses_and_weights_of_the_plain_loop_on_the_cpu(model: str) -> None:
    pairs = random_pairs()
    plain = make_config(model, graphs=False, batch={"size": 5}, max_updates=20)
    there = make_state(plain, pairs)
    expected = until(there, pairs, plain, 20)
    config = make_config(model, graphs=True, batch={"size": 5}, max_updates=20)
    here = on_gpu(config, pairs)
    found = until(here, pairs, config, 20)
    for one, other in zip(found, expected, strict=True):
        assert isinstance(one, Reported)
        assert isinstance(other, Reported)
        assert one.loss == pytest.approx(other.loss, rel=1e-3)
    for weight, same in zip(here.model.parameters(), there.model.parameters(), strict=True):
        torch.testing.assert_close(weight.cpu(), same, rtol=0, atol=1e-3)


@pytest.mark.parametrize("model", ["luong", "bahdanau", "transformer"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_a_restored_run_continues_as_if_it_had_never_stopped(model: str, precision: str) -> None:
    """Its first updates are not recorded yet, and draw the random numbers that recorded ones would."""
    pairs = random_pairs()
    config = make_config(model, dropout=0.3, precision=precision, batch={"size": 5}, max_updates=20, log_every=4)
    assert_continues(on_gpu, config, pairs, stop=13, last=20)


def test_recorded_updates_that_are_not_finite_are_skipped() -> None:
    pairs = random_pairs()
    config = make_config(batch={"size": 4}, max_updates=18)
    state = on_gpu(config, pairs)
    with torch.no_grad():
        state.model.encoder.embedding.weight[RARE] = math.inf
    skipped = [event for event in until(state, pairs, config, 18) if isinstance(event, Skipped)]
    assert 6 < len(skipped) < 18
    assert bool(state.model.decoder.output.weight.isfinite().all())


@pytest.mark.parametrize("model", ["luong", "transformer"])
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_learns_in_recorded_updates(model: str, precision: str) -> None:
    pairs = random_pairs(longest=3)
    config = make_config(
        model, precision=precision, batch={"size": 8}, max_updates=60, optimizer={"learning_rate": 0.02}
    )
    losses = [event.loss for event in until(on_gpu(config, pairs), pairs, config, 60) if isinstance(event, Reported)]
    assert np.mean(losses[-5:]) < 0.8 * losses[0]


@pytest.mark.parametrize("indices", [[0, 1, 2, 3], [22], [2, 2, 0]])
def test_the_gpu_makes_the_batch_of_the_host(indices: list[int]) -> None:
    pairs = random_pairs()
    assert isinstance(open_batches(pairs, no_noise, CUDA), DeviceBatches)
    wanted = make_batch(pairs, np.array(indices))
    for source in (DeviceBatches(pairs, CUDA), HostBatches(pairs, pinned=True)):
        found = source(np.array(indices), 1).to(CUDA)
        assert all(torch.equal(part.cpu(), expected) for part, expected in zip(found, wanted, strict=True))


@pytest.mark.parametrize("model", MODELS)
def test_runs_of_fixed_order_have_the_same_weights_to_the_bit(model: str) -> None:
    pairs = random_pairs()
    config = make_config(model, dropout=0.3, graphs=False, batch={"size": 5}, max_updates=10)
    weights = []
    for _ in range(2):
        torch.manual_seed(3)
        state = on_gpu(config, pairs)
        with fixed_order(wanted=True):
            until(state, pairs, config, 10)
        weights.append(list(state.model.parameters()))
    for one, other in zip(*weights, strict=True):
        assert torch.equal(one, other)


def test_self_attention_on_a_gpu_has_the_contexts_of_the_cpu() -> None:
    torch.manual_seed(4)
    layer = SelfAttention(16, 2, dropout=0.0)
    inputs = torch.randn(3, 7, 16)
    allowed = (torch.rand(3, 7, 7) < 0.6) | torch.eye(7, dtype=torch.bool)
    expected = layer(inputs, allowed)
    found = layer.to(CUDA)(inputs.to(CUDA), allowed.to(CUDA))
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=1e-4)


def test_the_loss_of_a_model_is_that_on_the_cpu() -> None:
    pairs = random_pairs()
    model = make_state(make_config("transformer"), pairs).model
    expected = mean_loss(model, pairs)
    assert mean_loss(model.to(CUDA), pairs) == pytest.approx(expected, rel=1e-5)


def test_one_process_of_nccl_makes_the_update_of_a_single_process(tmp_path: Path) -> None:
    pairs = random_pairs()
    options = make_config(graphs=False).train
    batch = make_batch(pairs, np.arange(6))
    models = [on_gpu(make_config(graphs=False), pairs).model for _ in range(2)]
    train_step(models[0], [batch], make_optimizer(options.optimizer, models[0]), options, 0)
    dist.init_process_group("nccl", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    try:
        replica = DistributedDataParallel(models[1], device_ids=[torch.cuda.current_device()])
        train_step(replica, [batch], make_optimizer(options.optimizer, models[1]), options, 0)
        total = torch.ones(3, device=CUDA)
        dist.all_reduce(total)
        assert total.tolist() == [1, 1, 1]
    finally:
        dist.destroy_process_group()
    for alone, together in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


def test_a_run_on_a_gpu_resumes_exactly_by_the_real_commands(short_project: Project, tmp_path: Path) -> None:
    run = stop_and_resume(
        short_project, tmp_path, 7, "train.teacher_forcing.ratio=1", "train.device=cuda", "train.graphs=auto"
    )
    assert load_config(str(run / "config.yaml")).train.graphs is True
