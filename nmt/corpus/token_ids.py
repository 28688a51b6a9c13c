"""Encoding splits as ids on disk: tokenizers, vocabularies, arrays."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.config import Config, TextSection, read_config
from nmt.config.parent import TEXT_KEYS, check_parent, find_parent
from nmt.corpus.cleaning import make_text_normalizer
from nmt.corpus.data_schema import EncodingReport
from nmt.corpus.dataset import CONFIG, EncodedPairs, Ids, encode_examples, write_sequences
from nmt.corpus.identity import save_seen
from nmt.corpus.lines import Lines, Rows, decode_lines
from nmt.corpus.processes import map_chunks
from nmt.corpus.references import find_altered
from nmt.corpus.splitting import Splits
from nmt.corpus.store import PairStore, in_chunks
from nmt.system.errors import DataError
from nmt.system.files import check_file
from nmt.system.progress import progress_bar
from nmt.text.processor import SEEN, SIDES, TEXT, TextProcessor, load_processor
from nmt.text.tokenizers import (
    WORD_BEGINNING,
    SubwordTokenizer,
    Tokenizer,
    WhitespaceTokenizer,
    WordTokenizer,
    load_tokenizer,
)
from nmt.text.vocabulary import LARGER, UNK_ID, Vocabulary

log = logging.getLogger(__name__)

PIECE = 1 << 20
"""Tokens that are looked at together."""
SPACING_SAMPLE = 200_000
"""Maximum number of sentences to learn the spaces between words from."""
_saved_tokenizer = lru_cache(maxsize=1)(load_tokenizer)
COVERAGE = (100, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
"""Vocabulary sizes whose coverage is in the report."""


def encode_splits(
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
    processor = TextProcessor(*tokenizers, *vocabularies, make_text_normalizer(config.data.cleaning))
    processor.save(text)
    if reused:
        _warn_of_unknown_tags(config, processor)

    # Numbers -> ids, of the pairs whose sides both fit.
    longest = config.text.max_length
    fits = np.logical_and.reduce([(side.lengths > 0) & (side.lengths <= longest) for side in sides])
    if not fits.any():
        raise DataError(f"no training pair has at most text.max_length = {longest} tokens")
    save_seen(text / SEEN, store.fingerprints("src_identity")[rows][fits])
    for name, side, vocabulary in zip(SIDES, sides, vocabularies, strict=True):
        write_sequences(output, f"train.{name}", side.lengths[fits], side.encode(vocabulary, fits))
    warnings = []
    for split, examples in splits.evaluation.items():
        if altered := find_altered(examples, processor):
            advice = ": set text.tokenizer=subword, which keeps every text" if config.text.tokenizer == "spacy" else ""
            warnings.append(f"{split}: {altered}{advice}")
    encoded = {split: encode_examples(processor, examples) for split, examples in splits.evaluation.items()}
    encoded["valid"].save(output, "valid")  # the test split is only counted: it is scored as text
    encoded = {"train": EncodedPairs.load(output, "train"), **encoded}
    both = {split: (pairs.src, pairs.tgt) for split, pairs in encoded.items()}
    unknown = {split: [_unknown_share(side.ids) for side in pairs] for split, pairs in both.items()}
    advice = "set parent.pieces=own" if reused else LARGER
    for what, share in zip(("source", "target"), unknown["train"], strict=True):
        if share == 1:
            raise DataError(f"every {what} token in training is unknown; {advice}")
    return EncodingReport(
        reused=reused is not None,
        tokenizer=tokenizers[0].kind,
        too_many_tokens=int(np.sum(~fits)),
        copies=int(np.sum(fits[len(splits.train) :])),
        vocabulary={name: len(vocabulary) for name, vocabulary in zip(SIDES, vocabularies, strict=True)},
        distinct_tokens={name: len(side.counts) for name, side in zip(SIDES, sides, strict=True)},
        coverage={name: side.coverage(COVERAGE) for name, side in zip(SIDES, sides, strict=True)},
        lengths={split: [np.bincount(side.lengths).tolist() for side in pairs] for split, pairs in both.items()},
        tokens={split: [len(side.ids) for side in pairs] for split, pairs in both.items()},
        unknown_share={split: [round(share, 6) for share in shares] for split, shares in unknown.items()},
        warnings=warnings,
    )


def _unknown_share(ids: Ids) -> float:
    """Share of unknown tokens, counted in pieces, as the ids of training text may be larger than memory."""
    pieces = (ids[first : first + PIECE] for first in range(0, len(ids), PIECE))
    return sum(int(np.count_nonzero(piece == UNK_ID)) for piece in pieces) / max(1, len(ids))


def load_pieces(config: Config) -> TextProcessor | None:
    """The tokenizers and vocabularies of the parent, which may be a data directory; None where a config has its own.

    Raises:
        ConfigError: There are none, or the config has other settings: normalisation, casing, subwords.
    """
    if config.parent.run is None or config.parent.pieces == "own":
        return None
    folder = find_parent(config.parent.run)
    processor = load_processor(check_file(folder / TEXT, folder))
    check_parent(config, read_config(folder / CONFIG), TEXT_KEYS)
    return processor


def _tokenize(text: Path, name: str, store: PairStore, rows: Rows, workers: int | None) -> NumberedText:
    """Tokenise one side of the training pairs with the tokenizer saved in `text`."""
    lines = store.lines(name)
    _saved_tokenizer.cache_clear()  # an earlier run may have used the same folder
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
    tags = _tags(config)
    if text.tokenizer == "whitespace":
        tokenizer = WhitespaceTokenizer(lowercase=text.lowercase)
        return tokenizer, tokenizer
    if text.tokenizer == "spacy":
        source, target = config.data.languages
        words = [
            WordTokenizer(source, lowercase=text.lowercase, symbols=tags),
            WordTokenizer(target, lowercase=text.lowercase),
        ]
        for word_tokenizer, lines in zip(words, (src, tgt), strict=True):
            word_tokenizer.learn_spacing(_sample(lines, rows, SPACING_SAMPLE))
        return words[0], words[1]

    def learn(*sides: Lines, symbols: Iterable[str] = ()) -> SubwordTokenizer:
        return SubwordTokenizer.learn(
            (line for lines in sides for line in _sample(lines, rows, text.subword.sample)),
            algorithm=text.subword.algorithm,
            vocabulary_size=text.subword.vocabulary_size,
            lowercase=text.lowercase,
            symbols=symbols,
        )

    if text.subword.joint:
        joint = learn(src, tgt, symbols=tags)
        return joint, joint
    return learn(src, symbols=tags), learn(tgt)


def _tags(config: Config) -> list[str]:
    """The tags of further corpora, each of which is one token at the beginning of a source."""
    return sorted({extra.tag for extra in config.data.extra.values() if extra.tag})


def _warn_of_unknown_tags(config: Config, processor: TextProcessor) -> None:
    """Warn of tags that the tokens of a parent do not have."""
    for tag in _tags(config):
        (tokens,) = processor.tokenize_source([tag])
        words = [token for token in tokens if token != WORD_BEGINNING]  # an older model has the space as a piece
        is_one = [word.removeprefix(WORD_BEGINNING) for word in words] == [tag]
        if not is_one or UNK_ID in processor.src_vocabulary.encode(words):
            log.warning(
                f"data.extra: the tag {tag} is no token of {config.parent.run}, which reads it as {' '.join(tokens)}; "
                "set parent.pieces=own"
            )


def _make_vocabularies(
    text: TextSection, sides: Sequence[NumberedText], tokenizers: Sequence[Tokenizer]
) -> tuple[Vocabulary, Vocabulary]:
    options = text.vocabulary
    counts = [side.counter() for side in sides]
    if options.min_count == 0:
        for count, tokenizer in zip(counts, tokenizers, strict=True):
            if isinstance(tokenizer, SubwordTokenizer):
                count.update(dict.fromkeys([*tokenizer.symbols, *tokenizer.scores], 0))
    if options.joint:
        counts[0].update(counts[1])  # `+` would drop tokens that never occur
        counts = [counts[0]] * 2
    src, tgt = (Vocabulary.from_counts(c, min_count=options.min_count, max_size=options.max_size) for c in counts)
    return src, tgt


class TokenizedLines(NamedTuple):
    """Tokens of some lines, in the compact form in which processes exchange them.

    Attributes:
        tokens: The distinct tokens, in order of first appearance.
        numbers: All tokens of all lines, concatenated, as positions in `tokens`.
        lengths: Number of tokens of each line.
    """

    tokens: list[str]
    numbers: NDArray[np.int32]
    lengths: NDArray[np.int64]


def tokenize_block(directory: Path, side: str, block: bytes) -> TokenizedLines:
    """Tokenise a block of lines with a saved tokenizer, which each process reads once: the work of one process.

    Args:
        directory: Folder that `Tokenizer.save` wrote to.
        side: `src` or `tgt`.
        block: UTF-8 lines, each ending in a line feed.
    """
    numbers_of_tokens: dict[str, int] = {}
    numbers: list[int] = []
    lengths: list[int] = []
    for tokens in _saved_tokenizer(directory, side).tokenize(decode_lines(block)):
        numbers += [numbers_of_tokens.setdefault(token, len(numbers_of_tokens)) for token in tokens]
        lengths.append(len(tokens))
    return TokenizedLines(list(numbers_of_tokens), np.array(numbers, dtype=np.int32), np.array(lengths, dtype=np.int64))


class NumberedText:
    """Tokens of one side of the training pairs, numbered by first appearance and counted, on disk.

    Args:
        path: A file for the numbers.

    Attributes:
        counts: Occurrences of each token, by number.
    """

    def __init__(self, path: Path) -> None:
        self.counts = np.zeros(0, dtype=np.int64)
        self._numbers: dict[str, int] = {}
        self._lengths: list[NDArray[np.int64]] = []
        self._path = path

    def append(self, lines: TokenizedLines) -> None:
        """Number and count the tokens of further lines."""
        numbers = self._numbers
        table = np.array([numbers.setdefault(token, len(numbers)) for token in lines.tokens], dtype=np.int32)
        numbered = table[lines.numbers]
        counts = np.bincount(numbered, minlength=len(numbers))
        counts[: len(self.counts)] += self.counts
        self.counts = counts
        self._lengths.append(lines.lengths)
        with self._path.open("ab") as file:
            file.write(numbered.tobytes())

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each line."""
        return np.concatenate(self._lengths)

    def coverage(self, sizes: Sequence[int]) -> dict[int, float]:
        """Share of all tokens that the N most frequent ones make up, for each N in `sizes` and for all."""
        covered = np.cumsum(np.sort(self.counts)[::-1]) / max(1, self.counts.sum())
        total = len(covered)
        return {size: round(float(covered[size - 1]), 6) for size in (*(s for s in sizes if s < total), total)}

    def counter(self) -> Counter[str]:
        """Number of occurrences of each token."""
        return Counter(dict(zip(self._numbers, self.counts.tolist(), strict=True)))

    def encode(self, vocabulary: Vocabulary, keep: NDArray[np.bool_]) -> Iterator[NDArray[np.int32]]:
        """Vocabulary ids of the lines to keep, piece by piece."""
        table = np.array(vocabulary.encode(list(self._numbers)), dtype=np.int32)
        every = self.lengths
        with self._path.open("rb") as file:
            for piece in in_chunks(np.arange(len(every))):
                lengths = every[piece]
                numbers = np.fromfile(file, dtype=np.int32, count=int(lengths.sum()))
                yield table[numbers[np.repeat(keep[piece], lengths)]]
