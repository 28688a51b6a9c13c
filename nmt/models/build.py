"""Building a model from its config: the one place that tells kinds of encoders and decoders apart."""

import math
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from nmt.config import InitializationSection, ModelSection, RecurrentDecoderSection, TransformerDecoderSection
from nmt.layers.attention.attention import build_attention, build_multi_head
from nmt.layers.attention.score import Score
from nmt.layers.output import FixedNormOutput, OutputLayer
from nmt.layers.recurrent import GATES, NormalizedLayer, build_stack
from nmt.models.base import Decoder, Encoder, EncoderDropout
from nmt.models.recurrent.cell import BahdanauCell, LuongCell
from nmt.models.recurrent.decoder import InitialState, RecurrentDecoder
from nmt.models.recurrent.encoder import RecurrentEncoder
from nmt.models.seq2seq import Seq2Seq
from nmt.models.transformer.decoder import TransformerDecoder
from nmt.models.transformer.encoder import SelfAttentionEncoder
from nmt.models.transformer.layer import CausalSelfAttention, DecoderLayer, History, matrices
from nmt.models.transformer.ssru import SSRU
from nmt.text.vocabulary import PAD_ID


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
    embedding_dropout = _or(config.embedding_dropout, config.dropout)
    section = config.encoder
    dropout = EncoderDropout(config.dropout, embedding_dropout, config.memory_dropout)
    match section.kind:
        case "recurrent":
            copied = config.decoder.kind == "recurrent" and config.decoder.initial_state == "copy"
            return RecurrentEncoder(section, embedding, dropout, copied)
        case "self_attention":
            return SelfAttentionEncoder(section, embedding, dropout, config.attention.dropout)


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _build_decoder(config: ModelSection, encoder: Encoder, embedding: nn.Embedding) -> Decoder[Any, Any, Any]:
    section = config.decoder
    match section.kind:
        case "recurrent":
            return _build_recurrent_decoder(config, section, encoder, embedding)
        case "transformer":
            history = partial(CausalSelfAttention, section, config.attention.dropout)
            return _build_transformer(config, section, encoder, embedding, history)
        case "ssru":
            return _build_transformer(config, section, encoder, embedding, partial(SSRU, section))


def _build_output(config: ModelSection, embedding: nn.Embedding) -> OutputLayer:
    sizes = config.readout_size, embedding.num_embeddings, _or(config.output_dropout, config.dropout)
    output = OutputLayer(*sizes) if config.output_norm is None else FixedNormOutput(*sizes, norm=config.output_norm)
    if config.tying != "none":
        output.weight = embedding.weight
    return output


def _build_recurrent_decoder(
    config: ModelSection, section: RecurrentDecoderSection, encoder: Encoder, embedding: nn.Embedding
) -> RecurrentDecoder:
    readout_size = config.readout_size
    attention = build_attention(config.attention, section.hidden_size, encoder.output_size)
    # The decoder's layers also read the context (Bahdanau order) or the last attentional vector (Luong order).
    extra_sizes = {"bahdanau": attention.context_size, "luong": readout_size if section.input_feeding else 0}
    recurrent = build_stack(section, config.embedding_size, extra_sizes[section.order], config.dropout)
    make_cell = BahdanauCell if section.order == "bahdanau" else LuongCell
    cell = make_cell(section, recurrent, attention, readout_size)
    output = _build_output(config, embedding)
    size = {"backward": encoder.backward_size, "final": encoder.final_size}.get(section.initial_state, 0)
    initial_state = InitialState(section.initial_state, size, recurrent)
    dropout = _or(config.embedding_dropout, config.dropout)
    return RecurrentDecoder(embedding, cell, initial_state, output, dropout)


def _build_transformer(
    config: ModelSection,
    section: TransformerDecoderSection,
    encoder: Encoder,
    embedding: nn.Embedding,
    make_history: Callable[[], History[Any]],
) -> TransformerDecoder:
    sizes = section.hidden_size, encoder.output_size, section.num_heads
    layers = [
        DecoderLayer(section, make_history(), build_multi_head(*sizes, config.attention.dropout), config.dropout)
        for _ in range(section.num_layers)
    ]
    output = _build_output(config, embedding)
    return TransformerDecoder(section, embedding, layers, output, _or(config.embedding_dropout, config.dropout))


@torch.no_grad()
def initialize(model: nn.Module, config: InitializationSection) -> None:
    """Draw initial weights from torch's global generator.

    `uniform`: every weight from U(-scale, scale), as in Luong et al. (2015, section 4.1), but the matrices of a
    Transformer's layers from N(0, 2 / (5 D)), as in Nguyen & Salazar (2019, section 2.2). `xavier`: embeddings as in
    `uniform`, matrices by Glorot & Bengio (2010), one gate at a time. In both, biases are 0 except for an LSTM's forget
    gate, gains of layer normalisation are 1, and the embedding of PAD is 0.
    """
    small = set(matrices(model))
    for module in model.modules():
        if not isinstance(module, Score):  # a score initialises its own parameters
            for name, parameter in module.named_parameters(recurse=False):
                _draw(module, name, parameter, config, small)
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight[module.padding_idx] = 0
        if isinstance(module, NormalizedLayer) and module.cell == "lstm":
            module.input_norms[0].bias[module.hidden_size : 2 * module.hidden_size] = config.forget_bias


def _draw(
    module: nn.Module, name: str, parameter: Tensor, config: InitializationSection, small: Collection[Tensor]
) -> None:
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
    elif parameter in small:
        parameter.normal_(std=math.sqrt(2 / (5 * min(parameter.shape))))
    else:
        parameter.uniform_(-config.scale, config.scale)


def _num_gates(module: nn.Module) -> int:
    """Number of gate matrices stacked in each of a module's weights."""
    if isinstance(module, nn.LSTM | nn.GRU):
        return GATES[module.mode.lower()]
    return GATES[module.cell] if isinstance(module, NormalizedLayer) else 1
