"""Updates of padded batches by recordings: losses and weights of the plain loop, exact resume, refusals.

A stand-in for CUDA graphs repeats each recording launch by launch; test_cuda.py has the graphs themselves.
"""

import copy
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from config.config_keys import refused
from conftest import Project, assert_same_run, assert_same_tensors
from covering import covering
from pairs import batch_of, pairs_of
from small_models import attention_section
from torch import Tensor
from training_runs import stop_and_resume, train

from nmt.config import Config, load_config
from nmt.corpus.dataset import EncodedPairs, open_data
from nmt.models.build import build_model
from nmt.system.errors import ConfigError, TrainingError
from nmt.text.vocabulary import EOS_ID, PAD_ID
from nmt.training.checkpoint import Checkpoint
from nmt.training.distributed import Workers
from nmt.training.loop import Event, Reported, Skipped, Updated, make_update, start, training_events
from nmt.training.optimizers import make_optimizer
from nmt.training.setup import resolve, resolve_graphs
from nmt.training.state import TrainState, capture, restore
from nmt.training.update_graph import PaddedBatch, Recorder, Repetition, Results, Shape, Shapes, UpdateGraphs, round_up

SIZE = 12  # of both vocabularies
RARE = 11  # a word that few pairs have
RECURRENT = {"encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 8}}
SMALL = {"hidden_size": 8, "num_layers": 2, "num_heads": 2, "feed_forward_size": 6}
MODELS: dict[str, dict[str, Any]] = {
    "luong": RECURRENT,
    "bahdanau": {**RECURRENT, "decoder": {"hidden_size": 8, "order": "bahdanau", "cell": "gru"}},
    "feeding": {**RECURRENT, "decoder": {"hidden_size": 8, "input_feeding": True, "num_layers": 2}},
    "coverage": {**RECURRENT, "attention": attention_section("coverage")},
    "local_p": {**RECURRENT, "attention": attention_section("local_p")},
    "transformer": {"encoder": {"kind": "self_attention", **SMALL}, "decoder": {"kind": "transformer", **SMALL}},
    "ssru": {
        "encoder": {"kind": "self_attention", **SMALL, "learned_positions": 14},
        "decoder": {"kind": "ssru", **SMALL, "learned_positions": 14},
        "output_norm": 2.0,
    },
}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adam": {"name": "adam", "learning_rate": 0.01},
    "adamw": {"name": "adamw", "learning_rate": 0.01, "weight_decay": 0.1},
    "sgd": {"name": "sgd", "learning_rate": 0.3, "momentum": 0.9},
}
BATCHES: dict[str, dict[str, Any]] = {"sentences": {"size": 5}, "tokens": {"size": 40, "unit": "tokens"}}


def random_pairs(number: int = 23, longest: int = 12) -> EncodedPairs:
    """Pairs whose two sides differ in length; every seventh has the rare word."""
    rng = np.random.default_rng(0)
    sides = []
    for _ in range(2):
        sides.append([rng.integers(4, RARE, size=rng.integers(0, longest + 1)).tolist() for _ in range(number)])
    for sentence in sides[0][::7]:
        sentence.append(RARE)
    return pairs_of(*sides)


def make_config(model: str = "luong", dropout: float = 0.0, **options: object) -> Config:
    values = {"embedding_size": 8, "dropout": dropout, **MODELS[model]}
    return Config(model=values, train={"epochs": 50, "max_updates": 12, "log_every": 1, "graphs": True, **options})


def make_state(
    config: Config, pairs: EncodedPairs, seed: int = 0, dtype: torch.dtype = torch.float32
) -> TrainState[Any]:
    torch.manual_seed(seed)
    return start(build_model(config.model, SIZE, SIZE).to(dtype), pairs, config.train)


def until(state: TrainState[Any], pairs: EncodedPairs, config: Config, update: int) -> list[Event]:
    """Train until an update is over; its reports."""
    events: list[Event] = []
    for event in training_events(state, pairs, config):
        events.append(event)
        if isinstance(event, Updated) and event.update == update:
            break
    return [event for event in events if isinstance(event, Reported | Skipped)]


def told(events: Sequence[Event]) -> list[dict[str, object]]:
    return [{key: value for key, value in vars(event).items() if key != "tokens_per_second"} for event in events]


