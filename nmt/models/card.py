"""The model card: a README in each model directory, after Mitchell et al. (2019)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config import Config
from nmt.layers.attention.catalog import describe_mechanism
from nmt.system.errors import printable
from nmt.system.files import check_file, read_text
from nmt.system.limits import MAX_JSON
from nmt.text.direction import Direction

CARD = "README.md"
_NAMES = {"bleu": "BLEU", "chrf": "chrF", "loss": "loss", "perplexity": "perplexity"}


def make_card(config: Config, metadata: Mapping[str, Any]) -> str:
    """Describe a model in Markdown: its languages, how it was trained, its scores and its limits.

    Args:
        config: Its config.
        metadata: Content of `model.json`.
    """
    rows = describe_model(config, metadata)
    attending = "" if config.model.mechanism.score == "none" else " with attention"
    parts = [
        [f"# {Direction.of(config.data).name}"],
        [f"A {config.model.family} translation model{attending}, trained with nmt {metadata['nmt_version']}."],
        ["    nmt translate --model THIS_FOLDER 'Some text.'"],
        ["| | |", "|---|---|", *(f"| {name} | {_inline(value)} |" for name, value in rows.items())],
        ["## Scores"],
        list(_score_lines(metadata)),
        ["## Limits"],
        list(_limits(config)),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def read_card(directory: Path) -> str:
    """The card of a model directory without commands of `nmt`, for other programs; empty if it has none.

    Raises:
        DataError: It is not a small regular file of text in the directory.
    """
    card = check_file(directory / CARD, directory, MAX_JSON)
    if not card.exists():
        return ""
    lines = read_text(card, MAX_JSON, directory).splitlines(keepends=True)
    return "".join(line for line in lines if "THIS_FOLDER" not in line)


def _files_of_training(files: Sequence[str]) -> Sequence[str]:
    """The files of training text, without those of ready-made splits.

    One file, two sides, three splits, or two sides of up to three splits; or the three files of Tatoeba's own export,
    which have an ending, while splits are named without those of their languages.
    """
    if len(files) > 3:
        return files[:2]
    are_splits = len(files) == 3 and not Path(files[0]).suffix
    return files[:1] if are_splits else files


def describe_model(config: Config, metadata: Mapping[str, Any], call: Callable[[str], str] = str) -> dict[str, str]:
    """The kind of a model and how it was trained, in a few words each.

    Args:
        config: Its config.
        metadata: Content of `model.json`, whose values may be damaged.
        call: Returns the name of a file of a corpus, given its path or URL.
    """
    model = config.model
    data = metadata.get("data")
    average = metadata.get("average_of")
    mechanism, equation = describe_mechanism(model)
    text = {"spacy": "words (spaCy)", "whitespace": "words, separated by spaces", "subword": "subwords"}
    number = data.get("pairs") if isinstance(data, dict) else None  # an average has it from a file
    pairs = f"{number:,} pairs of " if isinstance(number, int) else ""
    licence = config.data.licence or "not stated"
    corpus = ", ".join(map(call, _files_of_training(config.data.source))) or "unknown"
    further = []
    for label, extra in config.data.extra.items():
        tag = f", tag {extra.tag}" if extra.tag else ""
        further.append(f"{label}: {', '.join(map(call, extra.source))} (weight {extra.weight:g}{tag})")
    others = [*config.data.extra, *(["the data of the parent"] if config.parent.run else [])]
    if others and config.data.licence:
        licence += f" (only for {corpus}, not for {' or '.join(others)})"
    rows = {
        "attention": f"{mechanism}. {equation}" if equation else mechanism,
        "encoder": model.encoder.summary,
        "decoder": model.decoder.summary,
        "weights": count(metadata.get("parameters")),
        "text": f"{text[config.text.tokenizer]}, {'lower case' if config.text.lowercase else 'cased'}",
        "trained on": "; ".join([f"{pairs}{corpus}", *further]),
        "licence of the data": licence,
    }
    if config.parent.run:
        rows["parent"] = f"training began with the weights of {config.parent.run}"
    if "epoch" in metadata:
        update = count(metadata.get("update"))
        epoch = count(metadata["epoch"])
        rows["training"] = f"update {update}, epoch {epoch}, seed {config.train.seed}"
    if isinstance(average, list):
        rows["training"] = f"the average of {len(average)} models"
    rows["versions"] = ", ".join(f"{name} {metadata.get(f'{name}_version', '-')}" for name in ("nmt", "torch"))
    return rows


def count(value: Any) -> str:
    """A number of the metadata of a run or model, which may be damaged."""
    return f"{value:,}" if isinstance(value, int) else "-"


def _score_lines(metadata: Mapping[str, Any]) -> Iterator[str]:
    scores = metadata.get("scores") or {}
    signatures = metadata.get("signatures") or {}
    if not scores:
        yield "Not measured."
    else:
        yield "On the validation split, which also chose this model; greedy search:"
        yield ""
        for name, value in scores.items():
            signature = f" (`{signatures[name]}`)" if name in signatures else ""
            yield f"- {_NAMES.get(name, name)} {value:.2f}{signature}"
        yield ""
    yield "Training has not used the test split."
    yield "`nmt evaluate --model THIS_FOLDER --data DATA` measures it."


def _limits(config: Config) -> Iterator[str]:
    yield f"- Trained on sentences of at most {config.data.cleaning.max_length} words; longer ones translate worse."
    yield "- It sees one sentence at a time and knows nothing of the text around it."
    yield "- It translates text of other kinds than its training data worse, and has the biases of that data."
    yield "- It can leave out, repeat or invent, in fluent language: check names, numbers and negation."
    if config.text.lowercase:
        yield "- It reads and writes lower case."


def _inline(text: str) -> str:
    """Text as part of a table cell: nothing in it is markup."""
    escaped = "".join(f"\\{character}" if character in "\\`*_[]<>|#!" else character for character in printable(text))
    return " ".join(escaped.split())
