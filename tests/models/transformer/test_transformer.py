"""Self-attentive encoders and Transformer decoders against the equations, and what every family of models must do."""

import math
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from covering import covering
from gradients import assert_same_gradients
from pairs import batch_of
from torch import Tensor, nn

from nmt.config import ModelSection
from nmt.layers.layout import Layout
from nmt.models import reference
from nmt.models.base import Head
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.models.transformer.decoder import TransformerDecoder
from nmt.models.transformer.encoder import SelfAttentionEncoder
from nmt.models.transformer.layer import DecoderLayer, EncoderLayer

ENCODERS, DECODERS = ("recurrent", "self_attention"), ("recurrent", "transformer", "ssru")
SOURCES, TARGETS = [[4, 5, 6, 6, 5], [6, 4]], [[4, 5, 7], [6, 5, 4, 4, 8]]
SMALL = {"hidden_size": 6, "num_layers": 2, "num_heads": 2, "feed_forward_size": 5}


def family(encoder: str = "self_attention", decoder: str = "transformer", **options: Any) -> Seq2Seq:
    """A tiny model in float64; options of both sides of a Transformer, and of the model."""
    torch.manual_seed(0)
    keys = {name: options.pop(name) for name in ("norm", "activation", "learned_positions") if name in options}
    sections = {"recurrent": {"hidden_size": 4, "initial_state": "zeros"}}
    made = {"kind": decoder, **sections.get(decoder, {**SMALL, **keys})}
    read = {"kind": encoder, **({"hidden_size": 4} if encoder == "recurrent" else {**SMALL, **keys})}
    parts = {"embedding_size": 6, "dropout": 0.0, "encoder": read, "decoder": made, **options}
    model = build_model(ModelSection(**parts), 9, 9).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or "bias" in name:  # which start at 1 and 0
                parameter.add_(torch.randn_like(parameter) / 4)
    return model


def sublayer(section_norm: str, f: Any, x: Tensor, norm: nn.LayerNorm) -> Tensor:
    connect = reference.pre_norm if section_norm == "pre" else reference.post_norm
    return connect(f, x, partial(reference.layer_norm, g=norm.weight, b=norm.bias))


def embed(embedding: Any, ids: list[int]) -> list[Tensor]:
    size = embedding.words.embedding_dim
    return [math.sqrt(size) * embedding.words.weight[id_] + reference.position(p, size) for p, id_ in enumerate(ids)]


def feed(layer: EncoderLayer | DecoderLayer, kind: str, xs: list[Tensor]) -> list[Tensor]:
    part = layer.feed_forward
    weights = part.inner.weight, part.inner.bias, part.outer.weight, part.outer.bias
    return [sublayer(kind, lambda z: reference.feed_forward(z, *weights), x, part.residual.norm) for x in xs]


def normalize(kind: str, norm: Any, xs: list[Tensor]) -> list[Tensor]:
    """What sublayers read of other positions: as normalised as their own."""
    return [reference.layer_norm(x, norm.weight, norm.bias) for x in xs] if kind == "pre" else xs


def read_source(encoder: Any, kind: str, ids: list[int]) -> list[Tensor]:
    xs = embed(encoder.embedding, ids)
    for layer in encoder.layers:
        w_q, w_k, w_v = layer.attention.project.weight.chunk(3)
        others = normalize(kind, layer.residual.norm, xs)
        weights = w_q, w_k, w_v, layer.attention.output.weight, layer.attention.num_heads
        attend = lambda z, others=others, weights=weights: reference.multi_head(z, others, *weights)[0]  # noqa: E731
        xs = feed(layer, kind, [sublayer(kind, attend, x, layer.residual.norm) for x in xs])
    return normalize(kind, encoder.norm, xs)


def read_words(layer: Any, kind: str, xs: list[Tensor]) -> list[Tensor]:
    """The history sublayer by the equations."""
    norm, history = layer.history_residual.norm, layer.history
    others, c, outputs = normalize(kind, norm, xs), torch.zeros_like(xs[0]), []
    for t, x in enumerate(xs):
        if hasattr(history, "attention"):
            w_q, w_k, w_v = history.attention.project.weight.chunk(3)
            weights = w_q, w_k, w_v, history.attention.output.weight, history.attention.num_heads
            f: Any = lambda z, t=t, weights=weights: reference.multi_head(z, others[: t + 1], *weights)[0]  # noqa: E731
        else:
            h, c = reference.ssru_step(
                others[t], c, history.candidate.weight, history.forget.weight, history.forget.bias
            )
            f = lambda z, h=h: h  # noqa: E731
        outputs.append(sublayer(kind, f, x, norm))
    return outputs


