"""The reader: turns raw text into the units that a model translates, and their translations back into text."""

from __future__ import annotations

import copy
import dataclasses
import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from nmt.system.errors import CONTROL
from nmt.text.casing import Casing, capitalize, upper
from nmt.text.languages import base_language
from nmt.text.sentences import is_in_capitals, is_title, split_tokens, untitle
from nmt.text.vocabulary import UNK_ID
from nmt.translation.joining import join_sentences
from nmt.translation.translation import Translation

if TYPE_CHECKING:
    from nmt.search.hypothesis import Hypothesis
    from nmt.text.processor import TextProcessor
    from nmt.text.sentences import SentenceSplitter
    from nmt.text.tokenizers import Tokenizer

MAX_SOURCE_LENGTH = 1000
"""Maximum number of source tokens that a model reads at once, less if it has so many positions."""


@dataclass(frozen=True)
class Unit:
    """A sentence, or a part of one that is too long: a model translates it at once.

    Attributes:
        tokens: Its source tokens.
    """

    tokens: list[str]

    def __len__(self) -> int:
        """Number of its tokens."""
        return len(self.tokens)

    @property
    def is_copied(self) -> bool:
        """True if it has no letters, such as an emoji or a number: it is its own translation."""
        return not any(map(str.isalpha, "".join(self.tokens)))


@dataclass(frozen=True)
class Passage:
    """A text, and the units that it was split into.

    Attributes:
        text: The text as it was given.
        units: Its units, in order; the translation of the text joins theirs.
    """

    text: str
    units: list[Unit]


class Reader:
    """Splits texts into units of tokens, and writes translations of tokens as text. It is thread-safe.

    Args:
        processor: Tokenizers and vocabularies.
        splitter: Finds the sentences of a text; None takes a text as it is.
        dictionary: Translations of words that the model does not know, by the word as it reads it.
        max_length: Maximum number of source tokens that the model reads at once; the rest is cut off.
        longest_part: Maximum number of tokens of each part that a longer sentence is split into, with a splitter.
    """

    def __init__(
        self,
        processor: TextProcessor,
        splitter: SentenceSplitter | None = None,
        dictionary: Mapping[str, str] | None = None,
        *,
        max_length: int = MAX_SOURCE_LENGTH,
        longest_part: int = MAX_SOURCE_LENGTH,
    ) -> None:
        self.processor = processor
        self.splitter = splitter
        self.dictionary = dictionary
        self.max_length = max_length
        self.longest_part = longest_part
        self._tokenizing = threading.Lock()  # spaCy fills caches while tokenising

    def __getstate__(self) -> dict[str, object]:
        """The attributes that are pickled: all but the lock."""
        return {name: value for name, value in vars(self).items() if name != "_tokenizing"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._tokenizing = threading.Lock()

    def with_longest_part(self, longest_part: int) -> Self:
        """A reader of the same text that splits long sentences into other parts."""
        reader = copy.copy(self)
        reader.longest_part = longest_part
        reader._tokenizing = self._tokenizing  # both use the same tokenizers
        return reader

    def read(self, texts: Iterable[str]) -> list[Passage]:
        """Split texts into units.

        A text of several words in capitals is read in small letters. With a splitter, a text may have several
        sentences, and an English title is read as a sentence is written.
        """
        given = list(texts)
        with self._tokenizing:
            sentences = [self._split(self.processor.normalizer.decode(text)) for text in given]
            tokenized = iter(self.processor.tokenize_source([sentence for parts in sentences for sentence in parts]))
            return [
                Passage(text, [Unit(part) for _ in parts for part in self._cut(next(tokenized))])
                for text, parts in zip(given, sentences, strict=True)
            ]

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        """Source tokens of texts, which are neither split nor changed; an empty text has none."""
        with self._tokenizing:
            return self.processor.tokenize_source(texts)

    def tokenize_target(self, texts: Sequence[str]) -> list[list[str]]:
        """Target tokens of texts, such as given translations."""
        with self._tokenizing:
            return self.processor.tokenize_target(texts)

    def cut_off(self, tokens: Sequence[str]) -> list[str]:
        """The source tokens that the model reads."""
        return list(tokens[: self.max_length])

    def join(self, passage: Passage, units: Sequence[Sequence[Translation]]) -> list[Translation]:
        """Translations of a text, best first, from those of its units; see `join_sentences`."""
        translations = join_sentences(units, self.splitter.glue if self.splitter else " ")
        if not is_in_capitals(passage.text):
            return translations
        _, casing = self._casings
        return [dataclasses.replace(translation, text=upper(translation.text, casing)) for translation in translations]

    def write(self, tokens: Sequence[str]) -> str:
        """Target tokens as a line of text."""
        return _as_text(tokens, self.processor.tgt_tokenizer)

    def write_source(self, tokens: Sequence[str]) -> str:
        """Source tokens as a line of text."""
        return _as_text(tokens, self.processor.src_tokenizer)

    def write_ids(self, ids: Sequence[int]) -> str:
        """Target ids without EOS as a line of text, in which unknown words stay unknown."""
        return self.write(self.processor.target_tokens(ids))

    def translation(
        self, hypothesis: Hypothesis, src_tokens: Sequence[str], given: Sequence[str] = (), *, replace_unknown: bool
    ) -> Translation:
        """A hypothesis as text.

        Args:
            hypothesis: The hypothesis.
            src_tokens: All tokens of the source, of which the model may have read fewer.
            given: The first target tokens as the user gave them, perhaps words that the model does not know.
            replace_unknown: True if an unknown word becomes the source word attended most, or its translation in the
                dictionary.
        """
        read = self.cut_off(src_tokens)
        attended = hypothesis.attended[: len(hypothesis.ids)] if replace_unknown else []
        tokens = self.processor.target_tokens(hypothesis.ids, read, attended, self.dictionary)
        tokens[: len(given)] = given
        return Translation(
            self.write(tokens),
            tokens,
            read,
            hypothesis.log_prob,
            hypothesis.score,
            hypothesis.alignment,
            len(src_tokens) > len(read),
            hypothesis.token_log_probs,
            hypothesis.ids.count(UNK_ID),
        )

    def _split(self, text: str) -> list[str]:
        """The sentences of a text, as the model is to read them."""
        sentences = self.splitter(text) if self.splitter else [text]
        if is_in_capitals(text):
            casing, _ = self._casings
            sentences = [capitalize(sentence, casing) for sentence in sentences]
        if self.splitter and base_language(self.splitter.language) == "en":
            sentences = [untitle(sentence, self._rarity) if is_title(sentence) else sentence for sentence in sentences]
        return sentences

    @property
    def _casings(self) -> tuple[Casing, Casing]:
        return self.splitter.casings if self.splitter else ("", "")

    def _rarity(self, word: str) -> tuple[float, float]:
        """Number of tokens of a source word, and of a single one its rank by frequency, inf if it is unknown."""
        (tokens,) = self.processor.tokenize_source([word])
        ids = self.processor.src_vocabulary.encode(tokens)
        return len(ids), ids[0] if len(ids) == 1 and ids[0] != UNK_ID else math.inf

    def _cut(self, tokens: list[str]) -> Iterator[list[str]]:
        """A sentence that can be read whole, or parts of it that are short enough to be translated whole."""
        if self.splitter is None or len(tokens) <= self.max_length:
            yield tokens
        else:
            is_subword = self.processor.src_tokenizer.kind == "subword"
            yield from split_tokens(tokens, self.longest_part, subwords=is_subword)


def _as_text(tokens: Sequence[str], tokenizer: Tokenizer) -> str:
    return " ".join(CONTROL.sub("", tokenizer.detokenize(tokens)).split())
