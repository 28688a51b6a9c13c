"""Write the chapter that follows one sentence to its context vector, with the numbers of a trained model.

Usage: python scripts/write_walkthrough.py [--model runs/demo] [--sentence TEXT] [--step N] [--output FILE.md]

The model is that of `make demo`. Every number is computed by the equations of `nmt/models/reference.py`, whose lines
stand beside it, and compared with what the model itself computes.
"""

import argparse
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from benchmarks.tables import markdown
from torch import Tensor

from nmt.layers.attention.additive import AdditiveScore
from nmt.layers.attention.attention import ScoreAttention
from nmt.layers.attention.window import GlobalWindow
from nmt.layers.output import OutputLayer
from nmt.layers.recurrent import PlainStack, RecurrentStack
from nmt.models import reference
from nmt.models.recurrent.cell import BahdanauCell, maxout
from nmt.models.recurrent.encoder import RecurrentEncoder
from nmt.system.errors import ConfigError, NmtError
from nmt.system.files import write_text
from nmt.text.vocabulary import BOS_ID, EOS_ID
from nmt.translation.loading import open_translator
from nmt.translation.translator import Translator

SENTENCE = "The old woman reads a book."
SHOWN = 4
"""Shown numbers of a vector."""
TOP = 5
WIDTH = 130
CHAPTER = Path(__file__).parents[1] / "nmt/models/walkthrough.md"


