"""Self-attention by itself, over any sequence of vectors."""

import torch
from torch import Tensor, nn

from nmt.layers.self_attention import SelfAttention
from nmt.system.errors import ConfigError, DataError
from nmt.system.messages import Parameter


class SelfAttentionModule(nn.Module):
    """From a sequence to what its words have read of each other, without a model around it.

    Args:
        size: Size of a vector, D.
        heads: Number of heads.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.size = size
        self.attention = SelfAttention(size, heads, dropout=0.0)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Let every word read the others.

        Args:
            x: Vectors of words, [B, S, D].
            mask: True at words, [B, S]; or True where a word, by row, may read another, by column, [B, S, S] or
                [1, S, S], such as `torch.ones(1, S, S, dtype=torch.bool).tril()` in a decoder; None if all is read.

        Returns:
            Outputs [B, S, D], and weights [B, heads, S, S], exactly 0 where nothing may be read.

        Raises:
            DataError: Shapes do not fit, or a word may read nothing.
        """
        batch, length = x.shape[:2]
        shapes = [(batch, length), (batch, length, length), (1, length, length)]
        if x.dim() != 3 or x.size(2) != self.size:
            raise DataError(f"x: expected [B, S, {self.size}], found {list(x.shape)}")
        if mask is not None and (tuple(mask.shape) not in shapes or mask.dtype != torch.bool):
            wanted = f"{list(shapes[0])}, {list(shapes[1])} or {list(shapes[2])}"
            raise DataError(f"mask: expected booleans {wanted}, found {list(mask.shape)} of {mask.dtype}")
        allowed = torch.ones(1, length, length, dtype=torch.bool, device=x.device) if mask is None else mask
        if allowed.dim() == 2:
            allowed = allowed.unsqueeze(1)  # [B, S] -> [B, 1, S]: of each word
        if not allowed.any(dim=-1).all():
            raise DataError("mask: a word may read nothing: let each read at least one, such as itself")
        queries, keys, values = self.attention.split(x)
        weights = self.attention.weigh(queries, keys, allowed)
        return self.attention.attend(queries, keys, values, allowed), weights


def self_attention(size: int, heads: int = 1) -> SelfAttentionModule:
    """Build multi-head self-attention (Vaswani et al., 2017, section 3.2), to try and to see.

    Args:
        size: Size of a vector.
        heads: Number of heads, which divides it.

    Raises:
        ConfigError: It does not.
    """
    if heads < 1 or size < 1 or size % heads:
        raise ConfigError(
            "{heads}: must divide {size}, and both be at least 1",
            heads=Parameter("heads", heads),
            size=Parameter("size", size),
        )
    return SelfAttentionModule(size, heads)
