"""Draw how gradients vanish: their norm at each encoder state, by its distance from the end of the source.

Usage: python scripts/vanishing_gradients.py [--output gradients.png] [--updates 300] [--seed 1]

Six small models of the bundled sample: three recurrent cells, each with one fixed context and with additive attention.
Each encoder reads from left to right, and the decoder begins with its final state. The loss is the mean over the words
of a reference; its gradient at a state counts all ways that lead from there to the loss: through the later states, and
through attention. Norms are divided by that at the last state, in the mean over sentences of one length.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import nmt
from nmt.config import load_config
from nmt.config.outputs import check_files
from nmt.corpus.batching import pad
from nmt.drawing.picture import check_picture, save_figure
from nmt.evaluation.input_text import read_split
from nmt.models.base import EncoderOutput
from nmt.models.build import build_model
from nmt.models.recurrent.encoder import RecurrentEncoder
from nmt.models.seq2seq import Seq2Seq
from nmt.system.errors import DataError, NmtError
from nmt.text.processor import TextProcessor
from nmt.text.vocabulary import PAD_ID

CELLS = ("rnn", "gru", "lstm")
SCORES = ("none", "additive")
NAMES = {"none": "one fixed context", "additive": "additive attention"}
COLOURS = {"rnn": "tab:red", "gru": "tab:blue", "lstm": "tab:green"}
STYLES = {"none": "--", "additive": "-"}
LENGTH = 14
"""Words of the sources that are read, with their end."""
SHOWN = (1, 4, 8, 12)
"""Distances of the table."""
FAINTEST = 1e-6
"""Below it a gradient is drawn as this."""
SIZES = {
    "model.embedding_size": 64,
    "model.encoder.hidden_size": 64,
    "model.encoder.bidirectional": False,
    "model.decoder.hidden_size": 64,
    "model.decoder.initial_state": "final",
    "model.dropout": 0.0,
    "train.validation.metric": "loss",
    "train.validation.every": 1_000_000,
    "train.schedule.name": "constant",
    "train.watch": 0,
}


class Curve(NamedTuple):
    """The gradients of a model.

    Attributes:
        cell: Its recurrent cell.
        score: Its score; none is one fixed context.
        norms: Norm at each distance from the end of the source, divided by that at distance 0.
    """

    cell: str
    score: str
    norms: Sequence[float]


def settings_of(cell: str, score: str, updates: int, seed: int) -> dict[str, object]:
    """The settings of a model, on top of the config `sample`."""
    chosen = {"model.encoder.cell": cell, "model.decoder.cell": cell, "model.attention.score": score}
    return {**SIZES, **chosen, "train.max_updates": updates, "train.seed": seed}


def encode_by_steps(model: Seq2Seq, src: Tensor) -> tuple[EncoderOutput, list[Tensor]]:
    """Encode sources of one length step by step.

    Args:
        model: With one layer that reads from left to right.
        src: Ids, [B, S].

    Returns:
        What the decoder gets, and the state after each step, [1, B, H], which all that follows is computed from.
    """
    encoder = model.encoder
    assert isinstance(encoder, RecurrentEncoder)
    layer = encoder.layers[0][0]
    inputs = encoder.embedding(src)
    state = layer.zero_state(len(src), inputs)
    states = []
    for step in inputs.split(1, dim=1):
        _, state = layer(step, state)
        states.append(state[0])
        states[-1].retain_grad()
    outputs = torch.cat(states).transpose(0, 1)  # [B, S, H]
    lengths = torch.full((len(src),), src.size(1))
    mask = torch.ones(src.shape, dtype=torch.bool)
    return EncoderOutput(outputs, mask, lengths, outputs[:, -1], outputs[:, 0, :0], state), states


def measure(model: Seq2Seq, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[float]:
    """Norm of the loss's gradient at each encoder state, the last one first, divided by that of the last one."""
    encoded, states = encode_by_steps(model, pad(sources, suffix=True))
    readouts = model.decoder(pad(targets, prefix=True), encoded).readouts
    words = pad(targets, suffix=True)
    logits = model.decoder.output(readouts)
    torch.autograd.backward(nn.functional.cross_entropy(logits.flatten(0, 1), words.flatten(), ignore_index=PAD_ID))
    norms = []
    for state in reversed(states):
        gradient = torch.zeros_like(state) if state.grad is None else state.grad
        norms.append(float(gradient.norm(dim=-1).mean()))
    return [norm / norms[0] for norm in norms]


