from typing import Any

import pytest
import torch
from covering import covering
from oracle import NORM, decode
from pairs import batch_of
from small_models import MECHANISMS, ORDERS, Variant, random_model
from torch import Tensor

from nmt.config.attention_scores import SCORES
from nmt.corpus.batching import Batch
from nmt.layers.attention.normalizer import HardChoice, Normalizer
from nmt.layers.attention.past import Coverage
from nmt.layers.layout import Layout
from nmt.models import reference
from nmt.models.recurrent.cell import BahdanauCell, LuongCell, RecurrentDecoderState
from nmt.models.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS_ID

SOURCES = [[4, 5, 6], [7], [8, 4, 4, 5], []]
TARGETS = [[4, 5], [6, 7, 4, 4], [], [5]]
CELLS = ("gru", "lstm", "rnn")
EACH_VARIANT = covering(
    "order, attention, cell, num_layers, initial_state",
    ORDERS,
    [*SCORES, "none", *MECHANISMS],
    CELLS,
    (1, 2),
    ("backward", "final", "zeros"),
)


@torch.no_grad()
def by_steps(model: Seq2Seq, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logits [B, T, V] and alignments [B, T, H, S] of one step after another."""
    memory, state = model.decoder.start(model.encode(batch.src, batch.src_lengths))
    weights = model.decoder.prepare()
    logits, alignments = [], []
    for words in batch.tgt_in.unbind(1):
        step_logits, alignment, state = model.decoder.step(words, memory, state, weights)
        logits.append(step_logits)
        alignments.append(alignment)
    return torch.stack(logits, dim=1), torch.stack(alignments, dim=1)


@pytest.mark.parametrize(("order", "input_feeding"), ORDERS)
@pytest.mark.parametrize("tying", ["none", "target"])
def test_each_choice_sees_the_position_before_and_that_of_the_reference_is_teacher_forcing(
    order: str, input_feeding: bool, tying: str
) -> None:
    model = random_model(Variant(order, input_feeding, tying=tying))
    batch = batch_of(SOURCES, TARGETS)
    seen: list[tuple[int, Tensor]] = []

    def choose(position: int, logits: Tensor) -> Tensor:
        seen.append((position, logits.detach()))
        return batch.tgt_in[:, position]

    with torch.no_grad():
        (readouts, words, _), (chosen, chosen_words, _) = model.readouts(batch), model.readouts(batch, choose)
    torch.testing.assert_close(chosen, readouts, rtol=0, atol=1e-10)
    assert torch.equal(chosen_words, words)
    logits, _ = by_steps(model, batch)
    assert [position for position, _ in seen] == [1, 2, 3, 4]
    for position, before in seen:
        torch.testing.assert_close(before, logits[:, position - 1], rtol=0, atol=1e-10)


@covering("cell, num_layers, initial_state", CELLS, [1, 2], ["backward", "final", "zeros"])
def test_the_first_state_is_computed_from_the_states_of_the_encoder(
    cell: str, num_layers: int, initial_state: str
) -> None:
    model = random_model(Variant("luong", True, "general", cell, num_layers, initial_state))
    batch = batch_of(SOURCES, TARGETS)
    encoded = model.encode(batch.src, batch.src_lengths)
    _, state = model.decoder.start(encoded)
    found = torch.cat([layer for part in state.recurrent for layer in part], dim=1)
    projection = model.decoder.initial_state.projection
    if projection is None:
        expected = torch.zeros(4, num_layers * 4 * (2 if cell == "lstm" else 1), dtype=torch.float64)
        assert initial_state == "zeros"
    else:  # of the two units at the first word, or of the last states of both directions
        inputs = encoded.states[:, 0, 2:] if initial_state == "backward" else encoded.final_state
        expected = torch.tanh(inputs @ projection.weight.T + projection.bias)  # [B, parts * layers * 4]
    torch.testing.assert_close(found, expected)
    assert torch.equal(state.feedback, torch.zeros(4, 4, dtype=torch.float64))


def test_rows_of_a_state_are_selected_together() -> None:
    # Two sentences of three hypotheses each become two of two; each value tells its row.
    rows = torch.arange(6.0)
    state = RecurrentDecoderState(
        (rows.view(1, 6, 1) + torch.tensor([0.0, 10.0]).view(2, 1, 1), rows.view(1, 6, 1) + 20),
        rows.view(6, 1) + 30,
        {"previous": rows.view(6, 1) + 40},
        Layout(2, 3),
    )
    picked = state.select(torch.tensor([2, 2, 3, 5]), Layout(2, 2))
    assert picked.recurrent[0].squeeze(-1).tolist() == [[2, 2, 3, 5], [12, 12, 13, 15]]
    assert picked.recurrent[1].squeeze(-1).tolist() == [[22, 22, 23, 25]]
    assert picked.feedback.squeeze(-1).tolist() == [32, 32, 33, 35]
    assert picked.history["previous"].squeeze(-1).tolist() == [[42, 42], [43, 45]]


def test_rows_of_a_state_change_places_where_none_is_lost() -> None:
    rows = torch.arange(3.0)
    state = RecurrentDecoderState((rows.view(1, 3, 1),), rows.view(3, 1), {"step": rows}, Layout(1, 3))
    picked = state.select(torch.tensor([2, 0, 1]), Layout(1, 3))
    assert picked.recurrent[0].flatten().tolist() == picked.feedback.flatten().tolist() == [2, 0, 1]
    assert picked.history["step"].tolist() == [[2, 0, 1]]


def test_selecting_repeats_one_row_per_sentence_into_a_beam() -> None:
    rows = torch.arange(2.0)
    state = RecurrentDecoderState((rows.view(1, 2, 1),), rows.view(2, 1)[:, :0], {"step": rows}, Layout(2))
    assert state.history["step"].tolist() == [[0], [1]]
    spread = state.select(torch.tensor([0, 0, 0, 1]), Layout(2, 3, torch.tensor([0, 1, 2, 3])))
    assert spread.recurrent[0].flatten().tolist() == [0, 0, 0, 1]
    assert spread.feedback.shape == (4, 0)
    assert spread.history["step"].tolist() == [[0, 0, 0], [1, 0, 0]]


@covering("order, cell, depth", ORDERS, CELLS, [{}, {"residual": True, "layer_norm": "cell", "attend_from": "first"}])
def test_hypotheses_of_a_sentence_share_its_memory(order: tuple[str, bool], cell: str, depth: dict[str, Any]) -> None:
    model = random_model(Variant(*order, "general", cell, 2, "backward"), **depth)
    batch = batch_of(SOURCES, TARGETS)
    with torch.no_grad():
        memory, state = model.decoder.start(model.encode(batch.src, batch.src_lengths))
        weights = model.decoder.prepare()
        spread = torch.arange(4).repeat_interleave(3)
        words = torch.tensor([4, 5, 6] * 4)
        logits, alignment, after = model.decoder.step(words, memory, state.select(spread, Layout(4, 3)), weights)
        for place, word in enumerate([4, 5, 6]):
            single = model.decoder.step(torch.full((4,), word), memory, state, weights)
            torch.testing.assert_close(logits[place::3], single[0], rtol=0, atol=1e-12)
            torch.testing.assert_close(alignment[place::3], single[1], rtol=0, atol=1e-12)
            torch.testing.assert_close(after.recurrent[0][:, place::3], single[2].recurrent[0], rtol=0, atol=1e-12)
        # The same without the hypotheses 1, 3, 4 and 5: the second sentence has none left.
        rows = torch.tensor([0, 2, 6, 7, 8, 9, 10, 11])
        layout = Layout(4, 3, torch.tensor([0, 1, 6, 7, 8, 9, 10, 11]))
        fewer = model.decoder.step(words[rows], memory, state.select(spread[rows], layout), weights)
        torch.testing.assert_close(fewer[0], logits[rows], rtol=0, atol=1e-12)
        torch.testing.assert_close(fewer[1], alignment[rows], rtol=0, atol=1e-12)


def normalizer_of(model: Seq2Seq) -> Normalizer | None:
    """The model's own, where it is not the softmax."""
    normalize = getattr(model.decoder.cell.attention, "normalize", None)
    even = torch.tensor([0.0, 1.0], dtype=torch.float64)
    given = None if normalize is None or isinstance(normalize, HardChoice) else normalize
    return None if given is None or torch.equal(given(even), even.softmax(dim=0)) else given


def loss_by_reference(model: Seq2Seq, decoded: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Summed loss of the pairs, from the logits and alignments of each by the reference."""
    output, past = model.decoder.output, getattr(model.decoder.cell.attention, "past", None)
    total = torch.zeros((), dtype=torch.float64)
    identity, zeros = torch.eye(output.out_features).double(), torch.zeros(output.out_features).double()
    for tgt, (logits, alignments) in zip(TARGETS, decoded, strict=True):
        if isinstance(past, Coverage):
            total = total + past.loss_weight * reference.coverage_loss(alignments[:, 0])
        for row, word in zip(logits, [*tgt, EOS_ID], strict=True):
            total = total + reference.cross_entropy(row, word, identity, zeros)
    return total


def follows_the_equations(model: Seq2Seq) -> None:
    """Steps, teacher forcing and all gradients are those of nmt.models.reference."""
    batch = batch_of(SOURCES, TARGETS, src_padding=2, tgt_padding=1)
    logits, alignments = by_steps(model, batch)
    decoded = [decode(model, src, tgt, normalizer_of(model)) for src, tgt in zip(SOURCES, TARGETS, strict=True)]
    with torch.no_grad():
        output = model.decoder(batch.tgt_in, model.encode(batch.src, batch.src_lengths))
        torch.testing.assert_close(model.decoder.output(output.readouts), logits, rtol=0, atol=1e-10)
        torch.testing.assert_close(output.alignments, alignments, rtol=0, atol=1e-10)
        for row, (src, tgt, (expected, aligned)) in enumerate(zip(SOURCES, TARGETS, decoded, strict=True)):
            length, src_length = len(tgt) + 1, len(src) + 1
            torch.testing.assert_close(logits[row, :length], expected, rtol=0, atol=1e-10)
            torch.testing.assert_close(alignments[row, :length, :, :src_length], aligned, rtol=0, atol=1e-10)
    parameters = list(model.parameters())
    losses = loss_by_reference(model, decoded), model(batch)
    torch.testing.assert_close(*losses, rtol=1e-12, atol=0)
    expected, found = (torch.autograd.grad(loss, parameters, allow_unused=True) for loss in losses)
    for (name, parameter), one, other in zip(model.named_parameters(), found, expected, strict=True):
        zeros = torch.zeros_like(parameter)
        one, other = (zeros if gradient is None else gradient for gradient in (one, other))
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11, msg=lambda text, name=name: f"{name}: {text}")


@EACH_VARIANT
def test_a_decoder_follows_the_equations(
    order: tuple[str, bool], attention: str, cell: str, num_layers: int, initial_state: str
) -> None:
    follows_the_equations(random_model(Variant(*order, attention, cell, num_layers, initial_state)))


@pytest.mark.parametrize("attention", [*SCORES, "none", *MECHANISMS])
def test_only_luong_without_feeding_needs_no_loop(attention: str) -> None:
    for order, input_feeding in ORDERS:
        cell = random_model(Variant(order, input_feeding, attention)).decoder.cell
        assert isinstance(cell, BahdanauCell if order == "bahdanau" else LuongCell)
        assert cell.parallel is (order == "luong" and not input_feeding)
        assert cell.attention.reads_own_past is (attention in ("coverage", "location_features"))


def test_a_cell_that_needs_a_loop_refuses_the_whole_sequence() -> None:
    model = random_model(Variant("bahdanau"))
    batch = batch_of(SOURCES, TARGETS)
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


def has_depth(row: tuple[Any, ...]) -> bool:
    """True if an order has such a decoder."""
    order, _, depth = row
    return not ("readout" in depth and order[0] == "luong") and not ("context_to" in depth and order == ORDERS[1])


@covering("order, cell, depth", ORDERS, CELLS, DEPTHS, valid=has_depth)
def test_a_deep_decoder_follows_the_equations(order: tuple[str, bool], cell: str, depth: dict[str, Any]) -> None:
    follows_the_equations(random_model(Variant(*order, "general", cell, 3, "backward"), **depth))


@pytest.mark.parametrize(("tying", "norm"), [("target", None), ("none", NORM), ("target", NORM)])
@pytest.mark.parametrize(("order", "input_feeding"), ORDERS)
def test_a_decoder_with_tied_weights_or_fixed_norms_follows_the_equations(
    order: str, input_feeding: bool, tying: str, norm: float | None
) -> None:
    follows_the_equations(random_model(Variant(order, input_feeding, tying=tying), output_norm=norm))


@covering(
    "readout, order, norm, initial_state",
    ["state", "linear"],
    ORDERS,
    [None, NORM],
    ["copy", "final"],
    valid=lambda row: row[0] == "linear" or row[1] == ORDERS[0],
)
def test_without_a_readout_layer_the_output_layer_reads_state_and_context(
    readout: str, order: tuple[str, bool], norm: float | None, initial_state: str
) -> None:
    variant = Variant(*order, "additive", initial_state=initial_state)
    model = random_model(variant, readout=readout, output_norm=norm)
    # s has 4 units, c has 4 and y has 3.
    assert model.decoder.output.in_features == {"state": 4, "linear": 8 if order[0] == "luong" else 11}[readout]
    assert list(model.decoder.cell.output.parameters()) == []
    follows_the_equations(model)


@covering(
    "order_and_cell, num_layers, bidirectional",
    [("bahdanau", "gru"), ("bahdanau", "lstm"), ("luong", "rnn")],
    [1, 2],
    [False, True],
)
def test_a_decoder_can_begin_with_the_last_states_of_every_layer(
    order_and_cell: tuple[str, str], num_layers: int, bidirectional: bool
) -> None:
    order, cell = order_and_cell
    encoder = {"num_layers": num_layers, "bidirectional": bidirectional, "hidden_size": 2 if bidirectional else 4}
    model = random_model(Variant(order, cell=cell, num_layers=num_layers, initial_state="copy"), encoder=encoder)
    assert list(model.decoder.initial_state.parameters()) == []
    follows_the_equations(model)


@covering("order, cell, residual, layer_norm", ["luong", "bahdanau"], CELLS, [False, True], ["layers", "cell"])
def test_a_deep_encoder_follows_the_equations(order: str, cell: str, residual: bool, layer_norm: str) -> None:
    encoder = {"cell": cell, "num_layers": 2, "residual": residual, "layer_norm": layer_norm}
    readout = "plain" if order == "luong" else "maxout"
    follows_the_equations(random_model(Variant(order, attention="additive"), encoder=encoder, readout=readout))
