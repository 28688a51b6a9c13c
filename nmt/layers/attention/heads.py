"""Heads: a single one without projections, or several with their own projections."""

from typing import ClassVar

from torch import Tensor, nn

from nmt.layers.kernels.products import widen
from nmt.layers.kernels.stepwise import StepLinear


class SingleHead(nn.Module):
    """One head: the score compares decoder and encoder states directly.

    The context is a weighted sum of encoder states.

    Args:
        query_size: Size of a query of one head: that of a decoder state.
        key_size: Size of a key of one head: that of an encoder state.
        number: Heads.
    """

    def __init__(self, query_size: int, key_size: int, number: int = 1) -> None:
        super().__init__()
        self.number = number
        self.query_size = query_size
        self.key_size = key_size
        self.context_size = key_size

    def split_query(self, vectors: Tensor) -> Tensor:
        """The part of each head of queries, keys or values: [B, N, size] -> [B, heads, N, size of a head]."""
        return vectors.unsqueeze(1)

    split_keys = split_values = split_query

    def merge(self, contexts: Tensor) -> Tensor:
        """[B, heads, N, value size] -> [B, N, D]."""
        return contexts.squeeze(1)


class MultiHead(SingleHead):
    """Multi-head attention (Vaswani et al., 2017, section 3.2.2; with the additive score Chen et al., 2018).

    Queries, keys and values are projected for each head; the heads share the weights of the score itself, and their
    contexts are projected together. Projected queries and keys have equal sizes, as the dot product needs.

    Args:
        query_size: Size of a decoder state.
        key_size: Size of an encoder state.
        number: Heads.
        head_size: Units per head; None is `key_size` / `number`.
        context_size: Size of the context; None is `key_size`.
    """

    paper: ClassVar[str] = "Vaswani et al., 2017, section 3.2.2; Chen et al., 2018"

    def __init__(
        self,
        query_size: int,
        key_size: int,
        number: int,
        head_size: int | None = None,
        context_size: int | None = None,
    ) -> None:
        size = head_size or key_size // number
        super().__init__(size, size, number)
        self.context_size = context_size or key_size
        self.query = StepLinear(query_size, number * size, bias=False)
        self.key = nn.Linear(key_size, number * size, bias=False)
        self.value = nn.Linear(key_size, number * size, bias=False)
        self.output = StepLinear(number * size, self.context_size, bias=False)

    def split_query(self, query: Tensor) -> Tensor:
        """[B, N, Q] -> [B, heads, N, head_size]."""
        return self._split(self.query(query))

    def split_keys(self, encoder_states: Tensor) -> Tensor:
        """[B, S, D] -> [B, heads, S, head_size]."""
        return self._split(self.key(encoder_states))

    def split_values(self, encoder_states: Tensor) -> Tensor:
        """[B, S, D] -> [B, heads, S, head_size]."""
        return self._split(self.value(encoder_states))

    def merge(self, contexts: Tensor) -> Tensor:
        """[B, heads, N, head_size] -> [B, N, D]."""
        merged: Tensor = self.output(contexts.transpose(1, 2).flatten(2))
        return merged

    def _split(self, projected: Tensor) -> Tensor:
        return widen(projected.view(*projected.shape[:2], self.number, -1).transpose(1, 2))
