import mmap
import sys

import psutil
import pytest
import torch

from nmt.system.memory import as_text, available_memory, peak_memory, peak_resident


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_memory_of_this_process() -> None:
    before = peak_resident()
    now = psutil.Process().memory_info().rss  # less than the peak after much has been freed
    size = before - now + 2**26  # 64 MiB above the peak, in memory of its own: the heap may have some left
    with mmap.mmap(-1, size) as memory:
        memory[:: mmap.PAGESIZE] = bytes(len(range(0, size, mmap.PAGESIZE)))
    peak = peak_resident()
    assert before < peak < 3 * before
    if not torch.cuda.is_available():
        assert peak_memory() >= peak
    assert available_memory(torch.device("cpu")) > peak // 2


@pytest.mark.parametrize(("size", "text"), [(2**19, "0.5 MiB"), (2**30, "1.0 GiB"), (2000 * 2**30, "2,000.0 GiB")])
def test_bytes_as_text(size: int, text: str) -> None:
    assert as_text(size) == text
