"""Encoders and decoders as ONNX graphs: from sources to memory and first state, and one step of the decoder."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, assert_never

import torch

from nmt.config import Config
from nmt.exporting import onnx_layers as layers
from nmt.exporting.onnx_graph import BOOL, FLOAT, INT32, INT64, Graph, Port, Value
from nmt.layers.output import SHORTEST, FixedNorm, OutputLayer
from nmt.layers.recurrent import LayeredStack
from nmt.models.recurrent.decoder import RecurrentDecoder
from nmt.models.recurrent.encoder import RecurrentEncoder
from nmt.models.seq2seq import Seq2Seq
from nmt.models.transformer.decoder import TransformerDecoder
from nmt.models.transformer.encoder import SelfAttentionEncoder
from nmt.runtimes.onnx_searcher import NEXT
from nmt.text.vocabulary import BOS_ID, PAD_ID

Ports = dict[str, Port]
Values = Mapping[str, Value]
"""Values by the names of inputs."""


class EncodedSource(NamedTuple):
    """The values that decoders start with; see `EncoderOutput`. Last states are [B, D], one or two for each layer."""

    states: Value
    mask: Value
    final_state: Value | None = None
    backward_state: Value | None = None
    last_states: Sequence[Sequence[Value]] = ()


def build_graphs(model: Seq2Seq, config: Config) -> tuple[Graph, Graph]:
    """Build the graphs of a model without obstacles.

    The encoder's inputs are `src` [rows, src_length], ids that end in EOS, and their true `lengths` [rows]; its outputs
    are memory and first state. The inputs of a step are the last `words` [rows], memory and state; its outputs are
    `log_probs` [rows, vocabulary], -inf for PAD and BOS, `alignment` [rows, heads, src_length] and the next state.
    """
    encode = ENCODERS[config.model.encoder.kind]
    decoder = DECODERS[config.model.decoder.kind](model.decoder, config)

    encoder_graph = Graph("encoder")
    src = encoder_graph.input("src", ("rows", "src_length"), INT64)
    lengths = encoder_graph.input("lengths", ("rows",), INT64)
    mask = layers.positions(src).op("Less", lengths.unsqueeze(1))
    memory, state = decoder.start(encode(model.encoder, src, lengths, mask))
    encoder_graph.outputs |= memory | state

    # A step reads all that the encoder's graph gave, and the last words.
    step_graph = Graph("decoder")
    words = step_graph.input("words", ("rows",), INT64)
    given = {}
    for name, (_, shape, number_format) in encoder_graph.outputs.items():
        given[name] = step_graph.input(name, shape, number_format)
    readout, alignment, next_state = decoder.step(words, given)
    log_probs = _log_probs(model.decoder.output, readout)
    step_graph.outputs["log_probs"] = Port(log_probs, ("rows", "vocabulary"))
    step_graph.outputs["alignment"] = Port(alignment, ("rows", "heads", "src_length"))
    for name, (_, shape, number_format) in state.items():
        # The past of a Transformer grows by the word that the step has read.
        next_shape = ["past_and_word" if size == "past" else size for size in shape]
        step_graph.outputs[NEXT + name] = Port(next_state[name], next_shape, number_format)
    return encoder_graph, step_graph


def _log_probs(layer: OutputLayer, readout: Value) -> Value:
    """See `Seq2SeqStepper.step`."""
    rows = readout.graph.op("Identity", layer.weight)[0]  # the embedding's own if it is tied
    if isinstance(layer.stretch, FixedNorm):
        readout = _unit(readout) * layer.stretch.norm
        rows = _unit(rows)
    impossible = torch.zeros(layer.out_features)
    impossible[[PAD_ID, BOS_ID]] = -torch.inf
    return readout.op("Gemm", rows, layer.bias, transB=1).op("LogSoftmax", axis=-1) + impossible


def _unit(vectors: Value) -> Value:
    """See `nmt.layers.output.unit`; values that are made of constants are computed when a graph is loaded."""
    return vectors / vectors.op("ReduceL2", [1]).op("Max", SHORTEST)


def encode_recurrent(encoder: RecurrentEncoder, src: Value, lengths: Value, mask: Value) -> EncodedSource:
    """See `RecurrentEncoder.forward`."""
    outputs = layers.lookup(encoder.embedding.weight, src)
    last_states = []
    for directions, connection in zip(encoder.layers, encoder.connections, strict=True):
        weights = [next(layers.layers_of(direction))[0] for direction in directions]
        inputs = layers.normalize(outputs, connection.norm).transpose(1, 0, 2)
        states, *last = layers.recurrence(directions[0].cell, weights, inputs, lengths.cast(INT32))
        joined = states.transpose(2, 0, 1, 3).reshape(0, 0, -1)  # [S, directions, B, H] -> [B, S, D]
        outputs = layers.add_residual(connection, outputs, joined)
        last_states.append([part.transpose(1, 0, 2).reshape(0, -1) for part in last])
    outputs *= mask.cast(FLOAT).unsqueeze(2)
    size = encoder.output_size - encoder.backward_size
    forward_state = outputs.op("GatherND", (lengths - 1).unsqueeze(1), batch_dims=1).op("Slice", [0], [size], [1])
    backward_state = outputs.op("Gather", 0, axis=1).op("Slice", [size], [encoder.output_size], [1])
    final_state = layers.concat(forward_state, backward_state, axis=1)
    return EncodedSource(outputs, mask, final_state, backward_state, last_states)


def encode_self_attention(encoder: SelfAttentionEncoder, src: Value, lengths: Value, mask: Value) -> EncodedSource:
    """See `SelfAttentionEncoder.forward`."""
    states = layers.embed(encoder.embedding, src, layers.positions(src))
    for layer in encoder.layers:
        read = layers.read_all(layer.attention, layers.enter(layer.residual, states), mask)
        states = layers.feed_forward(layer.feed_forward, layers.leave(layer.residual, states, read))
    return EncodedSource(layers.normalize(states, encoder.norm) * mask.cast(FLOAT).unsqueeze(2), mask)


class RecurrentGraph:
    """A recurrent decoder: its state are the layers' states and, with input feeding, the last readout."""

    def __init__(self, decoder: RecurrentDecoder, config: Config) -> None:
        self.decoder = decoder
        self.cell = decoder.cell
        self.section: Any = config.model.decoder
        stack = decoder.cell.recurrent
        parts = ("hidden", "cell")
        self.names = [[f"{part}_{n}" for part in parts[: stack.num_states]] for n in range(stack.num_layers)]
        self.attention = decoder.cell.attention
        self.temperature = config.model.attention.normalizer.temperature

    def start(self, encoded: EncodedSource) -> tuple[Ports, Ports]:
        """Memory and first state; see `Decoder.start`."""
        keys, values = layers.memorize(self.attention, encoded.states, self.temperature)
        memory = {"mask": Port(encoded.mask, ("rows", "src_length"), BOOL), "keys": keys, "values": values}
        initial = self.decoder.initial_state
        size = self.cell.recurrent.hidden_size
        feedback = self.cell.feedback_size
        names = [name for parts in zip(*self.names, strict=True) for name in parts]
        if initial.source == "copy":
            states = [state for parts in zip(*encoded.last_states, strict=True) for state in parts]
        elif initial.projection is None:
            states = [layers.zeros(encoded.mask, size) for _ in names]
        else:
            source = encoded.backward_state if initial.source == "backward" else encoded.final_state
            assert source is not None
            projected = layers.linear(source, initial.projection).op("Tanh")
            states = source.graph.op("Split", projected, outputs=len(names), axis=1, num_outputs=len(names))
        state = {name: Port(value, ("rows", size)) for name, value in zip(names, states, strict=True)}
        if feedback:
            state["feedback"] = Port(layers.zeros(encoded.mask, feedback), ("rows", feedback))
        return memory, state

    def step(self, words: Value, given: Values) -> tuple[Value, Value, Values]:
        """Readouts, alignments and new state; see `BahdanauCell` and `LuongCell`."""
        embedded = layers.lookup(self.decoder.embedding.weight, words)
        if self.section.order == "bahdanau":
            context, alignment = self._attend(given[self.names[self.cell.query_layer][0]], given)
            outputs, state = self._update(embedded, context, given)
            return self._read(outputs[-1], context, embedded), alignment, state
        outputs, state = self._update(embedded, given.get("feedback"), given)
        context, alignment = self._attend(outputs[self.cell.query_layer], given)
        readout = self._read(context, outputs[-1])
        return readout, alignment, state | {"feedback": readout}

    def _attend(self, query: Value, given: Values) -> tuple[Value, Value]:
        return layers.attend(self.attention, query, given["keys"], given["values"], given["mask"], self.temperature)

    def _update(self, embedded: Value, extra: Value | None, given: Values) -> tuple[list[Value], dict[str, Value]]:
        """One step of all layers: their outputs, and their states by name."""
        stack = self.cell.recurrent
        all_read_extra = isinstance(stack, LayeredStack) and stack.extra_to_all
        outputs: list[Value] = []
        state: dict[str, Value] = {}
        below = embedded
        for number, (weights, connection) in enumerate(layers.layers_of(stack)):
            inputs = layers.normalize(below, connection and connection.norm)
            if extra and (number == 0 or all_read_extra):
                inputs = layers.concat(inputs, extra, axis=1)
            # The operator of ONNX runs whole sequences: here they have one step, [R, H] -> [1, R, H] and back.
            names = self.names[number]
            last_state = [given[name].unsqueeze(0) for name in names]
            _, *new_state = layers.recurrence(stack.cell, [weights], inputs.unsqueeze(0), state=last_state)
            for name, part in zip(names, new_state, strict=True):
                state[name] = part.op("Squeeze", [0])
            hidden = state[names[0]]
            below = layers.add_residual(connection, below, hidden)
            outputs.append(below)
        return outputs, state

    def _read(self, *parts: Value) -> Value:
        """See `make_readout`."""
        layer = layers.linear(layers.concat(*parts, axis=1), self.cell.output)
        match self.section.readout:
            case "plain":
                return layer.op("Tanh")
            case "maxout":
                return layer.reshape(0, -1, 2).op("ReduceMax", [2], keepdims=0)
            case "state":
                return parts[0]
            case "linear":
                return layer
        assert_never(self.section.readout)


