"""A whole model computed by the equations of `nmt.models.reference` alone: one sentence, one step at a time."""

import itertools
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from nmt.layers.attention.additive import AdditiveScore
from nmt.layers.attention.attention import Attention, FixedContext, ScoreAttention
from nmt.layers.attention.cosine import SHARPNESS, CosineScore
from nmt.layers.attention.dot import DotScore
from nmt.layers.attention.general import GeneralScore
from nmt.layers.attention.heads import MultiHead
from nmt.layers.attention.location import LocationScore
from nmt.layers.attention.normalizer import HardChoice
from nmt.layers.attention.past import Coverage, LocationFeatures
from nmt.layers.attention.scaled_dot import ScaledDotScore
from nmt.layers.attention.window import MonotonicWindow, PredictiveWindow
from nmt.layers.output import FixedNormOutput
from nmt.layers.recurrent import LayeredStack, NormalizedLayer, PlainStack, RecurrentStack
from nmt.models import reference
from nmt.models.recurrent.cell import BahdanauCell, LuongCell, maxout
from nmt.models.reference import Norm, Step
from nmt.models.seq2seq import Seq2Seq
from nmt.text.vocabulary import BOS_ID, EOS_ID


def norm_of(module: nn.Module) -> Norm:
    return partial(reference.layer_norm, g=module.weight, b=module.bias)


def steps_of(stack: RecurrentStack) -> list[Step]:
    """The step of each layer, from its input and state to its new state."""
    if isinstance(stack, LayeredStack):
        return [step for layer in stack.layers for step in steps_of(layer)]
    if isinstance(stack, NormalizedLayer):
        W, U = stack.weight_input, stack.weight_hidden
        norm_x, norm_h = ([norm_of(norm) for norm in norms] for norms in (stack.input_norms, stack.hidden_norms))
        if stack.cell == "gru":
            return [lambda x, state: (reference.normalized_gru_step(x, *state, W, U, norm_x, norm_h),)]
        if stack.cell == "rnn":
            return [lambda x, state: (reference.normalized_rnn_step(x, *state, W, U, norm_x[0], norm_h[0]),)]
        norms = norm_x[0], norm_h[0], norm_of(stack.cell_norm[0])
        return [lambda x, state: reference.normalized_lstm_step(x, *state, W, U, *norms)]
    assert isinstance(stack, PlainStack)
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = [[getattr(stack.rnn, f"{name}_l{n}") for name in names] for n in range(stack.num_layers)]
    if stack.cell in ("gru", "rnn"):
        equation = {"gru": reference.gru_step, "rnn": reference.rnn_step}[stack.cell]
        return [lambda x, state, w=w: (equation(x, *state, *w),) for w in weights]
    return [lambda x, state, w=w: reference.lstm_step(x, *state, *w[:2], w[2] + w[3]) for w in weights]


NORM = 3.0
"""The fixed norm of the models that have one."""

States = list[tuple[Tensor, ...]]


def step_layers(stack: RecurrentStack, x: Tensor, states: States) -> tuple[list[Tensor], States]:
    """One step of all layers: the output and the new state of each (Wu et al., 2016, section 3.1)."""
    outputs: list[Tensor] = []
    new: States = []
    read, extra = x, x[stack.input_size :]
    for number, step in enumerate(steps_of(stack)):
        if number:
            read = outputs[-1]
            if isinstance(stack, LayeredStack):
                connection = stack.connections[number - 1]
                read = norm_of(connection.norm)(read) if isinstance(connection.norm, nn.LayerNorm) else read
                read = torch.cat([read, extra]) if stack.extra_to_all else read
        new.append(step(read, states[number]))
        residual = number and isinstance(stack, LayeredStack) and stack.connections[number - 1].residual
        outputs.append(outputs[-1] + new[-1][0] if residual else new[-1][0])
    return outputs, new


