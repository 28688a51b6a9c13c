"""The chapter that follows one sentence to its context vector, with the recurrent model of `make demo`."""

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nmt.layers.attention.additive import AdditiveScore
from nmt.layers.attention.attention import ScoreAttention
from nmt.layers.attention.window import GlobalWindow
from nmt.layers.output import OutputLayer
from nmt.layers.recurrent import PlainStack, RecurrentStack
from nmt.models import reference
from nmt.models.recurrent.cell import BahdanauCell, maxout
from nmt.models.recurrent.encoder import RecurrentEncoder
from nmt.system.errors import ConfigError
from nmt.text.vocabulary import BOS_ID, EOS_ID
from nmt.translation.translator import Translator
from walkthrough import page

FILE = "walkthrough.md"


@dataclass(frozen=True)
class Walk:
    """One step of a translation, computed by the equations.

    Attributes:
        src: Source tokens with EOS.
        ids: Their ids.
        tgt: Tokens of the translation.
        x: Embedded source words, [S, E].
        h: Encoder states, [S, D].
        first: The first decoder state, s_0.
        s: The state before the step, s_{i-1}.
        y: The embedded word before the step, y_{i-1}.
        e: Scores, [S].
        a: Weights, [S].
        c: The context, [D].
        state: The state after the step, s_i.
        readout: What the output layer reads.
        p: Probabilities of the next word, [V].
    """

    src: list[str]
    ids: list[int]
    tgt: list[str]
    x: Tensor
    h: Tensor
    first: Tensor
    s: Tensor
    y: Tensor
    e: Tensor
    a: Tensor
    c: Tensor
    state: Tensor
    readout: Tensor
    p: Tensor


@torch.inference_mode()
def walk(translator: Translator, sentence: str, step: int) -> Walk:
    """Compute a step of the translation of a sentence.

    Raises:
        ConfigError: The model is not of the kind that the chapter is about, or there is no such step.
    """
    check(translator)
    model: Any = translator.model
    processor, encoder, decoder, cell = translator.processor, model.encoder, model.decoder, model.decoder.cell
    (tokens,) = translator.reader.tokenize([sentence])
    ids = [*processor.src_vocabulary.encode(tokens), EOS_ID]
    x = encoder.embedding.weight[torch.tensor(ids)]
    forward, backward = (gru_of(stack) for stack in encoder.layers[0])
    zeros = (x.new_zeros(encoder.layers[0][0].hidden_size),)
    h = torch.stack(reference.encode(list(x), forward, backward, zeros))
    size = len(zeros[0])
    projection = decoder.initial_state.projection
    read = h[0, size:] if projection.in_features == size else torch.cat([h[-1, :size], h[0, size:]])
    first = s = reference.initial_state(read, projection.weight, projection.bias)
    tgt = page.target_tokens(translator, sentence, step)
    words = [BOS_ID, *processor.tgt_vocabulary.encode(tgt)]
    score = cell.attention.score
    seen: dict[str, Tensor] = {}

    def attention(query: Tensor) -> tuple[Tensor, Tensor]:
        weights = score.query.weight, score.key.weight, score.energy.weight[0]
        seen["e"] = torch.stack([reference.additive(query, each, *weights) for each in h])
        return reference.attend(seen["e"], h)

    for number in range(step):
        y, before = decoder.embedding.weight[words[number]], s
        s, c, a, _ = reference.bahdanau_step(y, (before,), attention, gru_of(cell.recurrent))
    make = reference.maxout_readout if cell.activation is maxout else reference.bahdanau_readout
    readout = make(s, c, y, cell.output.weight, cell.output.bias)
    p = (decoder.output.weight @ readout + decoder.output.bias).softmax(dim=0)
    return Walk([*tokens, page.EOS], ids, tgt, x, h, first, before, y, seen["e"], a, c, s, readout, p)


def check(translator: Translator) -> None:
    """Check that a model is of the kind that the chapter is about.

    Raises:
        ConfigError: It is not.
    """
    model: Any = translator.model
    cell: Any = getattr(model.decoder, "cell", None)
    fits = isinstance(model.encoder, RecurrentEncoder) and isinstance(cell, BahdanauCell)
    if fits:
        stacks = [cell.recurrent, *itertools.chain(*model.encoder.layers)]
        fits = [(type(stack), stack.cell, stack.num_layers) for stack in stacks] == 3 * [(PlainStack, "gru", 1)]
    if fits:
        attention = cell.attention
        kinds = type(attention), type(attention.score), type(attention.window), type(model.decoder.output)
        fits = kinds == (ScoreAttention, AdditiveScore, GlobalWindow, OutputLayer)
        fits = fits and attention.heads.number == 1 and not attention.reads_own_past
    if not fits:
        raise ConfigError(
            "the chapter is about one layer of GRUs in Bahdanau's order with the additive score, without fixed norms"
        )


def gru_of(stack: RecurrentStack) -> reference.Step:
    """The GRU of a layer as a step of the equations."""
    assert isinstance(stack, PlainStack)
    weights = [getattr(stack.rnn, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]

    def step(x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (reference.gru_step(x, *state, *weights),)

    return step


@torch.inference_mode()
def write_chapter(translator: Translator, sentence: str, step: int) -> str:
    """The chapter as Markdown.

    Args:
        translator: The model.
        sentence: What is translated.
        step: Which word of the translation, from 1.

    Raises:
        ConfigError: See `walk`.
    """
    w = walk(translator, sentence, step)
    model: Any = translator.model
    rnn, score = model.encoder.layers[0][0].rnn, model.decoder.cell.attention.score
    # The first number of the first state, before which the state is 0.
    x_r, x_z, x_n = (rnn.weight_ih_l0 @ w.x[0] + rnn.bias_ih_l0).chunk(3)
    h_r, h_z, h_n = rnn.bias_hh_l0.chunk(3)
    r, z = torch.sigmoid(x_r + h_r)[0], torch.sigmoid(x_z + h_z)[0]
    best = int(w.a.argmax())
    return page.fill(
        "context_vector.md.jinja",
        translator,
        w=w,
        sentence=sentence,
        step=step,
        size=w.h.size(1) // 2,
        z=z,
        n=torch.tanh(x_n[0] + r * h_n[0]),
        backward=model.decoder.initial_state.source == "backward",
        best=best,
        query=score.query.weight @ w.s,
        key=score.key.weight @ w.h[best],
        v=score.energy.weight[0],
        difference=difference(w, translator, step),
    )


def difference(w: Walk, translator: Translator, step: int) -> float:
    """How far the equations are from what the model computes for the whole sentence at once."""
    ids = translator.processor.tgt_vocabulary.encode(w.tgt)
    src, lengths = torch.tensor([w.ids]), torch.tensor([len(w.ids)])
    output = translator.model.decoder(torch.tensor([[BOS_ID, *ids]]), translator.model.encode(src, lengths))
    p = translator.model.decoder.output(output.readouts)[0, step - 1].softmax(dim=0)
    return max(float((output.alignments[0, step - 1, 0] - w.a).abs().max()), float((p - w.p).abs().max()))
