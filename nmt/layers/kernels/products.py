"""Products of shapes that the CPU's matrix library is slow with in bfloat16.

It prepares a kernel for each new shape, which takes longer than a small product, and keeps a limited number of them.
"""

import torch
from torch import Tensor, nn

ROW_STEP = 32
"""Rows are padded to a multiple of this."""
SMALL = 256
"""Rows and columns of a right factor that make a small one."""


def pad_rows(rows: Tensor) -> Tensor:
    """Append rows of zeros up to a multiple of `ROW_STEP`: [R, K] -> [R', K]."""
    return nn.functional.pad(rows, (0, 0, 0, -len(rows) % ROW_STEP))


def widen(factor: Tensor) -> Tensor:
    """A factor of small products as `multiply_small` uses it: in float32 under the CPU's autocast."""
    return factor.to(torch.promote_types(factor.dtype, torch.float32)) if _is_lowered(factor) else factor


def multiply_small(left: Tensor, right: Tensor) -> Tensor:
    """Many products, [..., M, K] times [..., K, N]; under the CPU's autocast in float32 if K and N are small."""
    if not _is_lowered(left) or max(right.shape[-2:]) > SMALL:
        return left @ right
    left = widen(left)
    right = widen(right)
    with torch.autocast("cpu", enabled=False):
        return left @ right


def _is_lowered(factor: Tensor) -> bool:
    return factor.device.type == "cpu" and torch.is_autocast_enabled("cpu")
