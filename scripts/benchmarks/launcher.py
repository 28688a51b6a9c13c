"""Run a module of another toolkit in that toolkit's interpreter, with a given precision of fp32 matrix products.

PYTHON launcher.py PRECISION MODULE [ARGUMENT ...]

PRECISION is `default`, which changes nothing, or a value of `torch.set_float32_matmul_precision`. Limits on the kernels
that are kept in memory, which `nmt` sets for itself, are removed. The last line of output has the settings of the
process when the module ended.
"""

import os
import runpy
import sys


def main() -> None:
    """Set the precision, run the module, report."""
    sys.path.pop(0)  # this folder, whose modules must not shadow those of the other toolkit
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.pop(name, None)  # before torch reads it
    import torch

    precision, module, *arguments = sys.argv[1:]
    if precision != "default":
        torch.set_float32_matmul_precision(precision)
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        print(f"ended with products {torch.get_float32_matmul_precision()}, threads {torch.get_num_threads()}")


if __name__ == "__main__":
    main()
