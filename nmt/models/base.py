"""The interface of encoders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn


class EncoderOutput(NamedTuple):
    """The encoded sources.

    Attributes:
        states: Encoder states, [B, S, D], 0 on padding.
        final_state: A summary of the source, [B, D]: for a recurrent encoder, the last state of the forward direction
            and, if bidirectional, the backward state at the first word.
        backward_state: The backward direction's state at the first word, [B, backward_size].
        mask: True at real tokens, [B, S].
        lengths: True lengths, [B].
    """

    states: Tensor
    final_state: Tensor
    backward_state: Tensor
    mask: Tensor
    lengths: Tensor


class Encoder(nn.Module, ABC):
    """Encodes sources. Padding never changes a state."""

    output_size: int
    """Size of an encoder state, and of the final state, D."""
    backward_size: int = 0
    """Size of the backward state; 0 without a backward direction."""

    @abstractmethod
    def forward(self, src: Tensor, lengths: Tensor) -> EncoderOutput:
        """Encode padded sources.

        Args:
            src: Ids that end in EOS, padded on the right, [B, S].
            lengths: True lengths with EOS, at least 1, [B].
        """
