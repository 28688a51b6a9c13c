import copy

import pytest
import torch
from conftest import assert_same_tensors
from torch import nn

from nmt.config import Config
from nmt.corpus.dataset import EncodedPairs, Sequences
from nmt.models.build import build_model
from nmt.training.checkpoint import Checkpoint
from nmt.training.loop import Event, Reported, Skipped, Updated, ValidationDue, start, take_scores, training_events
from nmt.training.state import TrainState, average_weights, capture, restore

PAIRS = EncodedPairs(*(Sequences.pack([[4 + (i + j) % 5 for j in range(1 + i % 4)] for i in range(20)]),) * 2)
MODEL = {"embedding_size": 4, "dropout": 0.3, "encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 4}}


def make_config(**options: object) -> Config:
    return Config(model={**MODEL}, train={"batch": {"size": 4}, "log_every": 3, **options})


def make_state(config: Config, seed: int = 0) -> TrainState:
    torch.manual_seed(seed)
    return start(build_model(config.model, 10, 10), PAIRS, config.train)


def take(state: TrainState) -> Checkpoint:
    """A checkpoint that does not change when training continues."""
    taken = capture(state)
    return Checkpoint({name: tensor.clone() for name, tensor in taken.tensors.items()}, copy.deepcopy(taken.metadata))


def until(state: TrainState, config: Config, update: int) -> list[Event]:
    """Train until an update is over."""
    events: list[Event] = []
    for event in training_events(state, PAIRS, config):
        if isinstance(event, ValidationDue):
            take_scores(state, {"bleu": state.progress.update % 3, "loss": 7.0}, config.train.validation.metric)
        events.append(event)
        if isinstance(event, Updated) and event.update == update:
            break
    return [event for event in events if isinstance(event, Reported | Skipped)]


def told(events: list[Event]) -> list[dict[str, object]]:
    return [{key: value for key, value in vars(event).items() if key != "tokens_per_second"} for event in events]


def test_a_restored_run_goes_on_with_its_loss_scale() -> None:
    config = make_config(precision="float16")
    state = make_state(config)
    until(state, config, 8)
    state.scale.update(torch.tensor(1.0))  # an overflow
    taken = take(state)
    expected = until(state, config, 12)
    other = make_state(config, seed=5)
    assert restore(other, taken)
    assert told(until(other, config, 12)) == told(expected)
    assert_same_tensors(take(other).tensors, take(state).tensors)
    assert float(other.scale.tensors()["scale"]) == 2**7


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "rmsprop", "radam", "nadam", "adadelta", "muon"])
@pytest.mark.parametrize("schedule", ["plateau", "cosine"])
def test_a_restored_run_continues_as_if_it_had_never_stopped(name: str, schedule: str) -> None:
    config = make_config(
        ema_decay=0.9,
        optimizer={"name": name, "learning_rate": 0.1, **({"momentum": 0.9} if name in ("sgd", "rmsprop") else {})},
        schedule={"name": schedule},
    )
    state = make_state(config)
    until(state, config, 8)  # in the second epoch, with two updates since the last report
    taken = take(state)
    expected = told(until(state, config, 11))
    draws = torch.rand(3)
    end = take(state)
    other = make_state(config, seed=5)
    assert restore(other, taken)
    assert told(until(other, config, 11)) == expected
    assert torch.equal(torch.rand(3), draws)
    found = take(other)
    skip = {key for key in end.tensors if key.startswith("random")}  # drawn from above
    assert_same_tensors(*({key: c.tensors[key] for key in c.tensors if key not in skip} for c in (found, end)))
    assert found.metadata["progress"] | {"seconds": 0} == end.metadata["progress"] | {"seconds": 0}
    assert found.metadata["rate"] == end.metadata["rate"]


def test_a_checkpoint_between_a_skipped_update_and_its_report() -> None:
    config = make_config()

    def poison(state: TrainState) -> None:
        # The gradient of every update from the seventh on is not finite, up to the eighth.
        def hook(gradient: torch.Tensor) -> torch.Tensor:
            return gradient * (float("nan") if state.progress.update in (6, 7) else 1)

        state.model.decoder.output.weight.register_hook(hook)

    state = make_state(config)
    poison(state)
    until(state, config, 7)
    taken = take(state)
    assert taken.tensors["meter.skipped.0"].tolist() == [1]
    expected = told(until(state, config, 12))
    assert [entry["update"] for entry in expected if "loss" not in entry] == [7, 8]
    other = make_state(config, seed=5)
    poison(other)
    assert restore(other, taken)
    assert told(until(other, config, 12)) == expected
    assert_same_tensors(dict(take(other).tensors), dict(take(state).tensors))


def test_a_checkpoint_of_an_older_version_can_be_resumed() -> None:
    config = make_config(validation={"every": 4})
    state = make_state(config)
    until(state, config, 4)
    taken = take(state)
    assert taken.metadata["progress"].pop("best_loss") == 7.0
    other = make_state(config, seed=5)
    assert restore(other, taken)
    assert (other.progress.best, other.progress.best_loss, other.progress.best_update) == (1, None, 4)
    for event in training_events(other, PAIRS, config):
        if isinstance(event, ValidationDue):
            improved = take_scores(other, {"bleu": 1.0, "loss": 7.0}, "bleu")
            break
    assert (event.update, improved) == (8, True)  # an unknown loss is worse than any


def layer(value: float) -> nn.Linear:
    module = nn.Linear(1, 1, bias=False)
    nn.init.constant_(module.weight, value)
    return module


def test_the_average_of_a_few_updates_by_hand() -> None:
    module = layer(0.0)
    average = average_weights(module, 0.5)
    for value in (11.0, 12.0, 26.0):
        nn.init.constant_(module.weight, value)
        average.update_parameters(module)
    # Decays: 2/11, 3/12, 4/13. 9/11 * 11 = 9; 9 / 4 + 12 * 3 / 4 = 11.25; 11.25 * 4 / 13 + 26 * 9 / 13.
    assert average.module.weight.item() == pytest.approx(11.25 * 4 / 13 + 18)
    assert module.weight.item() == 26


def test_tied_weights_are_averaged_once() -> None:
    module = nn.Sequential(layer(1.0), layer(2.0))
    module[1].weight = module[0].weight
    average = average_weights(module, 0.9)
    nn.init.constant_(module[0].weight, 4.0)
    average.update_parameters(module)
    expected = 1 + 3 * (1 - 2 / 11)
    assert [part.weight.item() for part in average.module] == pytest.approx([expected, expected])
    assert torch.equal(module[0].weight, torch.tensor([[4.0]]))
