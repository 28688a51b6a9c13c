"""The sections of `text`: tokens, subwords and vocabularies."""

from collections.abc import Iterator
from typing import Annotated, Literal

from nmt.config.fields import (
    Automatic,
    Conflict,
    Count,
    Flag,
    NonNegative,
    Placeholders,
    Positions,
    Section,
    Tokens,
    key,
)


class SubwordSection(Section):
    """Subword segmentation, learnt only from the training split (SentencePiece)."""

    algorithm: Literal["bpe", "unigram"] = "bpe"
    """bpe (Sennrich et al., 2016) or unigram (Kudo, 2018)."""
    vocabulary_size: Annotated[Tokens, Automatic()] = key(8000, unit="pieces")
    """Pieces to learn, including SentencePiece's own three."""
    joint: Flag = False
    """One segmentation for both languages."""
    sample: Count = key(500_000, unit="sentences")
    """Maximum training sentences per side to learn from, evenly spaced."""


class VocabularySection(Section):
    """Which tokens get an id; counted only on the training split."""

    min_count: NonNegative = key(1, unit="occurrences")
    """Rarer tokens become unknown; 0 also keeps subwords that do not occur in training text."""
    max_size: Tokens | None = key(None, unit="tokens")
    """Keep the most frequent; null keeps all."""
    joint: Flag = False
    """One vocabulary for both languages."""


class TextSection(Section):
    """How text becomes tokens and back."""

    tokenizer: Literal["spacy", "subword", "whitespace"] = "subword"
    """spacy: words; subword: pieces of words; whitespace: text that is already tokenised."""
    lowercase: Flag = False
    """Lower-case all text; scores then ignore case as well."""
    tokenized: Flag = False
    """Subword: the text is already tokenised, and scored without further tokenisation (tok:none)."""
    subword: SubwordSection = SubwordSection()
    vocabulary: VocabularySection = VocabularySection()
    placeholders: Placeholders = key(0, unit="tokens")
    """Reserved tokens that stand for spans which a translation takes over (addresses, numbers, names); a model with
    data.augment.placeholders learns to copy them."""
    term_marks: Flag = False
    """Two reserved tokens around the translation of a term, which stands beside the term; a model with
    data.augment.terms learns to use it in the form that the sentence needs."""
    max_length: Positions = key(100, unit="tokens")
    """Maximum on either side of a training pair; longer ones are dropped."""

    def conflicts(self, above: str) -> Iterator[Conflict]:
        """Subwords that cannot have one vocabulary."""
        if self.vocabulary.joint and self.tokenizer == "subword" and not self.subword.joint:
            yield "vocabulary.joint", f"with subwords needs {above}subword.joint: true"
        if self.term_marks and not (self.tokenizer == "subword" and self.vocabulary.joint):
            yield "term_marks", f"needs {above}tokenizer: subword and {above}vocabulary.joint: true"
