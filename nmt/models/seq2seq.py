"""The whole model: any encoder and any decoder."""

from typing import Any

import torch
from torch import Tensor, nn

from nmt.corpus.batching import Batch
from nmt.layers.losses import CROSS_ENTROPY, Loss
from nmt.models.base import Decoder, DecoderOutput, Encoder, EncoderOutput, WordChooser


class Seq2Seq(nn.Module):
    """Encoder and decoder."""

    def __init__(self, encoder: Encoder, decoder: Decoder[Any, Any, Any]) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, src: Tensor, lengths: Tensor) -> EncoderOutput:
        """Encode padded sources; see `Encoder.forward`."""
        encoded: EncoderOutput = self.encoder(src, lengths)
        return encoded

    def forward(self, batch: Batch, choose: WordChooser | None = None, loss: Loss = CROSS_ENTROPY) -> Tensor:
        """Loss summed over the real target positions, in nats, plus the penalty of attention.

        Args:
            batch: Sentence pairs, `loss.copies` times.
            choose: Chooses the input word of each decoder step; None is always the reference.
            loss: Loss of the output layer.

        Returns:
            A scalar.
        """
        readouts, targets, penalty = self.readouts(batch, choose)
        return self.decoder.output.loss(readouts, targets, loss) + penalty / loss.copies

    def readouts(self, batch: Batch, choose: WordChooser | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The readout of every real target position; see `forward`.

        Returns:
            Vectors before the output layer [P, readout size], the words to predict [P], and the summed penalty of
            attention, a scalar; P counts target tokens without padding.
        """
        output: DecoderOutput = self.decoder(batch.tgt_in, self.encode(batch.src, batch.src_lengths), choose)
        # [B, T, ...] -> [P, ...]
        readouts, targets, penalty = (
            part.flatten(0, 1).index_select(0, batch.positions)
            for part in (output.readouts, batch.tgt_out, output.penalty)
        )
        return readouts, targets, penalty.sum()

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device