def write_target(decoder: Any, kind: str, ids: list[int], states: list[Tensor]) -> tuple[list[Tensor], Tensor]:
    """Readouts and alignments [T, layers * heads, S] by the equations."""
    xs, alignments = embed(decoder.embedding, ids), []
    for layer in decoder.layers:
        heads = layer.attention.heads
        weights = heads.query.weight, heads.key.weight, heads.value.weight, heads.output.weight, heads.number
        of_layer = list[list[Tensor]]()

        def attend(z: Tensor, weights: Any = weights, of_layer: list[list[Tensor]] = of_layer) -> Tensor:
            c, a = reference.multi_head(z, states, *weights)
            of_layer.append(a)
            return c

        xs = read_words(layer, kind, xs)
        xs = feed(layer, kind, [sublayer(kind, attend, x, layer.attention_residual.norm) for x in xs])
        alignments.append(torch.stack([torch.stack(heads) for heads in of_layer]))
    return normalize(kind, decoder.readout[0], xs), torch.cat(alignments, dim=1)


@pytest.mark.parametrize(("kind", "decoder"), list(product(("pre", "post"), ("transformer", "ssru"))))
def test_a_batch_is_the_equations_sentence_by_sentence(kind: str, decoder: str) -> None:
    """States, readouts and alignments, and the gradients of all weights."""
    model = family(decoder=decoder, norm=kind)
    batch = batch_of(SOURCES, TARGETS)

    def fast() -> list[Tensor]:
        encoded = model.encode(batch.src, batch.src_lengths)
        output = model.decoder(batch.tgt_in, encoded)
        parts = []
        for n, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
            size = len(source) + 1, len(target) + 1
            parts += [encoded.states[n, : size[0]], output.readouts[n, : size[1]]]
            parts += [output.alignments[n, : size[1], :, : size[0]]]
        return parts

    def slow() -> list[Tensor]:
        parts = []
        for source, target in zip(SOURCES, TARGETS, strict=True):
            states = read_source(model.encoder, kind, [*source, 3])
            readouts, alignments = write_target(model.decoder, kind, [2, *target], states)
            parts += [torch.stack(states), torch.stack(readouts), alignments]
        return parts

    one, other = (torch.cat([part.flatten() for part in parts()]) for parts in (fast, slow))
    assert_same_gradients(one, other, [w for name, w in model.named_parameters() if "decoder.output" not in name])


@pytest.mark.parametrize(("encoder", "decoder"), list(product(ENCODERS, DECODERS)))
def test_steps_are_the_whole(encoder: str, decoder: str) -> None:
    """Repeated steps give the readouts of `forward`, and the alignments of the layer that stands for the whole."""
    model = family(encoder, decoder).eval()
    batch = batch_of(SOURCES, TARGETS)
    encoded = model.encode(batch.src, batch.src_lengths)
    whole = model.decoder(batch.tgt_in, encoded)
    readouts, alignments, words = model.decoder.unroll(batch.tgt_in, *model.decoder.start(encoded))
    torch.testing.assert_close(readouts, whole.readouts, rtol=0, atol=1e-12)
    chosen = [n for n, head in enumerate(model.decoder.heads) if head.layer == 0]  # the one before the last of two
    torch.testing.assert_close(alignments, whole.alignments[:, :, chosen], rtol=0, atol=1e-12)
    assert torch.equal(words, batch.tgt_in)
    assert len(model.decoder.heads) == whole.alignments.size(2)


def test_heads_are_named_by_layer() -> None:
    assert family().decoder.heads == (Head(0, 0), Head(0, 1), Head(1, 0), Head(1, 1))


@pytest.mark.parametrize(("encoder", "decoder"), list(product(ENCODERS, DECODERS)))
def test_rows_are_selected_with_their_history(encoder: str, decoder: str) -> None:
    """A beam that swaps, repeats and drops rows goes on as each of its prefixes does alone."""
    model = family(encoder, decoder).eval()
    batch = batch_of(SOURCES, TARGETS)
    memory, state = model.decoder.start(model.encode(batch.src, batch.src_lengths))
    weights = model.decoder.prepare()
    prefixes = [[[4, 5], [6, 7]], [[8, 4], [5, 6]]]  # two hypotheses of each sentence
    starts = Layout(2, 2)
    state = state.select(torch.tensor([0, 0, 1, 1]), starts)
    _, _, state = model.decoder.step(torch.tensor([4, 6, 8, 5]), memory, state, weights)
    rows = torch.tensor([1, 0, 1, 3])  # the first sentence has three rows now, the second one
    layout = Layout(2, 3, torch.tensor([0, 1, 2, 3]))
    logits, _, _ = model.decoder.step(torch.tensor([7, 5, 4, 6]), memory, state.select(rows, layout), weights)
    for row, (n, prefix) in enumerate([(0, [6, 7]), (0, prefixes[0][0]), (0, [6, 4]), (1, prefixes[1][1])]):
        alone = batch_of([SOURCES[n]], [prefix])
        encoded = model.encode(alone.src, alone.src_lengths)
        memory_of, state_of = model.decoder.start(encoded)
        for word in prefix:
            expected, _, state_of = model.decoder.step(torch.tensor([word]), memory_of, state_of, weights)
        torch.testing.assert_close(logits[row], expected[0], rtol=0, atol=1e-12)


