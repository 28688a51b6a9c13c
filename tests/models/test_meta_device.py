"""Discipline with devices, without one: on torch's meta device, tensors have no values and mix with no others.

Whatever asks for a value there raises, and so does an operation on tensors of two devices. What is meant to wait for
the device goes through `to_host`, whose calls are counted here.
"""

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from covering import covering, each_value
from pairs import batch_of, pairs_of
from small_models import MECHANISMS, ORDERS, Variant, random_model
from torch import Tensor

from nmt.config import ConsistencySection, ModelSection, NoConsistencySection, SimCutSection, TrainSection
from nmt.evaluation import loss
from nmt.evaluation.loss import mean_loss
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.search import search as searching
from nmt.search import trace
from nmt.search.hypothesis import Lengths
from nmt.search.search import SearchSettings
from nmt.search.stepper import Seq2SeqStepper
from nmt.search.strategy import BeamStrategy, GreedyStrategy
from nmt.training.consistency import with_consistency
from nmt.training.loop import make_update, train_step

META = torch.device("meta")
PAIRS = ([[4, 5], [6]], [[6], []])
WAITS = 2
"""Looks of the host at a search after which everything is said to have ended."""
ATTENTIONS = ["general", "none", *MECHANISMS]
CELLS = ("lstm", "gru", "rnn")
ENCODERS, DECODERS = ("recurrent", "self_attention"), ("recurrent", "transformer", "ssru")
SMALL = {"hidden_size": 4, "num_layers": 2, "num_heads": 2, "feed_forward_size": 3}


@pytest.fixture(autouse=True)
def _no_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Autocast does not know the meta device; in float32 it does nothing."""
    autocast, enabled = torch.autocast, torch.is_autocast_enabled

    def without(device_type: str, *dtype: Any, **options: Any) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if device_type == "meta" else autocast(device_type, *dtype, **options)

    monkeypatch.setattr(torch, "autocast", without)
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device != "meta" and enabled(device))


def model_on_meta(order: tuple[str, bool], attention: str, cell: str, num_layers: int = 2) -> Seq2Seq:
    return random_model(Variant(*order, attention, cell, num_layers), dropout=0.2).to(META)


def family_on_meta(encoder: str, decoder: str, **keys: Any) -> Seq2Seq:
    """A model of any family with keys of the Transformer's parts, of which one at least is not recurrent."""
    made = {"initial_state": "zeros"} if decoder == "recurrent" else {**SMALL, **keys}
    parts = {"encoder": {"kind": encoder, **({} if encoder == "recurrent" else {**SMALL, **keys})}}
    section = ModelSection(embedding_size=3, dropout=0.2, **parts, decoder={"kind": decoder, **made})
    with META:
        return build_model(section, 9, 8)


FAMILIES = [family for family in itertools.product(ENCODERS, DECODERS) if set(family) != {"recurrent"}]
POSITIONS, NORMS = (None, 40), ("pre", "post")


def of_families(names: str, *values: Sequence[Any]) -> pytest.MarkDecorator:
    """As `covering`, over families that are not recurrent throughout."""
    first = ("encoder, decoder, positions, norm", ENCODERS, DECODERS, POSITIONS, NORMS)
    return covering(f"{first[0]}{names}", *first[1:], *values, valid=lambda row: set(row[:2]) != {"recurrent"})


class Descent(torch.optim.Optimizer):
    """torch's own fused optimisers do not know the meta device."""

    def step(self) -> None:
        for parameter in self.param_groups[0]["params"]:
            parameter.data.add_(parameter.grad, alpha=-0.1)


@covering(
    "order, attention, cell, layers, ratio, batches",
    ORDERS,
    ATTENTIONS,
    CELLS,
    (1, 2),
    (1.0, 0.5),
    (1, 2),
)
def test_an_update_never_waits(
    order: tuple[str, bool], attention: str, cell: str, layers: int, ratio: float, batches: int
) -> None:
    assert_updates_without_waiting(model_on_meta(order, attention, cell, layers), ratio, batches)


@of_families(", ratio, batches", (1.0, 0.5), (1, 2))
def test_an_update_of_every_family_never_waits(
    encoder: str, decoder: str, positions: int | None, norm: str, ratio: float, batches: int
) -> None:
    model = family_on_meta(encoder, decoder, learned_positions=positions, norm=norm)
    assert_updates_without_waiting(model, ratio, batches)


@each_value("family, positions, norm", FAMILIES, POSITIONS, NORMS)
def test_an_update_with_simcut_never_waits(family: tuple[str, str], positions: int | None, norm: str) -> None:
    model = family_on_meta(*family, learned_positions=positions, norm=norm)
    assert_updates_without_waiting(model, 1.0, 2, SimCutSection())


def assert_updates_without_waiting(
    model: Seq2Seq, ratio: float, batches: int, consistency: ConsistencySection = NoConsistencySection()
) -> None:
    optimizer = Descent(model.train().parameters(), {"fused": True})
    config = TrainSection(label_smoothing=0.1, teacher_forcing={"ratio": ratio})
    learner = with_consistency(model, consistency)
    step = train_step(learner, [batch_of(*PAIRS)] * batches, optimizer, config, 0)
    assert all(part.device == META for part in (step.loss, step.norm, step.tokens, step.skipped))


