"""From a corpus to a data directory."""

from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from nmt.config import Config, TextSection, dump_config
from nmt.corpus import Pair
from nmt.corpus.cleaning import clean, clean_line
from nmt.corpus.download import resolve_sources
from nmt.corpus.sources import Corpus, read_corpus
from nmt.corpus.splitting import Example, Splits, as_examples, measure_overlap, naive_overlap, split_pairs
from nmt.dataset import CONFIG, FORMAT_VERSION, MARKER, TEXT, EncodedPairs, Sequences, write_examples
from nmt.errors import ConfigError, DataError
from nmt.files import check_output, shipped, whole_directory, write_json, write_text
from nmt.text.processor import TextProcessor, load_processor
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, WhitespaceTokenizer, WordTokenizer
from nmt.text.vocabulary import UNK_ID, Vocabulary

RAW_DIRECTORY = Path("data/raw")
REPORT = "report.json"

Say = Callable[[str], None]


def preprocess(config: Config, output: Path, *, overwrite: bool = False, say: Say = print) -> dict[str, Any]:
    """Read, clean, split, tokenise and encode a corpus.

    Args:
        config: `data` and `text` are what counts.
        output: The data directory to write, whole or not at all.
        overwrite: Replace an earlier data directory there.
        say: Receives lines for the user.

    Returns:
        The report that is also written to `report.json`.

    Raises:
        DataError: The corpus or the output folder cannot be used.
        ConfigError: No source is configured, or no tokenizer fits the language.
    """
    begin = time.perf_counter()
    check_output(output, MARKER, overwrite=overwrite)
    if not config.data.source:
        raise ConfigError("data.source: is empty; name files in the config or give them with --source")
    paths = resolve_sources([_bundled(source) for source in config.data.source], RAW_DIRECTORY, say)
    corpus = read_corpus(paths, columns=config.data.columns, first_lines=config.data.first_lines)
    for line in corpus.description:
        say(line)
    splits, report = _clean_and_split(config, corpus)
    processor, encoded, text_report = _encode_all(config, splits)
    report |= text_report
    with whole_directory(output) as temporary:
        (temporary / TEXT).mkdir()
        processor.save(temporary / TEXT)
        for name, pairs in encoded.items():
            pairs.save(temporary, name)
        for name in ("valid", "test"):
            if getattr(splits, name):
                write_examples(temporary / f"{name}.jsonl", getattr(splits, name))
        write_text(temporary / CONFIG, dump_config(config))
        report["seconds"] = round(time.perf_counter() - begin, 2)
        write_json(temporary / REPORT, report)
        write_json(temporary / MARKER, {"format_version": FORMAT_VERSION, "pairs": report["pairs"]})
    for line in describe(report):
        say(line)
    return report


def _bundled(source: str) -> str:
    """The path of a file that ships with the project where the working folder has none of that name."""
    bundled = source.startswith("data/sample/") and not Path(source).exists()
    return str(shipped(source)) if bundled else source


def _clean_and_split(config: Config, corpus: Corpus) -> tuple[Splits, dict[str, Any]]:
    """Clean the training side of a corpus and split it, unless it came with splits."""
    rules, split = config.data.cleaning, config.data.split
    given = "train" in corpus.splits
    raw = corpus.splits["train" if given else "all"]
    pairs, cleaning = clean(raw, min_length=rules.min_length, max_length=rules.max_length)
    if not pairs:
        raise DataError(f"no pair of {len(raw)} is left after cleaning; see data.cleaning and data.columns")
    if given:
        if split.train_size is not None and split.train_size > len(pairs):
            raise DataError(
                f"data.split.train_size: {split.train_size} pairs wanted, the training file has {len(pairs)}"
            )
        valid, test = (
            as_examples(Pair(clean_line(p.src), clean_line(p.tgt)) for p in corpus.splits.get(name, []))
            for name in ("valid", "test")
        )
        splits = Splits(pairs[: split.train_size], valid, test, components=0, largest_component=0)
    else:
        splits = split_pairs(
            pairs,
            valid_size=split.valid_size,
            test_size=split.test_size,
            train_size=split.train_size,
            seed=split.seed,
        )
    report: dict[str, Any] = {
        "lines_without_columns": corpus.skipped,
        "cleaning": asdict(cleaning),
        "given_splits": given,
        "pairs": {"train": len(splits.train)},
        "sources": {},
        "components": splits.components,
        "largest_component": splits.largest_component,
        "overlap": {},
    }
    for name in ("valid", "test"):
        examples: list[Example] = getattr(splits, name)
        report["pairs"][name] = sum(len(example.references) for example in examples)
        report["sources"][name] = len(examples)
        if examples:
            report["overlap"][name] = asdict(measure_overlap(splits.train, examples))
    if not given and splits.test:
        report["naive_overlap"] = asdict(naive_overlap(pairs, report["pairs"]["test"], split.seed))
    return splits, report