def read_sentences(data: Path, processor: TextProcessor) -> tuple[list[list[int]], list[list[int]]]:
    """Ids of the sentences of valid and test whose sources have `LENGTH` tokens, their end included.

    Raises:
        DataError: There are none.
    """
    examples = [*read_split(data, "valid"), *read_split(data, "test")]
    src_tokens = processor.tokenize_source([example.src for example in examples])
    tgt_tokens = processor.tokenize_target(example.references[0] for example in examples)
    sources = map(processor.src_vocabulary.encode, src_tokens)
    targets = map(processor.tgt_vocabulary.encode, tgt_tokens)
    pairs = [(src, tgt) for src, tgt in zip(sources, targets, strict=True) if len(src) == LENGTH - 1]
    if not pairs:
        raise DataError(f"{data}: no source of valid or test has {LENGTH - 1} words")
    return [src for src, _ in pairs], [tgt for _, tgt in pairs]


def draw(curves: dict[str, list[Curve]], path: Path) -> None:
    """Draw the curves of each moment side by side."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, len(curves), sharey=True)
    for axes, (moment, group) in zip(panels, curves.items(), strict=True):
        for curve in group:
            heights = [max(norm, FAINTEST) for norm in curve.norms]
            label = f"{curve.cell}, {NAMES[curve.score]}"
            axes.plot(heights, STYLES[curve.score], color=COLOURS[curve.cell], label=label)
        axes.set(title=moment, xlabel="words between the state and the end of the source", yscale="log")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("norm of the gradient, that at the end is 1")
    panels[-1].legend(fontsize="small")
    save_figure(figure, path)


def tabulate(curves: dict[str, list[Curve]]) -> str:
    """A row for each curve, with its norms at some distances."""
    lines = ["\t".join(["moment", "cell", "attention", *(f"{distance} words" for distance in SHOWN)])]
    for moment, group in curves.items():
        for curve in group:
            norms = (f"{curve.norms[distance]:.2g}" for distance in SHOWN)
            lines.append("\t".join([moment, curve.cell, NAMES[curve.score], *norms]))
    return "\n".join(lines)


def run(output: Path, updates: int, seed: int) -> str:
    """Train the models, draw the picture, and return the table."""
    check_files({"--output": output}, (), overwrite=True)
    check_picture(output)
    curves: dict[str, list[Curve]] = {"at initialisation": [], f"after {updates:,} updates": []}
    before, after = curves.values()
    with tempfile.TemporaryDirectory() as folder:
        data = nmt.preprocess("sample", output=Path(folder) / "data").path
        for cell in CELLS:
            for score in SCORES:
                settings = settings_of(cell, score, updates, seed)
                trained = nmt.train("sample", data=data, output=Path(folder) / f"{cell}-{score}", overrides=settings)
                translator = trained.translator()
                vocabularies = translator.processor.src_vocabulary, translator.processor.tgt_vocabulary
                sources, targets = read_sentences(data, translator.processor)
                config = load_config("sample", [f"{key}={value}" for key, value in settings.items()])
                torch.manual_seed(seed)
                new = build_model(config.model, *map(len, vocabularies))
                before.append(Curve(cell, score, measure(new.eval(), sources, targets)))
                # A copy, as the weights of a translator have no gradients.
                new.load_state_dict(translator.model.state_dict())
                after.append(Curve(cell, score, measure(new.eval(), sources, targets)))
                print(f"{cell}, {NAMES[score]}: trained and measured on {len(sources)} sentences", file=sys.stderr)
    draw(curves, output)
    return tabulate(curves)


def main() -> None:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--output", type=Path, default=Path("gradients.png"), help="picture to write, which is replaced"
    )
    parser.add_argument("--updates", type=int, default=300, help="updates of each training")
    parser.add_argument("--seed", type=int, default=1, help="seed of the weights and of training")
    arguments = parser.parse_args()
    try:
        print(run(arguments.output, arguments.updates, arguments.seed))
    except (NmtError, OSError) as error:
        sys.exit(f"error: {error}")
    print(f"picture: {arguments.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
