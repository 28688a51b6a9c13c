import itertools
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.batching import Batch, pad
from nmt.config import AttentionSection, DecoderSection, EncoderSection, ModelSection
from nmt.model.attention import score_names
from nmt.model.decoder import BahdanauCell, DecoderState, LuongCell
from nmt.model.seq2seq import Seq2Seq, build_model
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

SRC_SIZE, TGT_SIZE = 9, 8
SOURCES = [[4, 5, 6], [7], [8, 4, 4, 5], []]
TARGETS = [[4, 5], [6, 7, 4, 4], [], [5]]


class Variant(NamedTuple):
    order: str
    input_feeding: bool
    score: str
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


def variant(order: str, input_feeding: bool = False, score: str = "general", cell: str = "lstm") -> Variant:
    return Variant(order, input_feeding, score, cell, 1, "backward")


def random_model(choice: Variant, tying: str = "none") -> Seq2Seq:
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
        ),
        attention=AttentionSection(score=choice.score),
    )
    torch.manual_seed(0)
    model = build_model(config, SRC_SIZE, TGT_SIZE).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1, 1)
    return model


def make_batch(src: list[list[int]], tgt: list[list[int]], src_padding: int = 0, tgt_padding: int = 0) -> Batch:
    return Batch(
        src=nn.functional.pad(pad(src, suffix=True), (0, src_padding), value=PAD_ID),
        src_lengths=torch.tensor([len(ids) + 1 for ids in src]),
        tgt_in=nn.functional.pad(pad(tgt, prefix=True), (0, tgt_padding), value=PAD_ID),
        tgt_out=nn.functional.pad(pad(tgt, suffix=True), (0, tgt_padding), value=PAD_ID),
        indices=torch.arange(len(src)),
        num_tokens=sum(len(ids) + 1 for ids in tgt),
    )


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
        logits, words = model(make_batch(SOURCES, TARGETS, src_padding=3, tgt_padding=2))
    expected = [by_steps(model, make_batch([src], [tgt]))[0][0] for src, tgt in zip(SOURCES, TARGETS, strict=True)]
    assert words.tolist() == [word for tgt in TARGETS for word in [*tgt, EOS_ID]]
    torch.testing.assert_close(logits, torch.cat(expected), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("order", "input_feeding"), ORDERS)
@pytest.mark.parametrize("tying", ["none", "target"])
def test_choosing_the_reference_is_teacher_forcing(order: str, input_feeding: bool, tying: str) -> None:
    model = random_model(variant(order, input_feeding), tying)
    batch = make_batch(SOURCES, TARGETS)
    with torch.no_grad():
        logits, words = model(batch)
        chosen, chosen_words = model(batch, lambda position, logits: batch.tgt_in[:, position])
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


@pytest.mark.parametrize(("order", "input_feeding"), ORDERS)
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_hypotheses_of_a_sentence_share_its_memory(order: str, input_feeding: bool, cell: str) -> None:
    model = random_model(variant(order, input_feeding, cell=cell))
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
    model = random_model(variant("bahdanau", score="additive", cell="gru"))
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


@pytest.mark.parametrize("score", [*score_names(), "none"])
def test_only_luong_without_feeding_needs_no_loop(score: str) -> None:
    for order, input_feeding in ORDERS:
        cell = random_model(variant(order, input_feeding, score)).decoder.cell
        assert isinstance(cell, BahdanauCell if order == "bahdanau" else LuongCell)
        expected = order == "luong" and not input_feeding and not cell.attention.reads_own_past
        assert cell.parallel is expected


def test_a_cell_that_needs_a_loop_refuses_the_whole_sequence() -> None:
    model = random_model(variant("bahdanau"))
    batch = make_batch(SOURCES, TARGETS)
    memory, state = model.decoder.start(model.encode(batch.src, batch.src_lengths))
    with pytest.raises(TypeError, match="loop"):
        model.decoder.cell.sequence(model.decoder.embedding(batch.tgt_in), memory, state)
