"""Settings of the process that torch's libraries read when they are loaded."""

import os
import sys

from nmt.system.errors import ConfigError

MAX_KERNELS = 128
"""Kernels for shapes of products that oneDNN and its wrapper in torch keep in memory, unless the environment says else.

With torch's default of 1,024, training on 20,000 pairs takes 1,245 MiB instead of 959, and more the longer it goes on;
with 32 it takes 678, but an epoch 5% and 12% longer in two measurements.
"""


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