def main() -> None:
    """Write the chapter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("runs/demo"), help="run directory")
    parser.add_argument("--sentence", default=SENTENCE, help="what is translated")
    parser.add_argument("--step", type=int, default=4, help="which word of the translation, from 1")
    parser.add_argument("--output", type=Path, default=CHAPTER, help="file to write")
    arguments = parser.parse_args()
    try:
        _, translator = open_translator([arguments.model], "cpu", {}, ())
        write_text(arguments.output, write_chapter(translator, arguments.sentence, arguments.step))
    except NmtError as error:
        parser.exit(1, f"error: {error}\n")


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
    (tokens,) = translator.tokenize([sentence])
    ids = [*processor.src_vocabulary.encode(tokens), EOS_ID]
    x = encoder.embedding.weight[torch.tensor(ids)]
    forward, backward = (gru_of(stack) for stack in encoder.layers[0])
    zeros = (x.new_zeros(encoder.layers[0][0].hidden_size),)
    h = torch.stack(reference.encode(list(x), forward, backward, zeros))
    size = len(zeros[0])
    projection = decoder.initial_state.projection
    read = h[0, size:] if projection.in_features == size else torch.cat([h[-1, :size], h[0, size:]])
    first = s = reference.initial_state(read, projection.weight, projection.bias)
    found = translator.translate(sentence)
    if not 1 <= step <= len(found.tokens):
        raise ConfigError(f"--step {step}: the translation has {len(found.tokens)} words: {' '.join(found.tokens)}")
    words = [BOS_ID, *processor.tgt_vocabulary.encode(found.tokens)]
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
    return Walk([*tokens, "⟨eos⟩"], ids, found.tokens, x, h, first, before, y, seen["e"], a, c, s, readout, p)


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


def lines_of(function: Callable[..., Any]) -> str:
    """The source of a function without its docstring, as a block of code."""
    text = re.sub(r'\n    """.*?"""\n', "\n", inspect.getsource(function), count=1, flags=re.DOTALL)
    return f"```python\n{text.strip()}\n```"


def vector(values: Tensor) -> str:
    """The first numbers of a vector, and how many there are."""
    return f"{' '.join(f'{value:z.3f}' for value in values[:SHOWN].tolist())} ... ({len(values)} numbers)"


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
    found = walk(translator, sentence, step)
    parts = [*_encoding(found, translator, sentence, step), *_attending(found, translator, step)]
    return "\n\n".join(map(wrapped, parts)) + "\n"


def wrapped(part: str) -> str:
    """A paragraph in lines of equal width; tables, code, lists and headings as they are."""
    prose = not part.startswith(("|", "`" * 3, " ", "#")) and "\n" not in part
    return textwrap.fill(part, WIDTH, break_long_words=False, break_on_hyphens=False) if prose else part


def _encoding(found: Walk, translator: Translator, sentence: str, step: int) -> Iterator[str]:
    model: Any = translator.model
    size = found.h.size(1) // 2
    yield "# From a sentence to its context vector, in numbers"
    yield (
        f"How the model of `make demo` comes to write *{found.tgt[step - 1]}*, word {step} of *{' '.join(found.tgt)}*, "
        f"for *{sentence}* It is a GRU encoder and a GRU decoder in Bahdanau's order with the additive score. Beside "
        "each formula are the lines of [reference.py](reference.py) that compute it and the numbers that they gave; of "
        f"a vector the first {SHOWN}. This file is written by a command, after `make demo`:"
    )
    yield "    python scripts/write_walkthrough.py"
    yield "## 1. Words become vectors"
    yield (
        f"Each word has a number in the vocabulary and a row x_j of the embedding, {found.x.size(1)} numbers that were "
        "learnt. The sentence ends in ⟨eos⟩."
    )
    rows = [
        [str(j), token, str(number), vector(x)]
        for j, (token, number, x) in enumerate(zip(found.src, found.ids, found.x, strict=True))
    ]
    yield markdown(["j", "word", "number", "x_j"], rows)
    yield "## 2. Vectors become encoder states"
    yield (
        f"A GRU reads the words from left to right, another one from right to left. Its state of {size} numbers after "
        "each word is a mixture of the state before it and of a candidate; the update gate z says how much stays."
    )
    yield lines_of(reference.gru_step)
    yield lines_of(reference.encode)
    yield _first_unit(found, translator)
    rows = [
        [str(j), token, vector(h[:size]), vector(h[size:])]
        for j, (token, h) in enumerate(zip(found.src, found.h, strict=True))
    ]
    yield f"h_j joins both states, {2 * size} numbers: what stands before word j, and what stands after it."
    yield markdown(["j", "word", "h_j, from the left", "h_j, from the right"], rows)
    yield "## 3. Where the decoder begins"
    yield lines_of(reference.initial_state)
    backward = model.decoder.initial_state.source == "backward"
    where = "the state from the right at the first word" if backward else "the last states of both directions"
    yield f"h is {where}. s_0 = {vector(found.first)}"
    before = "begins" if step == 1 else f"has written *{' '.join(found.tgt[: step - 1])}*"
    yield f"After {step - 1} steps like the one below, the decoder {before}: s_{step - 1} = {vector(found.s)}"


def _first_unit(found: Walk, translator: Translator) -> str:
    """The first number of the first encoder state, as an equation with its gates."""
    model: Any = translator.model
    stack = model.encoder.layers[0][0]
    W, _, b, d = (getattr(stack.rnn, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    x_r, x_z, x_n = (W @ found.x[0] + b).chunk(3)  # the state before the first word is 0
    h_r, h_z, h_n = d.chunk(3)
    r, z = torch.sigmoid(x_r + h_r)[0], torch.sigmoid(x_z + h_z)[0]
    n = torch.tanh(x_n[0] + r * h_n[0])
    return (
        f"The first number of the first state, from the left at *{found.src[0]}*, where the state before is 0: "
        f"z = {z:.3f}, n = {n:.3f}, so h = (1 - {z:.3f}) × {n:.3f} + {z:.3f} × 0 = {found.h[0, 0]:.3f}"
    )


def _attending(found: Walk, translator: Translator, step: int) -> Iterator[str]:
    model: Any = translator.model
    score = model.decoder.cell.attention.score
    W, U, v = score.query.weight, score.key.weight, score.energy.weight[0]
    best = int(found.a.argmax())
    inner = torch.tanh(W @ found.s + U @ found.h[best])
    yield "## 4. How well does each word fit?"
    yield lines_of(reference.additive)
    yield (
        f"s is s_{step - 1}, the query; h is each encoder state in turn. For *{found.src[best]}*:\n\n"
        f"- W s = {vector(W @ found.s)}\n"
        f"- U h_{best} = {vector(U @ found.h[best])}\n"
        f"- tanh of their sum = {vector(inner)}\n"
        f"- v = {vector(v)}\n"
        f"- e_{best} is the sum of the {len(v)} products of the last two, {float(found.e[best]):.3f}"
    )
    yield "## 5. Scores become weights"
    yield lines_of(reference.attend)
    total = found.e.exp().sum()
    rows = [
        [str(j), token, f"{e:.3f}", f"{e.exp():.3f}", f"{a:.3f}", "█" * round(20 * float(a))]
        for j, (token, e, a) in enumerate(zip(found.src, found.e, found.a, strict=True))
    ]
    yield markdown(["j", "word", "e_j", "exp(e_j)", "a_j", ""], rows)
    yield f"Each a_j is exp(e_j) divided by their sum, {total:.3f}."
    yield "## 6. Weights become the context"
    yield "c is the sum of the encoder states, each times its weight: `a @ h` above. Its first number:"
    terms = " + ".join(f"{a:.3f} × {h:.3f}" for a, h in zip(found.a, found.h[:, 0], strict=True)).replace("+ -", "- ")
    yield f"    {terms}\n    = {found.c[0]:.3f}"
    yield f"c_{step} = {vector(found.c)}"
    yield "## 7. The context helps to choose the next word"
    yield lines_of(reference.bahdanau_step)
    yield f"The decoder's GRU reads the last word and the context: s_{step} = {vector(found.state)}"
    shares, places = found.p.topk(min(TOP, len(found.p)))
    words = translator.processor.tgt_vocabulary.tokens
    rows = [
        ["⟨eos⟩" if number == EOS_ID else words[number], f"{share:.3f}"]
        for number, share in zip(places.tolist(), shares.tolist(), strict=True)
    ]
    yield (
        f"`bahdanau_readout` joins s_{step}, c_{step} and the last word to {len(found.readout)} numbers, and a softmax "
        f"over {len(found.p):,} words gives the most probable ones:"
    )
    yield markdown(["word", "probability"], rows)
    yield "## 8. The same, fast"
    yield _difference(found, translator, step)


def _difference(found: Walk, translator: Translator, step: int) -> str:
    """How far the equations are from what the model computes for the whole sentence at once."""
    text = translator.processor
    ids = text.tgt_vocabulary.encode(found.tgt)
    src, lengths = torch.tensor([found.ids]), torch.tensor([len(found.ids)])
    output = translator.model.decoder(torch.tensor([[BOS_ID, *ids]]), translator.model.encode(src, lengths))
    p = translator.model.decoder.output(output.readouts)[0, step - 1].softmax(dim=0)
    largest = max(float((output.alignments[0, step - 1, 0] - found.a).abs().max()), float((p - found.p).abs().max()))
    bound = next(digits for digits in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1.0) if largest < digits)
    return (
        "The model itself computes all sentences of a batch at once: the keys U h_j once per sentence, gates of all "
        "words in one product, padding masked. Its weights and probabilities at this step differ from those above by "
        f"less than {bound:.0e}. The tests compare every mechanism like this, gradients included. [The "
        "model](README.md) goes on from here; `nmt explain` shows any step of any sentence."
    )


if __name__ == "__main__":
    main()
