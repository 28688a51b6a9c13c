"""Batches from a device, and batches that a thread makes ahead, are those that the loop would make."""

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from pairs import pairs_of

from nmt.corpus.batch_source import DeviceBatches, HostBatches, count_bytes, make_ahead, open_batches
from nmt.corpus.batching import make_batch

PAIRS = pairs_of([[5, 6, 7], [], [8], [9, 10]], [[4], [11, 12, 13, 14], [], [7, 7]])
CPU = torch.device("cpu")


@pytest.mark.parametrize("indices", [[0, 1, 2, 3], [3, 0], [1], [2, 2, 0]])
def test_a_device_makes_the_batch_of_the_host(indices: list[int]) -> None:
    wanted = make_batch(PAIRS, np.array(indices))
    found = DeviceBatches(PAIRS, CPU)(np.array(indices), epoch=3)
    for name, expected, tensor in zip(wanted._fields, wanted, found, strict=True):
        assert tensor.dtype == expected.dtype, name
        assert torch.equal(tensor, expected), name


def test_pairs_without_any_word_have_batches() -> None:
    empty = pairs_of([[], []], [[], []])
    wanted = make_batch(empty, np.array([0, 1]))
    assert all(map(torch.equal, wanted, DeviceBatches(empty, CPU)(np.array([0, 1]), 1)))


def test_the_cpu_makes_batches_when_they_are_asked_for() -> None:
    source = open_batches(PAIRS, lambda src, tgt, epoch, index: (src[:epoch], tgt, tgt), CPU)
    assert isinstance(source, HostBatches)
    assert source(np.array([0]), 2).src.tolist() == [[5, 6, 3]]  # the noise of the epoch: two words and EOS
    assert count_bytes(PAIRS) == 4 * (6 + 7) + 8 * 2 * 5


@pytest.mark.parametrize("number", [0, 1, 3, 50])
def test_what_is_made_ahead_keeps_its_order(number: int) -> None:
    threads = set()

    def make(item: int) -> int:
        threads.add(threading.get_ident())
        time.sleep(0.001 * (item % 3))
        return item * item

    found = list(make_ahead(make, iter(range(20)), number))
    assert found == [(item, item * item) for item in range(20)]
    assert (threads == {threading.get_ident()}) == (number == 0)


def test_no_more_is_made_than_asked_for() -> None:
    taken = []

    def items() -> Iterator[int]:
        for item in range(100):
            taken.append(item)
            yield item

    made = make_ahead(str, items(), 3)
    assert next(made) == (0, "0")
    assert len(taken) == 4
    made.close()  # the thread ends
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


def test_an_error_is_raised_where_its_item_is_asked_for() -> None:
    def make(item: int) -> int:
        return 10 // item

    made = make_ahead(make, iter([5, 2, 0, 1]), 2)
    assert [next(made), next(made)] == [(5, 2), (2, 5)]
    with pytest.raises(ZeroDivisionError):
        next(made)
