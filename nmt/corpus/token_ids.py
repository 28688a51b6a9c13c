"""Encoding splits as ids on disk: tokenizers, vocabularies, arrays."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.config import Config, TextSection, automatic_keys, choose_by_amount, read_config
from nmt.config.parent import TEXT_KEYS, check_parent, find_parent
from nmt.corpus.cleaning import make_text_normalizer
from nmt.corpus.dataset import EncodedPairs, Ids, encode_examples, write_sequences
from nmt.corpus.example import Example
from nmt.corpus.identity import save_seen
from nmt.corpus.lines import Lines, Rows, decode_lines
from nmt.corpus.marker_schema import CONFIG
from nmt.corpus.processes import map_chunks
from nmt.corpus.references import find_altered
from nmt.corpus.report_schema import EncodingReport
from nmt.corpus.splitting import Splits
from nmt.corpus.store import PairStore, in_chunks
from nmt.system.errors import DataError
from nmt.system.files import check_file
from nmt.system.progress import progress_bar
from nmt.text.casing import lower
from nmt.text.direction import Direction
from nmt.text.placeholders import reserved_tokens
from nmt.text.processor import SEEN, SIDES, TEXT, TextProcessor, load_processor
from nmt.text.tokenizers import (
    PIECES,
    WORD_BEGINNING,
    SubwordTokenizer,
    Tokenizer,
    WhitespaceTokenizer,
    WordTokenizer,
    count_needed,
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
    config: Config,
    store: PairStore,
    splits: Splits,
    copies: Rows,
    reused: TextProcessor | None,
    output: Path,
    known_words: frozenset[str],
    *,
    fewer: bool,
) -> EncodingReport:
    """Learn tokenizers and vocabularies from the training pairs and copies of them, then encode every split.

    Args:
        config: The whole config.
        store: Clean pairs.
        splits: Their splits.
        copies: Rows of copies of training pairs, which come after them.
        reused: Tokenizers and vocabularies to use instead of learning them.
        output: The data directory.
        known_words: The words of the training sources, if names that are none of them are taken over.
        fewer: True if text that has fewer pieces than the config asks for gets as many as it has.

    Raises:
        DataError: All training pairs are too long, or one side of them has no known token.
    """
    text = output / TEXT
    text.mkdir()
    rows = np.concatenate([splits.train, copies])
    tokenizers = reused.tokenizers if reused else _learn_tokenizers(config, store, rows, fewer=fewer)
    # Text -> numbers of tokens, on disk: there is no vocabulary before all training text is tokenised.
    sides = []
    for name, tokenizer in zip(SIDES, tokenizers, strict=True):
        tokenizer.save(text, name)
        sides.append(_tokenize(text, name, store, rows, config.data.workers))
    vocabularies = reused.vocabularies if reused else _make_vocabularies(config.text, sides, tokenizers)
    normalizer = make_text_normalizer(config.data.cleaning)
    processor = TextProcessor(*tokenizers, *vocabularies, normalizer, known_words)
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
        altered = find_altered(examples, processor)
        if altered:
            advice = ": set text.tokenizer=subword, which keeps every text" if config.text.tokenizer == "spacy" else ""
            warnings.append(f"{split}: {altered}{advice}")
    encoded = {split: encode_examples(processor, examples) for split, examples in splits.evaluation.items()}
    encoded["valid"].save(output, "valid")  # the test split is only counted: it is scored as text

    # Lengths, tokens and shares of unknown tokens of each split, source first.
    lengths = {}
    tokens = {}
    unknown = {}
    for split, pairs in {"train": EncodedPairs.load(output, "train"), **encoded}.items():
        both_sides = (pairs.src, pairs.tgt)
        lengths[split] = [np.bincount(side.lengths).tolist() for side in both_sides]
        tokens[split] = [len(side.ids) for side in both_sides]
        unknown[split] = [_unknown_share(side.ids) for side in both_sides]
    advice = "set parent.pieces=own" if reused else LARGER
    for noun, share in zip(("source", "target"), unknown["train"], strict=True):
        if share == 1:
            raise DataError(f"every {noun} token in training is unknown; {advice}")
    return EncodingReport(
        reused=reused is not None,
        tokenizer=tokenizers[0].kind,
        too_many_tokens=int(np.sum(~fits)),
        copies=int(np.sum(fits[len(splits.train) :])),
        vocabulary={name: len(vocabulary) for name, vocabulary in zip(SIDES, vocabularies, strict=True)},
        distinct_tokens={name: len(side.counts) for name, side in zip(SIDES, sides, strict=True)},
        coverage={name: side.coverage(COVERAGE) for name, side in zip(SIDES, sides, strict=True)},
        lengths=lengths,
        tokens=tokens,
        unknown_share={split: [round(share, 6) for share in shares] for split, shares in unknown.items()},
        warnings=warnings,
        **_describe_characters(config, processor, splits.evaluation["valid"]),
    )


def _describe_characters(config: Config, processor: TextProcessor, examples: Sequence[Example]) -> dict[str, Any]:
    """How many pieces characters need, and on each side the share of subwords that have a character without a piece."""
    tokenizers = [tokenizer for tokenizer in processor.tokenizers if isinstance(tokenizer, SubwordTokenizer)]
    if not tokenizers:
        return {}
    sources = processor.tokenize_source([example.src for example in examples])
    targets = processor.tokenize_target([reference for example in examples for reference in example.references])
    shares = []
    for lines, tokenizer in zip((sources, targets), tokenizers, strict=True):
        known = tokenizer.characters
        unseen = sum(not known.issuperset(token) for line in lines for token in line)
        shares.append(round(unseen / max(1, sum(map(len, lines))), 6))
    pieces = max(count_needed(tokenizer.characters, config.data.tags) for tokenizer in tokenizers)
    return {"unseen_characters": shares, "character_pieces": pieces}


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


def _learn_tokenizers(config: Config, store: PairStore, rows: Rows, *, fewer: bool) -> tuple[Tokenizer, Tokenizer]:
    text = config.text
    tags = config.data.tags
    reserved = reserved_tokens(text)
    direction = Direction.of(config.data)
    casings = direction.casings
    if text.tokenizer == "whitespace":
        apart = [WhitespaceTokenizer(lowercase=text.lowercase, casing=casing) for casing in casings]
        return apart[0], apart[1]
    if text.tokenizer == "spacy":
        words = [
            WordTokenizer(direction.source, lowercase=text.lowercase, casing=casings[0], symbols=[*tags, *reserved]),
            WordTokenizer(direction.target, lowercase=text.lowercase, casing=casings[1], symbols=reserved),
        ]
        for word_tokenizer, side in zip(words, SIDES, strict=True):
            word_tokenizer.learn_spacing(_sample(store.lines(side), rows, SPACING_SAMPLE))
        return words[0], words[1]

    def learn(*sides: str, fewer: bool = fewer) -> SubwordTokenizer:
        """Learn pieces of one side or both; tags are pieces of the source."""
        return SubwordTokenizer.learn(
            (line for side in sides for line in _read_folded(config, store, side, rows)),
            algorithm=text.subword.algorithm,
            vocabulary_size=text.subword.vocabulary_size,
            lowercase=text.lowercase,
            symbols=tags if "src" in sides else (),
            placeholders=reserved,
            fewer=fewer,
        )

    def learn_beside(side: str, opposite: str) -> SubwordTokenizer:
        """Learn pieces of one side; fewer where the characters of the other side need more than this one has."""
        try:
            return learn(side)
        except DataError:
            needed = count_needed(_characters(config, store, opposite, rows), [*tags, *reserved])
            if needed < text.subword.vocabulary_size:
                raise
        return learn(side, fewer=True)

    if text.subword.joint:
        learnt = [learn("src", "tgt")] * 2
    else:
        learnt = [learn_beside("src", "tgt"), learn_beside("tgt", "src")]
    src, tgt = (tokenizer.with_casing(casing) for tokenizer, casing in zip(learnt, casings, strict=True))
    return src, tgt


def _warn_of_unknown_tags(config: Config, processor: TextProcessor) -> None:
    """Warn of tags that the tokens of a parent do not have."""
    for tag in config.data.tags:
        (tokens,) = processor.tokenize_source([tag])
        words = [token for token in tokens if token != WORD_BEGINNING]  # an older model has the space as a piece
        is_one = [word.removeprefix(WORD_BEGINNING) for word in words] == [tag]
        if not is_one or UNK_ID in processor.src_vocabulary.encode(words):
            log.warning(
                f"data.extra: the tag {tag} is no token of {config.parent.run}, which reads it as {' '.join(tokens)}; "
                "set parent.pieces=own"
            )


def _read_folded(config: Config, store: PairStore, side: str, rows: Rows) -> Iterator[str]:
    """The text that pieces are learnt from, in small letters if the model reads such text."""
    casing = Direction.of(config.data).casings[SIDES.index(side)]
    for line in _sample(store.lines(side), rows, config.text.subword.sample):
        yield lower(line, casing) if config.text.lowercase else line


def choose_sizes(config: Config, store: PairStore, train: Rows, copies: Rows) -> dict[str, Any]:
    """Values in place of `auto` that fit the training text, by dotted path; see `choose_by_amount`.

    Args:
        config: The whole config.
        store: Clean pairs.
        train: Rows of the training pairs.
        copies: Rows of copies of them.
    """
    characters = 0
    if config.text.tokenizer == "subword" and PIECES in automatic_keys(config):
        characters = count_character_pieces(config, store, np.concatenate([train, copies]))
    return choose_by_amount(len(train), characters)


def count_character_pieces(config: Config, store: PairStore, rows: Rows) -> int:
    """The pieces that the characters of the training text need, on the side that needs more.

    Args:
        config: The whole config, of which `text` is used.
        store: Clean pairs.
        rows: Training pairs, and copies of them.
    """
    sides = [_characters(config, store, side, rows) for side in SIDES]
    if config.text.subword.joint:
        sides = [sides[0] | sides[1]]
    symbols = [*config.data.tags, *reserved_tokens(config.text)]
    return max(count_needed(characters, symbols) for characters in sides)


def _characters(config: Config, store: PairStore, side: str, rows: Rows) -> set[str]:
    """The characters of the text that pieces are learnt from."""
    characters = set[str]()
    for line in _read_folded(config, store, side, rows):
        characters.update(line)
    return characters


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
    src, tgt = (
        Vocabulary.from_counts(
            count,
            min_count=options.min_count,
            max_size=options.max_size,
            reserved=reserved_tokens(text),
        )
        for count in counts
    )
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
