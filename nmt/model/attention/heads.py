"""Heads: one, which changes nothing, or several with projections of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from nmt.model.kernels.stepwise import StepLinear


class Heads(nn.Module, ABC):
    """How the score sees queries and keys, and how the heads' contexts become one.

    Args:
        number: Heads, H.
        query_size: Size of a query as the score sees it.
        key_size: Size of a key as the score sees it.
    """

    def __init__(self, number: int, query_size: int, key_size: int) -> None:
        super().__init__()
        self.number = number
        self.query_size = query_size
        self.key_size = key_size

    @abstractmethod
    def split_query(self, query: Tensor) -> Tensor:
        """[B, N, Q] -> [B, H, N, query_size]."""

    @abstractmethod
    def split_keys(self, encoder_states: Tensor) -> Tensor:
        """[B, S, K] -> [B, H, S, key_size]."""

    @abstractmethod
    def split_values(self, encoder_states: Tensor) -> Tensor:
        """[B, S, K] -> [B, H, S, V]."""

    @abstractmethod
    def merge(self, contexts: Tensor) -> Tensor:
        """[B, H, N, V] -> [B, N, K]."""


class SingleHead(Heads):
    """One head: the score sees decoder and encoder states as they are.

    The context is a mean of encoder states.

    Args:
        query_size: Size of a decoder state.
        key_size: Size of an encoder state.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__(1, query_size, key_size)

    def split_query(self, query: Tensor) -> Tensor:
        """[B, N, Q] -> [B, 1, N, Q]."""
        return query.unsqueeze(1)

    def split_keys(self, encoder_states: Tensor) -> Tensor:
        """[B, S, K] -> [B, 1, S, K]."""
        return encoder_states.unsqueeze(1)

    def split_values(self, encoder_states: Tensor) -> Tensor:
        """[B, S, K] -> [B, 1, S, K]."""
        return encoder_states.unsqueeze(1)

    def merge(self, contexts: Tensor) -> Tensor:
        """[B, 1, N, K] -> [B, N, K]."""
        return contexts.squeeze(1)


class MultiHead(Heads):
    """Multi-head attention (Vaswani et al., 2017, section 3.2.2; with the additive score Chen et al., 2018).

    Queries, keys and values are projected for each head; the heads share the weights of the score itself, and their
    contexts are projected together. In the projected sizes, a score that multiplies query and key always can.

    Args:
        query_size: Size of a decoder state.
        key_size: Size of an encoder state, and of the context.
        number: Heads, H.
        head_size: Units a head; None shares out `key_size`.
    """

    paper: ClassVar[str] = "Vaswani et al., 2017, section 3.2.2; Chen et al., 2018"

    def __init__(self, query_size: int, key_size: int, *, number: int, head_size: int | None = None) -> None:
        size = head_size or key_size // number
        super().__init__(number, size, size)
        self.query = StepLinear(query_size, number * size, bias=False)
        self.key = nn.Linear(key_size, number * size, bias=False)
        self.value = nn.Linear(key_size, number * size, bias=False)
        self.output = StepLinear(number * size, key_size, bias=False)

    def split_query(self, query: Tensor) -> Tensor:
        """[B, N, Q] -> [B, H, N, head_size]."""
        return self._split(self.query(query))

    def split_keys(self, encoder_states: Tensor) -> Tensor:
        """[B, S, K] -> [B, H, S, head_size]."""
        return self._split(self.key(encoder_states))

    def split_values(self, encoder_states: Tensor) -> Tensor:
        """[B, S, K] -> [B, H, S, head_size]."""
        return self._split(self.value(encoder_states))

    def merge(self, contexts: Tensor) -> Tensor:
        """[B, H, N, head_size] -> [B, N, K]."""
        merged: Tensor = self.output(contexts.transpose(1, 2).flatten(2))
        return merged

    def _split(self, projected: Tensor) -> Tensor:
        return projected.view(*projected.shape[:2], self.number, -1).transpose(1, 2)
