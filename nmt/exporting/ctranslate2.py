"""CTranslate2, which runs Transformers (https://github.com/OpenNMT/CTranslate2)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nmt.config import Config
from nmt.exporting.formats import Format, Obstacle, find_other_values, write_for_nmt, write_usage
from nmt.layers.positions import PositionedEmbedding, sinusoids
from nmt.models.storage import SavedModel
from nmt.models.transformer.decoder import TransformerDecoder
from nmt.models.transformer.encoder import SelfAttentionEncoder
from nmt.models.transformer.layer import FeedForward
from nmt.runtimes.ctranslate2_searcher import POSITIONS, find_search_obstacles
from nmt.text.vocabulary import SPECIAL_TOKENS

KINDS = {"model.encoder.kind": ("self_attention",), "model.decoder.kind": ("transformer",)}
"""Encoders and decoders that it runs."""
USAGE = """# {config.name} for CTranslate2

After `pip install ctranslate2 sentencepiece`, in this folder:

```python
import ctranslate2
import sentencepiece

source, target = (sentencepiece.SentencePieceProcessor(f"{{side}}.spm") for side in ("source", "target"))
translator = ctranslate2.Translator(".")
pieces = source.encode(["How are you?"], out_type=str)
results = translator.translate_batch(
    pieces,
    beam_size={config.decode.beam_size},
    patience=2,
    length_penalty={config.decode.length_penalty},
    min_decoding_length={config.decode.min_length},
    max_decoding_length={config.decode.max_length},
)
print(target.decode(results[0].hypotheses[0]))
```

`nmt` itself takes this folder for a model, and does with the text what is listed here: `nmt serve --model FOLDER`.

{remarks}
"""


def find_obstacles(config: Config) -> Iterator[Obstacle]:
    """Find settings of a model that CTranslate2 cannot hold, and of the search by which it would rank otherwise.

    A position without a vector is an error there. Tying, unlike sizes and both places of the layer norm are no
    obstacle: a linear layer beside an embedding becomes part of it.
    """
    model = config.model
    decode = config.decode
    yield from find_other_values(config, "CTranslate2", KINDS)
    source = config.text.max_length + 1
    target = decode.max_length
    needs = ("encoder", "text.max_length and the end of the sentence", source), ("decoder", "decode.max_length", target)
    for side, name, needed in needs:
        positions = getattr(getattr(model, side), "learned_positions", None)
        if positions and positions < needed:
            few = f"{positions:,} positions do not hold {name}, {needed:,} tokens"
            yield Obstacle(f"model.{side}.learned_positions", f"{few}; set null, or {needed:,} or more")
    if model.output_norm is not None:
        # Words' vectors could be stored with that norm, but readouts get it by a division, which no linear layer is.
        yield Obstacle("model.output_norm", "CTranslate2 has no counterpart of it; set null")
    yield from map(Obstacle._make, find_search_obstacles(decode))


def write(model: SavedModel, path: Path, quantization: str) -> Iterator[str]:
    """Write the folder that CTranslate2 loads, with the pieces of SentencePiece and a README.

    It also holds what `nmt` needs to read it again; see `Format`.
    """
    save(model, path, quantization)
    write_for_nmt(model, path, quantization)
    yield from write_usage(model, path, USAGE, "CTranslate2")


def save(model: SavedModel, path: Path, quantization: str) -> None:
    """Write only the model, into an existing folder."""
    import ctranslate2.specs.transformer_spec as specs

    encoder = model.model.encoder
    decoder = model.model.decoder
    assert isinstance(encoder, SelfAttentionEncoder)
    assert isinstance(decoder, TransformerDecoder)
    sides = model.config.model.encoder, model.config.model.decoder
    options = [_options(section) for section in sides]
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(**options[0]),
        specs.TransformerDecoderSpec(
            **options[1], alignment_layer=decoder.aligned, alignment_heads=decoder.attention.num_heads
        ),
    )
    with torch.no_grad():
        _fill_encoder(spec.encoder, encoder)
        _fill_decoder(spec.decoder, decoder)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = SPECIAL_TOKENS[1:]
    spec.config.decoder_start_token = spec.config.bos_token
    spec.config.add_source_eos = True
    spec.register_source_vocabulary(model.src_vocabulary.tokens)
    spec.register_target_vocabulary(model.tgt_vocabulary.tokens)
    spec.validate()
    spec.optimize(quantization=None if quantization == "none" else quantization)
    spec.save(str(path))


def _options(section: Any) -> dict[str, Any]:
    """The arguments of one side's specification."""
    from ctranslate2.specs.common_spec import Activation

    return {
        "num_layers": section.num_layers,
        "num_heads": section.num_heads,
        "pre_norm": section.norm == "pre",
        "activation": Activation.RELU if section.activation == "relu" else Activation.GELU,
    }


