"""Encoding splits as ids on disk: tokenizers, vocabularies, arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.config import Config, TextSection
from nmt.corpus.dataset import TEXT, EncodedPairs, Ids, encode_examples, write_sequences
from nmt.corpus.identity import save_seen
from nmt.corpus.parallel import map_chunks
from nmt.corpus.splitting import Splits
from nmt.corpus.store import PairStore, Rows, TextColumn, in_chunks
from nmt.system.errors import DataError
from nmt.system.progress import progress_bar
from nmt.text.indexing import TokenIndex, index_block
from nmt.text.normalization import Normalizer
from nmt.text.processor import SEEN, TextProcessor
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, WhitespaceTokenizer, WordTokenizer
from nmt.text.vocabulary import LARGER, UNK_ID, Vocabulary

SIDES = ("src", "tgt")
SPACING_SAMPLE = 200_000
"""Maximum number of sentences to learn the spaces between words from."""
COVERAGE = (100, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
"""Vocabulary sizes whose coverage is in the report."""

Lengths = NDArray[np.int64]


def encode(
    config: Config,
    store: PairStore,
    splits: Splits,
    copies: Rows,
    normalizer: Normalizer,
    reused: TextProcessor | None,
    output: Path,
) -> dict[str, Any]:
    """Learn tokenizers and vocabularies from the training pairs and copies of them, then encode every split.

    Args:
        config: The whole config.
        store: Clean pairs.
        splits: Their splits.
        copies: Rows of copies of training pairs, which come after them.
        normalizer: Repairs text to translate.
        reused: Tokenizers and vocabularies to use instead of learning them.
        output: The data directory.

    Raises:
        DataError: All training pairs are too long, or one side of them has no known token.
    """
    text = config.text
    rows = np.concatenate([splits.train, copies])
    processor, sides = _learn(config, store, rows, normalizer, reused, output)
    vocabularies = processor.src_vocabulary, processor.tgt_vocabulary
    fits = np.logical_and.reduce([(side.lengths > 0) & (side.lengths <= text.max_length) for side in sides])
    if not fits.any():
        raise DataError(f"no training pair has at most text.max_length = {text.max_length} tokens")
    save_seen(output / TEXT / SEEN, store.prints("src_identity")[rows][fits])
    counts = {"train": _write_training(output, sides, vocabularies, fits)}
    for name, unknown in zip(("source", "target"), counts["train"].unknown_share, strict=True):
        if unknown == 1:
            advice = "remove text.reuse" if reused else LARGER
            raise DataError(f"every {name} token in training is unknown; {advice}")
    valid, test = (encode_examples(processor, examples) for examples in (splits.valid, splits.test))
    valid.save(output, "valid")  # the test split is only counted: it is scored as text
    counts |= {"valid": _Counts.of(valid), "test": _Counts.of(test)}
    return {
        "reused": reused is not None,
        "tokenizer": processor.src_tokenizer.kind,
        "too_many_tokens": int(np.sum(~fits)),
        "copies": int(np.sum(fits[len(splits.train) :])),
        "vocabulary": {side: len(vocabulary) for side, vocabulary in zip(SIDES, vocabularies, strict=True)},
        "distinct_tokens": {side: len(found.index) for side, found in zip(SIDES, sides, strict=True)},
        "coverage": {side: found.index.coverage(COVERAGE) for side, found in zip(SIDES, sides, strict=True)},
        "lengths": {name: found.lengths for name, found in counts.items()},
        "tokens": {name: found.tokens for name, found in counts.items()},
        "unknown_share": {name: found.unknown_share for name, found in counts.items()},
        "longest_training_pair": [len(numbers) - 1 for numbers in counts["train"].lengths],
    }


def _learn(
    config: Config, store: PairStore, rows: Rows, normalizer: Normalizer, reused: TextProcessor | None, output: Path
) -> tuple[TextProcessor, list[_EncodedSide]]:
    """Learn and save tokenizers and vocabularies, unless they are reused, and tokenise the training pairs."""
    if reused:
        tokenizers: tuple[Tokenizer, Tokenizer] = (reused.src_tokenizer, reused.tgt_tokenizer)
    else:
        tokenizers = _learn_tokenizers(config, store, rows)
    sides = []
    for tokenizer, column, side in zip(tokenizers, (store.src, store.tgt), SIDES, strict=True):
        tokenizer.save(output / TEXT, side)
        encoded = _EncodedSide(output / "work" / f"{side}.numbers")
        encoded.tokenize(column, rows, config, output / TEXT, side)
        sides.append(encoded)
    if reused:
        vocabularies = reused.src_vocabulary, reused.tgt_vocabulary
    else:
        vocabularies = _make_vocabularies(config.text, sides, tokenizers)
    processor = TextProcessor(*tokenizers, *vocabularies, normalizer)
    processor.save_vocabularies(output / TEXT)
    return processor, sides


class _EncodedSide:
    """One side of the training pairs as token numbers on disk, before there is a vocabulary.

    Attributes:
        index: Tokens by number.
        lengths: Tokens of each line.
    """

    def __init__(self, path: Path) -> None:
        self.index = TokenIndex()
        self.lengths: Lengths = np.empty(0, dtype=np.int64)
        self._path = path

    def tokenize(self, column: TextColumn, rows: Rows, config: Config, text: Path, side: str) -> None:
        """Tokenise the lines at `rows` with the tokenizer saved in `text`."""
        lengths = []
        blocks = (column.raw(piece) for piece in in_chunks(rows))
        work = partial(index_block, text, side)
        bar = progress_bar(desc=f"tokenising {side}", total=len(rows), unit=" lines", leave=False)
        with self._path.open("wb") as file, bar:
            for lines in map_chunks(work, blocks, config.data.workers):
                file.write(self.index.renumber(lines).tobytes())
                lengths.append(lines.lengths.astype(np.int64))
                bar.update(len(lines.lengths))
        self.lengths = np.concatenate(lengths)

    def encode(self, vocabulary: Vocabulary, keep: NDArray[np.bool_]) -> Iterator[Ids]:
        """Vocabulary ids of the lines to keep, piece by piece."""
        table = self.index.ids(vocabulary)
        with self._path.open("rb") as file:
            for piece in in_chunks(np.arange(len(self.lengths))):
                lengths = self.lengths[piece]
                numbers = np.fromfile(file, dtype=np.int32, count=int(lengths.sum()))
                yield table[numbers[np.repeat(keep[piece], lengths)]]


class _Counts:
    """Statistics of both sides of a split.

    Attributes:
        tokens: Number of tokens of each side.
        unknown_share: Share of unknown tokens of each side.
        lengths: Number of sentences of each side with no token, with one token, and so on.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.unknown_share: list[float] = []
        self.lengths: list[list[int]] = []

    @classmethod
    def of(cls, pairs: EncodedPairs) -> _Counts:
        """Count pairs in memory."""
        counts = cls()
        for side in (pairs.src, pairs.tgt):
            counts.add(side.lengths, int(np.sum(side.ids == UNK_ID)))
        return counts

    def add(self, lengths: Lengths, unknown: int) -> None:
        """Add a side: number of tokens of each sentence, and the total of unknown tokens."""
        tokens = int(lengths.sum())
        self.tokens.append(tokens)
        self.unknown_share.append(round(unknown / tokens, 6) if tokens else 0.0)
        self.lengths.append(np.bincount(lengths).tolist())