class TransformerGraph:
    """A Transformer's decoder: its state are the next position, and keys and values of the words so far."""

    def __init__(self, decoder: TransformerDecoder, config: Config) -> None:
        self.decoder = decoder
        self.size = decoder.size

    def start(self, encoded: EncodedSource) -> tuple[Ports, Ports]:
        """Memory and first state; see `Decoder.start`."""
        memory = {"mask": Port(encoded.mask, ("rows", "src_length"), BOOL)}
        state = {"position": Port(layers.zeros(encoded.mask, dtype=torch.int64), ("rows",), INT64)}
        for n, layer in enumerate(self.decoder.layers):
            keys, values = layers.memorize(layer.attention, encoded.states)
            memory |= {f"source_keys_{n}": keys, f"source_values_{n}": values}
            state |= self.start_history(n, layer.history, encoded.mask)
        return memory, state

    def step(self, words: Value, given: Values) -> tuple[Value, Value, Values]:
        """Readouts, alignments and new state; see `TransformerDecoder.advance`."""
        rows = layers.embed(self.decoder.embedding, words, given["position"])
        alignments = []
        state = {"position": given["position"] + 1}
        for n, layer in enumerate(self.decoder.layers):
            read, history = self.read_history(n, layer.history, layers.enter(layer.history_residual, rows), given)
            rows = layers.leave(layer.history_residual, rows, read)
            memory = given[f"source_keys_{n}"], given[f"source_values_{n}"], given["mask"]
            context, alignment = layers.attend(layer.attention, layers.enter(layer.attention_residual, rows), *memory)
            rows = layers.feed_forward(layer.feed_forward, layers.leave(layer.attention_residual, rows, context))
            state |= history
            alignments.append(alignment)
        norm, resize = self.decoder.readout
        return layers.linear(layers.normalize(rows, norm), resize), alignments[self.decoder.aligned], state

    def start_history(self, n: int, layer: Any, like: Value) -> Ports:
        """The state of a layer before the first word, with the rows of another value; see `History.start`."""
        heads = layer.attention.num_heads
        size = self.size // layer.attention.num_heads
        return {
            f"keys_{n}": Port(layers.zeros(like, heads, size, 0), ("rows", heads, size, "past")),
            f"values_{n}": Port(layers.zeros(like, heads, 0, size), ("rows", heads, "past", size)),
        }

    def read_history(self, n: int, layer: Any, inputs: Value, given: Values) -> tuple[Value, Values]:
        """The output and the new state of a layer; see `History.step`."""
        outputs, keys, values = layers.read_prefix(layer.attention, inputs, given[f"keys_{n}"], given[f"values_{n}"])
        return outputs, {f"keys_{n}": keys, f"values_{n}": values}


class SSRUGraph(TransformerGraph):
    """A Transformer's decoder whose layers keep one vector of the words so far."""

    def start_history(self, n: int, layer: Any, like: Value) -> Ports:
        """See `SSRU.start`."""
        return {f"cell_{n}": Port(layers.zeros(like, self.size), ("rows", self.size))}

    def read_history(self, n: int, layer: Any, inputs: Value, given: Values) -> tuple[Value, Values]:
        """See `SSRU.step`."""
        gate = layers.linear(inputs, layer.forget).op("Sigmoid")
        candidate = layers.linear(inputs, layer.candidate)
        cell = gate * (given[f"cell_{n}"] - candidate) + candidate
        return cell.op("Relu"), {f"cell_{n}": cell}


ENCODERS: Mapping[str, Callable[[Any, Value, Value, Value], EncodedSource]] = {
    "recurrent": encode_recurrent,
    "self_attention": encode_self_attention,
}
DECODERS: Mapping[str, Callable[[Any, Config], RecurrentGraph | TransformerGraph]] = {
    "recurrent": RecurrentGraph,
    "transformer": TransformerGraph,
    "ssru": SSRUGraph,
}
