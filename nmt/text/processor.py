"""Both sides of a language pair: raw text to ids and back, saved as one folder."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nmt.system.files import check_file, write_json
from nmt.system.limits import MAX_TEXT_FILE
from nmt.text.names import load_words, save_words
from nmt.text.normalization import Normalizer
from nmt.text.settings import read_settings
from nmt.text.tokenizers import Tokenizer, load_tokenizer
from nmt.text.vocabulary import UNK_ID, Vocabulary

SIDES = ("src", "tgt")
NORMALIZATION = "normalization.json"
SEEN = "train.src.fingerprints.npy"
"""Identity fingerprints of the training sources; see `nmt.corpus.identity`."""
WORDS = "train.src.words.txt"
"""The words of the training sources; see `nmt.text.names`."""
TEXT = "text"
"""Name of the folder of text files, in a data, run or model directory."""
TEXT_FILES = (
    *(f"{side}.{name}" for side in SIDES for name in ("tokenizer.json", "subwords.model", "vocabulary.json")),
    NORMALIZATION,
    SEEN,
    WORDS,
)
"""All files of a text folder."""
OPTIONAL_FILES = ("src.subwords.model", "tgt.subwords.model", SEEN, WORDS)
"""Those that may be missing."""


@dataclass(frozen=True, eq=False)
class TextProcessor:
    """Tokenizers and vocabularies of source and target.

    Attributes:
        src_tokenizer: Tokenizer of the source language.
        tgt_tokenizer: Tokenizer of the target language.
        src_vocabulary: Vocabulary of the source.
        tgt_vocabulary: Vocabulary of the target.
        normalizer: Repairs source text in the same way as training text.
        known_words: The words of the training sources, if names that are none of them are taken over.
    """

    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    src_vocabulary: Vocabulary
    tgt_vocabulary: Vocabulary
    normalizer: Normalizer = field(default_factory=Normalizer)
    known_words: frozenset[str] = frozenset()

    def tokenize_source(self, lines: Sequence[str]) -> list[list[str]]:
        """Tokens of raw source lines, repaired in the same way as training text."""
        return list(self.src_tokenizer.tokenize([self.normalizer(line) for line in lines]))

    def tokenize_target(self, lines: Iterable[str]) -> list[list[str]]:
        """Tokens of raw target lines, repaired in the same way as training text."""
        return list(self.tgt_tokenizer.tokenize([self.normalizer(line) for line in lines]))

    def target_tokens(
        self,
        ids: Sequence[int],
        src_tokens: Sequence[str] = (),
        attended: Sequence[int] = (),
        dictionary: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Tokens of target ids; an unknown one is replaced by the source token it attends to (Luong et al., 2015).

        Args:
            ids: Target ids without EOS.
            src_tokens: Source tokens without EOS.
            attended: For each id, the source position attended most; empty leaves unknown tokens as they are.
            dictionary: Translations of source tokens, which stand in their place.
        """
        tokens = self.tgt_vocabulary.decode(ids)
        for index, position in enumerate(attended):
            if ids[index] == UNK_ID and position < len(src_tokens):
                source = src_tokens[position]
                tokens[index] = (dictionary or {}).get(source, source)
        return tokens

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Tokenizers of source and target."""
        return self.src_tokenizer, self.tgt_tokenizer

    @property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """Vocabularies of source and target."""
        return self.src_vocabulary, self.tgt_vocabulary

    def save(self, directory: Path) -> None:
        """Write everything into `directory`, which exists."""
        for side, tokenizer, vocabulary in zip(SIDES, self.tokenizers, self.vocabularies, strict=True):
            tokenizer.save(directory, side)
            vocabulary.save(directory / f"{side}.vocabulary.json")
        write_json(directory / NORMALIZATION, self.normalizer.settings)
        if self.known_words:
            save_words(directory / WORDS, self.known_words)


class WithText:
    """A directory with a text folder whose vocabularies have been read: that of data, or of a model."""

    path: Path
    src_vocabulary: Vocabulary
    tgt_vocabulary: Vocabulary

    @property
    def text(self) -> Path:
        """Folder with vocabularies and tokenizers."""
        return self.path / TEXT

    def load_processor(self) -> TextProcessor:
        """Load the tokenizers, and combine them with the vocabularies.

        Raises:
            DataError: Files are missing or damaged.
        """
        return load_processor(self.text, (self.src_vocabulary, self.tgt_vocabulary))


def load_processor(directory: Path, vocabularies: tuple[Vocabulary, Vocabulary] | None = None) -> TextProcessor:
    """Load the files that `TextProcessor.save` wrote.

    Args:
        directory: The text folder.
        vocabularies: Result of `load_vocabularies`, if already called; None reads them.

    Raises:
        DataError: Files are missing or damaged.
    """
    normalizer = load_normalizer(directory)
    src_tokenizer = load_tokenizer(directory, "src")
    tgt_tokenizer = load_tokenizer(directory, "tgt")
    if vocabularies is None:
        vocabularies = load_vocabularies(directory)
    src_vocabulary, tgt_vocabulary = vocabularies
    known_words = load_words(directory / WORDS)
    return TextProcessor(src_tokenizer, tgt_tokenizer, src_vocabulary, tgt_vocabulary, normalizer, known_words)


def load_normalizer(directory: Path) -> Normalizer:
    """Load only the normalizer of a text folder.

    Raises:
        DataError: Its file is missing or damaged.
    """
    return read_settings(directory / NORMALIZATION, Normalizer)


def load_vocabularies(directory: Path) -> tuple[Vocabulary, Vocabulary]:
    """Load only the source and target vocabulary, without a tokenizer library."""
    src = Vocabulary.load(directory / "src.vocabulary.json")
    tgt = Vocabulary.load(directory / "tgt.vocabulary.json")
    return src, tgt


def copy_text_files(source: Path, target: Path) -> None:
    """Copy the files of a text folder to another folder, which is created if missing, without parsing them.

    Raises:
        DataError: One of them is not a regular file in its folder.
        OSError: One of them cannot be read or written.
    """
    target.mkdir(exist_ok=True)
    for name in TEXT_FILES:
        path = check_file(source / name, source, MAX_TEXT_FILE)
        if path.exists() or name not in OPTIONAL_FILES:
            shutil.copyfile(path, target / name)
