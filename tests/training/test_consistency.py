"""Terms of the loss that compare predictions: SimCut."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Project, assert_same_run, read_metrics
from pairs import batch_of
from torch import Tensor, nn
from training_runs import refusal_to_resume, stop, stop_and_resume, train

from nmt.config import Config, ModelSection, SimCutSection
from nmt.corpus.batching import Batch
from nmt.models import reference
from nmt.models.base import Cut
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.text.vocabulary import BOS_ID, EOS_ID
from nmt.training.consistency import draw_cut, with_consistency
from nmt.training.loop import train_step
from nmt.training.optimizers import make_optimizer

WORDS = 9  # of both vocabularies; the last one occurs nowhere
SRC, TGT = [[4, 5, 6, 7], [6], [7, 4]], [[6, 5], [7, 4, 5], []]
LAYERS = {"hidden_size": 4, "num_layers": 2, "num_heads": 2, "feed_forward_size": 3}
RECURRENT, READS = {"hidden_size": 2}, {"kind": "self_attention", **LAYERS}
FAMILIES: dict[str, dict[str, Any]] = {
    "luong": {"decoder": {"hidden_size": 3}},
    "input_feeding": {"decoder": {"hidden_size": 3, "input_feeding": True}},
    "bahdanau": {"decoder": {"hidden_size": 3, "order": "bahdanau", "readout": "maxout"}},
    "copied_state": {"encoder": {"hidden_size": 2}, "decoder": {"hidden_size": 4, "initial_state": "copy"}},
    "hard": {"decoder": {"hidden_size": 3}, "attention": {"window": {"name": "hard"}}},
    "local_p": {"decoder": {"hidden_size": 3}, "attention": {"window": {"name": "local_p", "radius": 1}}},
    "coverage": {
        "decoder": {"hidden_size": 3},
        "attention": {"score": "additive", "past": {"name": "coverage", "loss_weight": 0.5}},
    },
    "fixed_context": {"decoder": {"hidden_size": 3}, "attention": {"score": "none"}},
    "transformer": {"encoder": READS, "decoder": {"kind": "transformer", **LAYERS}, "embedding_size": 4},
    "learned_positions": {"encoder": {**READS, "learned_positions": 9}, "decoder": {"kind": "transformer", **LAYERS}},
    "ssru": {"encoder": READS, "decoder": {"kind": "ssru", **LAYERS}},
    "hybrid": {"encoder": READS, "decoder": {"hidden_size": 3, "initial_state": "zeros"}},
    "recurrent_encoder": {"decoder": {"kind": "transformer", **LAYERS}},
    "fixed_norms": {"decoder": {"hidden_size": 3}, "tying": "all", "output_norm": 2.0},
}
every_family = pytest.mark.parametrize("family", FAMILIES)


def make_model(family: str, dropout: float = 0.0) -> Seq2Seq:
    """A float64 model in training mode with random weights."""
    torch.manual_seed(0)
    section = ModelSection(**{"embedding_size": 3, "encoder": RECURRENT, "dropout": dropout, **FAMILIES[family]})
    model = build_model(section, WORDS, WORDS).double().train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1.5, 1.5)
    return model


def loss_of(model: Seq2Seq, batch: Batch, smoothing: float = 0.0, seed: int = 7, **section: Any) -> Tensor:
    """The summed loss with SimCut, with the same draws for the same seed."""
    torch.manual_seed(seed)
    loss: Tensor = with_consistency(model, SimCutSection(**section))(batch, None, smoothing)
    return loss


def cut_of(batch: Batch, share: float, seed: int = 7) -> Cut:
    """The words that are cut for a seed."""
    torch.manual_seed(seed)
    return draw_cut(batch, share)


def log_probs_of(model: Seq2Seq, batch: Batch, cut: Cut | None = None) -> Tensor:
    """Log-probabilities of one reading of the pairs without padding, one pair after another, [P, V]."""
    return model.decoder.output(model.readouts(batch, None, cut)[0]).log_softmax(dim=-1)


def divergence(first: Tensor, second: Tensor) -> float:
    """KL(p || q) in numpy, summed over positions, from log-probabilities [P, V]."""
    log_p, log_q = (part.detach().numpy() for part in (first, second))
    return float(np.sum(np.exp(log_p) * (log_p - log_q)))


def test_divergence_by_hand() -> None:
    """p = (1/4, 3/4) and q = (1/2, 1/2)."""
    W, b = torch.tensor([[0.0], [math.log(3)]]), torch.zeros(2)
    p, q = torch.tensor([1.0]), torch.tensor([0.0])
    expected = 0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5)
    assert float(reference.divergence(p, q, W, b)) == pytest.approx(expected)
    assert float(reference.divergence(q, p, W, b)) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert float(reference.divergence(p, p, W, b)) == 0


@every_family
def test_a_cut_word_is_one_whose_vector_is_zero(family: str) -> None:
    """As if the pairs had a word in its place whose vector is 0, in every family."""
    model, batch = make_model(family).eval(), batch_of(SRC, TGT)
    for part in (model.encoder, model.decoder):
        embedding = next(module for module in part.modules() if isinstance(module, nn.Embedding))
        with torch.no_grad():
            embedding.weight[WORDS - 1] = 0
    cut = cut_of(batch, 0.5)
    assert cut.src.any()
    assert cut.tgt_in.any()
    replaced = batch._replace(
        src=batch.src.masked_fill(cut.src, WORDS - 1), tgt_in=batch.tgt_in.masked_fill(cut.tgt_in, WORDS - 1)
    )
    found, expected = log_probs_of(model, batch, cut), log_probs_of(model, replaced)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert float((found - log_probs_of(model, batch)).detach().abs().max()) > 1e-3


@every_family
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_cross_entropy_and_the_divergence(family: str, smoothing: float) -> None:
    """Hard attention draws its positions, which only evaluation leaves out: the random draws of two calls differ."""
    model, batch = make_model(family), batch_of(SRC, TGT)
    if family == "hard":
        model.eval()
    changed = divergence(log_probs_of(model, batch), log_probs_of(model, batch, cut_of(batch, 0.5)))
    assert changed > 1e-3
    for weight in (0.0, 3.0):
        found = loss_of(model, batch, smoothing, weight=weight, share=0.5)
        expected = float(model(batch, None, smoothing).detach()) + weight * changed
        assert float(found.detach()) == pytest.approx(expected, rel=1e-6)


def test_the_divergence_is_that_of_the_equations() -> None:
    model, batch = make_model("luong"), batch_of(SRC, TGT)
    output = model.decoder.output
    first, second = (model.readouts(batch, None, cut)[0] for cut in (None, cut_of(batch, 0.5)))
    by_position = [reference.divergence(p, q, output.weight, output.bias) for p, q in zip(first, second, strict=True)]
    losses = [loss_of(model, batch, weight=weight, share=0.5) for weight in (0.0, 1.0)]
    torch.testing.assert_close(losses[1] - losses[0], torch.stack(by_position).sum(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", ["luong", "bahdanau", "transformer", "fixed_norms"])
@pytest.mark.parametrize("stop_gradient", [False, True])
def test_gradients_are_those_of_finite_differences(family: str, stop_gradient: bool) -> None:
    """Along a random direction of each parameter, of the whole loss in numpy.

    The first reading's prediction stays as it was if the gradient is stopped there.
    """
    model, batch = make_model(family), batch_of(SRC, TGT)
    cut, targets = cut_of(batch, 0.5), batch.tgt_out.flatten()[batch.positions].numpy()
    held = log_probs_of(model, batch).detach()

    def whole() -> float:
        with torch.no_grad():
            first, second = log_probs_of(model, batch), log_probs_of(model, batch, cut)
        entropy = -0.9 * first.numpy()[np.arange(len(targets)), targets] - 0.1 * first.numpy().mean(axis=1)
        return float(entropy.sum()) + 3 * divergence(held if stop_gradient else first, second)

    loss = loss_of(model, batch, 0.1, share=0.5, stop_gradient=stop_gradient)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    checked = 0
    for parameter, gradient in zip(parameters, gradients, strict=True):
        value, direction = parameter.data.clone(), torch.randn_like(parameter)
        direction /= direction.norm()
        losses = []
        for step in (1e-5, -1e-5):
            parameter.data.copy_(value + step * direction)
            losses.append(whole())
        parameter.data.copy_(value)
        expected = (losses[0] - losses[1]) / 2e-5
        found = 0.0 if gradient is None else float((gradient * direction).sum())
        assert found == pytest.approx(expected, abs=1e-6)
        checked += abs(expected) > 1e-3
    assert checked > 10


def test_both_sides_of_the_divergence_learn_unless_one_is_stopped() -> None:
    model, batch = make_model("luong"), batch_of(SRC, TGT)
    gradients = [
        torch.autograd.grad(loss_of(model, batch, share=0.5, stop_gradient=stopped), model.decoder.output.bias)[0]
        for stopped in (False, True)
    ]
    assert float((gradients[0] - gradients[1]).abs().max()) > 1e-3


@every_family
def test_padding_never_counts(family: str) -> None:
    """With nearly every word cut, so that the draws of another shape are the same."""
    if family == "hard":
        pytest.skip("draws positions, one for each target position with its padding")
    model = make_model(family)
    losses = [
        loss_of(model, batch_of(SRC, TGT, *padding), share=0.999999, weight=2.0) for padding in ((0, 0), (2, 0), (3, 2))
    ]
    for loss in losses[1:]:
        assert float(loss.detach()) == pytest.approx(float(losses[0].detach()), rel=1e-6)


@every_family
def test_nothing_is_cut_with_a_share_of_zero(family: str) -> None:
    """Without dropout both readings are the same: what is left is the plain loss, and its gradient."""
    if family == "hard":
        pytest.skip("draws positions for both readings")
    model, batch = make_model(family), batch_of(SRC, TGT)
    plain, found = model(batch, None, 0.1), loss_of(model, batch, 0.1, share=0.0, weight=100.0)
    assert float(found.detach()) == pytest.approx(float(plain.detach()), rel=1e-6)
    parameters = list(model.parameters())
    for one, other in zip(*(torch.autograd.grad(loss, parameters) for loss in (plain, found)), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


def test_words_are_cut_with_the_probability_of_the_share() -> None:
    batch = batch_of([[4] * 99] * 200, [[5] * 79] * 200)
    cut = cut_of(batch, 0.05)
    for side, words in ((cut.src[:, :-1], 99), (cut.tgt_in[:, 1:], 79)):
        assert float(side.double().mean()) == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / (200 * words)))


def test_the_end_of_a_source_and_the_start_of_a_target_are_never_cut() -> None:
    batch = batch_of(SRC, TGT)
    cut = cut_of(batch, 0.999999)
    assert (cut.src | (batch.src == EOS_ID)).all()
    assert not cut.src[batch.src == EOS_ID].any()
    assert cut.tgt_in.equal(batch.tgt_in != BOS_ID)


def test_without_target_words_the_loss_is_zero() -> None:
    """A process whose part of a batch is empty has a pair without positions to predict."""
    model, batch = make_model("luong"), batch_of(SRC, TGT)
    loss = loss_of(model, batch._replace(positions=batch.positions[:0]), 0.1)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == 0
    assert all(not parameter.grad.any() for parameter in model.parameters() if parameter.grad is not None)


def update(batches: list[Batch], **section: Any) -> tuple[float, list[Tensor]]:
    """The loss of one update, and the weights after it."""
    model = make_model("bahdanau")
    options = Config(train={"optimizer": {"name": "sgd", "learning_rate": 0.5}, "label_smoothing": 0.1}).train
    torch.manual_seed(3)
    learner = with_consistency(model, SimCutSection(**section))
    step = train_step(learner, batches, make_optimizer(options.optimizer, model), options, 0)
    return float(step.loss), [parameter.detach() for parameter in model.parameters()]


def test_parts_of_a_batch_accumulate_to_the_whole() -> None:
    """With nearly every word cut, so that the draws are the same however the pairs are divided."""
    whole = update([batch_of(SRC, TGT)], share=0.999999)
    parts = update([batch_of(SRC[:1], TGT[:1]), batch_of(SRC[1:], TGT[1:])], share=0.999999)
    assert parts[0] == pytest.approx(whole[0], rel=1e-6)
    for one, other in zip(parts[1], whole[1], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)
    assert update([batch_of(SRC, TGT)], share=0.0)[0] != pytest.approx(whole[0], rel=1e-3)


@every_family
def test_every_family_learns_under_bfloat16_with_dropout(family: str) -> None:
    model = make_model(family, dropout=0.2).float()
    options = Config(train={"precision": "bfloat16", "optimizer": {"learning_rate": 0.03}}).train
    learner, optimizer = with_consistency(model, SimCutSection(share=0.2)), make_optimizer(options.optimizer, model)
    steps = [train_step(learner, [batch_of(SRC, TGT)], optimizer, options, number) for number in range(20)]
    assert not any(float(step.skipped) for step in steps)
    assert float(steps[-1].loss) < 0.8 * float(steps[0].loss)


# Runs by the real command.

SIMCUT = "train.consistency={name: simcut, share: 0.2}"
FORCED = "train.teacher_forcing.ratio=1"
SMALL = "hidden_size: 8, num_layers: 2, num_heads: 2, feed_forward_size: 8"


@pytest.mark.parametrize(
    "settings",
    [
        ["train.ema_decay=0.9", "train.label_smoothing=0.1", "train.batch={size: 12, accumulate: 2}"],
        ["model.decoder.input_feeding=true", "train.precision=bfloat16"],
        ["model.decoder.order=bahdanau", "model.attention={score: additive, window: {name: hard}}"],
        [f"model.encoder={{kind: self_attention, {SMALL}}}", f"model.decoder={{kind: transformer, {SMALL}}}"],
    ],
    ids=["luong", "input feeding", "bahdanau", "transformer"],
)
def test_a_run_with_it_resumes_exactly(settings: list[str], short_project: Project, tmp_path: Path) -> None:
    stop_and_resume(short_project, tmp_path, 7, SIMCUT, FORCED, *settings)


def test_validation_measures_the_plain_loss(short_project: Project, tmp_path: Path) -> None:
    """Of models with equal weights, which a tiny rate leaves as they were; the loss of training has the term."""
    frozen = ["train.optimizer={name: sgd, learning_rate: 1.0e-30}", f"parent={short_project.run}"]
    logs = []
    for name, settings in (("plain", ()), ("cut", ("train.consistency={name: simcut, weight: 900, share: 0.5}",))):
        train(short_project, tmp_path / name, *frozen, FORCED, "train.max_updates=6", *settings)
        logs.append(read_metrics(tmp_path / name))
    plain, cut = ([line["loss"] for line in log if line["kind"] == "valid"] for log in logs)
    assert cut == plain
    plain, cut = ([line["loss"] for line in log if line["kind"] == "train"] for log in logs)
    assert min(cut) > max(plain) + 1


def test_none_is_a_run_without_it(short_project: Project, tmp_path: Path) -> None:
    train(short_project, tmp_path / "run", "train.consistency=null")
    assert_same_run(tmp_path / "run", short_project.run)


def test_a_resumed_run_may_change_it_and_says_so(short_project: Project, tmp_path: Path) -> None:
    stop(short_project, tmp_path / "run", 3, SIMCUT, FORCED)
    said = train(short_project, tmp_path / "run", SIMCUT, FORCED, "train.consistency.weight=2", "--resume")
    assert "changed since the checkpoint: train.consistency.weight (3.0 there, 2.0 here)" in said
    assert "from here on, the run differs" in said


def test_a_run_with_it_is_not_resumed_with_words_of_its_own(short_project: Project, tmp_path: Path) -> None:
    stop(short_project, tmp_path / "run", 3, SIMCUT, FORCED)
    line = refusal_to_resume(short_project, tmp_path / "run", SIMCUT)
    assert "train.consistency.name: simcut compares two readings of the same words" in line
