import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.config import Config, TextSection
from nmt.corpus.batching import Batch, make_batch
from nmt.corpus.dataset import EncodedPairs, Sequences
from nmt.evaluation.loss import evaluating, mean_loss
from nmt.evaluation.metrics import ScoringRules
from nmt.evaluation.validator import Validator
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.system.errors import NmtError
from nmt.training.checkpoint_schema import Progress
from nmt.training.loop import (
    Event,
    Reported,
    Scores,
    Skipped,
    Step,
    Stopped,
    Updated,
    ValidationDue,
    plan_epoch,
    start,
    take_scores,
    train_step,
    training_events,
)
from nmt.training.optimizers import make_optimizer

SIZE = 10  # of both vocabularies


def reversals(sequences: Iterable[Iterable[int]]) -> EncodedPairs:
    """Pairs whose target is the source backwards."""
    ids = [list(sequence) for sequence in sequences]
    return EncodedPairs(Sequences.pack(ids), Sequences.pack([sequence[::-1] for sequence in ids]))


def random_pairs(number: int, longest: int = 6, seed: int = 0) -> EncodedPairs:
    rng = np.random.default_rng(seed)
    return reversals(rng.integers(4, SIZE, size=rng.integers(1, longest + 1)).tolist() for _ in range(number))


def make_config(
    dropout: float = 0.0, order: str = "luong", model: dict[str, object] | None = None, **options: object
) -> Config:
    sizes = {"encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 8, "order": order}}
    return Config(model=model or {"embedding_size": 4, "dropout": dropout, **sizes}, train=options)


def make_model(config: Config, seed: int = 0) -> Seq2Seq:
    torch.manual_seed(seed)
    return build_model(config.model, SIZE, SIZE)


def weights(model: Seq2Seq) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def batch_of(pairs: EncodedPairs, indices: Iterable[int]) -> Batch:
    return make_batch(pairs, np.array(list(indices)))


def gradients_by_hand(model: Seq2Seq, batches: list[Batch], smoothing: float = 0.0) -> tuple[float, list[Tensor]]:
    """Summed loss, and gradient of the mean over all target tokens, from log-softmax and indexing alone."""
    total = torch.zeros((), dtype=torch.float64)
    tokens = 0
    for batch in batches:
        readouts, words, _ = model.readouts(batch)
        log_probs = model.decoder.output(readouts).log_softmax(dim=-1)
        picked = log_probs[torch.arange(len(words)), words]
        total = total - ((1 - smoothing) * picked + smoothing * log_probs.mean(dim=-1)).sum()
        tokens += len(words)
    return float(total.detach()), list(torch.autograd.grad(total / tokens, list(model.parameters())))


def first_update(config: Config, *groups: Iterable[int]) -> tuple[Step, list[Tensor]]:
    """An update of a new model from batches of random pairs, and the weights after it."""
    model, pairs = make_model(config).double(), random_pairs(9)
    optimizer = make_optimizer(config.train.optimizer, model)
    step = train_step(model, [batch_of(pairs, group) for group in groups], optimizer, config.train, 0)
    assert all(parameter.grad is None for parameter in model.parameters())
    return step, weights(model)


def sgd(learning_rate: float, clip_norm: float | None = None) -> dict[str, object]:
    return {"name": "sgd", "learning_rate": learning_rate, "clip_norm": clip_norm}


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_is_that_of_the_mean_over_tokens(smoothing: float) -> None:
    config = make_config(label_smoothing=smoothing, optimizer=sgd(1.0))
    model = make_model(config).double()
    expected_loss, gradients = gradients_by_hand(model, [batch_of(random_pairs(9), range(6))], smoothing)
    step, after = first_update(config, range(6))
    assert float(step.loss) == pytest.approx(expected_loss, rel=1e-6)
    assert float(step.norm) == pytest.approx(math.sqrt(sum(float(g.square().sum()) for g in gradients)), rel=1e-6)
    for new, old, gradient in zip(after, weights(model), gradients, strict=True):
        torch.testing.assert_close(new, old - gradient, rtol=0, atol=1e-7)


def assert_same_update(found: tuple[Step, list[Tensor]], expected: tuple[Step, list[Tensor]]) -> None:
    assert float(found[0].loss) == pytest.approx(float(expected[0].loss), rel=1e-6)
    assert float(found[0].norm) == pytest.approx(float(expected[0].norm), rel=1e-6)
    assert int(found[0].tokens) == int(expected[0].tokens)
    for one, other in zip(found[1], expected[1], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


@pytest.mark.parametrize("order", ["bahdanau", "luong"])
def test_halves_of_a_batch_accumulate_to_the_whole(order: str) -> None:
    config = make_config(order=order, optimizer=sgd(0.5, clip_norm=0.01))
    whole = first_update(config, range(9))
    for groups in ([range(4), range(4, 9)], [range(1), range(1, 2), range(2, 9)]):
        assert_same_update(first_update(config, *groups), whole)


@pytest.mark.parametrize(("clip_norm", "clipped"), [(1e-3, True), (1e3, False), (None, False)])
def test_clipping_bounds_the_whole_gradient(clip_norm: float | None, clipped: bool) -> None:
    config = make_config(optimizer=sgd(1.0, clip_norm))
    step, after = first_update(config, range(6))
    before = weights(make_model(config).double())
    moved = math.sqrt(sum(float((new - old).square().sum()) for new, old in zip(after, before, strict=True)))
    assert float(step.norm) > 1e-3  # what is reported is the norm before clipping
    assert moved == pytest.approx(1e-3 if clipped else float(step.norm), rel=1e-2)


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_mean_loss_by_hand(batch_size: int) -> None:
    config = make_config(dropout=0.5, label_smoothing=0.3)  # neither counts when a model is measured
    model, pairs = make_model(config).double().train(), random_pairs(11)
    found = mean_loss(model, pairs, batch_size)
    assert model.training
    total, _ = gradients_by_hand(model.eval(), [batch_of(pairs, [index]) for index in range(11)])
    tokens = sum(len(pairs.tgt[index]) + 1 for index in range(11))
    assert found == pytest.approx(total / tokens, rel=1e-6)
    mean_loss(model, pairs)
    assert not model.training


def test_mean_loss_of_nothing() -> None:
    assert math.isnan(mean_loss(make_model(make_config()), reversals([])))


def scores(metric: str, values: Iterable[float], losses: Iterable[float] = itertools.repeat(7.0)) -> Iterator[Scores]:
    """Scores that were written down before, one validation after another."""
    return ({"loss": loss, "bleu": 7.0, metric: value} for value, loss in zip(values, losses, strict=False))


@dataclass
class Validated(Event):
    """A validation that was due, and whether it made the model the best so far."""

    improved: bool


def run(
    config: Config, pairs: EncodedPairs, validations: Iterator[Scores] | None = None
) -> tuple[list[Event], Progress]:
    state = start(make_model(config), pairs, config.train)
    events: list[Event] = []
    for event in training_events(state, pairs, config):
        if not isinstance(event, ValidationDue):
            events.append(event)
        elif validations:
            improved = take_scores(state, next(validations), config.train.validation.metric)
            events.append(Validated(event.update, event.epoch, improved))
    return events, state.progress


def of_kind(events: Iterable[Event], kind: type[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_events_come_in_order() -> None:
    # Nine pairs in batches of two are five updates an epoch; epochs are validated at 5 and 10.
    config = make_config(epochs=2, batch={"size": 2}, log_every=3, validation={"metric": "loss"})
    events, state = run(config, random_pairs(9), scores("loss", [2.0, 1.0]))
    order = ["u1", "u2", "r3", "u3", "u4", "r5", "v5", "u5", "r6", "u6", "u7", "u8", "r9", "u9", "r10", "v10"]
    letters = {Updated: "u", Reported: "r", Validated: "v"}
    assert [f"{letters[type(event)]}{event.update}" for event in events[:-1]] == [*order, "u10"]
    assert [event.epoch for event in of_kind(events, Updated)] == [1] * 5 + [2] * 5
    assert events[-1] == Stopped(10, 2, "all 10 updates are done")
    assert (state.update, state.epoch, state.best, state.best_update, state.waited) == (10, 2, 1.0, 10, 0)
    assert state.seconds > 0


def test_accumulated_batches_are_one_update() -> None:
    config, pairs = make_config(epochs=1, batch={"size": 2, "accumulate": 3}), random_pairs(15)
    state = start(make_model(config), pairs, config.train)
    assert (state.updates_per_epoch, state.total_updates) == (3, 3)  # 8 batches in groups of 3, 3 and 2
    assert len(of_kind(run(config, pairs)[0], Updated)) == 3


@pytest.mark.parametrize(
    ("max_updates", "expected"), [(1, (1, 1)), (4, (4, 1)), (7, (7, 2)), (10, (10, 2)), (99, (10, 2))]
)
def test_max_updates_ends_a_run(max_updates: int, expected: tuple[int, int]) -> None:
    config = make_config(epochs=2, max_updates=max_updates, batch={"size": 2}, validation={"metric": "loss"})
    events, state = run(config, random_pairs(9), scores("loss", [3.0, 2.0]))
    assert (state.update, state.epoch) == expected
    assert isinstance(events[-3], Validated)  # the last update is always validated
    assert events[-1] == Stopped(*expected, f"all {expected[0]} updates are done")


@pytest.mark.parametrize(
    ("metric", "patience", "values", "losses", "improved", "best", "waited"),
    [
        ("loss", None, [3, 2, 2, 4, 1], None, "yynny", 5, 0),
        ("bleu", None, [3, 2, 2, 4, 1], None, "ynnyn", 4, 1),
        ("bleu", None, [0, 0, 0, 0, 0.5], None, "ynnny", 5, 0),
        ("loss", 9, [1, 2, 3, 4, 5], None, "ynnnn", 1, 4),
        # The fourth is the best; of those after it `patience` are let pass.
        ("loss", 2, [5, 4, 4.5, 3, 3.5, 3.2, 9, 9], None, "yynynn", 4, 2),
        ("bleu", 2, [1, 2, 1.5, 3, 2.5, 2.9, 0, 0], None, "yynynn", 4, 2),
        # Equal scores are decided by the loss; the second ones all show as 0.00.
        ("bleu", None, [0, 0, 0, 0], [5, 4, 4.5, 3], "yyny", 4, 0),
        ("bleu", None, [0.004, 0.0, 0.001, 0.006], [5, 4, 6, 9], "yyny", 4, 0),
        ("bleu", None, [2, 3, 3, 3, 2], [5, 4, 4, 3, 1], "yynyn", 4, 1),
        # A model whose scores are not finite is never the best.
        ("bleu", None, [9.0, 1.0, 9.0], [math.nan, 5.0, math.nan], "nyn", 2, 1),
        ("bleu", None, [math.nan, 1.0, math.nan], [1.0, 5.0, 1.0], "nyn", 2, 1),
        # Patience does not count while the metric is at its floor; a loss has none.
        ("bleu", 2, [0.0, 0.004, 0.0, 0.0, 0.0, 0.01, 0.0, 0.0, 3.0], [4, 5, 5, 5, 5, 9, 8, 7, 1], "ynnnnynn", 6, 2),
        ("loss", 2, [0.004, 0.005, 0.006, 0.001], None, "ynn", 1, 2),
    ],
)
def test_the_best_model_and_the_end_of_patience(
    metric: str, patience: int | None, values: list[float], losses: Any, improved: str, best: int, waited: int
) -> None:
    """Which of some validations, one an update, were the best so far, and where the run ends."""
    losses = losses or (values if metric == "loss" else [7.0] * len(values))
    options = {"every": 1, "metric": metric, "patience": patience}
    config = make_config(epochs=len(values), validation=options, batch={"size": 99})
    events, progress = run(config, random_pairs(5), scores(metric, values, losses))
    assert "".join("ny"[event.improved] for event in of_kind(events, Validated)) == improved
    assert events[-1].reason.startswith(f"{metric} has not improved") == (len(improved) < len(values))
    assert (progress.best_update, progress.waited, progress.update) == (best, waited, len(improved))
    assert (progress.best, progress.best_loss) == (values[best - 1], losses[best - 1])


@pytest.mark.parametrize("training", [False, True])
def test_validation_is_without_dropout_and_restores_the_mode(training: bool) -> None:
    model, pairs = make_model(make_config(dropout=0.5)).train(training), random_pairs(5)
    validator = Validator(pairs, [], ScoringRules.for_text(TextSection(), "de"), None)
    losses = {validator.validate(model)["loss"] for _ in range(3)}
    assert len(losses) == 1
    assert all(module.training == training for module in model.modules())


def test_the_mode_is_restored_after_an_error_too() -> None:
    model = make_model(make_config()).train()
    with contextlib.suppress(KeyboardInterrupt), evaluating(model):
        assert not model.training
        raise KeyboardInterrupt
    assert model.training


@pytest.mark.parametrize(
    ("learning_rate", "schedule", "options", "rates"),
    [
        (0.08, {"name": "plateau", "factor": 0.5}, {"epochs": 5}, [0.08, 0.08, 0.04, 0.04, 0.02]),
        (0.3, {"warmup": 3}, {"max_updates": 4, "log_every": 1}, [0.1, 0.2, 0.3, 0.3]),
    ],
)
def test_reports_tell_the_learning_rate(
    learning_rate: float, schedule: dict[str, object], options: dict[str, object], rates: list[float]
) -> None:
    optimizer, validation = {"learning_rate": learning_rate}, {"metric": "loss"}
    config = make_config(**options, batch={"size": 99}, optimizer=optimizer, schedule=schedule, validation=validation)
    events, _ = run(config, random_pairs(5), scores("loss", [3, 4, 2, 5, 6]))
    assert [event.learning_rate for event in of_kind(events, Reported)] == pytest.approx(rates)


def test_reports_hold_the_mean_over_tokens_since_the_last_one() -> None:
    config = make_config(epochs=1, log_every=2, batch={"size": 2}, optimizer={"learning_rate": 1e-12})
    pairs = random_pairs(8)
    events, state = run(config, pairs)
    reports = of_kind(events, Reported)
    assert [event.update for event in reports] == [2, 4]
    expected = mean_loss(make_model(config), pairs)  # the weights have not moved
    assert state.tokens == sum(len(pairs.tgt[index]) + 1 for index in range(8))
    low, high = sorted(event.loss for event in reports)
    assert low - 1e-6 <= expected <= high + 1e-6
    once, _ = run(make_config(epochs=1, batch={"size": 2}, optimizer=config.train.optimizer), pairs)
    (report,) = of_kind(once, Reported)
    assert report.loss == pytest.approx(expected, rel=1e-5)
    single, _ = run(make_config(epochs=1, log_every=1, batch={"size": 2}, optimizer=config.train.optimizer), pairs)
    one, two, three, four = (event.gradient_norm for event in of_kind(single, Reported))
    means = (one + two) / 2, (three + four) / 2
    assert [event.gradient_norm for event in reports] == pytest.approx(means, rel=1e-5)
    assert report.gradient_norm == pytest.approx(sum(means) / 2, rel=1e-5)
    assert report.tokens_per_second > 0


def weights_after(seed: int, **options: object) -> list[Tensor]:
    config = make_config(
        dropout=0.3, seed=seed, epochs=2, batch={"size": 4}, teacher_forcing={"ratio": 0.5, "unit": "token"}, **options
    )
    model = make_model(config, seed)
    pairs = random_pairs(20)
    list(training_events(start(model, pairs, config.train), pairs, config))
    return [parameter.detach() for parameter in model.parameters()]


def test_the_seed_alone_decides_the_weights() -> None:
    """Bit for bit, however often is logged."""
    first = weights_after(3)
    for same in (weights_after(3), weights_after(3, log_every=1)):
        assert all(torch.equal(a, b) for a, b in zip(first, same, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, weights_after(4), strict=True))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_too_many_updates_that_are_not_finite_end_the_run(value: float) -> None:
    config = make_config(epochs=5, log_every=2, max_skipped=2, batch={"size": 2})
    model, pairs = make_model(config), random_pairs(20)
    state = start(model, pairs, config.train)
    events = training_events(state, pairs, config)
    seen = list(itertools.islice(events, 3))
    assert [type(event) for event in seen] == [Updated, Reported, Updated]
    with torch.no_grad():
        model.decoder.output.bias[5] = value
    before = weights(model)
    left: list[Event] = []
    follow = map(left.append, events)
    with pytest.raises(NmtError) as caught:
        list(follow)
    # The report at update 4 tells of two, which are allowed; the one at update 6 of the third in a row.
    assert [event.update for event in of_kind(left, Skipped)] == [3, 4, 5]
    (report,) = of_kind(left, Reported)
    assert math.isnan(report.loss)  # there was nothing to take the mean of
    assert report.tokens_per_second == 0
    message = str(caught.value)
    assert "update 5: loss or gradient not finite for 3 updates in a row" in message
    assert "learning_rate" in message
    assert "\n" not in message
    for found, expected in zip(weights(model), before, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def test_single_updates_that_are_not_finite_are_in_no_mean() -> None:
    config = make_config(epochs=1, log_every=4, batch={"size": 2}, optimizer={"learning_rate": 1e-12})
    pairs = random_pairs(8)
    model = make_model(config)
    calls = itertools.count(1)
    model.decoder.output.weight.register_hook(lambda gradient: gradient * (math.nan if next(calls) == 2 else 1))
    state = start(model, pairs, config.train)
    events = list(training_events(state, pairs, config))
    (skipped,) = of_kind(events, Skipped)
    (report,) = of_kind(events, Reported)
    plan = [np.concatenate(group) for group in plan_epoch(pairs, config.train, 1)]
    assert (skipped.update, skipped.epoch) == (2, 1)
    kept = [index for place, group in enumerate(plan) if place != 1 for index in group.tolist()]
    subset = reversals(pairs.src[index].tolist() for index in kept)
    assert report.loss == pytest.approx(mean_loss(make_model(config), subset), rel=1e-5)
    assert state.progress.tokens == sum(len(pairs.tgt[index]) + 1 for index in kept)
    assert state.progress.skipped_in_row == 0


@pytest.mark.parametrize("decoder", [{"order": "bahdanau"}, {"order": "luong"}, {"input_feeding": True}])
@pytest.mark.parametrize(("cell", "ratio"), [("gru", 1.0), ("lstm", 0.5)])
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_learns_and_keeps_float32_weights(
    precision: str, cell: str, decoder: dict[str, object], ratio: float
) -> None:
    layers = {"cell": cell, "num_layers": 2}
    sizes = {"encoder": {"hidden_size": 8, **layers}, "decoder": {"hidden_size": 16, **layers, **decoder}}
    options = {"epochs": 99, "max_updates": 12, "log_every": 1, "precision": precision, "batch": {"size": 99}}
    options |= {"optimizer": {"learning_rate": 0.05}, "teacher_forcing": {"ratio": ratio}}
    config = make_config(model={"embedding_size": 8, "dropout": 0.1, **sizes}, **options)
    model = make_model(config)
    pairs = random_pairs(30, longest=3)
    events = list(training_events(start(model, pairs, config.train), pairs, config))
    losses = [event.loss for event in of_kind(events, Reported)]
    assert all(map(math.isfinite, losses))
    assert losses[0] == pytest.approx(math.log(SIZE), rel=0.1)
    assert np.mean(losses[-3:]) < 0.9 * losses[0]
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
