"""Classify texts by self-attention, and write a page with the words that decided.

Usage: python scripts/classify.py TRAIN TEST [--output page.html] [--save DIR] [--epochs N] [--seed N]
       python scripts/classify.py --model DIR --text TEXT

TRAIN and TEST are folders with a folder of .txt files for each class (as IMDB's pos and neg), or files with lines
`label<TAB>text`. The encoder, batches, optimiser and training loop are those of translation.
"""

import argparse
import html
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from nmt.config import AdamSection, Config, SelfAttentionEncoderSection, TrainSection
from nmt.config.outputs import check_files
from nmt.corpus.batching import Batch, make_batch, plan_batches
from nmt.corpus.dataset import EncodedPairs, Sequences
from nmt.drawing.heatmap import make_html_heatmap
from nmt.layers.attention.additive import AdditiveScore
from nmt.layers.attention.attention import Attention, build_attention
from nmt.layers.output import OutputLayer
from nmt.layers.self_attention import recorded_weights
from nmt.models.base import EncoderDropout, Task, WordChooser
from nmt.models.build import initialize
from nmt.models.transformer.encoder import SelfAttentionEncoder
from nmt.system.errors import DataError, NmtError
from nmt.system.files import read_json, write_json, write_text
from nmt.text.tokenizers import WordTokenizer
from nmt.text.vocabulary import PAD_ID, Vocabulary
from nmt.training import loop

WEIGHTS = "classifier.safetensors"
WORDS, CLASSES = "words.json", "classes.json"
LONGEST = 400
"""Words of a text that are read."""
SHOWN = 20
"""Texts on the page."""
MAPPED = 30
"""Words of a text whose self-attention is drawn."""
DEFAULT = Path("classified.html")
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>{title}</title>
<style>body{{font:16px/1.6 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}}h2{{font-size:1em}}
:root{{--mark:255 140 0}}@media(prefers-color-scheme:dark){{:root{{--mark:150 70 0}}}}
div{{overflow-x:auto}}caption{{display:none}}td{{min-width:1em}}th{{font-weight:400;font-size:.8em}}</style>
<h1>{title}</h1>
<p>The stronger a word is marked, the nearer its weight to the largest of its text; point at it for the number.
These are the weights of pooling, by which the words become one vector. Below a text of up to {mapped} words stands
self-attention, by which words have read each other before: a row for each word that reads, in the mean over the heads
of the last layer.</p>
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
    def map_words(self, ids: Sequence[int]) -> list[list[float]]:
        """How the words of a text read each other in the last layer, in the mean over heads, [S, S]."""
        self.eval()
        with recorded_weights(self.encoder) as layers:
            self.encoder(torch.tensor([ids]), torch.tensor([len(ids)]))
        weights: list[list[float]] = layers[-1][0].mean(dim=0).tolist()
        return weights

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