@covering(
    "order, attention, cell", ORDERS, [attention for attention in ATTENTIONS if attention != "hard"], ("lstm", "gru")
)
def test_an_update_that_is_recorded_never_waits(order: tuple[str, bool], attention: str, cell: str) -> None:
    """A CUDA graph cannot be recorded of an update that waits, or that reads what the host has."""
    assert_recordings_without_waiting(model_on_meta(order, attention, cell))


@each_value("family, positions, norm", FAMILIES, POSITIONS, NORMS)
def test_an_update_of_every_family_that_is_recorded_never_waits(
    family: tuple[str, str], positions: int | None, norm: str
) -> None:
    assert_recordings_without_waiting(family_on_meta(*family, learned_positions=positions, norm=norm))


def assert_recordings_without_waiting(model: Seq2Seq) -> None:
    optimizer = Descent(model.train().parameters(), {"fused": True, "lr": 0.1})
    update = make_update(model, optimizer, TrainSection(label_smoothing=0.1, graphs=True))
    for number in range(3):  # as it is, recorded, repeated
        step = update([batch_of(*PAIRS)], number)
        assert all(part.device == META for part in step)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where the host waited; what it gets to see makes every search end after `WAITS` looks at it."""
    found: list[str] = []

    def to_host(values: Tensor) -> Tensor:
        found.append("values")
        return torch.zeros(values.shape, dtype=values.dtype)

    def what_goes_on(values: Tensor) -> Tensor:
        found.append("state of the search")
        return torch.full(values.shape, found.count("state of the search") < WAITS)

    def what_ended(values: Tensor) -> Tensor:
        found.append("alignments of what ended" if values.dim() > 1 else "what ended")
        return torch.zeros(values.shape, dtype=values.dtype)

    monkeypatch.setattr(loss, "to_host", to_host)
    monkeypatch.setattr(searching, "to_host", what_goes_on)
    monkeypatch.setattr(trace, "to_host", what_ended)
    return found


@each_value("order, attention, cell, beam_size, with_alignment", ORDERS, ATTENTIONS, CELLS, (1, 3), (False, True))
def test_a_search_waits_every_few_steps(
    order: tuple[str, bool],
    attention: str,
    cell: str,
    beam_size: int,
    with_alignment: bool,
    waits: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert_few_waits(model_on_meta(order, attention, cell), beam_size, with_alignment, waits, monkeypatch)


@each_value("family, positions, norm, beam_size, with_alignment", FAMILIES, POSITIONS, NORMS, (1, 3), (False, True))
def test_a_search_of_every_family_waits_every_few_steps(
    family: tuple[str, str],
    positions: int | None,
    norm: str,
    beam_size: int,
    with_alignment: bool,
    waits: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = family_on_meta(*family, learned_positions=positions, norm=norm)
    assert_few_waits(model, beam_size, with_alignment, waits, monkeypatch)


def assert_few_waits(
    model: Seq2Seq, beam_size: int, with_alignment: bool, waits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(searching.STEPS_PER_WAIT, META.type, 3)
    stepper = Seq2SeqStepper(model.eval())
    batch = batch_of(*PAIRS)
    step = Mock(wraps=stepper.step)
    monkeypatch.setattr(stepper, "step", step)
    strategy = GreedyStrategy() if beam_size == 1 else BeamStrategy(beam_size)
    settings = SearchSettings(strategy, Lengths(19), with_alignment=with_alignment)
    searching.search(stepper, batch.src.to(META), batch.src_lengths, settings)
    last = ["what ended", "what ended", *(["alignments of what ended"] if with_alignment else [])]
    assert waits == ["state of the search"] * WAITS + last
    assert step.call_count == WAITS * searching.STEPS_PER_WAIT[META.type]


@each_value("order, attention, cell", ORDERS, ATTENTIONS, CELLS)
def test_the_mean_loss_waits_once(order: tuple[str, bool], attention: str, cell: str, waits: list[str]) -> None:
    assert mean_loss(model_on_meta(order, attention, cell), pairs_of(*PAIRS), batch_size=1) == 0.0
    assert waits == ["values"]


@each_value("family, positions, norm", FAMILIES, POSITIONS, NORMS)
def test_the_mean_loss_of_every_family_waits_once(
    family: tuple[str, str], positions: int | None, norm: str, waits: list[str]
) -> None:
    model = family_on_meta(*family, learned_positions=positions, norm=norm)
    assert mean_loss(model, pairs_of(*PAIRS), batch_size=1) == 0.0
    assert waits == ["values"]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda values: values + torch.zeros(3), "cpu is not on the expected device meta"),
        (lambda values: bool((values > 0).any()), "cannot be called on meta tensors"),
        (lambda values: values.nonzero(), "nonzero"),
        (lambda values: values.tolist(), "Cannot copy out of meta tensor"),
        (lambda values: values.cpu(), "Cannot copy out of meta tensor"),
    ],
)
def test_two_devices_and_hidden_waits_raise_here(act: Callable[[Tensor], object], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        act(torch.zeros(3, device=META))
