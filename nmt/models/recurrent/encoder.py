"""Recurrent encoder: the fast form of `nmt.models.reference.encode`."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt.config import RecurrentEncoderSection
from nmt.layers.embedding import embed
from nmt.layers.kernels.dropout import Dropout
from nmt.layers.kernels.reversal import reorder
from nmt.layers.recurrent import Connection, PlainStack, RecurrentStack, RecurrentState, single_layer
from nmt.models.base import Encoder, EncoderDropout, EncoderOutput


class RecurrentEncoder(Encoder):
    """GRU or LSTM layers over embedded source tokens, in one or both directions (Bahdanau et al., 2015, A.2.1).

    Padding never changes a state: the backward direction reverses each sentence within its own length, so that padding
    comes last in both directions.

    Args:
        section: The layers, their connections and directions.
        embedding: Source embedding; may be shared.
        dropout: Where units are dropped.
        with_last_states: True if the output has the last states of every layer; somewhat slower.
    """

    def __init__(
        self, section: RecurrentEncoderSection, embedding: nn.Embedding, dropout: EncoderDropout, with_last_states: bool
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.output_size = self.final_size = section.output_size
        self.backward_size = section.hidden_size if section.bidirectional else 0
        sizes = [embedding.embedding_dim] + [self.output_size] * (section.num_layers - 1)
        directions = 2 if section.bidirectional else 1
        self.layers: Sequence[Sequence[RecurrentStack]] = nn.ModuleList(  # type: ignore[assignment]
            nn.ModuleList(single_layer(section, size) for _ in range(directions)) for size in sizes
        )
        first = Connection(section, embedding.embedding_dim, dropout.embedding, first=True)
        self.connections: Sequence[Connection] = nn.ModuleList(  # type: ignore[assignment]
            [first, *(Connection(section, size, dropout.inner) for size in sizes[1:])]
        )
        self.output_dropout = Dropout(dropout.output)
        self.run: Callable[..., tuple[Tensor, RecurrentState]] = _run_packed if with_last_states else _run

    def forward(self, src: Tensor, lengths: Tensor, cut: Tensor | None = None) -> EncoderOutput:
        """See `Encoder.forward`."""
        lengths = lengths.to(src.device, non_blocking=True)
        positions = torch.arange(src.size(1), device=src.device)
        mask = positions < lengths.unsqueeze(1)  # [B, S]
        # Position of each token after reversing the sentence without its padding; its own inverse, [B, S].
        reverse = torch.where(mask, lengths.unsqueeze(1) - 1 - positions, positions)
        # The same as indices of the rows of all sentences below one another, [B * S].
        first_rows = src.size(1) * torch.arange(len(src), device=src.device).unsqueeze(1)
        order = (reverse + first_rows).flatten()
        outputs = embed(self.embedding, src, cut)  # [B, S, E]
        last_states: list[list[Tensor]] = []
        for layer, connection in zip(self.layers, self.connections, strict=True):
            inputs = connection.enter(outputs)
            forward_outputs, forward_last = self.run(inputs, lengths, layer[0], None)
            directed_outputs = [forward_outputs]
            directed_last = [forward_last]
            if len(layer) > 1:
                backward_outputs, backward_last = self.run(inputs, lengths, layer[1], order)
                directed_outputs.append(backward_outputs)
                directed_last.append(backward_last)
            # Of each direction [B, S, H], joined to [B, S, D], and 0 on padding.
            joined = torch.cat(directed_outputs, dim=-1)
            outputs = connection.leave(outputs, joined) * mask.unsqueeze(2)
            # The parts of the last states, as h and c of an LSTM, of both directions: [1, B, D] each.
            last_states.append([torch.cat(parts, dim=-1) for parts in zip(*directed_last, strict=True)])
        end = (lengths - 1).view(-1, 1, 1)
        forward_size = self.output_size - self.backward_size
        # The last state of the forward direction, and that of the backward direction at the first word.
        forward_state = outputs[..., :forward_size].take_along_dim(end, dim=1).squeeze(1)
        backward_state = outputs[:, 0, forward_size:]
        final_state = torch.cat([forward_state, backward_state], dim=-1)
        all_last = tuple(torch.cat(parts) for parts in zip(*last_states, strict=True))  # [L, B, D] each
        return EncoderOutput(self.output_dropout(outputs), mask, lengths, final_state, backward_state, all_last)


def _reorder(sequences: Tensor, order: Tensor | None) -> Tensor:
    """Reorder the flattened rows of [B, S, D] by `order` [B * S]; None leaves them."""
    return sequences if order is None else reorder(sequences.flatten(0, 1), order).view_as(sequences)


def _run(inputs: Tensor, lengths: Tensor, layer: RecurrentStack, order: Tensor | None) -> tuple[Tensor, RecurrentState]:
    """The outputs of one direction of a layer, [B, S, H]; no last state, which is that after the padding."""
    outputs, _ = layer(_reorder(inputs, order), layer.zero_state(inputs.size(0), inputs))
    return _reorder(outputs[-1], order), ()


def _run_packed(
    inputs: Tensor, lengths: Tensor, layer: PlainStack, order: Tensor | None
) -> tuple[Tensor, RecurrentState]:
    """The outputs of one direction of a layer, and its state after the last word of each sentence, [1, B, H] each."""
    packed = pack_padded_sequence(_reorder(inputs, order), lengths.cpu(), batch_first=True, enforce_sorted=False)
    outputs, last = layer.rnn(packed)
    padded, _ = pad_packed_sequence(outputs, batch_first=True, total_length=inputs.size(1))
    return _reorder(padded, order), last if isinstance(last, tuple) else (last,)
