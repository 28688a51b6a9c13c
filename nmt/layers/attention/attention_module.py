"""Attention by itself, between any two sequences of vectors."""

from typing import Any

import torch
from torch import Tensor, nn

from nmt.config import check_values
from nmt.layers.attention.attention import Attention, build_attention
from nmt.system.errors import DataError

NAMED = ("window", "normalizer", "past")
"""Choices whose kinds have a name, and options."""


class AttentionModule(nn.Module):
    """From queries and states to contexts and weights, without a model around it.

    Args:
        mechanism: The attention that a decoder calls step by step.
        query_size: Size of a query, Q.
        key_size: Size of a state, K.
    """

    def __init__(self, mechanism: Attention, query_size: int, key_size: int) -> None:
        super().__init__()
        self.mechanism = mechanism
        self.query_size = query_size
        self.key_size = key_size

    def forward(self, queries: Tensor, states: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Attend to states.

        Args:
            queries: Decoder states of consecutive steps, [B, N, Q]: local-m counts them, and a memory of the past
                remembers the alignments before each; or that of the first step, [B, Q].
            states: Encoder states, [B, S, K]; a fixed context is the last one.
            mask: True at words, which come before the padding, [B, S]; None if there is no padding.

        Returns:
            Contexts [B, N, K] and weights [B, N, S], exactly 0 on padding; [B, N, heads, S] with several heads. For one
            step they are [B, K] and [B, S], or [B, heads, S].

        Raises:
            DataError: Shapes do not fit, or a row of the mask is not that of words and padding after them.
        """
        steps = queries.unsqueeze(1) if queries.dim() == 2 else queries
        given = mask
        mask = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device) if mask is None else mask
        actual = [list(part.shape) for part in (steps, states, mask)]
        wanted = [[len(states), *steps.shape[1:2], self.query_size], [*states.shape[:2], self.key_size]]
        if actual != [*wanted, list(states.shape[:2])] or mask.dtype != torch.bool:
            shapes = f"queries [B, N, {self.query_size}], states [B, S, {self.key_size}] and a mask [B, S] of booleans"
            seen = "no mask" if given is None else f"{actual[2]} of {mask.dtype}"
            raise DataError(f"expected {shapes}, found {list(queries.shape)}, {actual[1]} and {seen}")
        lengths = mask.sum(dim=1)
        words = torch.arange(mask.size(1), device=mask.device) < lengths.unsqueeze(1)
        if not lengths.all() or not torch.equal(mask, words):
            raise DataError("mask: expected True at the words of each row, and False at the padding after them")
        states = states.masked_fill(~mask.unsqueeze(2), 0)
        last = states[torch.arange(len(states), device=states.device), lengths - 1]
        memory = self.mechanism.memorize(states, last, mask, lengths)
        contexts, weights = self.mechanism.attend_all(steps, memory, self.mechanism.initial_state(memory))
        weights = weights if self.mechanism.num_heads > 1 else weights.squeeze(2)
        return (contexts, weights) if steps is queries else (contexts[:, 0], weights[:, 0])


def attention(score: str, *, query_size: int, key_size: int, **choices: Any) -> AttentionModule:
    """Build one attention mechanism, to try and to see: a module from queries and states to contexts and weights.

    Args:
        score: A score that `nmt attentions` lists, or the dotted path of a class.
        query_size: Size of a query.
        key_size: Size of a state.
        **choices: Other keys of `model.attention`: heads, window and so on; `window="local_p"` is short for
            `window={"name": "local_p"}`.

    Raises:
        ConfigError: A choice is unknown, or choices do not go together.
    """
    named = {key: {"name": name} for key, name in choices.items() if key in NAMED and isinstance(name, str)}
    sizes = {"encoder": {"hidden_size": key_size, "bidirectional": False}, "decoder": {"hidden_size": query_size}}
    section = check_values({"model": {"attention": {"score": score, **choices, **named}, **sizes}}).model.attention
    return AttentionModule(build_attention(section, query_size, key_size), query_size, key_size)