def encode(model: Seq2Seq, ids: list[int]) -> tuple[Tensor, Tensor, States]:
    """Encoder states [S, D], the final state [D] and, of every layer, the last state of all directions, [D] each."""
    encoder = model.encoder
    h, lasts = list(encoder.embedding.weight[torch.tensor(ids)]), []
    for layer, connection in zip(encoder.layers, encoder.connections, strict=True):
        read = [norm_of(connection.norm)(x) for x in h] if isinstance(connection.norm, nn.LayerNorm) else h
        steps = [steps_of(stack)[0] for stack in layer]
        zeros = tuple(part[0, 0] for part in layer[0].zero_state(1, h[0]))
        ends = []
        for step, xs in zip(steps, (read, read[::-1]), strict=False):
            state = zeros
            for x in xs:
                state = step(x, state)
            ends.append(state)
        lasts.append(tuple(torch.cat(parts) for parts in zip(*ends, strict=True)))
        outputs = reference.encode(read, *steps, zeros) if len(steps) == 2 else reference.run(steps[0], read, zeros)
        h = [x + output for x, output in zip(h, outputs, strict=True)] if connection.residual else outputs
        size = len(zeros[0])
    return torch.stack(h), torch.cat([h[-1][:size], h[0][size:]]), lasts


class ByEquation:
    """An attention mechanism reading one sentence, with what it remembers of its past.

    Args:
        attention: The mechanism.
        states: Encoder states, [S, D].
        final: The encoder's final state, [D].
        normalize: Maps scores to weights, if not by the softmax.
    """

    def __init__(
        self, attention: Attention, states: Tensor, final: Tensor, normalize: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        self.attention = attention
        self.states = states
        self.final = final
        self.normalize = normalize
        self.alignments: list[Tensor] = []

    def __call__(self, query: Tensor) -> tuple[Tensor, Tensor]:
        """Context [D] and alignment [heads, S]."""
        if isinstance(self.attention, FixedContext):
            return self.final, self.states.new_zeros(1, len(self.states))
        assert isinstance(self.attention, ScoreAttention)
        heads, parts = self.attention.heads, [(query, self.states, self.states)]
        if isinstance(heads, MultiHead):  # Vaswani et al., 2017, section 3.2.2
            q, k, v = heads.query.weight @ query, self.states @ heads.key.weight.T, self.states @ heads.value.weight.T
            parts = list(zip(q.chunk(heads.number), k.chunk(heads.number, 1), v.chunk(heads.number, 1), strict=True))
        found = [self._head(query, *part) for part in parts]
        context, alignment = torch.cat([c for c, _ in found]), torch.stack([a for _, a in found])
        self.alignments.append(alignment[0])
        return heads.output.weight @ context if isinstance(heads, MultiHead) else context, alignment

    def _head(self, query: Tensor, q: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        attention, length = self.attention, len(keys)
        centre, inside = None, list(range(length))
        if isinstance(attention.window, MonotonicWindow):
            centre = reference.monotonic_centre(len(self.alignments), length)
        if isinstance(attention.window, PredictiveWindow):
            window = attention.window
            centre = reference.predicted_centre(query, length, window.hidden.weight, window.position.weight[0])
        if centre is not None:
            inside = reference.window(length, float(torch.as_tensor(centre).detach()), attention.window.radius)
        scores = self._scores(q, keys)[inside]
        _, a = reference.attend(scores, values[inside])
        a = a if self.normalize is None else self.normalize(scores)
        if isinstance(attention.window, PredictiveWindow):
            a = reference.gaussian(a, torch.tensor(inside), centre, attention.window.radius)
        alignment = values.new_zeros(length).index_put((torch.tensor(inside),), a)
        if isinstance(attention.normalize, HardChoice):  # Xu et al., 2015, section 4.1: the likeliest position
            alignment = torch.eye(length, dtype=values.dtype)[int(alignment.argmax())]
        return alignment @ values, alignment

    def _scores(self, q: Tensor, keys: Tensor) -> Tensor:
        score = self.attention.score
        if isinstance(score, LocationScore):
            rows = reference.location(q, score.position.weight)[: len(keys)]
            return torch.cat([rows, rows.new_full((len(keys) - len(rows),), -1e300)])
        features = self._features()
        if isinstance(score, AdditiveScore):
            W, U, v = score.query.weight, score.key.weight, score.energy.weight[0]
            terms = features[0] @ score.feature.weight.T if features else [0.0] * len(keys)
            return torch.stack([reference.additive(q, h, W, U, v, Vf) for h, Vf in zip(keys, terms, strict=True)])
        equations = {
            DotScore: reference.dot,
            ScaledDotScore: reference.scaled_dot,
            GeneralScore: lambda q, h: reference.general(q, h, score.key.weight),
            CosineScore: lambda q, h: reference.cosine(q, h, SHARPNESS * score.log_sharpness[0].exp()),
        }
        if type(score) in equations:
            return torch.stack([equations[type(score)](q, h) for h in keys])
        # A score without an equation in the reference is compared with itself, for one sentence and one query.
        return score(q[None, None], score.project_keys(keys[None]), *(each[None, None] for each in features))[0, 0]

    def _features(self) -> tuple[Tensor, ...]:
        """What the score reads of past alignments: none, or [S, F]."""
        past, zeros = self.attention.past, self.states.new_zeros(len(self.states))
        if isinstance(past, Coverage):
            return (sum(self.alignments, zeros).unsqueeze(1),)
        if isinstance(past, LocationFeatures):
            last = self.alignments[-1] if self.alignments else zeros
            return (reference.location_features(last, past.convolution.weight[:, 0]),)
        return ()


def first_states(model: Seq2Seq, final: Tensor, lasts: States) -> States:
    """The state of each layer before the first word."""
    if model.decoder.initial_state.source == "copy":
        return lasts
    layer, recurrent = model.decoder.initial_state, model.decoder.cell.recurrent
    shape = recurrent.num_states, recurrent.num_layers, recurrent.hidden_size
    if layer.projection is None:
        made = final.new_zeros(shape)
    else:
        read = final[len(final) // 2 :] if layer.projection.in_features < len(final) else final
        made = reference.initial_state(read, layer.projection.weight, layer.projection.bias).view(shape)
    return list(zip(*made, strict=True))


class Layers:
    """The recurrent layers of a decoder as the `Step` of the reference's orders.

    Its state is the output of the top layer, followed by the states of all layers. `query` is what a deep decoder
    attends with, where that is not the output of the top layer: in Bahdanau's order it is without the residual
    connection, and in both orders it may be that of the first layer (Wu et al., 2016, section 3).
    """

    query: Tensor | None

    def __init__(self, cell: BahdanauCell | LuongCell) -> None:
        self.cell = cell

    def join(self, outputs: list[Tensor], states: States) -> tuple[Tensor, ...]:
        queries = [state[0] for state in states] if isinstance(self.cell, BahdanauCell) else outputs
        query = queries[self.cell.query_layer]
        self.query = None if query is outputs[-1] else query
        return outputs[-1], *itertools.chain(*states)

    def __call__(self, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        stack = self.cell.recurrent
        states = [state[1 + n * stack.num_states :][: stack.num_states] for n in range(stack.num_layers)]
        return self.join(*step_layers(stack, x, states))


def decode(
    model: Seq2Seq, src: list[int], tgt: list[int], normalize: Callable[[Tensor], Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Logits [T, V] and alignments [T, heads, S] of a pair without its special tokens; T and S count EOS."""
    h, final, lasts = encode(model, [*src, EOS_ID])
    decoder, cell = model.decoder, model.decoder.cell
    assert isinstance(cell, BahdanauCell | LuongCell)
    by_equation, layers = ByEquation(cell.attention, h, final, normalize), Layers(cell)
    W = getattr(cell.output, "weight", None)
    states = first_states(model, final, lasts)
    state = layers.join([state[0] for state in states], states)
    feedback = h.new_zeros(cell.feedback_size) if cell.feedback_size else None

    def attention(query: Tensor) -> tuple[Tensor, Tensor]:
        return by_equation(query if layers.query is None else layers.query)

    logits, alignments = [], []
    for word in [BOS_ID, *tgt]:
        y = decoder.embedding.weight[word]
        if isinstance(cell, BahdanauCell):
            s, c, alignment, state = reference.bahdanau_step(y, state, attention, layers)
            if W is None:  # linear, or the state alone
                readout = torch.cat([s, c, y]) if isinstance(cell.activation, nn.Identity) else s
            else:
                of = reference.maxout_readout if cell.activation is maxout else reference.bahdanau_readout
                readout = of(s, c, y, W, cell.output.bias)
        else:
            readout, alignment, state = reference.luong_step(y, state, attention, layers, W, feedback)
            feedback = None if feedback is None else readout
        rows = decoder.output.weight
        if isinstance(decoder.output, FixedNormOutput):
            rows = torch.stack([reference.fixed_norm(row, NORM) for row in rows])
            readout = reference.fixed_norm(readout, NORM)
        logits.append(rows @ readout + decoder.output.bias)
        alignments.append(alignment)
    return torch.stack(logits), torch.stack(alignments)
