from typing import Any

import pytest
import torch
from covering import covering
from small_models import randomize
from torch import Tensor, nn

from nmt.config import RecurrentEncoderSection
from nmt.corpus.batching import pad
from nmt.models.base import Encoder, EncoderDropout
from nmt.models.recurrent.encoder import RecurrentEncoder
from nmt.text.vocabulary import PAD_ID

VOCABULARY, EMBEDDING, HIDDEN = 11, 3, 4
SENTENCES = [[5, 6, 7, 8], [9], [10, 4], [], [4, 4, 4, 5]]

KINDS = ("gru", "lstm", "rnn"), (False, True), (1, 2)
OPTIONS = [
    {"residual": residual, "layer_norm": norm} for residual in (False, True) for norm in ("none", "layers", "cell")
]
SHAPES = covering("cell, bidirectional, num_layers", *KINDS)
JOINED = covering("cell, bidirectional, num_layers, options", *KINDS, OPTIONS)


def random_encoder(cell: str, bidirectional: bool, num_layers: int, dropout: float = 0.0, **options: Any) -> Encoder:
    embedding = nn.Embedding(VOCABULARY, EMBEDDING, padding_idx=PAD_ID)
    layers = {"cell": cell, "hidden_size": HIDDEN, "num_layers": num_layers, "bidirectional": bidirectional}
    section = RecurrentEncoderSection(**layers, **options)
    encoder = RecurrentEncoder(section, embedding, EncoderDropout(dropout), with_last_states=False)
    return randomize(encoder)  # PAD's embedding too: it must not matter


def sources() -> tuple[Tensor, Tensor]:
    return pad(SENTENCES, suffix=True), torch.tensor([len(sentence) + 1 for sentence in SENTENCES])


@JOINED
def test_padding_changes_neither_states_nor_the_final_state(
    cell: str, bidirectional: bool, num_layers: int, options: dict[str, Any]
) -> None:
    encoder = random_encoder(cell, bidirectional, num_layers, **options)
    src, lengths = sources()
    width = src.size(1) + 6
    encoded = encoder(nn.functional.pad(src, (0, 6), value=PAD_ID), lengths)
    assert encoded.states.shape == (5, width, encoder.output_size)
    assert encoder.output_size == HIDDEN * (2 if bidirectional else 1)
    assert torch.equal(encoded.lengths, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = encoder(src[row : row + 1, :length], lengths[row : row + 1])
        torch.testing.assert_close(encoded.states[row, :length], alone.states[0], rtol=0, atol=1e-12)
        torch.testing.assert_close(encoded.final_state[row], alone.final_state[0], rtol=0, atol=1e-12)
        assert torch.equal(encoded.final_state[row, :HIDDEN], encoded.states[row, length - 1, :HIDDEN])
        assert torch.equal(encoded.final_state[row, HIDDEN:], encoded.states[row, 0, HIDDEN:])
        assert (encoded.states[row, length:] == 0).all()
        assert encoded.mask[row].tolist() == [True] * length + [False] * (width - length)


@SHAPES
def test_states_equal_those_of_torchs_packed_layers(cell: str, bidirectional: bool, num_layers: int) -> None:
    encoder = random_encoder(cell, bidirectional, num_layers)
    reference = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}[cell](
        EMBEDDING, HIDDEN, num_layers, batch_first=True, bidirectional=bidirectional
    ).double()
    with torch.no_grad():
        for layer in range(num_layers):
            for direction in range(2 if bidirectional else 1):
                rnn = encoder.layers[layer][direction].rnn
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    own = getattr(reference, f"{name}_l{layer}{'_reverse' * direction}")
                    own.copy_(getattr(rnn, f"{name}_l0"))
    src, lengths = sources()
    packed = nn.utils.rnn.pack_padded_sequence(encoder.embedding(src), lengths, batch_first=True, enforce_sorted=False)
    outputs, last = reference(packed)
    states, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
    hidden = (last[0] if cell == "lstm" else last).view(num_layers, -1, len(SENTENCES), HIDDEN)
    encoded = encoder(src, lengths)
    torch.testing.assert_close(encoded.states, states, rtol=0, atol=1e-12)
    torch.testing.assert_close(encoded.final_state, torch.cat(tuple(hidden[-1]), dim=-1), rtol=0, atol=1e-12)


@JOINED
def test_gradients_do_not_see_padding(cell: str, bidirectional: bool, num_layers: int, options: dict[str, Any]) -> None:
    encoder = random_encoder(cell, bidirectional, num_layers, **options)
    src, lengths = sources()

    def gradients(width: int) -> list[Tensor]:
        encoder.zero_grad()
        encoded = encoder(nn.functional.pad(src, (0, width), value=PAD_ID), lengths)
        (encoded.states.sin().sum() + encoded.final_state.cos().sum()).backward()
        return [parameter.grad.clone() for parameter in encoder.parameters()]

    for plain, padded in zip(gradients(0), gradients(4), strict=True):
        assert (plain != 0).any()
        torch.testing.assert_close(padded, plain, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_dropout_is_off_in_evaluation(options: dict[str, Any]) -> None:
    src, lengths = sources()
    plain = random_encoder("lstm", True, 2, **options)(src, lengths).states
    with_dropout = random_encoder("lstm", True, 2, dropout=0.5, **options)
    assert torch.equal(with_dropout.eval()(src, lengths).states, plain)
    assert not torch.equal(with_dropout.train()(src, lengths).states, plain)
