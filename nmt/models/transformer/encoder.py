"""Self-attentive encoder: the fast form of `pre_norm`, `multi_head` and `feed_forward` of `nmt.models.reference`."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nmt.config import SelfAttentionEncoderSection
from nmt.layers.kernels.dropout import Dropout
from nmt.layers.positions import PositionedEmbedding
from nmt.models.base import Encoder, EncoderDropout, EncoderOutput
from nmt.models.transformer.layer import EncoderLayer


class SelfAttentionEncoder(Encoder):
    """Encoder of the Transformer (Vaswani et al., 2017, section 3.1). It has no final state.

    Args:
        section: Sizes and kinds.
        embedding: Source embedding; may be shared.
        dropout: Where units are dropped.
        attention_dropout: On attention weights.
    """

    def __init__(
        self,
        section: SelfAttentionEncoderSection,
        embedding: nn.Embedding,
        dropout: EncoderDropout,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.output_size = section.hidden_size
        self.max_length = section.learned_positions
        self.embedding = PositionedEmbedding(embedding, section.learned_positions, section.hidden_size)
        self.embedding_dropout = Dropout(dropout.embedding)
        self.layers: Sequence[EncoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            EncoderLayer(section, dropout.inner, attention_dropout) for _ in range(section.num_layers)
        )
        # Pre-norm never normalises the sum itself (Nguyen & Salazar, 2019, section 2.1).
        self.norm = nn.LayerNorm(section.hidden_size) if section.norm == "pre" else nn.Identity()
        self.output_dropout = Dropout(dropout.output)

    def forward(self, src: Tensor, lengths: Tensor, cut: Tensor | None = None) -> EncoderOutput:
        """See `Encoder.forward`."""
        lengths = lengths.to(src.device, non_blocking=True)
        mask = torch.arange(src.size(1), device=src.device) < lengths.unsqueeze(1)  # [B, S]
        states = self.embedding_dropout(self.embedding(src, cut=cut))  # [B, S, D]
        for layer in self.layers:
            states = layer(states, mask.unsqueeze(1))
        states = self.norm(states) * mask.unsqueeze(2)
        return EncoderOutput(self.output_dropout(states), mask, lengths)
