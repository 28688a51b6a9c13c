"""Classify texts by self-attention, and write a page with the words that decided.

Usage: python scripts/classify.py TRAIN TEST [--output page.html] [--epochs N] [--seed N]

TRAIN and TEST are folders with a folder of .txt files for each class (as IMDB's pos and neg), or files with lines
`label<TAB>text`. The encoder, batches, optimiser and training loop are those of translation.
"""

import argparse
import html
import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from nmt.config import AdamSection, Config, SelfAttentionEncoderSection, TrainSection
from nmt.config.outputs import check_files
from nmt.corpus.batching import Batch, make_batch, plan_batches
from nmt.corpus.dataset import EncodedPairs, Sequences
from nmt.layers.attention.additive import AdditiveScore
from nmt.layers.attention.attention import Attention, build_attention
from nmt.layers.output import OutputLayer
from nmt.models.base import EncoderDropout, Task, WordChooser
from nmt.models.build import initialize
from nmt.models.transformer.encoder import SelfAttentionEncoder
from nmt.system.errors import DataError, NmtError
from nmt.system.files import write_text
from nmt.text.tokenizers import WordTokenizer
from nmt.text.vocabulary import PAD_ID, Vocabulary
from nmt.training import loop

LONGEST = 400
"""Words of a text that are read."""
SHOWN = 20
"""Texts on the page."""
DEFAULT = Path("classified.html")
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>body{{font:16px/1.6 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}}h2{{font-size:1em}}</style>
<h1>{title}</h1>
<p>The darker a word, the nearer its weight to the largest of its text; point at it for the number.</p>
{rows}</html>
"""
Text = tuple[str, str]
"""A class and a text."""


class Classifier(Task):
    """A self-attentive encoder, one learnt query that attends to its states, and an output layer over classes.

    The query pools the states by additive attention (Yang et al., 2016, section 2.2).

    Args:
        config: Its encoder and dropout are used.
        words: Size of the vocabulary.
        classes: Their number.
        labels: Class of each training text.
    """

    def __init__(self, config: Config, words: int, classes: int, labels: Sequence[int]) -> None:
        super().__init__()
        self.labels = torch.tensor(labels)
        model, size = config.model, config.model.encoder.output_size
        assert isinstance(model.encoder, SelfAttentionEncoderSection)
        embedding = nn.Embedding(words, model.embedding_size, padding_idx=PAD_ID)
        self.encoder = SelfAttentionEncoder(model.encoder, embedding, EncoderDropout(model.dropout, model.dropout))
        self.query = nn.Parameter(torch.empty(size))
        self.attention: Attention = build_attention(model.attention, size, size, AdditiveScore)
        self.output = OutputLayer(size, classes, model.dropout)
        initialize(self, model.initialization)

    def read(self, src: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """What the output layer reads of each text [B, D], and the weight of each of its words [B, S]."""
        encoded = self.encoder(src, lengths)
        memory = self.attention.memorize(encoded.states, None, encoded.mask, encoded.lengths)
        query = self.query.expand(len(src), 1, -1)  # [B, 1, D]
        context, weights, _ = self.attention.attend(query, memory, {})
        return context[:, 0], weights[:, 0, 0]

    def forward(self, batch: Batch, choose: WordChooser | None = None, label_smoothing: float = 0.0) -> Tensor:
        """See `Task.forward`."""
        return self.output.loss(self.read(batch.src, batch.src_lengths)[0], self.labels[batch.indices], label_smoothing)

    @property
    def uniform_loss(self) -> float:
        """See `Task.uniform_loss`."""
        return self.output.uniform_loss

    @torch.inference_mode()
    def classify(self, pairs: EncodedPairs) -> list[tuple[int, list[float]]]:
        """The most probable class of each text, and the weights of its words."""
        self.eval()
        results = dict[int, tuple[int, list[float]]]()
        for indices in plan_batches(pairs.src.lengths, pairs.tgt.lengths, size=64, unit="sentences"):
            batch = make_batch(pairs, indices)
            states, weights = self.read(batch.src, batch.src_lengths)
            chosen = self.output(states).argmax(dim=1).tolist()
            results |= dict(zip(indices.tolist(), zip(chosen, weights.tolist(), strict=True), strict=True))
        self.train()
        return [results[n] for n in range(len(pairs))]


def read_texts(path: Path) -> list[Text]:
    """The texts of a folder or file.

    Raises:
        DataError: There are none, or a line has no label.
    """
    if path.is_dir():
        files = sorted(path.glob("*/*.txt"))
        texts = [(file.parent.name, " ".join(file.read_text(encoding="utf-8").split())) for file in files]
    else:
        lines = path.read_text(encoding="utf-8").splitlines()
        if wrong := [number for number, line in enumerate(lines, 1) if "\t" not in line]:
            raise DataError(f"{path}:{wrong[0]}: has no tab; a line is label<TAB>text")
        texts = [(label, text) for label, _, text in (line.partition("\t") for line in lines)]
    if len({label for label, _ in texts}) < 2:
        raise DataError(f"{path}: needs texts of two classes: CLASS/*.txt, or lines label<TAB>text")
    return texts


def interval(right: int, number: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share (Wilson, 1927)."""
    z, share = 1.96, right / number
    centre, width = share + z**2 / (2 * number), z * math.sqrt(share * (1 - share) / number + (z / 2 / number) ** 2)
    return (centre - width) / (1 + z**2 / number), (centre + width) / (1 + z**2 / number)


