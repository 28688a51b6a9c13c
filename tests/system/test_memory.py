import math
import sys
from types import SimpleNamespace

import pytest
import torch

from nmt.config import TrainSection
from nmt.system import memory
from nmt.system.memory import (
    Footprint,
    Trial,
    Trials,
    as_text,
    available_memory,
    peak_growth,
    peak_resident,
    resident,
    state_size,
    trimmed_resident,
    try_sizes,
)
from nmt.training.state import make_optimizer

CPU = torch.device("cpu")


def test_torch_counts_the_bytes_of_a_peak() -> None:
    def run() -> None:
        first = torch.zeros(3_000, dtype=torch.uint8)
        second = torch.zeros(2_000, dtype=torch.uint8)
        del first
        third = torch.zeros(1_000, dtype=torch.uint8)
        del second, third

    assert peak_growth(run, CPU) == 5_000


@pytest.mark.parametrize(
    ("options", "copies", "scalars"),
    [
        ({"name": "adam"}, 2, 1),
        ({"name": "adamw"}, 2, 1),
        ({"name": "sgd"}, 0, 0),
        ({"name": "sgd", "momentum": 0.9}, 1, 0),
    ],
)
def test_size_of_an_optimizers_state(options: dict[str, object], copies: int, scalars: int) -> None:
    layer = torch.nn.Linear(10, 5)
    optimizer = make_optimizer(TrainSection(optimizer=options).optimizer, layer)
    layer(torch.ones(10)).sum().backward()
    optimizer.step()
    assert state_size(optimizer) == 4 * (copies * 55 + scalars * 2)  # float32: 50 weights, 5 biases; 2 step counts


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and glibc")
def test_memory_of_this_process() -> None:
    before = trimmed_resident()
    pieces = [torch.ones(2**18) for _ in range(64)]  # small enough for the heap
    held = resident()
    assert 60 * 2**20 < held - before < 80 * 2**20
    assert peak_resident() > held - 2**20  # the system counts in steps
    available = available_memory(CPU)
    assert available > held
    kept = torch.ones(2**18)  # above the pieces in the heap
    del pieces
    assert trimmed_resident() - before < 10 * 2**20
    del kept


class Work:
    """Takes `once` bytes and `each` for every sentence, and remembers what was asked for."""

    def __init__(self, once: int, each: int) -> None:
        self.once, self.each, self.sizes = once, each, list[int]()

    def __call__(self, size: int) -> None:
        self.sizes.append(size)
        torch.empty(self.once + self.each * size, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("whole", "sizes"),
    [(1, [1]), (2, [1, 2]), (8, [1, 2, 8]), (100, [1, 2, 8, 32, 100]), (128, [1, 2, 8, 32, 128])],
)
def test_work_grows_up_to_the_whole(whole: int, sizes: list[int]) -> None:
    work = Work(100, 10)
    trials = try_sizes(work, whole, CPU, math.inf, 60)
    assert work.sizes == sizes
    assert (trials.complete, trials.fits) == (True, True)
    assert trials.expect(whole).memory == 100 + 10 * whole


@pytest.mark.parametrize(
    ("work", "room", "sizes", "fits"),
    [
        (Work(0, 10), 10_000_000, [1, 2, 8, 32, 128, 512, 2048, 8192, 32768, 131072, 524288, 1_000_000], True),
        (Work(0, 10), 9_999_999, [1, 2, 8], False),  # three of them tell that the whole will not fit
        (Work(0, 10), 79, [1, 2], False),  # nor 8
        (Work(0, 10), 19, [1], False),
        (Work(90, 10), 89, [1], False),
    ],
)
def test_what_will_not_fit_is_not_tried(work: Work, room: int, sizes: list[int], fits: bool) -> None:
    trials = try_sizes(work, 1_000_000, CPU, room, 60)
    assert work.sizes == sizes
    assert trials.fits is fits
    assert trials.complete is fits


def test_fixed_memory_is_not_extrapolated() -> None:
    assert try_sizes(Work(10_000, 10), 64, CPU, 20_100, 60).fits
    assert not try_sizes(Work(10_000, 10), 64, CPU, 10_639, 60).fits


def test_a_single_sentence_that_does_not_fit() -> None:
    trials = try_sizes(Work(0, 10), 1, CPU, 9, 60)
    assert (trials.complete, trials.fits) == (True, False)


def test_what_takes_long_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(memory, "time", SimpleNamespace(perf_counter=lambda: 0.01 * sum(sizes)))
    trials = try_sizes(sizes.append, 1_000_000, CPU, math.inf, 0.3)
    assert sizes == [1, 2, 8]
    assert (trials.complete, trials.fits) == (False, True)
    assert trials.expect(1_000_000).seconds == pytest.approx(10_000)


def test_extrapolation() -> None:
    trials = Trials([Trial(2, 30, 1.0), Trial(8, 60, 2.5)], 100, True)
    assert trials.expect(8) == Trial(8, 60, 2.5)
    assert trials.expect(100) == Trial(100, 60 + 5 * 92, 2.5 + 0.25 * 92)
    assert Trials([Trial(2, 30, 1.0), Trial(8, 20, 0.5)], 100, True).expect(100) == Trial(100, 20, 0.5)


@pytest.mark.parametrize(("activations", "validation", "total"), [(50, 60, 191), (50, 61, 192), (0, 0, 141)])
def test_validation_needs_no_gradients(activations: int, validation: int, total: int) -> None:
    parts = Footprint(
        libraries=100,
        data=1,
        weights=10,
        optimizer=20,
        activations=activations,
        validation=validation,
        kernels=0,
        gaps=0,
    )
    assert (parts.total, parts.needed) == (total, total - 1)


@pytest.mark.parametrize(
    ("size", "text"),
    [(2**19, "0.5 MiB"), (2**30, "1.0 GiB"), (2000 * 2**30, "2,000.0 GiB")],
)
def test_bytes_as_text(size: int, text: str) -> None:
    assert as_text(size) == text
