import math
from typing import Any

import pytest
import torch
from covering import covering
from pairs import batch_of
from torch import Tensor, nn

from nmt.config import (
    AttentionSection,
    InitializationSection,
    ModelSection,
    RecurrentDecoderSection,
    RecurrentEncoderSection,
)
from nmt.layers.attention.attention import ScoreAttention
from nmt.layers.recurrent import NormalizedLayer
from nmt.models.build import build_model
from nmt.text.vocabulary import PAD_ID

BATCH = batch_of([[4, 5, 6], [6]], [[4, 5], [6, 5, 4, 4]])


def model_config(tying: str = "none", **changes: object) -> ModelSection:
    parts: dict[str, object] = {
        "embedding_size": 3,
        "dropout": 0.0,
        "tying": tying,
        "encoder": RecurrentEncoderSection(cell="lstm", hidden_size=2),
        "decoder": RecurrentDecoderSection(cell="lstm", hidden_size=4),
        "attention": AttentionSection(score="general"),
    }
    return ModelSection(**{**parts, **changes})


def outcome(**dropout: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Encoder states and final state, readouts and loss in training, with some dropout and always the same weights."""
    torch.manual_seed(0)
    model = build_model(model_config(**dropout), 7, 7).double().train()
    encoded = model.encode(BATCH.src, BATCH.src_lengths)
    readouts, targets, _ = model.readouts(BATCH)
    return encoded.states, encoded.final_state, readouts, model.decoder.output.loss(readouts, targets)


def test_dropout_by_place() -> None:
    states, final, readouts, loss = outcome()
    for dropout in ({"dropout": 0.5}, {"embedding_dropout": 0.5}):
        assert not torch.allclose(outcome(**dropout)[1], final)
    found = outcome(memory_dropout=0.5)
    assert torch.equal(found[1], final)
    assert not torch.allclose(found[2], readouts)
    dropped = found[0] == 0
    assert torch.allclose(found[0][~dropped], 2 * states[~dropped])
    assert 0 < dropped[states != 0].double().mean() < 1
    found = outcome(output_dropout=0.5)
    for one, other in zip(found[:3], (states, final, readouts), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(found[3], loss)
    found = outcome(dropout=0.5, embedding_dropout=0.0, output_dropout=0.0)
    assert torch.equal(found[3], loss)  # there is nothing between the layers, as there is only one


@pytest.mark.parametrize(("order", "input_feeding"), [("bahdanau", False), ("luong", False), ("luong", True)])
@pytest.mark.parametrize("tying", ["none", "target", "all"])
def test_tied_weights_are_one_tensor(tying: str, order: str, input_feeding: bool) -> None:
    decoder = RecurrentDecoderSection(hidden_size=4, order=order, input_feeding=input_feeding)
    model = build_model(model_config(tying, decoder=decoder), 9, 9)
    source, target, output = model.encoder.embedding.weight, model.decoder.embedding.weight, model.decoder.output.weight
    assert (source is target) == (tying == "all")
    assert (output is target) == (tying != "none")
    model.double()
    with torch.no_grad():
        model.decoder.output.weight[5] += 1
    same = torch.equal(model.decoder.embedding.weight[5], model.decoder.output.weight[5])
    assert same == (tying != "none")


@covering(
    "score, order, cells, layers, bidirectional",
    ("additive", "general", "none"),
    (("bahdanau", False), ("luong", False), ("luong", True)),
    (("gru", "lstm"), ("lstm", "gru"), ("gru", "gru"), ("rnn", "rnn")),
    ((1, 2), (3, 1), (2, 2)),
    (False, True),
)
def test_sizes_of_encoder_and_decoder_are_free(
    score: str, order: tuple[str, bool], cells: tuple[str, str], layers: tuple[int, int], bidirectional: bool
) -> None:
    encoder, decoder = (
        dict(zip(("cell", "num_layers"), both, strict=True)) for both in zip(cells, layers, strict=True)
    )
    order_of = dict(zip(("order", "input_feeding"), order, strict=True))
    config = model_config(
        encoder={"hidden_size": 5, "bidirectional": bidirectional, **encoder},
        decoder={"hidden_size": 7, **order_of, **decoder},
        attention={"score": score},
    )
    model = build_model(config, 7, 9)
    readouts, words, _ = model.readouts(BATCH)
    logits = model.decoder.output(readouts)
    assert logits.shape == (8, 9)
    assert words.shape == (8,)
    assert logits.isfinite().all()


@pytest.mark.parametrize("scheme", ["uniform", "xavier"])
@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
@pytest.mark.parametrize("forget_bias", [0.0, 1.0])
def test_biases_start_at_zero_except_the_forget_gate(scheme: str, cell: str, forget_bias: float) -> None:
    config = model_config(
        encoder={"cell": cell, "hidden_size": 2, "num_layers": 2},
        decoder={"cell": cell, "hidden_size": 4, "num_layers": 2},
        initialization={"scheme": scheme, "forget_bias": forget_bias},
    )
    for name, parameter in build_model(config, 7, 9).named_parameters():
        if "bias" not in name:
            continue
        expected = torch.zeros_like(parameter)
        if cell == "lstm" and "bias_ih" in name:
            quarter = len(parameter) // 4  # input, forget, candidate, output
            expected[quarter : 2 * quarter] = forget_bias
        assert torch.equal(parameter, expected), name


@pytest.mark.parametrize("scheme", ["uniform", "xavier"])
@pytest.mark.parametrize("tying", ["none", "target", "all"])
def test_the_embedding_of_padding_starts_at_zero(scheme: str, tying: str) -> None:
    model = build_model(model_config(tying, initialization={"scheme": scheme}), 9, 9)
    for embedding in (model.encoder.embedding, model.decoder.embedding):
        assert (embedding.weight[PAD_ID] == 0).all()
        assert (embedding.weight[PAD_ID + 1 :] != 0).any(dim=1).all()


@pytest.mark.parametrize("scheme", ["uniform", "xavier"])
@pytest.mark.parametrize("scale", [0.08, 0.5])
@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_bounds_of_initial_weights(cell: str, scale: float, scheme: str) -> None:
    """Those of Xavier are of one gate (Glorot & Bengio, 2010, eq. 16); embeddings are uniform."""
    torch.manual_seed(0)
    config = model_config(
        embedding_size=30,
        encoder={"cell": cell, "hidden_size": 20},
        decoder={"cell": cell, "hidden_size": 40, "num_layers": 2, "order": "bahdanau"},
        initialization={"scheme": scheme, "scale": scale},
    )
    gates = {"gru": 3, "lstm": 4, "rnn": 1}[cell]
    for name, weight in build_model(config, 50, 60).named_parameters():
        if "bias" in name:
            continue
        rows = len(weight) // gates if ".rnn." in name else len(weight)
        uniform = scheme == "uniform" or "embedding" in name
        bound = scale if uniform else math.sqrt(6 / (rows + weight.size(1)))
        assert 0.95 * bound < weight.abs().max() <= bound, name
        drawn = weight[1:] if "embedding" in name else weight
        assert float(drawn.detach().std()) == pytest.approx(bound / math.sqrt(3), rel=0.1), name


@pytest.mark.parametrize("tying", ["none", "target", "all"])
def test_padding_gets_a_gradient_only_as_a_word_of_a_tied_output_layer(tying: str) -> None:
    torch.manual_seed(0)
    model = build_model(model_config(tying), 9, 9)
    model(BATCH).backward()
    source, target = model.encoder.embedding.weight.grad, model.decoder.embedding.weight.grad
    assert source is not None
    assert target is not None
    assert bool((source[PAD_ID] == 0).all()) == (tying != "all")
    assert bool((target[PAD_ID] == 0).all()) == (tying == "none")
    assert (target[4] != 0).any()
    assert (source[4] != 0).any()


def test_readouts_are_of_real_positions_alone() -> None:
    torch.manual_seed(0)
    model = build_model(model_config(), 9, 9)
    _, words, _ = model.readouts(BATCH)
    assert words.tolist() == [4, 5, 3, 6, 5, 4, 4, 3]
    assert len(words) == BATCH.num_tokens
    assert model.device == torch.device("cpu")


DEEP: list[dict[str, Any]] = [
    {"order": "bahdanau", "layer_norm": "layers", "attend_from": "first", "context_to": "all", "readout": "maxout"},
    {"order": "bahdanau", "layer_norm": "cell", "attend_from": "first", "context_to": "all"},
    {"order": "luong", "layer_norm": "layers", "attend_from": "first"},
    {"order": "luong", "layer_norm": "cell", "input_feeding": True, "context_to": "all"},
]
DEEP_MODELS = [
    pytest.param(decoder, cell, id=f"{cell}-{'-'.join(map(str, decoder.values()))}")
    for decoder in DEEP
    for cell in ("gru", "lstm", "rnn")
]


def deep_config(decoder: dict[str, Any], cell: str, size: int = 4, **changes: object) -> ModelSection:
    joined = {"cell": cell, "hidden_size": size, "num_layers": 2, "residual": True}
    return model_config(
        encoder={**joined, "layer_norm": decoder["layer_norm"]}, decoder={**joined, **decoder}, **changes
    )


@pytest.mark.parametrize(("decoder", "cell"), DEEP_MODELS)
@pytest.mark.parametrize("scheme", ["uniform", "xavier"])
def test_initial_weights_of_deep_models(scheme: str, decoder: dict[str, Any], cell: str) -> None:
    torch.manual_seed(0)
    initialization = InitializationSection(scheme=scheme, scale=0.3, forget_bias=1.0)
    model = build_model(deep_config(decoder, cell, 24, initialization=initialization), 9, 9)
    normalized = decoder["layer_norm"] == "cell"
    layers = [module for module in model.modules() if isinstance(module, NormalizedLayer)]
    assert len(layers) == (6 if normalized else 0)  # two directions of two layers, and two layers of the decoder
    for layer in layers:
        for norm in (*layer.input_norms, *layer.hidden_norms, *layer.cell_norm):
            assert (norm.weight == 1).all()
            forgets = cell == "lstm" and norm is layer.input_norms[0]
            assert norm.bias.sum() == (24 if forgets else 0)  # 1 for each unit
        if cell == "lstm":
            assert (layer.input_norms[0].bias[24:48] == 1).all()  # after the input gates
        for weight in (layer.weight_input, layer.weight_hidden):
            bound = (
                0.3 if scheme == "uniform" else math.sqrt(6 / (24 + weight.size(1)))
            )  # Glorot & Bengio, 2010, eq. 16
            assert 0.95 * bound < weight.abs().max() <= bound
    for connection in (*model.encoder.connections[1:], *model.decoder.cell.recurrent.connections):
        assert isinstance(connection.norm, nn.Identity if normalized else nn.LayerNorm)
        assert all((parameter == (name == "weight")).all() for name, parameter in connection.norm.named_parameters())


def test_a_parameter_of_a_score_keeps_its_initial_value() -> None:
    config = ModelSection.model_validate(
        {"encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 8}, "attention": {"score": "cosine"}}
    )
    attention = build_model(config, 9, 9).decoder.cell.attention
    assert isinstance(attention, ScoreAttention)
    assert dict(attention.score.named_parameters())["log_sharpness"].tolist() == [0.0]
