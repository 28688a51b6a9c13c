"""Positions, which are added to embedded words for layers that do not read in order."""

import math

import torch
from torch import Tensor, nn

from nmt.layers.embedding import embed
from nmt.system.errors import ConfigError


def sinusoids(positions: Tensor, size: int) -> Tensor:
    """Sinusoids of positions (Vaswani et al., 2017, section 3.5): PE(p, 2i) = sin(p / 10000^(2i / size)), 2i + 1: cos.

    Args:
        positions: From 0, [T].
        size: Units.

    Returns:
        [T, size].
    """
    exponents = torch.arange(0, size, 2, device=positions.device, dtype=torch.float64) / size
    angles = positions.unsqueeze(1) * 10_000.0**-exponents  # [T, size / 2], rounded up
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, :size]


class PositionedEmbedding(nn.Module):
    """sqrt(E) times the embedding of a word, plus the vector of its position (Vaswani et al., 2017, section 3.4-3.5).

    Args:
        embedding: Of words; may be shared.
        learned: Positions that have a vector of their own (Gehring et al., 2017, section 3.1); None: sinusoids, which
            go on for ever.
        size: Size of the result; if it is not E, a linear layer follows.
    """

    def __init__(self, embedding: nn.Embedding, learned: int | None, size: int) -> None:
        super().__init__()
        self.words = embedding
        units = embedding.embedding_dim
        self.scale = math.sqrt(units)
        self.learned = nn.Embedding(learned, units) if learned else None
        self.resize = nn.Identity() if size == units else nn.Linear(units, size, bias=False)

    def forward(self, ids: Tensor, first: int = 0, cut: Tensor | None = None) -> Tensor:
        """Embed words at consecutive positions.

        Args:
            ids: [B, T].
            first: Position of the first of them.
            cut: True at words of which only the position stays, [B, T]; None cuts none.

        Returns:
            [B, T, size].

        Raises:
            ConfigError: There are more positions than learned vectors.
        """
        if self.learned is not None and first + ids.size(1) > self.learned.num_embeddings:
            raise ConfigError(
                f"{first + ids.size(1):,} tokens are more than the {self.learned.num_embeddings:,} positions that the "
                "model has learned; shorten the text, or train with a higher learned_positions or null"
            )
        positions = torch.arange(first, first + ids.size(1), device=ids.device)
        words = embed(self.words, ids, cut) * self.scale
        if self.learned is not None:
            vectors = self.learned(positions) * self.scale
        else:
            vectors = sinusoids(positions, words.size(2)).to(words.dtype)
        outputs: Tensor = self.resize(words + vectors)
        return outputs