@covering(
    "model, optimizer, batch, smoothing, decay", list(MODELS), list(OPTIMIZERS), list(BATCHES), (0.0, 0.1), (None, 0.9)
)
def test_padded_repetitions_have_the_losses_and_weights_of_the_plain_loop(
    model: str, optimizer: str, batch: str, smoothing: float, decay: float | None
) -> None:
    pairs = random_pairs()
    options: dict[str, Any] = {"optimizer": OPTIMIZERS[optimizer], "batch": BATCHES[batch]}
    options |= {"label_smoothing": smoothing, "ema_decay": decay}
    # The gradient of coverage is nearly 0 at first: Adam would make whole steps of the rounding errors of float32.
    dtype = torch.float64 if model == "coverage" else torch.float32
    runs = []
    for graphs in (False, True):
        config = make_config(model, **options, graphs=graphs, schedule={"name": "inverse_sqrt", "warmup": 3})
        state = make_state(config, pairs, dtype=dtype)
        reports = until(state, pairs, config, 12)
        runs.append((reports, capture(state).tensors, state.progress.tokens))
    (plain, expected, expected_tokens), (padded, found, tokens) = runs
    assert len(padded) == len(plain) == 12
    for there, here in zip(plain, padded, strict=True):
        assert isinstance(there, Reported)
        assert isinstance(here, Reported)
        assert here.loss == pytest.approx(there.loss, rel=1e-5)
        assert here.gradient_norm == pytest.approx(there.gradient_norm, rel=1e-4)
        assert here.learning_rate == there.learning_rate
    assert tokens == expected_tokens
    for name, tensor in expected.items():
        if name.startswith(("model.", "average.")):
            torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-5, msg=name)


def test_the_memory_of_a_shape_forgets_the_batch_before() -> None:
    memory = PaddedBatch(Shape(4, 6, 5), torch.device("cpu"))
    memory.fill(batch_of([[5, 6, 7, 8, 9], [4, 4]], [[7, 7, 7, 7], [8]]))
    memory.fill(batch_of([[5], [6, 7], []], [[4, 5], [], [6]]))
    batch, tokens = memory.read()
    assert batch.src.tolist() == [
        [5, EOS_ID, *[PAD_ID] * 4],
        [6, 7, EOS_ID, *[PAD_ID] * 3],
        [EOS_ID, *[PAD_ID] * 5],
        [EOS_ID, *[PAD_ID] * 5],  # no pair
    ]
    assert batch.src_lengths.tolist() == [2, 3, 1, 1]
    assert batch.tgt_out.tolist()[3] == [PAD_ID] * 5
    assert batch.tgt_in.tolist()[2:] == [[2, 6, PAD_ID, PAD_ID, PAD_ID], [PAD_ID] * 5]
    assert int(tokens) == 3 + 1 + 2
    assert batch.positions.tolist() == list(range(20))


@pytest.mark.parametrize(
    ("number", "limit", "expected"), [(1, None, 8), (8, None, 8), (9, None, 16), (9, 12, 12), (12, 12, 12), (3, 100, 8)]
)
def test_how_lengths_are_rounded_up(number: int, limit: int | None, expected: int) -> None:
    assert round_up(number, limit) == expected


class Counting(Repetition):
    """Counts what is recorded and what is repeated."""

    def __init__(self) -> None:
        self.recorded = 0
        self.repeated = 0

    def record(self, work: Callable[[], Results], optimizer: torch.optim.Optimizer) -> Callable[[], Results]:
        self.recorded += 1

        def repeat() -> Results:
            self.repeated += 1
            return work()

        return repeat


def counted(recorder: Recorder, max_shapes: int = 64) -> tuple[UpdateGraphs, list[Shape]]:
    """Updates of one weight, and the shapes of those that were made."""
    weight = torch.nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    made: list[Shape] = []

    def update(batch: Any, tokens: Tensor) -> Results:
        made.append(Shape(*batch.src.shape, batch.tgt_out.size(1)))
        return [tokens * optimizer.param_groups[0]["lr"]]

    return UpdateGraphs(update, optimizer, Shapes(None, None), recorder, max_shapes), made


