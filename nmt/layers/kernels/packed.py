"""Weights in the order in which the CPU's matrix library (oneDNN) reads them, for many products without gradients.

The library arranges a weight anew for each product, which takes longer than a product of few rows, unless it is given
one that is arranged already.
"""

import torch
from torch import Tensor, nn

PACKED_FOR = 64
"""Rows of the product whose order is chosen; products of other numbers of rows use the same order."""


class PackedWeight:
    """A weight W, arranged once: x -> x W^T + b. Later updates of W do not reach it.

    Args:
        weight: W, [M, K]; see `can_pack`.
    """

    def __init__(self, weight: Tensor) -> None:
        self.arranged: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_FOR)

    def __call__(self, inputs: Tensor, bias: Tensor | None) -> Tensor:
        """x W^T + b in the precision of W: [R, K] -> [R, M]."""
        rows = _with_common_length(inputs)
        outputs: Tensor = torch.ops.mkldnn._linear_pointwise(rows, self.arranged, bias, "none", [], "")
        return outputs if rows is inputs else outputs[: len(inputs)]


def can_pack(weight: Tensor) -> bool:
    """True for a matrix on the CPU in a precision that the library packs, where no gradient is recorded."""
    if weight.dim() != 2 or not weight.numel() or weight.device.type != "cpu" or torch.is_grad_enabled():
        return False
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if weight.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype == torch.float32


def _with_common_length(rows: Tensor) -> Tensor:
    """Append rows of zeros, a sixteenth of them at most: [R, K] -> [R', K].

    The library prepares a kernel for each new number of rows and keeps a limited number of them; so few numbers occur.
    """
    number = rows.size(0)
    step = 1 << max(0, number.bit_length() - 5)
    missing = -number % step
    return nn.functional.pad(rows, (0, 0, 0, missing)) if missing else rows