@dataclass
class _Tokens:
    """Sentences as ids of a growing list of tokens; `counts` says how often each occurs."""

    tokens: list[str]
    counts: list[int]
    sequences: list[array[int]]

    def counter(self) -> Counter[str]:
        return Counter(dict(zip(self.tokens, self.counts, strict=True)))

    def encode(self, vocabulary: Vocabulary) -> list[list[int]]:
        """Ids of a vocabulary in place of positions in `tokens`."""
        table = vocabulary.encode(self.tokens)
        return [[table[token] for token in sequence] for sequence in self.sequences]


def _tokenize(tokenizer: Tokenizer, lines: Sequence[str], what: str) -> _Tokens:
    """Tokenise, keeping each distinct token once, so that memory grows with the ids alone."""
    index: dict[str, int] = {}
    counts: list[int] = []
    sequences: list[array[int]] = []
    for tokens in tqdm(
        tokenizer.tokenize(lines), desc=what, total=len(lines), unit=" lines", leave=False, disable=None
    ):
        sequence = array("i")
        for token in tokens:
            position = index.setdefault(token, len(counts))
            if position == len(counts):
                counts.append(0)
            counts[position] += 1
            sequence.append(position)
        sequences.append(sequence)
    return _Tokens(list(index), counts, sequences)


def _encode_all(config: Config, splits: Splits) -> tuple[TextProcessor, dict[str, EncodedPairs], dict[str, Any]]:
    """Learn tokenizers and vocabularies from the training pairs, then encode every split."""
    text = config.text
    train_lines = ([p.src for p in splits.train], [p.tgt for p in splits.train])
    reused = load_processor(_text_folder(Path(text.reuse))) if text.reuse else None
    if reused:
        tokenizers: tuple[Tokenizer, ...] = (reused.src_tokenizer, reused.tgt_tokenizer)
    else:
        tokenizers = _learn_tokenizers(config, *train_lines)
    train = [
        _tokenize(tokenizer, lines, f"tokenising {side}")
        for tokenizer, lines, side in zip(tokenizers, train_lines, ("source", "target"), strict=True)
    ]
    vocabularies = [reused.src_vocabulary, reused.tgt_vocabulary] if reused else _make_vocabularies(text, train)
    processor = TextProcessor(tokenizers[0], tokenizers[1], *vocabularies)
    src, tgt = (side.encode(vocabulary) for side, vocabulary in zip(train, vocabularies, strict=True))
    fits = [0 < len(a) <= text.max_length and 0 < len(b) <= text.max_length for a, b in zip(src, tgt, strict=True)]
    if not any(fits):
        raise DataError(f"no training pair has at most text.max_length = {text.max_length} tokens")
    encoded = {
        "train": EncodedPairs(
            Sequences.pack(ids for ids, fit in zip(src, fits, strict=True) if fit),
            Sequences.pack(ids for ids, fit in zip(tgt, fits, strict=True) if fit),
        )
    }
    for name in ("valid", "test"):
        examples: list[Example] = getattr(splits, name)
        pairs = [(example.src, reference) for example in examples for reference in example.references]
        sides = zip(tokenizers, vocabularies, zip(*pairs, strict=True) if pairs else ((), ()), strict=True)
        packed = [
            Sequences.pack(_tokenize(tokenizer, list(lines), name).encode(vocabulary))
            for tokenizer, vocabulary, lines in sides
        ]
        encoded[name] = EncodedPairs(packed[0], packed[1])
    report = {
        "too_many_tokens": fits.count(False),
        "vocabulary": {"src": len(vocabularies[0]), "tgt": len(vocabularies[1])},
        "tokens": {name: [len(pairs.src.ids), len(pairs.tgt.ids)] for name, pairs in encoded.items()},
        "unknown_share": {
            name: [_unknown_share(pairs.src), _unknown_share(pairs.tgt)] for name, pairs in encoded.items()
        },
        "longest_training_pair": [
            int(encoded["train"].src.lengths.max()),
            int(encoded["train"].tgt.lengths.max()),
        ],
    }
    return processor, encoded, report