def _write_training(
    output: Path, sides: Sequence[_EncodedSide], vocabularies: Sequence[Vocabulary], keep: NDArray[np.bool_]
) -> _Counts:
    """Write the training pairs to keep, and count them."""
    counts = _Counts()
    for name, side, vocabulary in zip(SIDES, sides, vocabularies, strict=True):
        unknown = 0

        def counted(pieces: Iterator[Ids]) -> Iterator[Ids]:
            nonlocal unknown
            for piece in pieces:
                unknown += int(np.sum(piece == UNK_ID))
                yield piece

        write_sequences(output, f"train.{name}", side.lengths[keep], counted(side.encode(vocabulary, keep)))
        counts.add(side.lengths[keep], unknown)
    return counts


def _sample(column: TextColumn, rows: Rows, size: int) -> Iterator[str]:
    """At most `size` texts, evenly spaced, in the order of `rows`."""
    if len(rows) > size:
        rows = rows[np.linspace(0, len(rows) - 1, size).astype(np.int64)]
    for piece in in_chunks(rows):
        yield from column.texts(piece)


def _learn_tokenizers(config: Config, store: PairStore, rows: Rows) -> tuple[Tokenizer, Tokenizer]:
    text = config.text
    if text.tokenizer == "whitespace":
        tokenizer = WhitespaceTokenizer(lowercase=text.lowercase)
        return tokenizer, tokenizer
    if text.tokenizer == "spacy":
        words = [WordTokenizer(language, lowercase=text.lowercase) for language in config.data.languages]
        for word_tokenizer, column in zip(words, (store.src, store.tgt), strict=True):
            word_tokenizer.learn_spacing(_sample(column, rows, SPACING_SAMPLE))
        return words[0], words[1]

    def learn(*columns: TextColumn) -> SubwordTokenizer:
        return SubwordTokenizer.learn(
            (line for column in columns for line in _sample(column, rows, text.subword.sample)),
            algorithm=text.subword.algorithm,
            vocabulary_size=text.subword.vocabulary_size,
            lowercase=text.lowercase,
        )

    if text.subword.joint:
        joint = learn(store.src, store.tgt)
        return joint, joint
    return learn(store.src), learn(store.tgt)


def _make_vocabularies(
    text: TextSection, sides: Sequence[_EncodedSide], tokenizers: Sequence[Tokenizer]
) -> tuple[Vocabulary, Vocabulary]:
    options = text.vocabulary
    counts = [side.index.counter() for side in sides]
    if options.min_count == 0:
        for count, tokenizer in zip(counts, tokenizers, strict=True):
            count.update(dict.fromkeys(tokenizer.pieces, 0) if isinstance(tokenizer, SubwordTokenizer) else {})
    if options.joint:
        counts[0].update(counts[1])  # `+` would drop tokens that never occur
        counts = [counts[0]] * 2
    src, tgt = (Vocabulary.from_counts(c, min_count=options.min_count, max_size=options.max_size) for c in counts)
    return src, tgt