@dataclass(frozen=True)
class SavedClassifier:
    """A classifier with what it needs to read text.

    Attributes:
        classifier: The network.
        words: Its vocabulary.
        classes: Names of the classes.
    """

    classifier: Classifier
    words: Vocabulary
    classes: Sequence[str]

    def save(self, folder: Path) -> None:
        """Write weights, words and classes into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self.classifier.state_dict(), folder / WEIGHTS)
        write_json(folder / CLASSES, list(self.classes))
        self.words.save(folder / WORDS)

    @classmethod
    def load(cls, folder: Path) -> "SavedClassifier":
        """Read such a folder.

        Raises:
            DataError: It is not one.
        """
        try:
            words, classes = Vocabulary.load(folder / WORDS), read_json(folder / CLASSES)
            classifier = Classifier(make_config(epochs=1, seed=1), len(words), len(classes), [])
            classifier.load_state_dict(load_file(folder / WEIGHTS))
        except (OSError, DataError, TypeError, RuntimeError, SafetensorError) as error:
            raise DataError(f"{folder}: is no classifier that --save has written ({type(error).__name__})") from None
        return cls(classifier, words, classes)

    def say(self, text: str) -> str:
        """The class of a text, and the words that decided, the most important first.

        Raises:
            DataError: The text is empty.
        """
        (tokens,) = split_words([text])
        if not tokens:
            raise DataError("--text: is empty; give a text with words")
        pairs = EncodedPairs(Sequences.pack([self.words.encode(tokens)]), Sequences.pack([[]]))
        ((chosen, weights),) = self.classifier.classify(pairs)
        order = sorted(range(len(tokens)), key=lambda place: -weights[place])
        words = ", ".join(f"{tokens[place]} {weights[place]:.2f}" for place in order[:5])
        return f"{self.classes[chosen]} ({words})"


def split_words(texts: Sequence[str]) -> list[list[str]]:
    """The words of texts in small letters, of each the first ones."""
    tokenizer = WordTokenizer("en", lowercase=True)
    return [tokens[:LONGEST] for tokens in tokenizer.tokenize(texts)]


def make_config(epochs: int, seed: int) -> Config:
    """Sizes of the network, and how it is trained."""
    encoder = {"kind": "self_attention", "hidden_size": 128, "num_layers": 2, "feed_forward_size": 256}
    section = TrainSection(epochs=epochs, seed=seed, optimizer=AdamSection(learning_rate=0.001))
    model = {"embedding_size": 128, "dropout": 0.2, "encoder": encoder, "decoder": {"initial_state": "zeros"}}
    return Config(model=model, train=section)


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
    title: str,
    texts: Sequence[Text],
    words: Sequence[Sequence[str]],
    results: Sequence[tuple[str, list[float]]],
    saved: SavedClassifier,
) -> str:
    """Each text with its words shaded by their weight, and how they read each other."""
    rows = []
    for (label, _), tokens, (guess, weights) in zip(texts[:SHOWN], words, results, strict=False):
        top = max(weights)
        marked = []
        for word, weight in zip(tokens, weights, strict=False):
            style = f"background:rgb(var(--mark)/{weight / top:.0%})"
            marked.append(f'<span title="{weight:.3f}" style="{style}">{html.escape(word)}</span>')
        rows.append(f"<h2>{html.escape(label)}, classified as {html.escape(guess)}</h2><p>{' '.join(marked)}</p>")
        if 0 < len(tokens) <= MAPPED:
            read = saved.classifier.map_words(saved.words.encode(tokens))
            rows.append(f"<div>{make_html_heatmap(read, tokens, tokens)}</div>")
    return PAGE.format(title=html.escape(title), mapped=MAPPED, rows="".join(rows))


def main() -> None:
    """Train, test and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path, nargs="?", help="training texts")
    parser.add_argument("test", type=Path, nargs="?", help="texts to classify")
    parser.add_argument("--save", type=Path, metavar="DIR", help="folder to write the classifier into")
    parser.add_argument("--model", type=Path, metavar="DIR", help="folder of a classifier, with --text")
    parser.add_argument("--text", help="a text to classify, with --model")
    parser.add_argument("--output", type=Path, help=f"page to write [default: {DEFAULT}, which is replaced]")
    parser.add_argument("--overwrite", action="store_true", help="replace a page that is not empty")
    parser.add_argument("--epochs", type=int, default=5, help="passes over the training texts")
    parser.add_argument("--seed", type=int, default=1, help="seed of training")
    arguments = parser.parse_args()
    try:
        check_arguments(arguments)
        if arguments.model is not None:
            print(SavedClassifier.load(arguments.model).say(arguments.text))
            return
        overwrite = arguments.overwrite or arguments.output is None
        arguments.output = arguments.output or DEFAULT
        check_files({"--output": arguments.output}, (arguments.train, arguments.test), overwrite=overwrite)
        print(run(arguments))
        print(f"page: {arguments.output}", file=sys.stderr)
    except (NmtError, OSError, UnicodeDecodeError) as error:
        sys.exit(f"error: {error}")


def check_arguments(arguments: argparse.Namespace) -> None:
    """Refuse arguments that do not go together.

    Raises:
        DataError: They do not.
    """
    if (arguments.model is None) is not (arguments.text is None):
        raise DataError("--model and --text go together: a classifier, and a text for it")
    if arguments.model is not None and arguments.train is not None:
        raise DataError("--model classifies without training: leave TRAIN and TEST out")
    if arguments.model is None and arguments.test is None:
        raise DataError("give TRAIN and TEST, two files or folders of texts, or --model and --text")
    if arguments.epochs < 1:
        raise DataError(f"--epochs: must be at least 1, found {arguments.epochs}")
    if arguments.save is not None and arguments.save.exists() and any(arguments.save.iterdir()):
        raise DataError(f"{arguments.save}: is not empty; give another folder to --save")


def run(arguments: argparse.Namespace) -> str:
    """The accuracy on the test texts."""
    texts = [read_texts(path) for path in (arguments.train, arguments.test)]
    words = [split_words([text for _, text in part]) for part in texts]
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
    config = make_config(arguments.epochs, arguments.seed)
    torch.manual_seed(arguments.seed)
    classifier = Classifier(config, len(vocabulary), len(classes), labels)
    for event in loop.training_events(loop.start(classifier, train, config.train), train, config):
        if isinstance(event, loop.Reported):
            print(f"epoch {event.epoch}, update {event.update}: loss {event.loss:.3f}", file=sys.stderr)
    results = [(classes[guess], weights) for guess, weights in classifier.classify(test)]
    right = sum(label == guess for (label, _), (guess, _) in zip(texts[1], results, strict=True))
    low, high = interval(right, len(results))
    summary = f"Accuracy {right / len(results):.1%} (95% interval {low:.1%} to {high:.1%}) on {len(results):,} texts"
    saved = SavedClassifier(classifier, vocabulary, classes)
    write_text(arguments.output, make_page(summary, texts[1], words[1], results, saved))
    if arguments.save is not None:
        saved.save(arguments.save)
    return summary


if __name__ == "__main__":
    main()
