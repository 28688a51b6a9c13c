"""Torch as it is when it has just been imported, whatever the program around has set."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

_AUTOCAST = ("cpu", "cuda", "mps")
"""Kinds of devices."""
_lock = threading.Lock()
_inside = 0  # blocks of all threads
_dtype_outside: Any = None


@contextlib.contextmanager
def plain_torch() -> Iterator[None]:
    """Compute with torch's own defaults in the block: float32 on the CPU, with gradients, without autocast.

    A program may have set another default dtype or device, autocast, or no gradients; models and results must not
    depend on it. Deterministic algorithms, the precision of products and the number of threads stay as they are.
    """
    if "torch" not in sys.modules:  # then nothing has been set
        yield
        return
    import torch

    with contextlib.ExitStack() as stack:
        stack.enter_context(_plain_dtype())
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        for device in _AUTOCAST:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            stack.enter_context(torch.enable_grad())
        yield


@contextlib.contextmanager
def _plain_dtype() -> Iterator[None]:
    """float32 as default: torch has one default for all threads, so the last block to end restores the other one."""
    global _inside, _dtype_outside
    import torch

    with _lock:
        default = torch.get_default_dtype()
        if default != torch.float32:
            _dtype_outside = default
            torch.set_default_dtype(torch.float32)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _dtype_outside is not None:
                torch.set_default_dtype(_dtype_outside)
                _dtype_outside = None
