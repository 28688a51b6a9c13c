import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.batching import Batch, pad, real_positions
from nmt.config import AttentionSection, DecoderSection, EncoderSection, ModelSection
from nmt.model.attention import check_score, score_names
from nmt.model.decoder import BahdanauCell, DecoderState, LuongCell, WordChooser
from nmt.model.seq2seq import Seq2Seq, build_model
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

SRC_SIZE, TGT_SIZE = 9, 8
SOURCES = [[4, 5, 6], [7], [8, 4, 4, 5], []]
TARGETS = [[4, 5], [6, 7, 4, 4], [], [5]]


MECHANISMS = {
    "local_m": AttentionSection(score="dot", window={"name": "local_m", "radius": 1}),
    "local_p": AttentionSection(window={"name": "local_p", "radius": 1}),
    "hard": AttentionSection(window={"name": "hard"}),
    "coverage": AttentionSection(score="additive", past={"name": "coverage"}),
    "location_features": AttentionSection(
        score="concat", past={"name": "location", "filters": 2, "radius": 1}, window={"name": "local_m", "radius": 1}
    ),
    "heads": AttentionSection(score="additive", heads=2, window={"name": "local_m", "radius": 2}),
    "sparsemax": AttentionSection(normalizer={"name": "sparsemax", "temperature": 0.5}),
}


def attention_section(name: str) -> AttentionSection:
    """A mechanism of the table above, or a score by itself."""
    if name in MECHANISMS:
        return MECHANISMS[name]
    score = check_score(name, 4, 4)
    return AttentionSection(score=name, options=dict(score.example) if score else {})


class Variant(NamedTuple):
    order: str
    input_feeding: bool
    attention: str
    cell: str
    num_layers: int
    initial_state: str


ORDERS = (("bahdanau", False), ("luong", False), ("luong", True))
VARIANTS = [
    Variant(*order, *rest)
    for order, *rest in itertools.product(
        ORDERS, [*score_names(), "none"], ("gru", "lstm"), (1, 2), ("backward", "final", "zeros")
    )
]
VARIANTS += [Variant(*order, name, "lstm", 2, "final") for order, name in itertools.product(ORDERS, MECHANISMS)]


def variant(order: str, input_feeding: bool = False, attention: str = "general", cell: str = "lstm") -> Variant:
    return Variant(order, input_feeding, attention, cell, 1, "backward")


def random_model(choice: Variant, tying: str = "none", **depth: Any) -> Seq2Seq:
    """A float64 model whose every weight and bias is drawn from U(-1, 1)."""
    config = ModelSection(
        embedding_size=3,
        dropout=0.0,
        tying=tying,
        encoder=EncoderSection(cell="gru", hidden_size=2),
        decoder=DecoderSection(
            cell=choice.cell,
            hidden_size=4,
            num_layers=choice.num_layers,
            order=choice.order,
            input_feeding=choice.input_feeding,
            initial_state=choice.initial_state,
            **depth,
        ),
        attention=attention_section(choice.attention),
    )
    torch.manual_seed(0)
    model = build_model(config, SRC_SIZE, TGT_SIZE).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1, 1)
    return model.eval()


def make_batch(src: list[list[int]], tgt: list[list[int]], src_padding: int = 0, tgt_padding: int = 0) -> Batch:
    tgt_out = nn.functional.pad(pad(tgt, suffix=True), (0, tgt_padding), value=PAD_ID)
    return Batch(
        src=nn.functional.pad(pad(src, suffix=True), (0, src_padding), value=PAD_ID),
        src_lengths=torch.tensor([len(ids) + 1 for ids in src]),
        tgt_in=nn.functional.pad(pad(tgt, prefix=True), (0, tgt_padding), value=PAD_ID),
        tgt_out=tgt_out,
        positions=real_positions(tgt_out),
        indices=torch.arange(len(src)),
    )


def logits_of(model: Seq2Seq, batch: Batch, choose: WordChooser | None = None) -> tuple[Tensor, Tensor]:
    """Logits [N, V] and words [N] of the real target positions."""
    readouts, words, _ = model.readouts(batch, choose)
    return model.decoder.logits(readouts), words


@torch.no_grad()
def by_steps(model: Seq2Seq, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logits [B, T, V] and alignments [B, T, H, S] of one step after another."""
    memory, state = model.decoder.start(model.encode(batch.src, batch.src_lengths))
    logits, alignments = [], []
    for words in batch.tgt_in.unbind(1):
        step_logits, alignment, state = model.decoder.step(words, memory, state)
        logits.append(step_logits)
        alignments.append(alignment)
    return torch.stack(logits, dim=1), torch.stack(alignments, dim=1)


@pytest.mark.parametrize("choice", VARIANTS, ids=lambda choice: "-".join(map(str, choice)))
def test_teacher_forcing_is_repeated_steps(choice: Variant) -> None:
    model = random_model(choice)
    batch = make_batch(SOURCES, TARGETS)
    logits, alignments = by_steps(model, batch)
    with torch.no_grad():
        output = model.decoder(batch.tgt_in, model.encode(batch.src, batch.src_lengths))
        torch.testing.assert_close(model.decoder.logits(output.readouts), logits, rtol=0, atol=1e-10)
    torch.testing.assert_close(output.alignments, alignments, rtol=0, atol=1e-10)


@pytest.mark.parametrize("choice", VARIANTS, ids=lambda choice: "-".join(map(str, choice)))
def test_a_padded_batch_is_its_sentences_one_by_one(choice: Variant) -> None:
    model = random_model(choice)
    with torch.no_grad():
        logits, words = logits_of(model, make_batch(SOURCES, TARGETS, src_padding=3, tgt_padding=2))
    expected = [by_steps(model, make_batch([src], [tgt]))[0][0] for src, tgt in zip(SOURCES, TARGETS, strict=True)]
    assert words.tolist() == [word for tgt in TARGETS for word in [*tgt, EOS_ID]]
    torch.testing.assert_close(logits, torch.cat(expected), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("order", "input_feeding"), ORDERS)
@pytest.mark.parametrize("tying", ["none", "target"])
def test_choosing_the_reference_is_teacher_forcing(order: str, input_feeding: bool, tying: str) -> None:
    model = random_model(variant(order, input_feeding), tying)
    batch = make_batch(SOURCES, TARGETS)
    with torch.no_grad():
        logits, words = logits_of(model, batch)
        chosen, chosen_words = logits_of(model, batch, lambda position, logits: batch.tgt_in[:, position])
    torch.testing.assert_close(chosen, logits, rtol=0, atol=1e-10)
    assert torch.equal(chosen_words, words)


@pytest.mark.parametrize(("order", "input_feeding"), ORDERS)
def test_each_choice_sees_the_logits_of_the_position_before(order: str, input_feeding: bool) -> None:
    model = random_model(variant(order, input_feeding))
    batch = make_batch(SOURCES, TARGETS)
    seen: list[tuple[int, Tensor]] = []

    def choose(position: int, logits: Tensor) -> Tensor:
        seen.append((position, logits.detach()))
        return batch.tgt_in[:, position]

    with torch.no_grad():
        model(batch, choose)
    logits, _ = by_steps(model, batch)
    assert [position for position, _ in seen] == [1, 2, 3, 4]
    for position, before in seen:
        torch.testing.assert_close(before, logits[:, position - 1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_the_first_state_is_made_from_the_backward_state_at_the_first_word(cell: str, num_layers: int) -> None:
    model = random_model(Variant("bahdanau", False, "additive", cell, num_layers, "backward"))
    batch = make_batch(SOURCES, TARGETS)
    encoded = model.encode(batch.src, batch.src_lengths)
    _, state = model.decoder.start(encoded)
    projection = model.decoder.initial_state.projection
    assert projection is not None
    backward = encoded.states[:, 0, 2:]  # two units a direction
    expected = torch.tanh(backward @ projection.weight.T + projection.bias)  # [B, parts * layers * 4]
    found = torch.cat([layer for part in state.recurrent for layer in part], dim=1)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_first_state_of_both_directions_and_of_none(cell: str) -> None:
    batch = make_batch(SOURCES, TARGETS)
    model = random_model(Variant("luong", True, "general", cell, 1, "final"))
    encoded = model.encode(batch.src, batch.src_lengths)
    _, state = model.decoder.start(encoded)
    projection = model.decoder.initial_state.projection
    assert projection is not None
    expected = torch.tanh(encoded.final_state @ projection.weight.T + projection.bias)
    torch.testing.assert_close(torch.cat([part[0] for part in state.recurrent], dim=1), expected)
    assert state.fed.shape == (4, 4)
    assert (state.fed == 0).all()
    zeros = random_model(Variant("luong", False, "general", cell, 2, "zeros"))
    _, state = zeros.decoder.start(zeros.encode(batch.src, batch.src_lengths))
    assert all(part.shape == (2, 4, 4) and (part == 0).all() for part in state.recurrent)
    assert not list(zeros.decoder.initial_state.parameters())


def test_rows_of_a_state_are_selected_together() -> None:
    # Two sentences of three hypotheses each become two of two; each value tells its row.
    rows = torch.arange(6.0)
    state = DecoderState(
        (rows.view(1, 6, 1) + torch.tensor([0.0, 10.0]).view(2, 1, 1), rows.view(1, 6, 1) + 20),
        rows.view(6, 1) + 30,
        {"previous": rows.view(2, 3, 1) + 40},
    )
    picked = state.select(torch.tensor([2, 2, 3, 5]), 2)
    assert picked.recurrent[0].squeeze(-1).tolist() == [[2, 2, 3, 5], [12, 12, 13, 15]]
    assert picked.recurrent[1].squeeze(-1).tolist() == [[22, 22, 23, 25]]
    assert picked.fed.squeeze(-1).tolist() == [32, 32, 33, 35]
    assert picked.attention["previous"].squeeze(-1).tolist() == [[42, 42], [43, 45]]


def test_selecting_repeats_one_row_a_sentence_into_a_beam() -> None:
    rows = torch.arange(2.0)
    state = DecoderState((rows.view(1, 2, 1),), rows.view(2, 1)[:, :0], {"step": rows.view(2, 1)})
    spread = state.select(torch.tensor([0, 0, 0, 1, 1, 1]), 2)
    assert spread.recurrent[0].flatten().tolist() == [0, 0, 0, 1, 1, 1]
    assert spread.fed.shape == (6, 0)
    assert spread.attention["step"].tolist() == [[0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("depth", [{}, {"residual": True, "layer_norm": "cell", "attend_from": "first"}])
@pytest.mark.parametrize(("order", "input_feeding"), ORDERS)
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_hypotheses_of_a_sentence_share_its_memory(
    order: str, input_feeding: bool, cell: str, depth: dict[str, Any]
) -> None:
    model = random_model(Variant(order, input_feeding, "general", cell, 2, "backward"), **depth)
    batch = make_batch(SOURCES, TARGETS)
    with torch.no_grad():
        memory, state = model.decoder.start(model.encode(batch.src, batch.src_lengths))
        spread = torch.arange(4).repeat_interleave(3)
        words = torch.tensor([4, 5, 6] * 4)
        logits, alignment, after = model.decoder.step(words, memory, state.select(spread, 4))
        for place, word in enumerate([4, 5, 6]):
            single = model.decoder.step(torch.full((4,), word), memory, state)
            torch.testing.assert_close(logits[place::3], single[0], rtol=0, atol=1e-12)
            torch.testing.assert_close(alignment[place::3], single[1], rtol=0, atol=1e-12)
            torch.testing.assert_close(after.recurrent[0][:, place::3], single[2].recurrent[0], rtol=0, atol=1e-12)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def numpy_gru(weights: dict[str, np.ndarray], x: np.ndarray, h: np.ndarray) -> np.ndarray:
    w_r, w_z, w_n = np.split(weights["weight_ih_l0"] @ x + weights["bias_ih_l0"], 3)
    u_r, u_z, u_n = np.split(weights["weight_hh_l0"] @ h + weights["bias_hh_l0"], 3)
    update = sigmoid(w_z + u_z)
    return (1 - update) * np.tanh(w_n + sigmoid(w_r + u_r) * u_n) + update * h


def numpy_lstm(weights: dict[str, np.ndarray], x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
    gates = weights["weight_ih_l0"] @ x + weights["bias_ih_l0"] + weights["weight_hh_l0"] @ h + weights["bias_hh_l0"]
    i, f, g, o = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def arrays(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: parameter.detach().numpy() for name, parameter in module.named_parameters()}


def test_a_step_of_bahdanau() -> None:
    """Bahdanau et al., 2015, section 3.1, eq. 4-6 and A.1.2: attend with s_{i-1}, then update."""
    model = random_model(variant("bahdanau", attention="additive", cell="gru"))
    batch = make_batch([SOURCES[0]], [[5]])
    encoded = model.encode(batch.src, batch.src_lengths)
    memory, state = model.decoder.start(encoded)
    h, s = encoded.states[0].detach().numpy(), state.recurrent[0][0, 0].detach().numpy()
    weights = arrays(model.decoder)
    recurrent = arrays(model.decoder.cell.recurrent.rnn)
    for word in (BOS_ID, 5):
        logits, alignment, state = model.decoder.step(torch.tensor([word]), memory, state)
        y = weights["embedding.weight"][word]
        energies = [
            weights["cell.attention.score.energy.weight"][0]
            @ np.tanh(
                weights["cell.attention.score.query.weight"] @ s + weights["cell.attention.score.key.weight"] @ hj
            )
            for hj in h
        ]
        alpha = softmax(np.array(energies))
        c = alpha @ h
        s = numpy_gru(recurrent, np.concatenate([y, c]), s)
        t = np.tanh(weights["cell.output.weight"] @ np.concatenate([s, c, y]) + weights["cell.output.bias"])
        np.testing.assert_allclose(alignment[0, 0].detach().numpy(), alpha, atol=1e-12)
        expected = weights["output.weight"] @ t + weights["output.bias"]
        np.testing.assert_allclose(logits[0].detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("input_feeding", [False, True])
def test_a_step_of_luong(input_feeding: bool) -> None:
    """Luong et al., 2015, section 3, eq. 5-8, and section 3.3: update, then attend with h_t."""
    model = random_model(variant("luong", input_feeding))
    batch = make_batch([SOURCES[0]], [[5]])
    encoded = model.encode(batch.src, batch.src_lengths)
    memory, state = model.decoder.start(encoded)
    source = encoded.states[0].detach().numpy()
    h, cell = (part[0, 0].detach().numpy() for part in state.recurrent)
    attentional = np.zeros(4)
    weights = arrays(model.decoder)
    recurrent = arrays(model.decoder.cell.recurrent.rnn)
    for word in (BOS_ID, 5, 4):
        logits, alignment, state = model.decoder.step(torch.tensor([word]), memory, state)
        y = weights["embedding.weight"][word]
        h, cell = numpy_lstm(recurrent, np.concatenate([y, attentional]) if input_feeding else y, h, cell)
        align = softmax(np.array([h @ weights["cell.attention.score.key.weight"] @ hs for hs in source]))
        attentional = np.tanh(weights["cell.output.weight"] @ np.concatenate([align @ source, h]))  # eq. 5
        np.testing.assert_allclose(alignment[0, 0].detach().numpy(), align, atol=1e-12)
        expected = weights["output.weight"] @ attentional + weights["output.bias"]
        np.testing.assert_allclose(logits[0].detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("attention", [*score_names(), "none", *MECHANISMS])
def test_only_luong_without_feeding_needs_no_loop(attention: str) -> None:
    for order, input_feeding in ORDERS:
        cell = random_model(variant(order, input_feeding, attention)).decoder.cell
        assert isinstance(cell, BahdanauCell if order == "bahdanau" else LuongCell)
        assert cell.parallel is (order == "luong" and not input_feeding)
        assert cell.attention.reads_own_past is (attention in ("coverage", "location_features"))


def test_a_cell_that_needs_a_loop_refuses_the_whole_sequence() -> None:
    model = random_model(variant("bahdanau"))
    batch = make_batch(SOURCES, TARGETS)
    memory, state = model.decoder.start(model.encode(batch.src, batch.src_lengths))
    with pytest.raises(TypeError, match="loop"):
        model.decoder.cell.sequence(model.decoder.embedding(batch.tgt_in), memory, state)


DEPTHS: list[dict[str, Any]] = [
    {"residual": True},
    {"layer_norm": "layers"},
    {"layer_norm": "cell"},
    {"attend_from": "first"},
    {"context_to": "all"},
    {"readout": "maxout"},
    {"residual": True, "layer_norm": "layers", "attend_from": "first"},
    {"residual": True, "layer_norm": "cell", "attend_from": "first", "context_to": "all"},
]
DEEP_VARIANTS = [
    (Variant(*order, "general", cell, 3, "backward"), depth)
    for order in ORDERS
    for cell in ("gru", "lstm")
    for depth in DEPTHS
    if not ("readout" in depth and order[0] == "luong") and not ("context_to" in depth and order == ("luong", False))
]
DEEP = pytest.mark.parametrize(
    ("choice", "depth"),
    DEEP_VARIANTS,
    ids=lambda part: "-".join(map(str, part.values() if isinstance(part, dict) else part)),
)


@DEEP
def test_teacher_forcing_of_deep_decoders_is_repeated_steps(choice: Variant, depth: dict[str, Any]) -> None:
    model = random_model(choice, **depth)
    batch = make_batch(SOURCES, TARGETS)
    logits, alignments = by_steps(model, batch)
    with torch.no_grad():
        output = model.decoder(batch.tgt_in, model.encode(batch.src, batch.src_lengths))
        torch.testing.assert_close(model.decoder.logits(output.readouts), logits, rtol=0, atol=1e-10)
    torch.testing.assert_close(output.alignments, alignments, rtol=0, atol=1e-10)
    assert model.decoder.cell.parallel is (choice.order == "luong" and not choice.input_feeding)


@DEEP
def test_a_padded_batch_of_deep_decoders_is_its_sentences_one_by_one(choice: Variant, depth: dict[str, Any]) -> None:
    model = random_model(choice, **depth)
    with torch.no_grad():
        logits, _ = logits_of(model, make_batch(SOURCES, TARGETS, src_padding=3, tgt_padding=2))
    expected = [by_steps(model, make_batch([src], [tgt]))[0][0] for src, tgt in zip(SOURCES, TARGETS, strict=True)]
    torch.testing.assert_close(logits, torch.cat(expected), rtol=0, atol=1e-10)


@DEEP
def test_every_weight_of_a_deep_decoder_gets_a_gradient(choice: Variant, depth: dict[str, Any]) -> None:
    model = random_model(choice, **depth)
    model(make_batch(SOURCES, TARGETS)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad != 0).any(), name


def test_a_step_of_a_deep_bahdanau_decoder() -> None:
    """Wu et al., 2016, section 3: the first layer attends, every layer reads the context, outputs add up."""
    choice = Variant("bahdanau", False, "general", "gru", 3, "backward")
    model = random_model(choice, residual=True, attend_from="first", context_to="all")
    batch = make_batch([SOURCES[0]], [[5]])
    encoded = model.encode(batch.src, batch.src_lengths)
    memory, state = model.decoder.start(encoded)
    source = encoded.states[0].detach().numpy()
    hidden = [layer[0].detach().numpy() for layer in state.recurrent[0]]
    weights = arrays(model.decoder)
    layers = [arrays(layer.rnn) for layer in model.decoder.cell.recurrent.layers]
    for word in (BOS_ID, 5, 4):
        logits, alignment, state = model.decoder.step(torch.tensor([word]), memory, state)
        y = weights["embedding.weight"][word]
        align = softmax(np.array([hidden[0] @ weights["cell.attention.score.key.weight"] @ hs for hs in source]))
        context = align @ source
        hidden[0] = output = numpy_gru(layers[0], np.concatenate([y, context]), hidden[0])
        for number in (1, 2):
            hidden[number] = numpy_gru(layers[number], np.concatenate([output, context]), hidden[number])
            output = output + hidden[number]
        np.testing.assert_allclose(alignment[0, 0].detach().numpy(), align, atol=1e-12)
        features = np.concatenate([output, context, y])
        readout = np.tanh(weights["cell.output.weight"] @ features + weights["cell.output.bias"])
        expected = weights["output.weight"] @ readout + weights["output.bias"]
        np.testing.assert_allclose(logits[0].detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("attend_from", ["top", "first"])
@pytest.mark.parametrize("input_feeding", [False, True])
def test_a_step_of_a_deep_luong_decoder(input_feeding: bool, attend_from: str) -> None:
    """The query is one layer's new state; the attentional vector (Luong et al., 2015, eq. 5) has the top layer's."""
    depth = {"attend_from": attend_from, "context_to": "all" if input_feeding else "first", "layer_norm": "layers"}
    model = random_model(Variant("luong", input_feeding, "general", "lstm", 2, "final"), **depth)
    batch = make_batch([SOURCES[0]], [[5]])
    encoded = model.encode(batch.src, batch.src_lengths)
    memory, state = model.decoder.start(encoded)
    source = encoded.states[0].detach().numpy()
    hidden, cells = ([layer[0].detach().numpy() for layer in part] for part in state.recurrent)
    weights = arrays(model.decoder)
    layers = [arrays(layer.rnn) for layer in model.decoder.cell.recurrent.layers]
    norm = arrays(model.decoder.cell.recurrent.connections[0].norm)
    fed = np.zeros(4 if input_feeding else 0)
    for word in (BOS_ID, 5, 4):
        logits, alignment, state = model.decoder.step(torch.tensor([word]), memory, state)
        read = weights["embedding.weight"][word]
        for number in (0, 1):
            inputs = np.concatenate([read, fed])
            hidden[number], cells[number] = numpy_lstm(layers[number], inputs, hidden[number], cells[number])
            centred = hidden[number] - hidden[number].mean()
            read = centred / np.sqrt((centred**2).mean() + 1e-5) * norm["weight"] + norm["bias"]
        query = hidden[0 if attend_from == "first" else 1]
        align = softmax(np.array([query @ weights["cell.attention.score.key.weight"] @ hs for hs in source]))
        attentional = np.tanh(weights["cell.output.weight"] @ np.concatenate([align @ source, hidden[1]]))
        fed = attentional if input_feeding else fed
        np.testing.assert_allclose(alignment[0, 0].detach().numpy(), align, atol=1e-12)
        expected = weights["output.weight"] @ attentional + weights["output.bias"]
        np.testing.assert_allclose(logits[0].detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("tying", ["none", "target"])
def test_the_maxout_readout(tying: str) -> None:
    """Bahdanau et al., 2015, A.2.2: t_ij = max(u_i,2j-1, u_i,2j), u_i = U s_i + V y_{i-1} + C c_i (s_i as in eq. 4)."""
    cell = random_model(variant("bahdanau"), tying, readout="maxout").decoder.cell
    size = 4 if tying == "none" else 3  # units of the decoder, or of the embedding to which the output is tied
    generator = np.random.default_rng(0)
    s, c, y = (generator.standard_normal((2, 5, width)) for width in (4, 4, 3))
    features, embedded = torch.from_numpy(np.concatenate([s, c], axis=-1)), torch.from_numpy(y)
    found = cell.readout(features, embedded).detach().numpy()
    weight, bias = arrays(cell)["output.weight"], arrays(cell)["output.bias"]
    of_s, of_c, of_y = weight[:, :4], weight[:, 4:8], weight[:, 8:]
    assert found.shape == (2, 5, size)
    for row, position in itertools.product(range(2), range(5)):
        u = of_s @ s[row, position] + of_y @ y[row, position] + of_c @ c[row, position] + bias
        expected = [max(u[2 * unit], u[2 * unit + 1]) for unit in range(size)]
        np.testing.assert_allclose(found[row, position], expected, atol=1e-12)
