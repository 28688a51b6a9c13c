"""Settings of the process that torch's libraries read when they are loaded."""

import os
import sys

from nmt.system.errors import ConfigError
from nmt.system.limits import MAX_KERNELS


def tune_process() -> None:
    """Set variables of the environment that bound torch's caches and let waiting threads sleep; call it before torch.

    The command `nmt` does so. oneDNN and torch's wrapper keep a kernel for each shape of a product, by default 1,024
    each, and threads of OpenMP that wait for each other keep a core busy. Variables that are set stay as they are.

    Raises:
        ConfigError: torch is imported already, and has read them.
    """
    if "torch" in sys.modules:
        raise ConfigError("nmt.tune_process: torch is imported already; call it before")
    if "DNNL_PRIMITIVE_CACHE_CAPACITY" not in os.environ:  # its earlier name
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(MAX_KERNELS))
    os.environ.setdefault("LRU_CACHE_CAPACITY", str(MAX_KERNELS))
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
