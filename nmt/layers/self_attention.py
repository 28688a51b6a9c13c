"""Self-attention: every position of a sequence reads the others."""

import contextlib
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nmt.layers.kernels.dropout import Dropout
from nmt.layers.kernels.products import multiply_small, widen
from nmt.layers.kernels.stepwise import StepLinear


class SelfAttention(nn.Module):
    """Multi-head self-attention (Vaswani et al., 2017, section 3.2): softmax(Q K^T / sqrt(d)) V, for each head.

    Q, K and V are three projections of the same vectors; the contexts of all heads are projected together.

    Args:
        size: Size of a vector, D.
        num_heads: Heads, of size d = D / heads.
        dropout: Probability of dropping a weight, in training.
    """

    def __init__(self, size: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.scale = 1 / math.sqrt(size // num_heads)
        self.project = StepLinear(size, 3 * size, bias=False)
        self.output = StepLinear(size, size, bias=False)
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Tensor, allowed: Tensor) -> Tensor:
        """Read a whole sequence.

        Args:
            inputs: [B, T, D].
            allowed: True where a position may read another, [B or 1, T or 1, T].

        Returns:
            [B, T, D].
        """
        return self.attend(*self.split(inputs), allowed)

    def split(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of all heads: [B, T, D] -> [B, heads, T, d] each."""
        projected = self.project(inputs).view(*inputs.shape[:2], 3, self.num_heads, -1)
        queries, keys, values = widen(projected.permute(2, 0, 3, 1, 4)).unbind()
        return queries, keys, values

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, allowed: Tensor) -> Tensor:
        """Attend with all heads.

        Args:
            queries: [B, heads, T, d].
            keys: [B, heads, S, d].
            values: [B, heads, S, d].
            allowed: [B or 1, T or 1, S].

        Returns:
            [B, T, D].
        """
        if queries.is_cuda:
            dropped = self.dropout.p if self.training else 0.0
            contexts = attend_without_weights(queries, keys, values, allowed, dropped)
        else:
            weights = self.dropout(self.weigh(queries, keys, allowed))
            contexts = multiply_small(weights, values)  # [B, heads, T, d]
        outputs: Tensor = self.output(contexts.transpose(1, 2).flatten(2))
        return outputs

    def weigh(self, queries: Tensor, keys: Tensor, allowed: Tensor) -> Tensor:
        """The weights of `attend`: [B, heads, T, S], exactly 0 where not allowed."""
        scores = multiply_small(queries * self.scale, keys.mT)
        lowest = torch.finfo(scores.dtype).min
        return scores.masked_fill(~allowed.unsqueeze(1), lowest).softmax(dim=-1)


def attend_without_weights(queries: Tensor, keys: Tensor, values: Tensor, allowed: Tensor, dropped: float) -> Tensor:
    """Contexts of all heads by torch's fused kernels, which never store the weights: for GPUs.

    Args:
        queries: [B, heads, T, d].
        keys: [B, heads, S, d].
        values: [B, heads, S, d].
        allowed: [B or 1, T or 1, S]. A row that allows nothing has finite contexts.
        dropped: Probability of dropping a weight.

    Returns:
        [B, heads, T, d].
    """
    lowest = torch.finfo(queries.dtype).min
    added = torch.zeros_like(allowed, dtype=queries.dtype).masked_fill(~allowed, lowest).unsqueeze(1)
    return nn.functional.scaled_dot_product_attention(queries, keys, values, added, dropped)


@contextlib.contextmanager
def recorded_weights(module: nn.Module) -> Iterator[list[Tensor]]:
    """Keep the weights of all self-attention in a module while it runs in the block, layer by layer.

    Yields:
        A list that each call extends by [B, heads, T, T].
    """
    weights: list[Tensor] = []

    def record(part: SelfAttention, inputs: tuple[Tensor, Tensor], _: Tensor) -> None:
        queries, keys, _ = part.split(inputs[0])
        weights.append(part.weigh(queries, keys, inputs[1]))

    parts = [part for part in module.modules() if isinstance(part, SelfAttention)]
    with contextlib.ExitStack() as hooks:
        for part in parts:
            hooks.callback(part.register_forward_hook(record).remove)
        yield weights