def batch_of_lengths(rows: int, src: int, tgt: int) -> Any:
    """Pairs with so many tokens, with EOS."""
    return batch_of([[5] * (src - 1)] * rows, [[6] * (tgt - 1)] * rows)


def test_the_second_update_of_a_shape_is_recorded_and_the_others_repeat_it() -> None:
    recorder = Counting()
    graphs, made = counted(recorder)
    results = [graphs(batch_of_lengths(rows, 3, tgt)) for rows, tgt in ((2, 4), (3, 8), (8, 1), (1, 9), (1, 2))]
    assert made == [Shape(8, 8, 8)] * 3 + [Shape(8, 8, 16), Shape(8, 8, 8)]
    assert (recorder.recorded, recorder.repeated) == (1, 3)
    assert [float(tokens) for (tokens,) in results] == [4.0, 12.0, 4.0, 4.5, 1.0]  # times the learning rate


def test_the_shape_that_was_used_least_recently_leaves() -> None:
    recorder = Counting()
    graphs, _ = counted(recorder, max_shapes=2)
    a, b, c = (batch_of_lengths(1, length, 1) for length in (1, 9, 17))
    for batch in (a, b, a, c, a, a):  # b leaves
        graphs(batch)
    assert list(graphs.known) == [Shape(8, 24, 8), Shape(8, 8, 8)]
    assert (recorder.recorded, recorder.repeated) == (1, 3)
    graphs(b)  # as if it were new
    graphs(b)
    assert recorder.recorded == 2
    assert len(graphs.known) == 2


def test_the_learning_rate_is_a_number_again_after_an_update() -> None:
    graphs, _ = counted(Repetition())
    (group,) = graphs.optimizer.param_groups
    for rate in (0.5, 0.25, 0.125):
        group["lr"] = rate
        (product,) = graphs(batch_of_lengths(2, 2, 2))
        assert float(product) == 4 * rate
        assert group["lr"] == rate
        assert isinstance(group["lr"], float)


def test_an_update_that_cannot_be_recorded_names_the_way_out() -> None:
    class Failing(Repetition):
        def record(self, work: Callable[[], Results], optimizer: torch.optim.Optimizer) -> Callable[[], Results]:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")

    graphs, _ = counted(Failing())
    graphs(batch_of_lengths(1, 2, 2))
    with pytest.raises(TrainingError) as caught:
        graphs(batch_of_lengths(1, 2, 2))
    message = str(caught.value)
    assert "8 rows of 8 and 8 tokens" in message
    assert "not permitted when stream is capturing); set train.graphs: false" in message


def take(state: TrainState[Any]) -> Checkpoint:
    """A checkpoint that does not change when training continues."""
    taken = capture(state)
    return Checkpoint({name: tensor.clone() for name, tensor in taken.tensors.items()}, copy.deepcopy(taken.metadata))


def assert_continues(
    make: Callable[..., TrainState[Any]], config: Config, pairs: EncodedPairs, *, stop: int, last: int
) -> None:
    """Restore a run as it was after an update: it continues as if it had never stopped."""
    state = make(config, pairs)
    until(state, pairs, config, stop)
    taken = take(state)
    expected = told(until(state, pairs, config, last))
    restored = make(config, pairs, seed=5)
    assert restore(restored, taken)
    assert told(until(restored, pairs, config, last)) == expected
    assert_same_tensors(take(restored).tensors, take(state).tensors)


