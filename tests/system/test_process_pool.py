"""Processes that work on chunks."""

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator

import processes
import pytest

from nmt.system.errors import DataError
from nmt.system.messages import Parameter
from nmt.system.process_pool import AHEAD, PER_CORE, Advance, ProcessPool, available_cores

log = logging.getLogger("nmt.pool")


def square(number: int, advance: Advance) -> tuple[int, int]:
    """The square of a number and the process that computed it; small numbers take longer."""
    time.sleep(0.001 * (9 - number % 10))
    advance(1)
    advance(2)
    return number * number, os.getpid()


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("number", [0, 1, 2, 30])
def test_results_come_in_order_and_progress_is_counted(workers: int, number: int) -> None:
    counts: list[int] = []
    with ProcessPool(square, workers) as pool:
        results = list(pool.map(range(number), counts.append))
        again = list(pool.map(range(number)))
    for found in (results, again):
        assert [value for value, _ in found] == [n * n for n in range(number)]
    assert counts.count(1) == counts.count(2) == number
    used = {process for _, process in results + again}
    if workers == 1 or number < 2:  # a single chunk needs no other process
        assert used <= {os.getpid()}
    else:
        assert os.getpid() not in used
        assert len(used) <= workers
    assert multiprocessing.active_children() == []


def test_a_thousand_workers_are_as_many_as_the_cores_can_use() -> None:
    with ProcessPool(square, 1000) as pool:
        used = {process for _, process in pool.map(range(200))}
    assert 2 <= len(used) <= PER_CORE * available_cores()


def test_chunks_are_read_as_they_are_needed() -> None:
    read: list[int] = []

    def chunks() -> Iterator[int]:
        for number in range(50):
            read.append(number)
            yield number

    with ProcessPool(square, 2) as pool:
        results = pool.map(chunks())
        assert read == []
        for done, _ in enumerate(results):
            assert len(read) <= done + 2 * AHEAD


def fail_at_five(number: int, advance: Advance) -> int:
    log.warning("number %s", number)
    if number == 5:
        raise DataError("{number}: is not allowed", number=Parameter("number", number))
    if number == 6:
        raise ZeroDivisionError("of six")
    return number


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_comes_after_the_results_before_it(workers: int, caplog: pytest.LogCaptureFixture) -> None:
    with ProcessPool(fail_at_five, workers) as pool:
        results = pool.map(range(100))
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(DataError, match="`number=5`: is not allowed") as caught:
            next(results)
    assert caught.value.parameters == (Parameter("number", 5),)
    assert caplog.messages == [f"number {number}" for number in range(6)]
    assert multiprocessing.active_children() == []


def test_an_error_of_the_program_is_shown_as_a_whole() -> None:
    with ProcessPool(fail_at_five, 2) as pool, pytest.raises(RuntimeError, match=r"in fail_at_five(.|\n)*of six"):
        list(pool.map([1, 6, 2]))


def die(number: int, advance: Advance) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_process_that_dies_is_named() -> None:
    with (
        ProcessPool(die, 2) as pool,
        pytest.raises(DataError, match=r"^one of 2 processes was killed, .*; lower `workers`$"),
    ):
        list(pool.map(range(10)))
    assert multiprocessing.active_children() == []


def count_up(work: Callable[[int, Advance], int]) -> Callable[[int, Advance], int]:
    """A function that adds the number of its calls in this process."""
    calls = 0

    def counted(number: int, advance: Advance) -> int:
        nonlocal calls
        calls += 1
        return work(number, advance) + 1000 * calls

    return counted


def same(number: int, advance: Advance) -> int:
    return number


def test_each_process_is_prepared_once() -> None:
    with ProcessPool(same, 2, count_up) as pool:
        found = list(pool.map(range(9)))
    assert [value % 1000 for value in found] == list(range(9))
    calls = sorted(value // 1000 for value in found)
    assert calls.count(1) == 2
    assert max(calls) >= 5


def pause(number: int, advance: Advance) -> int:
    time.sleep(0.01)
    return os.getpid()


def print_processes() -> None:
    """Work that does not end."""
    with ProcessPool(pause, 2) as pool:
        for result in pool.map(range(10**9)):
            print(result, flush=True)


@pytest.mark.parametrize("end", [processes.interrupt, processes.terminate, processes.kill])
def test_no_process_outlives_its_killed_parent(end: Callable[[int], None]) -> None:
    processes.assert_none_outlives(print_processes, end)
