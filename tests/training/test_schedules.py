import math
from typing import get_args

import pytest
import torch
from torch import Tensor

from nmt.config import ScheduleSection, TeacherForcingSection, TrainSection
from nmt.text.vocabulary import BOS_ID
from nmt.training.schedules import LearningRateSchedule, draw_choices, forcing_ratio


def rate_of(**schedule: object) -> LearningRateSchedule:
    return LearningRateSchedule(TrainSection(schedule=schedule).schedule, total_updates=100)


def forcing(**options: object) -> TeacherForcingSection:
    return TrainSection(teacher_forcing=options).teacher_forcing


SHARES: list[tuple[dict[str, object], dict[int, float]]] = [
    ({"name": "constant"}, {1: 1.0, 50: 1.0, 100: 1.0}),
    ({"name": "constant", "warmup": 10}, {1: 0.1, 9: 0.9, 10: 1.0, 100: 1.0}),
    ({"name": "plateau"}, {1: 1.0, 100: 1.0}),
    ({"name": "plateau", "warmup": 4}, {1: 0.25, 3: 0.75, 4: 1.0, 100: 1.0}),
    (
        {"name": "inverse_sqrt", "warmup": 4},  # sqrt(4 / update)
        {1: 0.25, 2: 0.5, 3: 0.75, 4: 1.0, 16: 0.5, 64: 0.25, 100: 0.2},
    ),
    (
        {"name": "cosine", "floor": 0.0},  # (1 + cos(pi u / 100)) / 2
        {25: (1 + math.sqrt(0.5)) / 2, 50: 0.5, 75: (1 - math.sqrt(0.5)) / 2, 100: 0.0, 120: 0.0},
    ),
    ({"name": "cosine", "floor": 0.2}, {50: 0.6, 100: 0.2}),
    ({"name": "cosine", "floor": 0.0, "warmup": 20}, {5: 0.25, 19: 0.95, 20: 1.0, 60: 0.5, 100: 0.0}),
    ({"name": "cosine", "floor": 0.1, "warmup": 100}, {50: 0.5, 100: 1.0}),
]
"""Schedules, and the share of the learning rate at some updates of 100."""


def test_every_schedule_has_expected_shares() -> None:
    (kinds, *_) = get_args(ScheduleSection)
    assert {kind.model_fields["name"].default for kind in get_args(kinds)} == {each["name"] for each, _ in SHARES}


@pytest.mark.parametrize(("schedule", "expected"), SHARES)
def test_learning_rate(schedule: dict[str, object], expected: dict[int, float]) -> None:
    rate = rate_of(**schedule)
    assert {update: rate.share(update) for update in expected} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["constant", "plateau", "inverse_sqrt", "cosine"])
def test_a_warm_up_rises_to_the_whole_learning_rate_and_never_above(name: str) -> None:
    rate = rate_of(name=name, warmup=20)
    shares = [rate.share(update) for update in range(1, 101)]
    assert max(shares) == shares[19] == 1.0
    assert shares[:20] == sorted(shares[:20])
    assert shares[19:] == sorted(shares[19:], reverse=True)


@pytest.mark.parametrize(
    ("patience", "gains", "expected"),
    [
        (0, [False, False, True, False], [0.5, 0.25, 0.25, 0.125]),
        (1, [False, False, False, False, False], [1.0, 0.5, 0.5, 0.25, 0.25]),
        (1, [False, True, False, True, False], [1.0] * 5),
        (2, [True, False, False, False, True, False, False, False], [1.0] * 3 + [0.5] * 4 + [0.25]),
        (0, [False] * 6, [0.5, 0.25, 0.125, 0.1, 0.1, 0.1]),
    ],
)
def test_plateau_falls_after_validations_without_improvement(
    patience: int, gains: list[bool], expected: list[float]
) -> None:
    rate = rate_of(name="plateau", factor=0.5, patience=patience, floor=0.1)
    shares = []
    for improved in gains:
        rate.validated(improved)
        shares.append(rate.share(50))
    assert shares == pytest.approx(expected)


