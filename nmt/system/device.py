"""Device, precision and environment."""

import contextlib
import os
import platform
import re
import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import torch
from torch.torch_version import TorchVersion

from nmt.system.errors import ConfigError, shorten
from nmt.system.version import __version__


def resolve_device(name: str) -> torch.device:
    """The device of a config; `auto` is CUDA, MPS or the CPU, in this order.

    Raises:
        ConfigError: The device is not available.
    """
    # Before 2.13 the fused optimisers on MPS ignored clipping and skipped updates.
    mps = torch.backends.mps.is_available() and TorchVersion(torch.__version__) >= TorchVersion("2.13")
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if mps else "cpu")
    named = re.fullmatch(r"(cpu|mps|cuda)(?::([0-9]{1,18}))?", name)
    if not named or (named[2] and named[1] != "cuda"):
        raise ConfigError(f"device {name}: must be auto, cpu, cuda, cuda:N or mps")
    number = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(mps)}[named[1]]
    if int(named[2] or 0) >= number:  # torch keeps an index in 8 bits, so that it would accept some that are too large
        raise ConfigError(f"device {name} is not available ({number} {named[1]} devices found); use auto or cpu")
    return torch.device(name)


def use_fast_products() -> bool:
    """Let oneDNN compute the CPU's fp32 matrix products if it is at least as accurate as ordinary fp32.

    The setting permits lower precision inside a product. Processors without tile instructions (AMX) do not use it, and
    only get another, often faster, kernel. So a product is tried, and the setting is reverted if its error is larger.

    Returns:
        True if the setting stays on.
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
def restored_products() -> Iterator[None]:
    """Restore after the block what `use_fast_products` sets in it, for all that the program computes later."""
    before = torch.get_float32_matmul_precision()
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


BFLOAT16_GAIN = 1.25
"""How much faster products must be in bfloat16 for `auto` to choose it; the rest of training stays in float32."""


def resolve_precision(name: str, device: torch.device) -> str:
    """The precision of a config; `auto` is bfloat16 where the device's own products are clearly faster in it.

    On the CPU that is measured, in about 0.2 s, or 2 s where bfloat16 is emulated. CUDA devices without bfloat16 of
    their own (before Ampere) use float16; MPS uses float32.
    """
    if name != "auto":
        return name
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    faster = device.type == "cpu" and _bfloat16_gain() > BFLOAT16_GAIN
    return "bfloat16" if faster else "float32"


def _bfloat16_gain() -> float:
    """How many times faster a product is on the CPU in bfloat16: 256 readouts and the output layer of 4,096 words.

    The fastest of many short products in turn counts, so that other work on the machine matters little.
    """
    dtypes = torch.float32, torch.bfloat16
    factors = {dtype: (torch.ones(256, 256, dtype=dtype), torch.ones(256, 4096, dtype=dtype)) for dtype in dtypes}
    seconds: dict[torch.dtype, list[float]] = {dtype: [] for dtype in dtypes}
    while sum(map(sum, seconds.values())) < 0.2:
        for dtype, (left, right) in factors.items():
            begin = time.perf_counter()
            left @ right
            seconds[dtype].append(time.perf_counter() - begin)
    return min(seconds[torch.float32]) / min(seconds[torch.bfloat16])


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Autocast to bfloat16 or float16, or nothing for float32."""
    dtype = torch.float16 if precision == "float16" else torch.bfloat16
    return torch.autocast(device.type, dtype=dtype, enabled=precision != "float32")


@contextlib.contextmanager
def fixed_order(wanted: bool) -> Iterator[None]:
    """In the block a GPU adds in a fixed order, so that the same work has the same result to the bit; CPUs always do.

    Args:
        wanted: False changes nothing.

    Raises:
        ConfigError: An operation has no kernel with a fixed order.
    """
    if not wanted:
        yield
        return
    enabled = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # for products; read when they first use the GPU
    torch.use_deterministic_algorithms(True)
    try:
        yield
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        if "deterministic" not in reason:
            raise
        raise ConfigError(f"train.deterministic: true, but {shorten(reason)}; set false") from error
    finally:
        torch.use_deterministic_algorithms(enabled, warn_only=warn_only)


def describe_environment(device: torch.device) -> dict[str, Any]:
    """Versions and hardware, for the run directory."""
    return {
        "nmt": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "torch": torch.__version__,
        **{package: version(package) for package in ("sacrebleu", "sentencepiece")},
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }
