"""The precision and the rows of products."""

import torch

from nmt.layers.kernels.products import SMALL, multiply_small, widen
from nmt.layers.kernels.stepwise import StepWeight


def test_small_products_are_exact_under_autocast() -> None:
    """Those of factors that have more columns, or are not on a CPU, stay in the precision of autocast."""
    left, right = torch.randn(3, 2, 5, generator=torch.manual_seed(1)), torch.randn(3, 5, 4)
    with torch.autocast("cpu", torch.bfloat16):
        small, large = multiply_small(left, right), multiply_small(left, torch.randn(3, 5, SMALL + 1))
        assert widen(left.bfloat16()).dtype == torch.float32
        assert widen(left.double()).dtype == torch.float64
    assert (small.dtype, large.dtype) == (torch.float32, torch.bfloat16)
    torch.testing.assert_close(small, left @ right, rtol=0, atol=0)
    assert multiply_small(left.double(), right.double()).dtype == torch.float64
    assert widen(left.bfloat16()).dtype == torch.bfloat16


def test_rows_of_a_step_do_not_depend_on_their_number() -> None:
    weight, rows = torch.randn(6, 7, generator=torch.manual_seed(1)), torch.randn(70, 7)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        product = StepWeight(weight)
        outputs = [product(rows[:number]) for number in (1, 31, 32, 33, 70)]
    assert [len(output) for output in outputs] == [1, 31, 32, 33, 70]
    expected = rows.bfloat16().float() @ weight.bfloat16().float().T
    for output in outputs:
        torch.testing.assert_close(output.float(), expected[: len(output)], rtol=1e-2, atol=1e-2)
