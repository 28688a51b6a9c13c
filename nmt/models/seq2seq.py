"""The whole model, and `build_model`, which makes its modules from a config."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.config import InitializationSection, ModelSection
from nmt.corpus.batching import Batch
from nmt.layers.attention import Attention, Score, build_attention
from nmt.layers.losses import CROSS_ENTROPY, Loss
from nmt.layers.output import FixedNormOutput, OutputLayer
from nmt.layers.recurrent import GATES, NormalizedLayer, build_stack
from nmt.models.base import Encoder, EncoderOutput
from nmt.models.recurrent.cell import BahdanauCell, DecoderCell, LuongCell
from nmt.models.recurrent.decoder import Decoder, DecoderOutput, InitialState, WordChooser
from nmt.models.recurrent.encoder import RecurrentEncoder
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
        return self.decoder.loss(readouts, targets, loss) + penalty / loss.copies

    def readouts(self, batch: Batch, choose: WordChooser | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The readout of every real target position; see `forward`.

        Returns:
            Vectors before the output layer [P, readout size], the words to predict [P], and the summed penalty of
            attention, a scalar; P counts target tokens without padding.
        """
        output: DecoderOutput = self.decoder(batch.tgt_in, self.encode(batch.src, batch.src_lengths), choose)
        readouts = output.readouts.flatten(0, 1).index_select(0, batch.positions)
        penalty = self.decoder.cell.attention.penalty(output.alignments).flatten().index_select(0, batch.positions)
        return readouts, batch.tgt_out.flatten().index_select(0, batch.positions), penalty.sum()

    @property
    def uniform_loss(self) -> float:
        """Cross-entropy of the uniform distribution over target words, in nats per token: that of random guessing."""
        return self.decoder.output.uniform_loss

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.decoder.embedding.weight.device


def build_model(config: ModelSection, src_size: int, tgt_size: int) -> Seq2Seq:
    """Build the model that a config describes, with initial weights.

    Args:
        config: The model section.
        src_size: Size of the source vocabulary.
        tgt_size: Size of the target vocabulary.
    """
    tgt_embedding = nn.Embedding(tgt_size, config.embedding_size, padding_idx=PAD_ID)
    if config.tying == "all":
        src_embedding = tgt_embedding
    else:
        src_embedding = nn.Embedding(src_size, config.embedding_size, padding_idx=PAD_ID)
    encoder = _build_encoder(config, src_embedding)
    model = Seq2Seq(encoder, _build_decoder(config, encoder, tgt_embedding))
    initialize(model, config.initialization)
    return model


def _build_encoder(config: ModelSection, embedding: nn.Embedding) -> Encoder:
    section = config.encoder
    match section.kind:
        case "recurrent":
            return RecurrentEncoder(
                embedding,
                cell=section.cell,
                hidden_size=section.hidden_size,
                num_layers=section.num_layers,
                bidirectional=section.bidirectional,
                dropout=config.dropout,
                embedding_dropout=_or(config.embedding_dropout, config.dropout),
                output_dropout=config.memory_dropout,
                residual=section.residual,
                layer_norm=section.layer_norm,
            )


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _build_decoder(config: ModelSection, encoder: Encoder, embedding: nn.Embedding) -> Decoder:
    section, tied = config.decoder, config.tying != "none"
    # With tied weights the output layer is the embedding, so the readout has the embedding's size.
    readout_size = config.embedding_size if tied else section.hidden_size
    attention = build_attention(config.attention, section.hidden_size, encoder.output_size)
    cell = _build_cell(config, attention, readout_size)
    output = _build_output(config.output_norm, readout_size, embedding.num_embeddings)
    if tied:
        output.weight = embedding.weight
    initial_state = InitialState(section.initial_state, encoder, cell.recurrent)
    return Decoder(
        embedding,
        cell,
        initial_state,
        output,
        embedding_dropout=_or(config.embedding_dropout, config.dropout),
        output_dropout=_or(config.output_dropout, config.dropout),
    )


def _build_output(norm: float | None, readout_size: int, tgt_size: int) -> OutputLayer:
    return OutputLayer(readout_size, tgt_size) if norm is None else FixedNormOutput(readout_size, tgt_size, norm)


def _build_cell(config: ModelSection, attention: Attention, readout_size: int) -> DecoderCell:
    section = config.decoder
    extra_sizes = {"bahdanau": attention.context_size, "luong": readout_size if section.input_feeding else 0}
    recurrent = build_stack(
        section.cell,
        config.embedding_size,
        section.hidden_size,
        section.num_layers,
        extra_size=extra_sizes[section.order],
        dropout=config.dropout,
        residual=section.residual,
        layer_norm=section.layer_norm,
        extra_to_all=section.context_to == "all",
        every_output=section.attend_from == "first",
    )
    if section.order == "bahdanau":
        return BahdanauCell(
            recurrent,
            attention,
            embedding_size=config.embedding_size,
            readout_size=readout_size,
            readout=section.readout,
            attend_from=section.attend_from,
        )
    return LuongCell(
        recurrent,
        attention,
        readout_size=readout_size,
        input_feeding=section.input_feeding,
        attend_from=section.attend_from,
    )


@torch.no_grad()
def initialize(model: nn.Module, config: InitializationSection) -> None:
    """Draw initial weights from torch's global generator.

    `uniform`: every weight from U(-scale, scale), as in Luong et al. (2015, section 4.1). `xavier`: embeddings as in
    `uniform`, matrices by Glorot & Bengio (2010), one gate at a time. In both, biases are 0 except for an LSTM's forget
    gate, gains of layer normalisation are 1, and the embedding of PAD is 0.
    """
    for module in model.modules():
        if not isinstance(module, Score):  # a score initialises its own parameters
            for name, parameter in module.named_parameters(recurse=False):
                _draw(module, name, parameter, config)
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight[module.padding_idx] = 0
        if isinstance(module, NormalizedLayer) and module.cell == "lstm":
            module.input_norms[0].bias[module.hidden_size : 2 * module.hidden_size] = config.forget_bias


def _draw(module: nn.Module, name: str, parameter: Tensor, config: InitializationSection) -> None:
    """Fill one parameter of a module."""
    if "bias" in name:
        parameter.zero_()
        if isinstance(module, nn.LSTM) and name.startswith("bias_ih"):
            parameter[module.hidden_size : 2 * module.hidden_size] = config.forget_bias
    elif isinstance(module, nn.LayerNorm):
        parameter.fill_(1)
    elif config.scheme == "xavier" and parameter.dim() == 2 and not isinstance(module, nn.Embedding):
        for gate in parameter.chunk(_num_gates(module)):
            nn.init.xavier_uniform_(gate)
    else:
        parameter.uniform_(-config.scale, config.scale)


def _num_gates(module: nn.Module) -> int:
    """Number of gate matrices stacked in each of a module's weights."""
    if isinstance(module, nn.LSTM | nn.GRU):
        return GATES[module.mode.lower()]
    return GATES[module.cell] if isinstance(module, NormalizedLayer) else 1
