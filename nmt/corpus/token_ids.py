"""Encoding splits as ids on disk: tokenizers, vocabularies, arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.config import Config, TextSection, differing_keys, read_config
from nmt.corpus.cleaning import make_normalizer
from nmt.corpus.dataset import CONFIG, Ids, encode_examples, write_sequences
from nmt.corpus.identity import save_seen
from nmt.corpus.lines import Lines, Rows
from nmt.corpus.numbering import NumberedText, tokenize_block
from nmt.corpus.processes import map_chunks
from nmt.corpus.schema import EncodingReport
from nmt.corpus.splitting import Splits
from nmt.corpus.store import SIDES, PairStore, in_chunks
from nmt.system.errors import ConfigError, DataError
from nmt.system.files import check_file
from nmt.system.progress import progress_bar
from nmt.text.processor import SEEN, TEXT, TextProcessor, load_processor
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, WhitespaceTokenizer, WordTokenizer
from nmt.text.vocabulary import LARGER, UNK_ID, Vocabulary

SPACING_SAMPLE = 200_000
"""Maximum number of sentences to learn the spaces between words from."""
COVERAGE = (100, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
"""Vocabulary sizes whose coverage is in the report."""


def encode(
    config: Config, store: PairStore, splits: Splits, copies: Rows, reused: TextProcessor | None, output: Path
) -> EncodingReport:
    """Learn tokenizers and vocabularies from the training pairs and copies of them, then encode every split.

    Args:
        config: The whole config.
        store: Clean pairs.
        splits: Their splits.
        copies: Rows of copies of training pairs, which come after them.
        reused: Tokenizers and vocabularies to use instead of learning them.
        output: The data directory.

    Raises:
        DataError: All training pairs are too long, or one side of them has no known token.
    """
    text = output / TEXT
    text.mkdir()
    rows = np.concatenate([splits.train, copies])
    tokenizers = reused.tokenizers if reused else _learn_tokenizers(config, store, rows)
    # Text -> numbers of tokens, on disk: there is no vocabulary before all training text is tokenised.
    sides = []
    for name, tokenizer in zip(SIDES, tokenizers, strict=True):
        tokenizer.save(text, name)
        sides.append(_tokenize(text, name, store, rows, config.data.workers))
    vocabularies = reused.vocabularies if reused else _make_vocabularies(config.text, sides, tokenizers)
    processor = TextProcessor(*tokenizers, *vocabularies, make_normalizer(config.data.cleaning))
    processor.save(text)

    # Numbers -> ids, of the pairs whose sides both fit.
    longest = config.text.max_length
    fits = np.logical_and.reduce([(side.lengths > 0) & (side.lengths <= longest) for side in sides])
    if not fits.any():
        raise DataError(f"no training pair has at most text.max_length = {longest} tokens")
    save_seen(text / SEEN, store.fingerprints("src_identity")[rows][fits])
    # Lengths and number of unknown tokens of both sides of each split.
    counts: dict[str, list[tuple[NDArray[np.int64], int]]] = {"train": []}
    for name, side, vocabulary in zip(SIDES, sides, vocabularies, strict=True):
        lengths, unknown_of_pieces = side.lengths[fits], list[int]()
        pieces = _counting(side.encode(vocabulary, fits), unknown_of_pieces)
        write_sequences(output, f"train.{name}", lengths, pieces)
        counts["train"].append((lengths, sum(unknown_of_pieces)))
    for split, examples in splits.evaluation.items():
        pairs = encode_examples(processor, examples)
        counts[split] = [(encoded.lengths, _count_unknown(encoded.ids)) for encoded in (pairs.src, pairs.tgt)]
        if split == "valid":
            pairs.save(output, split)  # the test split is only counted: it is scored as text
    tokens = {split: [int(lengths.sum()) for lengths, _ in both] for split, both in counts.items()}
    for what, (_, unknown), total in zip(("source", "target"), counts["train"], tokens["train"], strict=True):
        if unknown == total:
            advice = "remove text.reuse" if reused else LARGER
            raise DataError(f"every {what} token in training is unknown; {advice}")
    return EncodingReport(
        reused=reused is not None,
        tokenizer=tokenizers[0].kind,
        too_many_tokens=int(np.sum(~fits)),
        copies=int(np.sum(fits[len(splits.train) :])),
        vocabulary={name: len(vocabulary) for name, vocabulary in zip(SIDES, vocabularies, strict=True)},
        distinct_tokens={name: len(side.counts) for name, side in zip(SIDES, sides, strict=True)},
        coverage={name: side.coverage(COVERAGE) for name, side in zip(SIDES, sides, strict=True)},
        lengths={split: [np.bincount(lengths).tolist() for lengths, _ in both] for split, both in counts.items()},
        tokens=tokens,
        unknown_share={
            split: [round(unknown / max(1, total), 6) for (_, unknown), total in zip(both, tokens[split], strict=True)]
            for split, both in counts.items()
        },
        longest_training_pair=[int(lengths.max()) for lengths, _ in counts["train"]],
    )


def _counting(pieces: Iterator[Ids], unknown: list[int]) -> Iterator[Ids]:
    """Pass pieces of ids on, and append the number of unknown tokens of each to a list."""
    for piece in pieces:
        unknown.append(_count_unknown(piece))
        yield piece


def _count_unknown(ids: Ids) -> int:
    return int(np.count_nonzero(ids == UNK_ID))


def load_reused(config: Config, path: Path) -> TextProcessor:
    """The tokenizers and vocabularies of a data, run or model directory.

    Raises:
        ConfigError: There are none, or they have other settings: languages, normalisation, casing, subwords.
    """
    folder = next((folder for folder in (path, path / "best") if (folder / TEXT).is_dir()), None)
    if folder is None:
        raise ConfigError(f"text.reuse: {path} is neither a data directory nor a model directory; give one")
    processor = load_processor(check_file(folder / TEXT, folder))
    there = read_config(folder / CONFIG)
    here = config.text.model_copy(update={"reuse": there.text.reuse, "max_length": there.text.max_length})
    differing = differing_keys(there.text, here, "text.")
    if there.data.languages != config.data.languages:
        theirs, ours = (" to ".join(data.languages) for data in (there.data, config.data))
        differing.append(f"data.src_language, data.tgt_language and data.reverse ({theirs} there, {ours} here)")
    settings = make_normalizer(config.data.cleaning).settings
    differing += [
        f"data.cleaning.{key} ({value!r} there, {settings[key]!r} here)"
        for key, value in processor.normalizer.settings.items()
        if value != settings[key]
    ]
    if differing:
        raise ConfigError(f"text.reuse: {path} has other settings: {', '.join(differing)}; set the same")
    return processor


def _tokenize(text: Path, name: str, store: PairStore, rows: Rows, workers: int | None) -> NumberedText:
    """Tokenise one side of the training pairs with the tokenizer saved in `text`."""
    lines = store.lines(name)
    numbered = NumberedText(text.parent / "work" / f"{name}.numbers")
    blocks = (lines.raw(piece) for piece in in_chunks(rows))
    with progress_bar(desc=f"tokenising {name}", total=len(rows), unit=" lines", leave=False) as bar:
        for tokenized in map_chunks(partial(tokenize_block, text, name), blocks, workers):
            numbered.append(tokenized)
            bar.update(len(tokenized.lengths))
    return numbered


def _sample(lines: Lines, rows: Rows, size: int) -> Iterator[str]:
    """At most `size` texts, evenly spaced, in the order of `rows`."""
    if len(rows) > size:
        rows = rows[np.linspace(0, len(rows) - 1, size).astype(np.int64)]
    for piece in in_chunks(rows):
        yield from lines.texts(piece)


def _learn_tokenizers(config: Config, store: PairStore, rows: Rows) -> tuple[Tokenizer, Tokenizer]:
    text, src, tgt = config.text, store.lines("src"), store.lines("tgt")
    if text.tokenizer == "whitespace":
        tokenizer = WhitespaceTokenizer(lowercase=text.lowercase)
        return tokenizer, tokenizer
    if text.tokenizer == "spacy":
        words = [WordTokenizer(language, lowercase=text.lowercase) for language in config.data.languages]
        for word_tokenizer, lines in zip(words, (src, tgt), strict=True):
            word_tokenizer.learn_spacing(_sample(lines, rows, SPACING_SAMPLE))
        return words[0], words[1]

    def learn(*sides: Lines) -> SubwordTokenizer:
        return SubwordTokenizer.learn(
            (line for lines in sides for line in _sample(lines, rows, text.subword.sample)),
            algorithm=text.subword.algorithm,
            vocabulary_size=text.subword.vocabulary_size,
            lowercase=text.lowercase,
        )

    if text.subword.joint:
        joint = learn(src, tgt)
        return joint, joint
    return learn(src), learn(tgt)


def _make_vocabularies(
    text: TextSection, sides: Sequence[NumberedText], tokenizers: Sequence[Tokenizer]
) -> tuple[Vocabulary, Vocabulary]:
    options = text.vocabulary
    counts = [side.counter() for side in sides]
    if options.min_count == 0:
        for count, tokenizer in zip(counts, tokenizers, strict=True):
            count.update(dict.fromkeys(tokenizer.pieces, 0) if isinstance(tokenizer, SubwordTokenizer) else {})
    if options.joint:
        counts[0].update(counts[1])  # `+` would drop tokens that never occur
        counts = [counts[0]] * 2
    src, tgt = (Vocabulary.from_counts(c, min_count=options.min_count, max_size=options.max_size) for c in counts)
    return src, tgt