def _fill_encoder(spec: Any, encoder: SelfAttentionEncoder) -> None:
    _fill_embedding(spec, spec.embeddings[0], encoder.embedding)
    for part, layer in zip(spec.layer, encoder.layers, strict=True):
        _fill_norm(part.self_attention.layer_norm, layer.residual.norm)
        _fill_linears(part.self_attention.linear, layer.attention.project.weight, layer.attention.output.weight)
        _fill_feed_forward(part.ffn, layer.feed_forward)
    _fill_norm(getattr(spec, "layer_norm", None), encoder.norm)


def _fill_decoder(spec: Any, decoder: TransformerDecoder) -> None:
    _fill_embedding(spec, spec.embeddings, decoder.embedding)
    for part, layer in zip(spec.layer, decoder.layers, strict=True):
        attention: Any = layer.history.attention
        heads: Any = layer.attention.heads
        _fill_norm(part.self_attention.layer_norm, layer.history_residual.norm)
        _fill_linears(part.self_attention.linear, attention.project.weight, attention.output.weight)
        _fill_norm(part.attention.layer_norm, layer.attention_residual.norm)
        keys_values = torch.cat([heads.key.weight, heads.value.weight])
        _fill_linears(part.attention.linear, heads.query.weight, keys_values, heads.output.weight)
        _fill_feed_forward(part.ffn, layer.feed_forward)
    norm, resize = decoder.readout
    _fill_norm(getattr(spec, "layer_norm", None), norm)
    _fill_linear(spec.projection, _after(decoder.output.rows(), resize), decoder.output.bias)


def _fill_embedding(spec: Any, words: Any, embedding: PositionedEmbedding) -> None:
    """Words and positions; a linear layer after their sum becomes part of both: W (e + p) = W e + W p.

    Sinusoids are added to scaled words; learned positions are scaled as the words are. CTranslate2 scales words itself,
    by the square root of their size; behind a linear layer that would be another size, so that it is done here.
    """
    positions = sinusoids(torch.arange(POSITIONS), embedding.words.embedding_dim)
    if embedding.learned is not None:
        positions = embedding.learned.weight * embedding.scale
    word_weights = embedding.words.weight
    has_linear_layer = not isinstance(embedding.resize, nn.Identity)
    spec.scale_embeddings = not has_linear_layer
    if has_linear_layer:
        word_weights = word_weights * embedding.scale
    words.weight = _array(embedding.resize(word_weights))
    spec.position_encodings.encodings = _array(embedding.resize(positions.to(word_weights.dtype)))


def _fill_feed_forward(spec: Any, layer: FeedForward) -> None:
    _fill_norm(spec.layer_norm, layer.residual.norm)
    _fill_linear(spec.linear_0, layer.inner.weight, layer.inner.bias)
    _fill_linear(spec.linear_1, layer.outer.weight, layer.outer.bias)


def _fill_linears(specs: Any, *weights: Tensor) -> None:
    for spec, weight in zip(specs, weights, strict=True):
        _fill_linear(spec, weight)


def _fill_linear(spec: Any, weight: Tensor, bias: Tensor | None = None) -> None:
    spec.weight = _array(weight)
    if bias is not None:
        spec.bias = _array(bias)


def _fill_norm(spec: Any, norm: nn.Module) -> None:
    if isinstance(norm, nn.LayerNorm):
        spec.gamma = _array(norm.weight)
        spec.beta = _array(norm.bias)


def _after(weight: Tensor, resize: nn.Module) -> Tensor:
    """The one matrix of two linear layers."""
    return weight @ resize.weight if isinstance(resize, nn.Linear) else weight


def _array(weights: Tensor) -> Any:
    return weights.detach().float().numpy()


FORMAT = Format(write, find_obstacles, ("ctranslate2",), quantizations=("none", "int8", "float16"))
