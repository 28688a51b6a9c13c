"""The chapter that follows one sentence through self-attention, with a small Transformer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from nmt.layers.output import OutputLayer
from nmt.layers.self_attention import SelfAttention, recorded_weights
from nmt.models import reference
from nmt.models.transformer.decoder import TransformerDecoder
from nmt.models.transformer.encoder import SelfAttentionEncoder
from nmt.models.transformer.layer import CausalSelfAttention
from nmt.system.errors import ConfigError
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID
from nmt.translation.translator import Translator
from walkthrough import page

FILE = "walkthrough_transformer.md"
PADDING = 3
"""Places of padding behind the sentence when the model itself reads it."""


@dataclass(frozen=True)
class Trace:
    """A translation, computed by the equations.

    Attributes:
        src: Source tokens with EOS.
        ids: Their ids.
        tgt: Tokens of the translation.
        words: Ids of the words that the decoder reads: BOS, then the translation.
        x: Embedded source words, each [D].
        y: Embedded words that the decoder reads, each [D].
        h: Encoder states, each [D].
        own: Self-attention at each position, [heads, vectors read]; of each layer of the encoder, then the decoder.
        source: Attention to the source at each position, [heads, S]; of each layer of the decoder.
        readouts: What the output layer reads, [T, D].
        p: Probabilities of the next word, [T, V].
    """

    src: list[str]
    ids: list[int]
    tgt: list[str]
    words: list[int]
    x: list[Tensor]
    y: list[Tensor]
    h: list[Tensor]
    own: list[list[Tensor]]
    source: list[list[Tensor]]
    readouts: Tensor
    p: Tensor


def compute(translator: Translator, sentence: str, step: int) -> Trace:
    """Compute the translation of a sentence.

    Raises:
        ConfigError: See `sides`; or there is no such step.
    """
    encoder, decoder = sides(translator)
    (tokens,) = translator.reader.tokenize([sentence])
    ids = [*translator.processor.src_vocabulary.encode(tokens), EOS_ID]
    own, source = list[list[Tensor]](), list[list[Tensor]]()
    xs = x = embed(encoder, ids)
    for layer in encoder.layers:
        read = [norm_of(layer.residual)(vector) for vector in xs]
        xs, weights = attend(layer.attention, layer.residual, xs, [read] * len(xs))
        xs, own = feed(layer, xs), [*own, weights]
    h = [norm_of(encoder)(vector) for vector in xs]
    tgt = page.target_tokens(translator, sentence, step)
    words = [BOS_ID, *translator.processor.tgt_vocabulary.encode(tgt)]
    ys = y = embed(decoder, words)
    for layer in decoder.layers:
        read = [norm_of(layer.history_residual)(vector) for vector in ys]
        so_far = [read[: t + 1] for t in range(len(read))]
        ys, weights = attend(layer.history.attention, layer.history_residual, ys, so_far)
        ys, of_source = attend(layer.attention, layer.attention_residual, ys, [h] * len(ys))
        ys, own, source = feed(layer, ys), [*own, weights], [*source, of_source]
    norm = decoder.readout[0]
    readouts = torch.stack([reference.layer_norm(vector, norm.weight, norm.bias) for vector in ys])
    p = torch.stack([(decoder.output.weight @ r + decoder.output.bias).softmax(dim=0) for r in readouts])
    return Trace([*tokens, page.EOS], ids, tgt, words, x, y, h, own, source, readouts, p)


def sides(translator: Translator) -> tuple[Any, Any]:
    """The encoder and the decoder.

    Raises:
        ConfigError: They are not of the kind that the chapter is about.
    """
    model: Any = translator.model
    encoder, decoder = model.encoder, model.decoder
    fits = isinstance(encoder, SelfAttentionEncoder) and isinstance(decoder, TransformerDecoder)
    if fits:
        sublayers = [layer.feed_forward for layer in (*encoder.layers, *decoder.layers)]
        kinds = {(part.residual.pre, type(part.activation)) for part in sublayers}
        histories = {type(layer.history) for layer in decoder.layers}
        sizes = {type(part) for part in (encoder.embedding.resize, decoder.embedding.resize, decoder.readout[1])}
        learned = encoder.embedding.learned or decoder.embedding.learned
        fits = (kinds, histories, sizes) == ({(True, nn.ReLU)}, {CausalSelfAttention}, {nn.Identity})
        fits = fits and learned is None and type(decoder.output) is OutputLayer
    if not fits:
        raise ConfigError(
            "the chapter is about a Transformer with pre-norm, ReLU, sinusoids and embeddings of the layers' size, "
            "without fixed norms"
        )
    return encoder, decoder


def embed(side: Any, ids: list[int]) -> list[Tensor]:
    """The embedded words of a side, each [D]."""
    words = side.embedding.words.weight
    size = words.size(1)
    return [math.sqrt(size) * words[id_] + reference.position(p, size).to(words) for p, id_ in enumerate(ids)]


def norm_of(residual: Any) -> reference.Norm:
    """A normalisation by the equations."""
    return partial(reference.layer_norm, g=residual.norm.weight, b=residual.norm.bias)


def weights_of(attention: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, int]:
    """W_q, W_k, W_v, W_o and the number of heads, of self-attention or of attention to the source."""
    if isinstance(attention, SelfAttention):
        W_q, W_k, W_v = attention.project.weight.chunk(3)
        return W_q, W_k, W_v, attention.output.weight, attention.num_heads
    heads = attention.heads
    return heads.query.weight, heads.key.weight, heads.value.weight, heads.output.weight, heads.number


def head_of(attention: Any, vectors: list[Tensor], n: int, causal: bool = False) -> dict[str, Tensor]:
    """What a head of self-attention computes of normalised vectors, by the equations.

    Returns:
        Queries q, keys k, values v and contexts c, [T, d]; scores e and weights a of each position (a row) for all
        others, [T, T]. In a causal head those of later positions are -inf and 0.
    """
    *matrices, _, num_heads = weights_of(attention)
    q, k, v = (torch.stack([(W @ x).chunk(num_heads)[n] for x in vectors]) for W in matrices)
    e = torch.stack([torch.stack([reference.scaled_dot(query, key) for key in k]) for query in q])
    if causal:
        e = e.masked_fill(torch.ones_like(e).triu(1) > 0, -math.inf)
    c, a = (torch.stack(part) for part in zip(*(reference.attend(scores, v) for scores in e), strict=True))
    return {"q": q, "k": k, "v": v, "e": e, "a": a, "c": c}


def attend(
    attention: Any, residual: Any, xs: list[Tensor], readable: Sequence[Sequence[Tensor]]
) -> tuple[list[Tensor], list[Tensor]]:
    """An attention sublayer: from a vector and what it may read, at each position, to vectors and weights."""
    alignments = list[Tensor]()

    def read(z: Tensor, h: Sequence[Tensor]) -> Tensor:
        output, weights = reference.multi_head(z, h, *weights_of(attention))
        alignments.append(torch.stack(weights))
        return output

    norm = norm_of(residual)
    return [reference.pre_norm(partial(read, h=h), x, norm) for x, h in zip(xs, readable, strict=True)], alignments


def feed(layer: Any, xs: list[Tensor]) -> list[Tensor]:
    """A feed-forward sublayer at each position."""
    part = layer.feed_forward
    weights = part.inner.weight, part.inner.bias, part.outer.weight, part.outer.bias
    return [reference.pre_norm(lambda z: reference.feed_forward(z, *weights), x, norm_of(part.residual)) for x in xs]


@torch.inference_mode()
def write_chapter(translator: Translator, sentence: str, step: int) -> str:
    """The chapter as Markdown.

    Args:
        translator: The model.
        sentence: What is translated.
        step: Which word of the translation, from 1.

    Raises:
        ConfigError: See `compute`.
    """
    t, (encoder, decoder), i = compute(translator, sentence, step), sides(translator), step - 1
    reader, writer = encoder.layers[0], decoder.layers[0]
    j = int(t.source[decoder.aligned][i].mean(dim=0).argmax())
    n, m = busiest(t.own[0][j], j), busiest(t.own[len(encoder.layers)][i], i)
    read = [norm_of(reader.residual)(x) for x in t.x]
    (u,), _ = attend(reader.attention, reader.residual, [t.x[j]], [read])
    inner, (difference, masked) = reader.feed_forward.inner, compare(t, translator)
    return page.fill(
        "transformer.md.jinja",
        translator,
        t=t,
        sentence=sentence,
        step=step,
        encoder=encoder,
        decoder=decoder,
        words=["⟨bos⟩", *t.tgt],
        size=len(u),
        i=i,
        j=j,
        n=n,
        m=m,
        place=reference.position(j, len(u)).to(u),
        z=read[j],
        num_heads=reader.attention.num_heads,
        head=head_of(reader.attention, read, n),
        own=head_of(writer.history.attention, [norm_of(writer.history_residual)(y) for y in t.y], m, causal=True),
        o=reference.multi_head(read[j], read, *weights_of(reader.attention))[0],
        u=u,
        hidden=inner.weight @ norm_of(reader.feed_forward.residual)(u) + inner.bias,
        fed=feed(reader, [u])[0],
        padding=PADDING,
        difference=difference,
        masked=masked,
    )


def busiest(weights: Tensor, position: int) -> int:
    """The head that gives the largest weight to another position than its own, of [heads, positions]."""
    return int(weights.index_fill(1, torch.tensor([position]), -1).amax(dim=1).argmax())


def compare(t: Trace, translator: Translator) -> tuple[float, float]:
    """Compare the equations with what the model computes beside padding, all at once and step by step.

    Returns:
        The largest difference, and the largest weight that the model gives to padding or to a later word.
    """
    encoder, decoder = sides(translator)
    ids, words = (torch.tensor([part]) for part in ([*t.ids, *PADDING * [PAD_ID]], t.words))
    with recorded_weights(translator.model) as own:
        encoded = encoder(ids, torch.tensor([len(t.ids)]))
        output = decoder(words, encoded)
    steps, _, _ = decoder.unroll(words, *decoder.start(encoded))
    pairs = [(encoded.states[0, : len(t.h)], torch.stack(t.h))]
    pairs += [(decoder.output(readouts)[0].softmax(dim=1), t.p) for readouts in (output.readouts, steps)]
    masked = 0.0
    source = output.alignments.transpose(1, 2).chunk(len(decoder.layers), dim=1)
    for weights, rows in zip([*own, *source], [*t.own, *t.source], strict=True):
        missing = [nn.functional.pad(row, (0, weights.size(3) - row.size(1)), value=-1) for row in rows]
        fast, slow = weights[0, :, : len(rows)], torch.stack(missing, dim=1)
        masked = max(masked, float(fast[slow < 0].max()))
        pairs.append((fast, slow.clamp(min=0)))
    return max(float((fast - slow).abs().max()) for fast, slow in pairs), masked
