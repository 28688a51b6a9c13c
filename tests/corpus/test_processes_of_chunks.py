import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator

import processes
import pytest

from nmt.corpus.processes import map_chunks
from nmt.system.errors import DataError
from nmt.system.process_pool import PER_CORE, available_cores


def square(number: int) -> int:
    return number * number


def fail_at_five(number: int) -> int:
    if number == 5:
        raise DataError("five")
    return number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def process(number: int) -> int:
    return os.getpid()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", [0, 1, 30])
def test_results_come_in_order(workers: int, number: int) -> None:
    assert list(map_chunks(square, range(number), workers)) == [n * n for n in range(number)]


@pytest.mark.parametrize(("workers", "least", "most"), [(2, 1, 2), (1000, 2, PER_CORE * available_cores())])
def test_one_worker_is_this_process_and_several_are_others(workers: int, least: int, most: int) -> None:
    """A thousand forks of a process took all memory."""
    assert set(map_chunks(process, range(4), 1)) == {os.getpid()}
    others = set(map_chunks(process, range(200), workers))
    assert os.getpid() not in others
    assert least <= len(others) <= most


@pytest.mark.parametrize(("workers", "ahead"), [(1, 0), (2, 4), (3, 6)])
def test_chunks_are_read_as_they_are_needed(workers: int, ahead: int) -> None:
    read: list[int] = []

    def chunks() -> Iterator[int]:
        for number in range(50):
            read.append(number)
            yield number

    results = map_chunks(square, chunks(), workers)
    assert read == []
    for done, _ in enumerate(results, start=1):
        assert len(read) == min(50, done + ahead)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("of_work", [False, True])
def test_an_error_of_the_work_or_of_the_chunks_is_raised_here(workers: int, of_work: bool) -> None:
    def chunks() -> Iterator[int]:
        yield from range(100 if of_work else 5)
        raise DataError("five")

    results = map_chunks(fail_at_five, chunks(), workers)
    with pytest.raises(DataError, match="five"):
        assert [next(results) for _ in range(6)] == []
    assert multiprocessing.active_children() == []


def test_abandoned_results_leave_nothing() -> None:
    results = map_chunks(square, range(100), 2)
    assert next(results) == 0
    results.close()
    assert multiprocessing.active_children() == []


def test_a_process_that_dies_is_named() -> None:
    with pytest.raises(DataError, match=r"one of 2 processes was killed.*data\.workers"):
        list(map_chunks(die, range(10), 2))
    assert multiprocessing.active_children() == []


def pause(number: int) -> int:
    time.sleep(0.01)
    return os.getpid()


def print_processes() -> None:
    """Work that does not end."""
    for result in map_chunks(pause, range(10**9), 2):
        print(result, flush=True)


@pytest.mark.parametrize("end", [processes.interrupt, processes.terminate, processes.kill])
def test_no_process_outlives_its_killed_parent(end: Callable[[int], None]) -> None:
    processes.assert_none_outlives(print_processes, end)
