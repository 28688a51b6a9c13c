"""Looking up the vectors of words."""

from torch import Tensor, nn


def embed(embedding: nn.Embedding, words: Tensor, cut: Tensor | None = None) -> Tensor:
    """The vectors of words, 0 where they are cut (token cutoff, Shen et al., 2020).

    Args:
        embedding: The vectors of all words.
        words: Ids, [B, T].
        cut: True at words that are cut, [B, T]; None cuts none.

    Returns:
        [B, T, E].
    """
    vectors: Tensor = embedding(words)
    return vectors if cut is None else vectors.masked_fill(cut.unsqueeze(2), 0)
