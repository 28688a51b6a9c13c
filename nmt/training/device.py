"""Where and how fast tensors are computed."""

from __future__ import annotations

import contextlib
import platform
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch.torch_version import TorchVersion

from nmt.errors import ConfigError


def resolve_device(name: str) -> torch.device:
    """The device that a config names; `auto` takes CUDA, then MPS, then the CPU.

    Raises:
        ConfigError: The device is not there.
    """
    # Before 2.13 the fused optimisers on MPS took no notice of clipping, and of updates that are to be left out.
    mps = torch.backends.mps.is_available() and TorchVersion(torch.__version__) >= TorchVersion("2.13")
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if mps else "cpu")
    if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name):
        raise ConfigError(f"device {name}: there are auto, cpu, cuda, cuda:N and mps")
    device = torch.device(name)
    found = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(mps)}
    if (device.index or 0) >= found[device.type]:
        raise ConfigError(
            f"device {name} is not there ({found[device.type]} {device.type} devices found); use auto or cpu"
        )
    return device


def use_fast_products() -> bool:
    """Let oneDNN compute the CPU's fp32 matrix products where it is at least as exact as ordinary fp32.

    The switch permits lower precision inside a product. Processors without tile instructions (AMX) ignore the
    permission and only gain another, often faster, kernel; so the product is tried, and the switch is taken back
    unless its error is that of fp32.

    Returns:
        Whether the switch stays on.
    """
    before = torch.get_float32_matmul_precision()
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(256, 256, generator=generator) for _ in range(2))
    exact = left.double() @ right.double()
    torch.set_float32_matmul_precision("medium")
    error = ((left @ right).double() - exact).norm() / exact.norm()
    if error < 2e-6 and not torch.cuda.is_available():
        return True
    torch.set_float32_matmul_precision(before)
    return False


@contextlib.contextmanager
def autocast(device: torch.device, precision: str) -> Iterator[None]:
    """bfloat16 autocast, or nothing for float32."""
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        yield


def describe_environment(device: torch.device) -> dict[str, Any]:
    """Versions and hardware, for the run directory."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "torch": torch.__version__,
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }
