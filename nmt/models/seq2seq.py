"""The whole model: any encoder and any decoder."""

from typing import Any

from torch import Tensor

from nmt.corpus.batching import Batch
from nmt.models.base import Decoder, DecoderOutput, Encoder, EncoderOutput, Task, WordChooser


class Seq2Seq(Task):
    """Encoder and decoder."""

    def __init__(self, encoder: Encoder, decoder: Decoder[Any, Any, Any]) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, src: Tensor, lengths: Tensor) -> EncoderOutput:
        """Encode padded sources; see `Encoder.forward`."""
        encoded: EncoderOutput = self.encoder(src, lengths)
        return encoded

    def forward(self, batch: Batch, choose: WordChooser | None = None, label_smoothing: float = 0.0) -> Tensor:
        """The loss of the output layer, plus the penalty of attention; see `Task.forward`."""
        readouts, targets, penalty = self.readouts(batch, choose)
        return self.decoder.output.loss(readouts, targets, label_smoothing) + penalty

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
    def uniform_loss(self) -> float:
        """See `Task.uniform_loss`."""
        return self.decoder.output.uniform_loss
