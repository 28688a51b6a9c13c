"""The whole model: any encoder and any decoder."""

from typing import Any

from torch import Tensor

from nmt.corpus.batching import Batch
from nmt.models.base import Cut, Decoder, DecoderOutput, Encoder, EncoderOutput, Task, WordChooser


class Seq2Seq(Task):
    """Encoder and decoder."""

    def __init__(self, encoder: Encoder, decoder: Decoder[Any, Any, Any]) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, src: Tensor, lengths: Tensor, cut: Tensor | None = None) -> EncoderOutput:
        """Encode padded sources; see `Encoder.forward`."""
        encoded: EncoderOutput = self.encoder(src, lengths, cut)
        return encoded

    def forward(self, batch: Batch, choose: WordChooser | None = None, label_smoothing: float = 0.0) -> Tensor:
        """The loss of the output layer, plus the penalty of attention; see `Task.forward`."""
        readouts, targets, penalties = self.readouts(batch, choose)
        return self.decoder.output.loss(readouts, targets, label_smoothing) + penalties.sum()

    def readouts(
        self, batch: Batch, choose: WordChooser | None = None, cut: Cut | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The readout of every real target position; see `forward`.

        Args:
            batch: Pairs.
            choose: Chooses the input word of each decoder step; None is always the reference.
            cut: Words whose vectors are 0; only where `choose` is None.

        Returns:
            Vectors before the output layer [P, readout size], the words to predict [P], and attention's term of the
            loss [P]; P counts target tokens without padding.
        """
        src_cut, tgt_cut = (None, None) if cut is None else cut
        encoded = self.encode(batch.src, batch.src_lengths, src_cut)
        output: DecoderOutput = self.decoder(batch.tgt_in, encoded, choose, tgt_cut)
        # [B, T, ...] -> [P, ...]
        readouts, targets, penalties = (
            part.flatten(0, 1).index_select(0, batch.positions)
            for part in (output.readouts, batch.tgt_out, output.penalty)
        )
        return readouts, targets, penalties

    @property
    def uniform_loss(self) -> float:
        """See `Task.uniform_loss`."""
        return self.decoder.output.uniform_loss
