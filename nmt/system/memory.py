"""Memory of this process and of its device."""

import contextlib
from pathlib import Path

import psutil
import torch


def peak_memory() -> int:
    """Peak bytes of this process: memory that torch allocated on a GPU if it used one, otherwise resident memory."""
    on_gpu = max(map(torch.cuda.max_memory_allocated, range(torch.cuda.device_count())), default=0)
    return on_gpu or peak_resident()


def peak_resident() -> int:
    """Peak resident memory of this process in bytes; its present memory if the system does not report a peak."""
    with contextlib.suppress(OSError, StopIteration):
        # On Linux, a process inherits its parent's peak in getrusage, but not here.
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    return psutil.Process().memory_info().rss


def available_memory(device: torch.device) -> int:
    """Bytes that would be available to a run on a device if this process ended."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available + psutil.Process().memory_info().rss


def as_text(size: int) -> str:
    """Format bytes as MiB or GiB."""
    return f"{size / 2**20:,.1f} MiB" if size < 2**30 else f"{size / 2**30:,.1f} GiB"
