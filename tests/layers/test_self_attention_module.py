"""nmt.self_attention: against a softmax by hand, and its masks."""

import re

import pytest
import torch

import nmt
from nmt.system.errors import ConfigError, DataError


def test_outputs_and_weights_follow_the_equation() -> None:
    torch.manual_seed(1)
    module = nmt.self_attention(6, heads=2).double()
    x = torch.randn(2, 4, 6, dtype=torch.float64)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    outputs, weights = module(x, mask)
    q, k, v = module.attention.project(x).chunk(3, dim=-1)
    for row, length in enumerate((4, 2)):
        contexts = []
        for head in range(2):
            part = slice(3 * head, 3 * head + 3)
            expected = (q[row, :, part] @ k[row, :length, part].T / 3**0.5).softmax(dim=-1)
            torch.testing.assert_close(weights[row, head, :, :length], expected)
            assert (weights[row, head, :, length:] == 0).all()
            contexts.append(expected @ v[row, :length, part])
        torch.testing.assert_close(outputs[row], module.attention.output(torch.cat(contexts, dim=-1)))


def test_a_causal_mask_hides_what_follows() -> None:
    causal = torch.ones(1, 4, 4, dtype=torch.bool).tril()
    module, x = nmt.self_attention(6), torch.randn(2, 4, 6)
    outputs, weights = module(x, causal)
    assert weights.shape == (2, 1, 4, 4)
    assert (weights[..., ~causal[0]] == 0).all()
    changed = x.clone()
    changed[:, 3] += 1
    torch.testing.assert_close(module(changed, causal)[0][:, :3], outputs[:, :3])


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (torch.ones(4, 4, dtype=torch.bool), "mask: expected booleans [2, 4], [2, 4, 4] or [1, 4, 4], found [4, 4] of"),
        (torch.ones(2, 4), "found [2, 4] of torch.float32"),
        (torch.zeros(2, 4, dtype=torch.bool), "mask: a word may read nothing"),
    ],
)
def test_masks_that_do_not_fit(mask: torch.Tensor, expected: str) -> None:
    with pytest.raises(DataError, match=re.escape(expected)):
        nmt.self_attention(6)(torch.randn(2, 4, 6), mask)


def test_heads_divide_the_size() -> None:
    with pytest.raises(ConfigError, match=r"heads: must divide size, and both be at least 1, found|must divide"):
        nmt.self_attention(6, heads=4)
    with pytest.raises(DataError, match=re.escape("x: expected [B, S, 6], found [2, 6]")):
        nmt.self_attention(6)(torch.randn(2, 6))
