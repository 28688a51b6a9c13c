"""A scaled loss gives the gradients of the loss; overflow halves the scale and skips the update."""

import pytest
import torch
from pairs import batch_of
from torch import Tensor

from nmt.config import Config
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.system.device import autocast
from nmt.training.loop import train_step
from nmt.training.loss_scale import FIRST_SCALE, GROWTH_INTERVAL, LossScale, NoLossScale, make_loss_scale
from nmt.training.optimizers import make_optimizer

CPU = torch.device("cpu")
SRC = [[4, 5, 6], [7, 8]]
TGT = [[5, 4], [6, 7, 8]]


def small_model() -> Seq2Seq:
    section = Config(model={"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 8}}).model
    torch.manual_seed(1)
    return build_model(section, 10, 10)


def updated(scale: NoLossScale, precision: str = "float32", updates: int = 1) -> tuple[Seq2Seq, list[float]]:
    """A small model after some updates from one batch, and its losses."""
    options = Config(train={"precision": precision, "optimizer": {"learning_rate": 0.02}}).train
    model = small_model()
    optimizer = make_optimizer(options.optimizer, model)
    batch = batch_of(SRC, TGT)
    losses = [float(train_step(model, [batch], optimizer, options, n, scale=scale).loss) for n in range(updates)]
    return model, losses


def test_the_scale_of_a_precision() -> None:
    assert isinstance(make_loss_scale("float16", CPU), LossScale)
    assert not isinstance(make_loss_scale("bfloat16", CPU), LossScale)


def test_an_update_with_a_scaled_loss_is_that_of_the_loss() -> None:
    plain, _ = updated(NoLossScale(), updates=3)
    scaled, _ = updated(LossScale(CPU), updates=3)
    for expected, found in zip(plain.parameters(), scaled.parameters(), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)  # 2^8 changes no digit but by rounding sums


def test_overflow_halves_the_scale_and_good_updates_double_it() -> None:
    scale = LossScale(CPU)
    scale.update(torch.tensor(1.0))
    scale.update(torch.tensor(1.0))
    assert float(scale.scale) == FIRST_SCALE / 4
    for _ in range(GROWTH_INTERVAL):
        scale.update(torch.tensor(0.0))
    assert float(scale.scale) == FIRST_SCALE / 2


def test_an_update_whose_gradients_overflow_is_skipped() -> None:
    scale = LossScale(CPU)
    scale.scale.fill_(3e38)  # infinite once it is multiplied by a gradient above 1.2
    options = Config(train={"precision": "float32"}).train
    model = small_model()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = make_optimizer(options.optimizer, model)
    step = train_step(model, [batch_of(SRC, TGT)], optimizer, options, 0, scale=scale)
    assert int(step.skipped) == 1
    assert float(scale.scale) == pytest.approx(1.5e38)
    assert all(map(torch.equal, before, model.parameters()))


def test_a_model_learns_in_float16() -> None:
    _, losses = updated(LossScale(CPU), "float16", 25)
    assert losses[-1] < 0.75 * losses[0]
    _, exact = updated(NoLossScale(), "float32", 1)
    assert losses[0] == pytest.approx(exact[0], rel=5e-3)


def test_products_are_in_the_precision() -> None:
    def product() -> Tensor:
        return torch.ones(2, 2) @ torch.ones(2, 2)

    for precision, dtype in (("float16", torch.float16), ("bfloat16", torch.bfloat16), ("float32", torch.float32)):
        with autocast(CPU, precision):
            assert product().dtype == dtype