@covering(
    "encoder, decoder, norm, activation, learned",
    ENCODERS,
    DECODERS,
    ("pre", "post"),
    ("relu", "gelu"),
    (None, 7),
)
def test_padding_and_company_change_nothing(
    encoder: str, decoder: str, norm: str, activation: str, learned: int | None
) -> None:
    model = family(encoder, decoder, norm=norm, activation=activation, learned_positions=learned).eval()
    together = batch_of(SOURCES, TARGETS)
    for n, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = batch_of([source], [target])
        one = model.decoder(alone.tgt_in, model.encode(alone.src, alone.src_lengths)).readouts[0]
        both = model.decoder(together.tgt_in, model.encode(together.src, together.src_lengths))
        torch.testing.assert_close(both.readouts[n, : len(target) + 1], one, rtol=0, atol=1e-12)
        weights = both.alignments[n, : len(target) + 1]
        assert torch.all(weights >= 0)
        assert torch.all(weights[..., len(source) + 1 :] == 0)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones_like(weights[..., 0]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("decoder", DECODERS)
def test_words_that_are_chosen_on_the_way(decoder: str) -> None:
    """Scheduled sampling: with the reference chosen all is as without; with other words as with those as reference."""
    model = family(decoder=decoder).eval()
    batch = batch_of(SOURCES, TARGETS)
    encoded = model.encode(batch.src, batch.src_lengths)
    same = model.decoder(batch.tgt_in, encoded, lambda position, logits: batch.tgt_in[:, position])
    torch.testing.assert_close(same.readouts, model.decoder(batch.tgt_in, encoded).readouts, rtol=0, atol=1e-12)
    own: list[Tensor] = [batch.tgt_in[:, 0]]

    def choose(position: int, logits: Tensor) -> Tensor:
        own.append(logits.argmax(dim=-1))
        return own[-1]

    sampled = model.decoder(batch.tgt_in, encoded, choose)
    expected = model.decoder(torch.stack(own, dim=1), encoded)
    torch.testing.assert_close(sampled.readouts, expected.readouts, rtol=0, atol=1e-12)
    assert not torch.allclose(sampled.readouts, same.readouts)


def test_a_word_sees_no_later_word() -> None:
    for decoder in ("transformer", "ssru"):
        model = family(decoder=decoder).eval()
        batch = batch_of(SOURCES[:1], TARGETS[:1])
        encoded = model.encode(batch.src, batch.src_lengths)
        changed = batch.tgt_in.clone()
        changed[0, -1] = 8
        one, other = (model.decoder(words, encoded).readouts[0] for words in (batch.tgt_in, changed))
        assert torch.equal(one[:-1], other[:-1])
        assert not torch.allclose(one[-1], other[-1])


@pytest.mark.parametrize("tying", ["none", "target", "all"])
def test_tied_embeddings_and_other_sizes(tying: str) -> None:
    """With another size of embeddings, linear layers lead from it and, if the output is tied, back to it."""
    for size in (6, 4):
        model = family(tying=tying, embedding_size=size)
        assert isinstance(model.encoder, SelfAttentionEncoder)
        assert isinstance(model.decoder, TransformerDecoder)
        source, target = model.encoder.embedding.words.weight, model.decoder.embedding.words.weight
        assert (source is target) == (tying == "all")
        assert (model.decoder.output.weight is target) == (tying != "none")
        assert model.decoder.output.weight.size(1) == (6 if tying == "none" else size)
        assert model(batch_of(SOURCES, TARGETS)).isfinite()


def test_matrices_start_small_and_embeddings_as_elsewhere() -> None:
    """Nguyen & Salazar (2019, section 2.2): the variance of a matrix is 2 / (d + 4 d)."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "num_layers": 2, "num_heads": 2, "feed_forward_size": 256}
    parts = {"encoder": {"kind": "self_attention", **sizes}, "decoder": {"kind": "ssru", **sizes}}
    model = build_model(ModelSection(embedding_size=64, **parts), 50, 60)
    for name, weight in model.state_dict().items():
        if weight.dim() == 2 and "layers" in name:
            assert float(weight.std()) == pytest.approx(math.sqrt(2 / 5 / 64), rel=0.1), name
        elif weight.dim() == 2:
            assert weight.abs().max() <= 0.1, name
        else:
            assert set(weight.tolist()) == {1.0 if name.endswith("weight") else 0.0}, name
