"""Weights that are packed once for many products."""

import pytest
import torch

from nmt.layers.kernels.packed import PackedWeight, _with_common_length, can_pack


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_packed_weight_multiplies_any_number_of_rows(dtype: torch.dtype, with_bias: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    weight, rows, bias = (torch.randn(*shape, generator=generator).to(dtype) for shape in ((13, 24), (200, 24), (13,)))
    exact = rows.double() @ weight.double().T + (bias.double() if with_bias else 0.0)
    tolerance = 1e-5 if dtype == torch.float32 else 0.05
    with torch.no_grad():
        if not can_pack(weight):
            pytest.skip(f"this processor's library packs no {dtype}")
        packed = PackedWeight(weight)
        whole = packed(rows, bias if with_bias else None)
        torch.testing.assert_close(whole.double(), exact, rtol=tolerance, atol=tolerance)
        for number in (1, 2, 31, 33, 67, 199):
            part = packed(rows[:number], bias if with_bias else None)
            assert part.dtype == dtype
            torch.testing.assert_close(part, whole[:number], rtol=tolerance, atol=tolerance)


def test_only_matrices_without_gradients_are_packed() -> None:
    matrix = torch.ones(3, 4)
    assert not can_pack(matrix)
    with torch.no_grad():
        assert can_pack(matrix) == torch.backends.mkldnn.is_available()
        assert not can_pack(matrix.double())
        assert not can_pack(matrix[0])
        assert not can_pack(torch.ones(3, 4, 5))
        assert not can_pack(matrix.to("meta"))
        assert not can_pack(torch.ones(3, 0))


def test_rows_of_few_numbers_are_multiplied() -> None:
    lengths = set()
    for number in range(1, 1025):
        padded = _with_common_length(torch.ones(number, 2))
        assert number <= len(padded) <= number + number / 16
        assert padded.sum() == 2 * number
        lengths.add(len(padded))
    assert set(range(1, 33)) <= lengths
    assert len(lengths) == 32 + 5 * 16