def _text_folder(path: Path) -> Path:
    """The text folder of a data, run or model directory."""
    for folder in (path / TEXT, path / "best" / TEXT):
        if folder.is_dir():
            return folder
    raise ConfigError(f"text.reuse: {path} is neither a data directory nor a model directory")


def _unknown_share(sequences: Sequences) -> float:
    return round(float(np.mean(sequences.ids == UNK_ID)), 6) if len(sequences.ids) else 0.0


def _learn_tokenizers(config: Config, src: Sequence[str], tgt: Sequence[str]) -> tuple[Tokenizer, Tokenizer]:
    text = config.text
    if text.tokenizer == "whitespace":
        tokenizer = WhitespaceTokenizer(lowercase=text.lowercase)
        return tokenizer, tokenizer
    if text.tokenizer == "spacy":
        words = [
            WordTokenizer(language, lowercase=text.lowercase)
            for language in (config.data.src_language, config.data.tgt_language)
        ]
        for word_tokenizer, lines in zip(words, (src, tgt), strict=True):
            word_tokenizer.learn_spacing(lines)
        return words[0], words[1]

    def learn(lines: Sequence[str]) -> SubwordTokenizer:
        return SubwordTokenizer.learn(
            lines,
            algorithm=text.subword.algorithm,
            vocabulary_size=text.subword.vocabulary_size,
            lowercase=text.lowercase,
        )

    if text.subword.joint:
        joint = learn([*src, *tgt])
        return joint, joint
    return learn(src), learn(tgt)


def _make_vocabularies(text: TextSection, sides: Sequence[_Tokens]) -> list[Vocabulary]:
    options = text.vocabulary
    counts = [side.counter() for side in sides]
    if options.joint:
        counts = [counts[0] + counts[1]] * 2
    return [Vocabulary.from_counts(c, min_count=options.min_count, max_size=options.max_size) for c in counts]


def describe(report: dict[str, Any]) -> list[str]:
    """The report in a few lines for a person."""
    cleaning = report["cleaning"]
    dropped = {key: cleaning[key] for key in ("empty", "too_short", "too_long", "duplicate")}
    lines = [
        f"cleaning: {cleaning['read']:,} pairs read, {cleaning['kept']:,} kept; dropped "
        + ", ".join(f"{count:,} {key.replace('_', ' ')}" for key, count in dropped.items())
        + f"; changed {cleaning['whitespace']:,} by blanks, {cleaning['normalised']:,} by NFC"
        + (f"; {report['lines_without_columns']:,} lines had too few columns" * bool(report["lines_without_columns"])),
        f"splits: {report['pairs']['train']:,} training pairs"
        + "".join(
            f", {report['sources'][name]:,} {name} sources with {report['pairs'][name]:,} references"
            for name in ("valid", "test")
            if report["sources"].get(name)
        ),
    ]
    lines += [
        f"overlap: of {found['examples']:,} {name} sources {found['sources']:,} are in training on the source side, "
        f"{found['targets']:,} have a reference there"
        for name, found in report["overlap"].items()
    ]
    if "naive_overlap" in report:
        naive = report["naive_overlap"]
        lines.append(
            f"overlap: a random split of the same size would have leaked {naive['sources'] / naive['examples']:.1%} "
            f"of its sources and {naive['targets'] / naive['examples']:.1%} of its targets"
        )
    sizes, tokens, unknown = report["vocabulary"], report["tokens"], report["unknown_share"]
    lines.append(f"vocabularies: {sizes['src']:,} source, {sizes['tgt']:,} target")
    lines += [
        f"{name}: {tokens[name][0]:,} source and {tokens[name][1]:,} target tokens, "
        f"{unknown[name][0]:.2%} and {unknown[name][1]:.2%} unknown"
        for name in tokens
        if any(tokens[name])
    ]
    if report["too_many_tokens"]:
        lines.append(f"{report['too_many_tokens']:,} training pairs left out: longer than text.max_length tokens")
    return lines


def with_sources(config: Config, sources: Sequence[str]) -> Config:
    """The config with other sources.

    Raises:
        ConfigError: No corpus has so many files.
    """
    if len(sources) not in (1, 2, 4, 6):
        raise ConfigError(
            f"--source: takes 1 file, 2 parallel files, or 4 or 6 of train, valid and test; found {len(sources)}"
        )
    return config.model_copy(update={"data": config.data.model_copy(update={"source": tuple(sources)})})