@pytest.mark.parametrize("model", ["luong", "bahdanau", "ssru"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_a_restored_run_continues_as_if_it_had_never_stopped(model: str, precision: str) -> None:
    pairs = random_pairs()
    config = make_config(model, dropout=0.3, precision=precision, batch={"size": 5}, log_every=3, ema_decay=0.9)
    assert_continues(make_state, config, pairs, stop=8, last=12)


def test_updates_that_are_not_finite_are_skipped_in_repetitions_too() -> None:
    """Pairs with the rare word have no finite loss."""
    pairs = random_pairs()
    found = []
    for graphs in (False, True):
        config = make_config(graphs=graphs, batch={"size": 4}, max_updates=18)
        state = make_state(config, pairs)
        with torch.no_grad():
            state.model.encoder.embedding.weight[RARE] = math.inf
        reports = until(state, pairs, config, 18)
        found.append([(type(event), event.update) for event in reports])
        others = [name for name, _ in state.model.named_parameters() if name != "encoder.embedding.weight"]
        assert all(bool(state.model.get_parameter(name).isfinite().all()) for name in others)
    plain, padded = found
    assert padded == plain
    skipped = [update for kind, update in padded if kind is Skipped]
    assert 6 < len(skipped) < 18


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("train.batch.accumulate=2", "train.batch.accumulate"),
        ("train.optimizer.name=muon", "train.optimizer.name"),
        ("train.consistency.name=simcut", "train.consistency.name"),
        ("train.teacher_forcing.ratio=0.9", "train.teacher_forcing.ratio"),
        ("train.teacher_forcing={schedule: linear, updates: 9, minimum: 0.5}", "train.teacher_forcing.ratio"),
        ("model.decoder={initial_state: copy, hidden_size: 512}", "model.decoder.initial_state"),
        ("model.attention.window.name=hard", "model.attention.window.name"),
        ("model.attention.score=nmt.layers.attention.dot.DotScore", "model.attention.score"),
    ],
)
def test_settings_without_recordings_are_refused_or_left_alone(setting: str, key: str, tmp_path: Path) -> None:
    gpu = Workers(device=torch.device("cuda"))
    assert resolve_graphs(load_config(Config()), gpu)
    assert not resolve_graphs(load_config(Config(), [setting]), gpu)
    line = next(line for line in refused(tmp_path, "", setting, "train.graphs=true") if "train.graphs" in line)
    assert f"train.graphs: true does not go with {key}, as " in line
    assert line.endswith("; set auto, or change that")


def test_recordings_are_for_one_gpu() -> None:
    config = load_config(Config())
    assert not resolve_graphs(config, Workers())
    assert not resolve_graphs(config, Workers(device=torch.device("mps")))
    assert not resolve_graphs(config, Workers(0, 2, torch.device("cuda")))


def test_the_plain_update_accumulates_and_a_recorded_one_takes_one_batch() -> None:
    config = make_config()
    torch.manual_seed(0)
    model = build_model(config.model, SIZE, SIZE)
    optimizer = make_optimizer(config.train.optimizer, model)
    batches = [batch_of([[5]], [[6]]), batch_of([[7, 8]], [[9]])]
    plain = make_update(model, optimizer, config.train.model_copy(update={"graphs": False}))
    assert int(plain(batches, 0).tokens) == 4
    padded = make_update(model, optimizer, config.train)
    step = padded(batches[:1], 1)
    assert (int(step.tokens), int(step.skipped)) == (2, 0)
    assert step.loss.shape == step.norm.shape == ()


RECORDED = ("train.teacher_forcing.ratio=1", "train.graphs=true")


def test_a_run_with_recordings_resumes_exactly_by_the_real_commands(short_project: Project, tmp_path: Path) -> None:
    run = stop_and_resume(short_project, tmp_path, 7, *RECORDED)
    assert load_config(str(run / "config.yaml")).train.graphs is True
    said = train(short_project, run, RECORDED[0], "train.graphs=auto", "--resume")  # keeps what was chosen
    assert "changed since" not in said


def test_a_run_without_a_gpu_does_not_record_by_itself(short_project: Project, run: Path) -> None:
    train(short_project, run, "train.graphs=auto")
    assert load_config(str(run / "config.yaml")).train.graphs is False
    assert_same_run(run, short_project.run)


def test_a_run_continues_without_recordings_but_says_so(short_project: Project, run: Path) -> None:
    train(short_project, run, *RECORDED, "train.max_updates=7")
    said = train(short_project, run, RECORDED[0], "train.graphs=false", "--resume")
    assert "train.graphs (True there, False here)" in said
    assert "differs from an unchanged one" in said


def test_several_processes_are_refused(short_project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config(str(short_project.config), list(RECORDED))
    monkeypatch.setattr(Workers, "decide_on_first", lambda self, decide: decide())  # there are no others
    with pytest.raises(ConfigError, match="records the updates of one process, not of 3; set false"):
        resolve(config, open_data(short_project.data), Workers(0, 3))
