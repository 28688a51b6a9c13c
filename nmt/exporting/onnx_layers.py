"""The layers of encoders and decoders, as ONNX operators.

In a decoder's step, each row has one query, and a memory of its own.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nmt.exporting.onnx_graph import DOUBLE, FLOAT, Port, Value
from nmt.layers.attention.additive import AdditiveScore
from nmt.layers.attention.attention import Attention, ScoreAttention
from nmt.layers.attention.window import PredictiveWindow
from nmt.layers.positions import PositionedEmbedding
from nmt.layers.recurrent import Connection, LayeredStack, PlainStack, RecurrentStack
from nmt.layers.self_attention import SelfAttention
from nmt.models.transformer.layer import FeedForward, Residual

LOWEST = torch.finfo(torch.float32).min
"""Score of positions that attention must not read."""
GATE_ORDER = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}
"""Where ONNX's gates are in torch's weights: input, output, forget and candidate; update, reset and candidate."""


def linear(inputs: Value, layer: Any) -> Value:
    """W x + b, or x itself without a layer: [..., K] -> [..., M]."""
    if not isinstance(layer, nn.Linear):
        return inputs
    product = inputs @ layer.weight.t()
    return product if layer.bias is None else product + layer.bias


def normalize(inputs: Value, layer: Any) -> Value:
    """Layer normalisation, or x itself without a layer: [..., D] -> [..., D]."""
    if not isinstance(layer, nn.LayerNorm):
        return inputs
    return inputs.op("LayerNormalization", layer.weight, layer.bias, axis=-1, epsilon=layer.eps)


def lookup(table: Tensor, ids: Value) -> Value:
    """Rows of a table: [V, E], [...] -> [..., E]."""
    return ids.graph.op("Gather", table, ids)[0]


def concat(*values: Value, axis: int) -> Value:
    """Values beside each other."""
    return values[0].op("Concat", *values[1:], axis=axis)


def zeros(like: Value, *shape: int, dtype: torch.dtype = torch.float32) -> Value:
    """As many rows of zeros as a value has, [R, *shape]."""
    rows = like.op("Shape", end=1).op("Concat", [1] * len(shape), axis=0)
    return like.graph.op("Expand", torch.zeros(1, *shape, dtype=dtype), rows)[0]


def positions(like: Value) -> Value:
    """The numbers of the places along the second axis of a value, from 0."""
    length = like.op("Shape", start=1, end=2).op("Squeeze", [0])
    return like.graph.op("Range", 0, length, 1)[0]


def embed(layer: PositionedEmbedding, ids: Value, places: Value) -> Value:
    """Words at places: [B, T] and [T], or [R] and [R]; sinusoids are computed in float64, as torch does."""
    if layer.learned is not None:
        vectors = lookup(layer.learned.weight, places) * layer.scale
    else:
        units = torch.arange(layer.words.embedding_dim)
        rates = 10_000.0 ** -((units - units % 2).double() / len(units))
        angles = places.unsqueeze(-1).cast(DOUBLE) * rates
        vectors = (angles + (units % 2).double() * (math.pi / 2)).op("Sin").cast(FLOAT)  # cos(x) = sin(x + pi / 2)
    return linear(lookup(layer.words.weight, ids) * layer.scale + vectors, layer.resize)


LayerWeights = Sequence[Tensor]
"""See `PlainStack.weights`."""


def layers_of(stack: RecurrentStack) -> Iterator[tuple[LayerWeights, Connection | None]]:
    """The layers of a stack, and the connection of each to the one below."""
    if isinstance(stack, LayeredStack):
        layers = (next(layers_of(layer))[0] for layer in stack.layers)
        yield from zip(layers, [None, *stack.connections], strict=True)
    else:
        assert isinstance(stack, PlainStack)
        yield from ((stack.weights(layer), None) for layer in range(stack.num_layers))


def add_residual(connection: Connection | None, below: Value, output: Value) -> Value:
    """See `Connection.leave`."""
    return below + output if connection and connection.residual else output


def recurrence(
    cell: str,
    directions: Sequence[LayerWeights],
    inputs: Value,
    lengths: Value | None = None,
    state: Sequence[Value | None] = (None,),
) -> list[Value]:
    """A layer in one or both directions, whose padding changes no state.

    Args:
        cell: `lstm`, `gru` or `rnn`.
        directions: The weights of each.
        inputs: [T, B, K].
        lengths: True lengths in int32, [B]; None if all have T.
        state: Before the first step, [directions, B, H] each; None is zeros.

    Returns:
        The outputs [T, directions, B, H], 0 on padding, and the last states [directions, B, H].
    """
    attributes = {"linear_before_reset": 1} if cell == "gru" else {}
    # Each weight of each direction with its gates in ONNX's order, then each weight of all directions.
    ordered = []
    for weights in directions:
        ordered.append([_reorder_gates(weight, GATE_ORDER[cell]) for weight in weights])
    by_input, by_hidden, *biases = [torch.stack(parts) for parts in zip(*ordered, strict=True)]
    return inputs.graph.op(
        cell.upper(),
        *(inputs, by_input, by_hidden, torch.cat(biases, dim=1), lengths, *state),
        outputs=3 if cell == "lstm" else 2,
        hidden_size=by_hidden.size(2),
        direction="bidirectional" if len(directions) > 1 else "forward",
        **attributes,
    )


def _reorder_gates(weight: Tensor, order: Sequence[int]) -> Tensor:
    """A weight or bias with its gates in another order, [gates * H, ...]."""
    gates = weight.chunk(len(order))
    return torch.cat([gates[number] for number in order])


def memorize(mechanism: Attention, states: Value, temperature: float = 1.0) -> tuple[Port, Port]:
    """The source as attention reads it; see `Attention.memorize`.

    Args:
        mechanism: The attention.
        states: Encoder states, [B, S, D].
        temperature: Of the softmax.

    Returns:
        Keys [B, heads, S, K], or [B, heads, K, S] if they are multiplied with queries, and by the factors of the scores
        now; and values [B, heads, S, d].
    """
    assert isinstance(mechanism, ScoreAttention)
    heads = mechanism.heads
    score = mechanism.score
    sizes = ("rows", mechanism.heads.number)
    keys, values = (
        linear(states, getattr(heads, name, None)).reshape(0, 0, heads.number, -1).transpose(0, 2, 1, 3)
        for name in ("key", "value")
    )
    keys = linear(keys, getattr(score, "key", None))
    value_port = Port(values, (*sizes, "src_length", heads.key_size))
    if isinstance(score, AdditiveScore):
        return Port(keys, (*sizes, "src_length", score.query.out_features)), value_port
    keys = keys.transpose(0, 1, 3, 2) * (getattr(score, "scale", 1.0) / temperature)
    return Port(keys, (*sizes, heads.query_size, "src_length")), value_port


def attend(
    mechanism: Attention, query: Value, keys: Value, values: Value, mask: Value, temperature: float = 1.0
) -> tuple[Value, Value]:
    """Attend from each row to its source; see `Attention.attend`.

    Args:
        mechanism: The attention.
        query: [R, Q].
        keys: See `memorize`.
        values: See `memorize`.
        mask: True at real tokens, [R, S].
        temperature: Of the softmax.

    Returns:
        Contexts [R, D] and alignments [R, heads, S].
    """
    assert isinstance(mechanism, ScoreAttention)
    heads = mechanism.heads
    score = mechanism.score
    window = mechanism.window
    queries = linear(query, getattr(heads, "query", None)).reshape(0, heads.number, 1, -1)
    if isinstance(score, AdditiveScore):
        hidden = (linear(queries, score.query) + keys).op("Tanh")  # [R, heads, S, A]
        scores = (hidden @ (score.energy.weight.t() / temperature)).transpose(0, 1, 3, 2)
    else:
        scores = queries @ keys  # [R, heads, 1, S]
    if isinstance(window, PredictiveWindow):
        share = linear(linear(query, window.hidden).op("Tanh"), window.position).op("Sigmoid")
        centres = share * mask.cast(FLOAT).op("ReduceSum", [1])  # [R, 1]
        distance = (positions(mask).cast(FLOAT) - centres) / float(window.radius)
        weights = softmax(scores, mask.op("And", distance.op("Abs").op("LessOrEqual", 1.0)))
        weights *= (distance * distance * -2.0).op("Exp").unsqueeze(1, 2)
    else:
        weights = softmax(scores, mask)
    contexts = (weights @ values).reshape(0, -1)  # [R, heads, 1, d] -> [R, heads * d]
    return linear(contexts, getattr(heads, "output", None)), weights.op("Squeeze", [2])


def softmax(scores: Value, allowed: Value) -> Value:
    """Weights [B, heads, T, S], 0 where a mask [B, S] is False."""
    return scores.graph.op("Where", allowed.unsqueeze(1, 2), scores, LOWEST)[0].op("Softmax", axis=-1)


def read_all(layer: SelfAttention, inputs: Value, mask: Value) -> Value:
    """Every word reads all; see `SelfAttention.forward`: [B, S, D] and [B, S] -> [B, S, D]."""
    parts = (part.reshape(0, 0, layer.num_heads, -1) for part in _project(layer, inputs))  # [B, S, heads, d]
    orders = (0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)
    queries, keys, values = (part.transpose(*order) for part, order in zip(parts, orders, strict=True))
    contexts = softmax(queries @ keys, mask) @ values  # [B, heads, S, d]
    return linear(contexts.transpose(0, 2, 1, 3).reshape(0, 0, -1), layer.output)


def read_prefix(layer: SelfAttention, inputs: Value, keys: Value, values: Value) -> tuple[Value, Value, Value]:
    """One word reads itself and those before: [R, D], keys [R, heads, d, n] and values [R, heads, n, d] of those.

    Returns:
        [R, D], and keys and values with the word's own.
    """
    query, key, value = _project(layer, inputs)
    keys = concat(keys, key.reshape(0, layer.num_heads, -1, 1), axis=3)
    values = concat(values, value.reshape(0, layer.num_heads, 1, -1), axis=2)
    weights = (query.reshape(0, layer.num_heads, 1, -1) @ keys).op("Softmax", axis=-1)
    return linear((weights @ values).reshape(0, -1), layer.output), keys, values


def _project(layer: SelfAttention, inputs: Value) -> tuple[Value, Value, Value]:
    """Queries, multiplied by the scale, keys and values of all heads, [..., D] each."""
    projected = linear(inputs, layer.project)
    queries, keys, values = inputs.graph.op("Split", projected, outputs=3, axis=-1, num_outputs=3)
    return queries * layer.scale, keys, values


def enter(residual: Residual, inputs: Value) -> Value:
    """See `Residual.enter`."""
    return normalize(inputs, residual.norm) if residual.pre else inputs


def leave(residual: Residual, inputs: Value, outputs: Value) -> Value:
    """See `Residual.leave`."""
    return inputs + outputs if residual.pre else normalize(inputs + outputs, residual.norm)


def feed_forward(layer: FeedForward, inputs: Value) -> Value:
    """See `FeedForward`: [..., D] -> [..., D]."""
    activation = "Relu" if isinstance(layer.activation, nn.ReLU) else "Gelu"
    hidden = linear(enter(layer.residual, inputs), layer.inner).op(activation)
    return leave(layer.residual, inputs, linear(hidden, layer.outer))
