"""Fast forms against plain ones: the same values and the same gradients."""

from collections.abc import Sequence

import torch
from torch import Tensor


def assert_same_gradients(found: Tensor, expected: Tensor, parts: Sequence[Tensor], atol: float = 1e-12) -> None:
    """The same values, and the same gradients of a weighted sum of them with respect to `parts`, in their types."""
    torch.testing.assert_close(found, expected, rtol=0, atol=atol, check_dtype=False)
    weights = torch.randn_like(expected)
    gradients = [torch.autograd.grad(out, parts, weights.to(out.dtype), retain_graph=True) for out in (found, expected)]
    for part, one, other in zip(parts, *gradients, strict=True):
        assert one.dtype == part.dtype
        torch.testing.assert_close(one, other, rtol=0, atol=atol)
