"""One workload for all toolkits: 20,000 tokenised, lower-case Tatoeba pairs with validation and test splits."""

import argparse
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

from benchmarks.arguments import Commands
from nmt.corpus.sources import open_corpus, read_pairs
from nmt.system.errors import DataError
from nmt.system.files import write_text
from nmt.text.tokenizers import WordTokenizer

LANGUAGES = ("en", "de")
SIZES = {"valid": 1000, "test": 1000, "train": 20_000}
LONGEST = 50  # tokens per side
SPARE = 3000  # pairs beyond those of the splits, as pairs with the same source are not separated
MIN_COUNT = 2
LARGEST = 10_000  # words per vocabulary
SEED = 1

TextPair = tuple[str, str]


def add_command(commands: Commands) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("workload", help="create the workload that the other commands train on")
    parser.add_argument("--corpus", type=Path, required=True, help="tab-separated English-German pairs, or an archive")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    parser.set_defaults(run=make_workload)


def make_workload(arguments: argparse.Namespace) -> None:
    """Write the six files of the splits, and vocabularies in the format of each toolkit."""
    pairs = [(pair.src, pair.tgt) for pair in read_pairs(open_corpus([arguments.corpus])["train"])]
    random.Random(SEED).shuffle(pairs)
    wanted = sum(SIZES.values()) + SPARE
    groups = defaultdict(list)
    for pair in tqdm(itertools.islice(tokenized(pairs), wanted), "tokenising", wanted, unit=" pairs", disable=None):
        groups[pair[0]].append(pair)
    output: Path = arguments.output
    output.mkdir(parents=True, exist_ok=True)
    for name, split in draw_splits(groups, SIZES, SEED).items():
        for language, lines in zip(LANGUAGES, zip(*split, strict=True), strict=True):
            write_lines(output / f"{name}.{language}", lines)
            if name == "train":
                write_vocabularies(output, language, lines)
    print(describe(output))


def tokenized(pairs: Iterable[TextPair]) -> Iterator[TextPair]:
    """Distinct pairs of 1 to 50 words per side, lower-case, in order."""
    tokenizers = [WordTokenizer(language) for language in LANGUAGES]
    seen: set[TextPair] = set()
    for pair in pairs:
        words = [next(tokenizer.tokenize([text])) for tokenizer, text in zip(tokenizers, pair, strict=True)]
        src, tgt = (" ".join(side).lower() for side in words)
        if (src, tgt) not in seen and all(1 <= len(text.split()) <= LONGEST for text in (src, tgt)):
            seen.add((src, tgt))
            yield src, tgt


def draw_splits(groups: dict[str, list[TextPair]], sizes: dict[str, int], seed: int) -> dict[str, list[TextPair]]:
    """Fill the splits in turn with whole groups in random order; no source sentence is in two splits.

    Args:
        groups: Pairs by source sentence.
        sizes: Pairs of each split. Training uses all pairs of a group, the others only the first.
        seed: `seed + 1` orders the groups, `seed + 2` the pairs of each split.

    Raises:
        DataError: There are too few pairs.
    """
    sources = sorted(groups)
    random.Random(seed + 1).shuffle(sources)
    rest = iter(sources)
    splits: dict[str, list[TextPair]] = {}
    for name, size in sizes.items():
        split: list[TextPair] = []
        while len(split) < size:
            source = next(rest, None)
            if source is None:
                raise DataError(f"the corpus ends before the {name} split has its {size:,} pairs; use a larger one")
            split += groups[source] if name == "train" else groups[source][:1]
        random.Random(seed + 2).shuffle(split)
        splits[name] = split[:size]
    return splits


def vocabulary(lines: Iterable[str]) -> list[str]:
    """Words that occur at least twice, the most frequent first."""
    frequency = Counter(word for line in lines for word in line.split())
    words = sorted((word for word, count in frequency.items() if count >= MIN_COUNT), key=lambda w: (-frequency[w], w))
    return words[:LARGEST]


def write_vocabularies(output: Path, language: str, lines: Iterable[str]) -> None:
    """Write the words alone, with JoeyNMT's special tokens, and with a count for OpenNMT-py, which requires one."""
    words = vocabulary(lines)
    write_lines(output / f"vocab.{language}", words)
    write_lines(output / f"vocab.joey.{language}", ["<unk>", "<pad>", "<s>", "</s>", *words])
    write_lines(output / f"vocab.onmt.{language}", [f"{word}\t{MIN_COUNT}" for word in words])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file."""
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_lines(path: Path) -> list[str]:
    """Read what `write_lines` wrote."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def check_workload(folder: Path) -> None:
    """Check that a folder is a workload.

    Raises:
        DataError: A file is missing.
    """
    names = [*SIZES, "vocab", "vocab.joey", "vocab.onmt"]
    for name in (f"{name}.{language}" for name in names for language in LANGUAGES):
        if not (folder / name).is_file():
            make = f"python scripts/benchmark.py workload --corpus deu-eng.zip --output {folder}"
            raise DataError(f"{folder / name}: missing; create the workload with: {make}")


def target_tokens(folder: Path) -> int:
    """Target tokens per epoch, including EOS."""
    return sum(len(line.split()) + 1 for line in read_lines(folder / "train.de"))


def describe(folder: Path) -> str:
    """Summarise a workload in a line."""
    sides = [read_lines(folder / f"train.{language}") for language in LANGUAGES]
    lengths = [sum(len(line.split()) for line in side) / len(side) for side in sides]
    words = [len(read_lines(folder / f"vocab.{language}")) for language in LANGUAGES]
    return (
        f"{folder}: {len(sides[0]):,} training pairs, {lengths[0]:.2f} and {lengths[1]:.2f} words per sentence, "
        f"vocabularies {words[0]:,} and {words[1]:,}, {target_tokens(folder):,} target tokens per epoch"
    )
