"""The whole model, and the one place where a config becomes modules."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.batching import Batch
from nmt.config import InitializationSection, ModelSection
from nmt.model.attention import build_attention
from nmt.model.decoder import (
    BahdanauCell,
    Decoder,
    DecoderCell,
    DecoderOutput,
    InitialState,
    LuongCell,
    WordChooser,
)
from nmt.model.encoder import Encoder, EncoderOutput
from nmt.model.recurrent import GATES, RecurrentStack
from nmt.text.vocabulary import PAD_ID


class Seq2Seq(nn.Module):
    """Encoder and decoder."""

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, src: Tensor, lengths: Tensor) -> EncoderOutput:
        """Encode padded sources; see `Encoder.forward`."""
        encoded: EncoderOutput = self.encoder(src, lengths)
        return encoded

    def forward(self, batch: Batch, choose: WordChooser | None = None) -> tuple[Tensor, Tensor]:
        """Log-odds of every word at every real target position.

        Args:
            batch: Sentence pairs.
            choose: Decides what each decoder step is fed; None means always the reference.

        Returns:
            Logits [N, V] and the words they should predict [N]; N counts target tokens without padding.
        """
        output: DecoderOutput = self.decoder(batch.tgt_in, self.encode(batch.src, batch.src_lengths), choose)
        real = (batch.tgt_out != PAD_ID).flatten().nonzero().squeeze(1)
        readouts = output.readouts.flatten(0, 1).index_select(0, real)
        return self.decoder.logits(readouts), batch.tgt_out.flatten().index_select(0, real)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.decoder.embedding.weight.device


def build_model(config: ModelSection, src_size: int, tgt_size: int) -> Seq2Seq:
    """Make the model that a config describes, with fresh weights.

    Args:
        config: The model section.
        src_size: Size of the source vocabulary.
        tgt_size: Size of the target vocabulary.
    """
    embedding_size, dropout = config.embedding_size, config.dropout
    tgt_embedding = nn.Embedding(tgt_size, embedding_size, padding_idx=PAD_ID)
    shared = config.tying == "all"
    src_embedding = tgt_embedding if shared else nn.Embedding(src_size, embedding_size, padding_idx=PAD_ID)
    encoder = Encoder(
        src_embedding,
        cell=config.encoder.cell,
        hidden_size=config.encoder.hidden_size,
        num_layers=config.encoder.num_layers,
        bidirectional=config.encoder.bidirectional,
        dropout=dropout,
    )
    part = config.decoder
    attention = build_attention(
        config.attention.score, part.hidden_size, encoder.output_size, dict(config.attention.options)
    )
    # With tied weights the output layer is the embedding, so the readout has the embedding's size.
    readout_size = part.hidden_size if config.tying == "none" else embedding_size
    fed = {"bahdanau": attention.context_size, "luong": readout_size if part.input_feeding else 0}[part.order]
    recurrent = RecurrentStack(
        part.cell, embedding_size, part.hidden_size, part.num_layers, extra_size=fed, dropout=dropout
    )
    cell: DecoderCell
    if part.order == "bahdanau":
        cell = BahdanauCell(recurrent, attention, embedding_size=embedding_size, readout_size=readout_size)
    else:
        cell = LuongCell(recurrent, attention, readout_size=readout_size, input_feeding=part.input_feeding)
    output = nn.Linear(readout_size, tgt_size)
    if config.tying != "none":
        output.weight = tgt_embedding.weight
    initial_state = InitialState(part.initial_state, encoder.output_size, recurrent)
    model = Seq2Seq(encoder, Decoder(tgt_embedding, cell, initial_state, output, dropout=dropout))
    initialize(model, config.initialization)
    return model


@torch.no_grad()
def initialize(model: nn.Module, config: InitializationSection) -> None:
    """Draw fresh weights from torch's global generator.

    `uniform`: every weight from U(-scale, scale), as Luong et al. (2015, section 4.1). `xavier`: embeddings as in
    `uniform`, matrices by Glorot & Bengio (2010), a gate at a time. In both, biases are 0 but for an LSTM's forget
    gate, and the embedding of PAD is 0.
    """
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if "bias" in name:
                parameter.zero_()
                if isinstance(module, nn.LSTM) and name.startswith("bias_ih"):
                    parameter[module.hidden_size : 2 * module.hidden_size] = config.forget_bias
            elif config.scheme == "xavier" and parameter.dim() == 2 and not isinstance(module, nn.Embedding):
                for gate in parameter.chunk(GATES[module.mode.lower()] if isinstance(module, nn.LSTM | nn.GRU) else 1):
                    nn.init.xavier_uniform_(gate)
            else:
                parameter.uniform_(-config.scale, config.scale)
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight[module.padding_idx] = 0
