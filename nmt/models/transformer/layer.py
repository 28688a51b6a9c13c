"""Layers of self-attentive encoders and decoders: sublayers with residual connections and layer normalisation."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from nmt.config import TransformerSection
from nmt.layers.attention.attention import Attention
from nmt.layers.attention.source_memory import Memory
from nmt.layers.kernels.dropout import Dropout
from nmt.layers.kernels.stepwise import StepLinear
from nmt.layers.layout import Layout
from nmt.layers.self_attention import SelfAttention
from nmt.models.base import DecoderState
from nmt.models.transformer.cache import Cache


class Residual(nn.Module):
    """The connection around a sublayer f: x + dropout(f(norm(x))), or norm(x + dropout(f(x))).

    The first is pre-norm (Nguyen & Salazar, 2019), the second post-norm (Vaswani et al., 2017, section 3.1).

    Args:
        section: Which of them.
        dropout: On the output of f.
    """

    def __init__(self, section: TransformerSection, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(section.hidden_size)
        self.pre = section.norm == "pre"
        self.dropout = Dropout(dropout)

    def enter(self, inputs: Tensor) -> Tensor:
        """The input of f, [..., D]."""
        outputs: Tensor = self.norm(inputs) if self.pre else inputs
        return outputs

    def leave(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """The sum of x and the output of f, [..., D]."""
        total: Tensor = inputs + self.dropout(outputs)
        return total if self.pre else self.norm(total)


class FeedForward(nn.Module):
    """Two linear layers, applied position by position (Vaswani et al., 2017, eq. 2): W2 activation(W1 x + b1) + b2.

    Args:
        section: Sizes and activation.
        dropout: On the output, see `Residual`.
    """

    def __init__(self, section: TransformerSection, dropout: float) -> None:
        super().__init__()
        self.residual = Residual(section, dropout)
        self.inner = StepLinear(section.hidden_size, section.feed_forward_size)
        self.outer = StepLinear(section.feed_forward_size, section.hidden_size)
        self.activation = nn.ReLU(inplace=True) if section.activation == "relu" else nn.GELU()

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., D] -> [..., D], with the residual connection."""
        hidden = self.activation(self.inner(self.residual.enter(inputs)))
        return self.residual.leave(inputs, self.outer(hidden))


State = TypeVar("State", bound=DecoderState)


class History(nn.Module, ABC, Generic[State]):
    """The sublayer by which a decoder reads the words so far: causal self-attention, or a recurrence."""

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tensor:
        """All positions: [B, T, D] -> [B, T, D], each from those up to its own."""

    @abstractmethod
    def start(self, like: Tensor) -> State:
        """The state before the first word, with one row for each of some vectors [R, D] on the device of a step."""

    @abstractmethod
    def step(self, inputs: Tensor, state: State, allowed: Tensor) -> tuple[Tensor, State]:
        """The next position of each row.

        Args:
            inputs: [R, D].
            state: State before the step.
            allowed: See `Prefixes.allowed`, of prefixes with the new word.

        Returns:
            [R, D] and the new state.
        """


class CausalSelfAttention(History[Cache]):
    """Self-attention to the positions up to each one (Vaswani et al., 2017, section 3.2.3).

    Args:
        section: Sizes.
        dropout: On attention weights.
    """

    def __init__(self, section: TransformerSection, dropout: float) -> None:
        super().__init__()
        self.attention = SelfAttention(section.hidden_size, section.num_heads, dropout)

    def forward(self, inputs: Tensor) -> Tensor:
        """See `History.forward`."""
        outputs: Tensor = self.attention(inputs, causal_mask(inputs))
        return outputs

    def start(self, like: Tensor) -> Cache:
        """See `History.start`."""
        rows = len(like)
        heads = self.attention.num_heads
        no_words = like.new_empty(rows, heads, 0, like.size(1) // heads)
        return Cache(no_words, no_words, Layout(rows))

    def step(self, inputs: Tensor, state: Cache, allowed: Tensor) -> tuple[Tensor, Cache]:
        """See `History.step`."""
        queries, keys, values = self.attention.split(state.layout.to_grid(inputs))  # [R, D] -> [B, heads, N, d] each
        state = state.append(keys, values)
        outputs = self.attention.attend(queries, state.keys, state.values, allowed)
        return state.layout.to_rows(outputs), state


def causal_mask(inputs: Tensor) -> Tensor:
    """True where a position may read another, which is not after it, [1, T, T]."""
    return inputs.new_ones(1, inputs.size(1), inputs.size(1), dtype=torch.bool).tril()


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward sublayer.

    Args:
        section: Sizes and kinds.
        dropout: On the output of sublayers.
        attention_dropout: On attention weights.
    """

    def __init__(self, section: TransformerSection, dropout: float, attention_dropout: float) -> None:
        super().__init__()
        self.attention = SelfAttention(section.hidden_size, section.num_heads, attention_dropout)
        self.residual = Residual(section, dropout)
        self.feed_forward = FeedForward(section, dropout)

    def forward(self, inputs: Tensor, allowed: Tensor) -> Tensor:
        """[B, S, D] -> [B, S, D]; see `SelfAttention.forward`."""
        inputs = self.residual.leave(inputs, self.attention(self.residual.enter(inputs), allowed))
        outputs: Tensor = self.feed_forward(inputs)
        return outputs


class DecoderLayer(nn.Module):
    """The words so far, attention to the source, and feed-forward sublayer.

    Args:
        section: Sizes and kinds.
        history: Reads the words so far.
        attention: Attends to the source.
        dropout: On the output of sublayers.
    """

    def __init__(
        self, section: TransformerSection, history: History[Any], attention: Attention, dropout: float
    ) -> None:
        super().__init__()
        self.history = history
        self.history_residual = Residual(section, dropout)
        self.attention = attention
        self.attention_residual = Residual(section, dropout)
        self.feed_forward = FeedForward(section, dropout)

    def forward(self, inputs: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """All positions: [B, T, D] -> [B, T, D] and alignments [B, T, heads, S]."""
        inputs = self.history_residual.leave(inputs, self.history(self.history_residual.enter(inputs)))
        queries = self.attention_residual.enter(inputs)
        contexts, alignments = self.attention.attend_all(queries, memory, {})
        inputs = self.attention_residual.leave(inputs, contexts)
        return self.feed_forward(inputs), alignments

    def step(
        self, inputs: Tensor, memory: Memory, state: Any, layout: Layout, allowed: Tensor
    ) -> tuple[Tensor, Tensor, Any]:
        """One position of each row: [R, D] -> [R, D], alignment [R, heads, S] and the new state of the history."""
        outputs, state = self.history.step(self.history_residual.enter(inputs), state, allowed)
        inputs = self.history_residual.leave(inputs, outputs)
        queries = layout.to_grid(self.attention_residual.enter(inputs))  # [R, D] -> [B, N, D]
        contexts, alignments, _ = self.attention.attend(queries, memory, {})
        inputs = self.attention_residual.leave(inputs, layout.to_rows(contexts))
        return self.feed_forward(inputs), layout.to_rows(alignments), state


def matrices(model: nn.Module) -> Iterator[nn.Parameter]:
    """The weights in the layers of a model that start small (Nguyen & Salazar, 2019, section 2.2)."""
    for layer in model.modules():
        if isinstance(layer, EncoderLayer | DecoderLayer):
            yield from (weight for weight in layer.parameters() if weight.dim() == 2)