@pytest.mark.parametrize("name", ["constant", "inverse_sqrt", "cosine"])
def test_only_plateau_reacts_to_validations(name: str) -> None:
    rate = rate_of(name=name, warmup=5)
    before = [rate.share(update) for update in range(1, 101)]
    for _ in range(9):
        rate.validated(False)
    assert [rate.share(update) for update in range(1, 101)] == before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {0: 1.0, 1000: 1.0}),
        ({"ratio": 0.7}, {0: 0.7, 1000: 0.7}),
        ({"ratio": 0.7, "minimum": 0.2, "schedule": "linear", "updates": 10}, {0: 0.7, 5: 0.45, 10: 0.2, 99: 0.2}),
        (
            {"schedule": "inverse_sigmoid", "updates": 10},  # k / (k + exp(i / k))
            {0: 10 / 11, 10: 10 / (10 + math.e), 20: 10 / (10 + math.e**2), 10**9: 0.0},
        ),
        (
            {"ratio": 0.9, "minimum": 0.3, "schedule": "inverse_sigmoid", "updates": 5},
            {0: 0.3 + 0.6 * 5 / 6, 5: 0.3 + 0.6 * 5 / (5 + math.e), 10**9: 0.3},
        ),
    ],
)
def test_forcing_ratio(options: dict[str, object], expected: dict[int, float]) -> None:
    found = {update: forcing_ratio(forcing(**options), update) for update in expected}
    assert found == pytest.approx(expected, abs=1e-12)


REFERENCE = 4
OWN = 5


def fed(config: TeacherForcingSection, rows: int, length: int, update: int = 0) -> Tensor:
    """True where the decoder reads the reference, from position 1: [rows, length - 1]."""
    tgt_in = torch.full((rows, length), REFERENCE)
    tgt_in[:, 0] = BOS_ID
    choose = draw_choices(config, update, tgt_in)
    if choose is None:
        return torch.ones(rows, length - 1, dtype=torch.bool)
    logits = torch.nn.functional.one_hot(torch.full((rows,), OWN), 8).float()
    words = torch.stack([choose(position, logits) for position in range(1, length)], dim=1)
    assert set(words.unique().tolist()) <= {REFERENCE, OWN}
    return words == REFERENCE


@pytest.mark.parametrize("unit", ["sentence", "token"])
def test_a_ratio_of_one_is_teacher_forcing_and_draws_nothing(unit: str) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    assert draw_choices(forcing(unit=unit), 0, torch.full((3, 4), REFERENCE)) is None
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("unit", ["sentence", "token"])
def test_a_ratio_of_zero_never_feeds_the_reference(unit: str) -> None:
    torch.manual_seed(0)
    assert not fed(forcing(ratio=0.0, unit=unit), 300, 20).any()


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
def test_the_unit_of_a_sentence_is_the_whole_sentence(ratio: float) -> None:
    torch.manual_seed(0)
    forced = fed(forcing(ratio=ratio, unit="sentence"), 4000, 6)
    assert (forced.all(dim=1) | ~forced.any(dim=1)).all()
    error = 4 * math.sqrt(ratio * (1 - ratio) / 4000)  # four standard deviations
    assert float(forced[:, 0].float().mean()) == pytest.approx(ratio, abs=error)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
def test_the_unit_of_a_token_is_drawn_for_each_token(ratio: float) -> None:
    torch.manual_seed(0)
    forced = fed(forcing(ratio=ratio, unit="token"), 1000, 11)
    error = 4 * math.sqrt(ratio * (1 - ratio) / 10000)
    assert float(forced.float().mean()) == pytest.approx(ratio, abs=error)
    both = forced[:, 1:] & forced[:, :-1]  # neighbours are independent
    assert float(both.float().mean()) == pytest.approx(ratio**2, abs=2 * error)


def test_the_ratio_is_that_of_the_update() -> None:
    torch.manual_seed(0)
    config = forcing(schedule="linear", unit="token", updates=10)
    assert fed(config, 100, 11, update=0).all()
    assert float(fed(config, 1000, 11, update=5).float().mean()) == pytest.approx(0.5, abs=0.03)
    assert not fed(config, 100, 11, update=10).any()
