"""Self-attention of GPUs, whose kernels do not store weights, beside that of CPUs."""

import torch

from nmt.layers.self_attention import SelfAttention, attend_without_weights

BATCH, HEADS, LENGTH, SIZE = 3, 2, 5, 4


def test_contexts_without_weights_are_those_of_the_weights_with_the_same_gradients() -> None:
    torch.manual_seed(1)
    layer = SelfAttention(HEADS * SIZE, HEADS, dropout=0.0).double()
    allowed = torch.rand(BATCH, LENGTH, LENGTH) < 0.6
    allowed |= torch.eye(LENGTH, dtype=torch.bool)
    split = [torch.randn(BATCH, HEADS, LENGTH, SIZE, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    queries, keys, values = split
    expected = layer.weigh(queries, keys, allowed) @ values
    found = attend_without_weights(queries, keys, values, allowed, dropped=0.0)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    outer = torch.randn_like(found)
    gradients = [torch.autograd.grad(contexts, split, outer) for contexts in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_a_row_that_allows_nothing_has_finite_contexts_and_gradients() -> None:
    """Positions of padding may be alone in the window of a local pattern."""
    split = [torch.randn(1, HEADS, LENGTH, SIZE, requires_grad=True) for _ in range(3)]
    queries, keys, values = split
    allowed = torch.ones(1, LENGTH, LENGTH, dtype=torch.bool)
    allowed[0, 2] = False
    contexts = attend_without_weights(queries, keys, values, allowed, dropped=0.0)
    assert bool(contexts.isfinite().all())
    assert all(bool(gradient.isfinite().all()) for gradient in torch.autograd.grad(contexts.sum(), split))


def test_one_mask_serves_all_sentences_and_queries() -> None:
    queries, keys, values = (torch.randn(BATCH, HEADS, LENGTH, SIZE) for _ in range(3))
    prefix = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril().unsqueeze(0)
    together = attend_without_weights(queries, keys, values, prefix, dropped=0.0)
    torch.testing.assert_close(together[:, :, 0], values[:, :, 0])  # the first word reads itself alone
    padding = torch.tensor([[[True, True, True, False, False]]])
    shorter = attend_without_weights(queries, keys[:, :, :3], values[:, :, :3], padding[..., :3], dropped=0.0)
    torch.testing.assert_close(attend_without_weights(queries, keys, values, padding, dropped=0.0), shorter)


def test_weights_are_dropped_and_the_others_raised() -> None:
    torch.manual_seed(2)
    queries = torch.zeros(1, 1, 4000, SIZE)  # equal scores, so that each of two keys has half of the weight
    keys = torch.zeros(1, 1, 2, SIZE)
    values = torch.tensor([[1.0, 0, 0, 0], [0, 1.0, 0, 0]]).view(1, 1, 2, SIZE)
    allowed = torch.ones(1, 1, 2, dtype=torch.bool)
    contexts = attend_without_weights(queries, keys, values, allowed, dropped=0.5)[0, 0, :, :2]
    assert set(contexts.flatten().tolist()) == {0.0, 1.0}  # 0.5 / (1 - 0.5), or nothing
    assert abs(float(contexts.mean()) - 0.5) < 0.03  # 4 deviations of 8,000 draws