def make_page(
    title: str, texts: Sequence[Text], words: Sequence[Sequence[str]], results: Sequence[tuple[str, list[float]]]
) -> str:
    """Each text with its words shaded by their weight."""
    rows = []
    for (label, _), tokens, (guess, weights) in zip(texts[:SHOWN], words, results, strict=False):
        top = max(weights)
        marked = [
            f'<span title="{weight:.3f}" style="background:rgb(255 140 0/{weight / top:.0%})">{html.escape(one)}</span>'
            for one, weight in zip(tokens, weights, strict=False)
        ]
        rows.append(f"<h2>{html.escape(label)}, classified as {html.escape(guess)}</h2><p>{' '.join(marked)}</p>")
    return PAGE.format(title=html.escape(title), rows="".join(rows))


def main() -> None:
    """Train, test and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path, help="training texts")
    parser.add_argument("test", type=Path, help="texts to classify")
    parser.add_argument("--output", type=Path, help=f"page to write [default: {DEFAULT}, which is replaced]")
    parser.add_argument("--overwrite", action="store_true", help="replace a page that is not empty")
    parser.add_argument("--epochs", type=int, default=5, help="passes over the training texts")
    parser.add_argument("--seed", type=int, default=1, help="seed of training")
    arguments = parser.parse_args()
    try:
        overwrite = arguments.overwrite or arguments.output is None
        arguments.output = arguments.output or DEFAULT
        check_files({"--output": arguments.output}, (arguments.train, arguments.test), overwrite=overwrite)
        print(run(arguments))
        print(f"page: {arguments.output}", file=sys.stderr)
    except (NmtError, OSError) as error:
        sys.exit(f"error: {error}")


def run(arguments: argparse.Namespace) -> str:
    """The accuracy on the test texts."""
    texts = [read_texts(path) for path in (arguments.train, arguments.test)]
    tokenizer = WordTokenizer("en", lowercase=True)
    words = [[tokens[:LONGEST] for tokens in tokenizer.tokenize([text for _, text in part])] for part in texts]
    counts = Counter(word for tokens in words[0] for word in tokens)
    vocabulary = Vocabulary.from_counts(counts, min_count=2, max_size=20_000)
    classes = sorted({label for label, _ in texts[0]})
    if unknown := {label for label, _ in texts[1]} - {*classes}:
        raise DataError(f"{arguments.test}: has classes that training has not: {', '.join(sorted(unknown))}")
    # A text without a target: what the loop counts as its one token is its class.
    train, test = (
        EncodedPairs(Sequences.pack(map(vocabulary.encode, tokens)), Sequences.pack([[]] * len(tokens)))
        for tokens in words
    )
    labels = [classes.index(label) for label, _ in texts[0]]
    encoder = {"kind": "self_attention", "hidden_size": 128, "num_layers": 2, "feed_forward_size": 256}
    section = TrainSection(epochs=arguments.epochs, seed=arguments.seed, optimizer=AdamSection(learning_rate=0.001))
    model = {"embedding_size": 128, "dropout": 0.2, "encoder": encoder, "decoder": {"initial_state": "zeros"}}
    config = Config(model=model, train=section)
    torch.manual_seed(arguments.seed)
    classifier = Classifier(config, len(vocabulary), len(classes), labels)
    for event in loop.training_events(loop.start(classifier, train, section), train, config):
        if isinstance(event, loop.Reported):
            print(f"epoch {event.epoch}, update {event.update}: loss {event.loss:.3f}", file=sys.stderr)
    results = [(classes[guess], weights) for guess, weights in classifier.classify(test)]
    right = sum(label == guess for (label, _), (guess, _) in zip(texts[1], results, strict=True))
    low, high = interval(right, len(results))
    summary = f"Accuracy {right / len(results):.1%} (95% interval {low:.1%} to {high:.1%}) on {len(results):,} texts"
    write_text(arguments.output, make_page(summary, texts[1], words[1], results))
    return summary


if __name__ == "__main__":
    main()
