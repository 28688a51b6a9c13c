"""The sections of `data`: where text comes from, how it is cleaned, split and augmented."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from nmt.config.fields import (
    Automatic,
    Columns,
    Conflict,
    Count,
    Files,
    Flag,
    Language,
    NonNegative,
    Number,
    Positions,
    Positive,
    Processes,
    Script,
    Section,
    Seed,
    Share,
    key,
)
from nmt.system.errors import ConfigError
from nmt.system.messages import Parameter


class CleaningSection(Section):
    """How sentences are repaired and which pairs are dropped, before anything else.

    The first five keys change text, also that of sentences to translate; the others drop training pairs.
    """

    unicode: Literal["nfc", "nfkc", "none"] = "nfc"
    """Unicode normal form."""
    control_characters: Flag = True
    """Remove control, zero-width and direction characters and soft hyphens; decode those of Windows-1252."""
    html_entities: Flag = True
    """Replace &amp; and the like by the characters they stand for."""
    quotes: Flag = False
    """Replace typographic quotation marks by straight ones."""
    dashes: Flag = False
    """Replace typographic dashes and hyphens by -."""
    min_length: Positions = key(1, unit="words")
    """Minimum words (separated by spaces) on either side."""
    max_length: Positions = key(100, unit="words")
    """Maximum words (separated by spaces) on either side."""
    max_characters: Positions | None = key(1000, unit="characters")
    """Maximum characters on either side, for scripts without spaces; null is off."""
    max_ratio: Annotated[Number, Field(ge=1)] | None = key(9.0, unit="1")
    """Maximum characters of the longer side per character of the shorter; null is off."""
    min_letters: Share = key(0.3, unit="share")
    """Minimum share of letters among the characters that are not spaces."""
    copies: Flag = False
    """Keep pairs whose two sides are the same text."""
    same_numbers: Flag = False
    """Drop pairs whose sides have other numbers."""
    scripts: dict[str, Script] = Field({})
    """Scripts by language code, {en: latin, ru: cyrillic}: drop pairs most of whose letters on a side are others."""
    duplicates: Literal["drop", "drop_casefold", "keep"] = "drop"
    """Drop or keep repeated pairs; drop_casefold: ignore case when comparing."""

    def conflicts(self, above: str) -> Iterator[Conflict]:
        """A minimum length above the maximum."""
        if self.min_length > self.max_length:
            yield "min_length", "is above max_length"


class SplitSection(Section):
    """Leak-free splits; of ready-made ones, train_size takes the first training pairs; other sizes are ignored."""

    train_size: Count | None = key(None, unit="pairs")
    """Size of the training split; null takes all that is left."""
    valid_size: Annotated[NonNegative, Automatic()] = key(1000, unit="sentences")
    """Distinct source sentences to validate on."""
    test_size: Annotated[NonNegative, Automatic()] = key(1000, unit="sentences")
    """Distinct source sentences to test on."""
    seed: Seed = key(1, unit="1")
    """Random choice of the sentences of each split."""


class AugmentSection(Section):
    """Copies of training pairs in forms that people type; of each, the share of the pairs that can have such a copy."""

    no_final_stop: Share = key(0.0, unit="share")
    """Both sides without their final stop."""
    all_caps: Share = key(0.0, unit="share")
    """Both sides in capitals."""
    title_case: Share = key(0.0, unit="share")
    """The source as a headline: Every Word with a Capital; both sides without their final stop."""
    lowercase_first: Share = key(0.0, unit="share")
    """The source with a small first letter."""
    short: Share = key(0.0, unit="share")
    """Both sides of a source of at most three words without their final stop, the source with a small first letter."""
    numbers: Share = key(0.0, unit="share")
    """Other digits, where both sides have the same numbers."""
    names: Share = key(0.0, unit="share")
    """A made-up word for a capitalised one that both sides have."""
    words: Share = key(0.0, unit="share")
    """Single words with their translations, of a lexicon from the training pairs."""
    placeholders: Share = key(0.0, unit="share")
    """Placeholders (text.placeholders) for numbers, names and words with their translations, the same on both sides."""
    terms: Share = key(0.0, unit="share")
    """The translations of some words (text.term_marks) beside them, some of which are other or made-up words."""
    joined: Share = key(0.0, unit="share")
    """The pair and others after it, chosen at random, as one long pair."""
    joined_words: Positions = key(100, unit="words")
    """Maximum words (separated by spaces) on either side of a long pair; lengths spread evenly up to it."""


class ExtraSection(Section):
    """A further corpus, only for training."""

    source: Files
    """Paths or URLs, as data.source without splits."""
    weight: Positive = key(1.0, unit="1")
    """How often a pair is in an epoch: 2 is twice; with 0.5, half of the pairs are in all."""
    tag: Annotated[str, Field(pattern="^<[a-z0-9]+>$")] | None = None
    """First token of its sources, from which the model knows the corpus."""


class DataSection(Section):
    """Where the sentences come from."""

    source: Files = ()
    """Paths, relative to the current folder (unlike `extends`, which is relative to its file), or URLs: one
    tab-separated, CSV or TMX file; two, four or six parallel files (source and target of train, valid, test), where
    corpus is corpus.en and corpus.de; or the three files of a Tatoeba export (source sentences, target sentences,
    links)."""
    extra: dict[str, ExtraSection] = Field({})
    """Further corpora, only for training, by names of your own: {web: {source: FILE, weight: 0.5, tag: <web>}}. A pair
    is `weight` times in an epoch, and `tag`, if there is one, is the first token of its source."""
    weight: Count = key(1, unit="1")
    """How often a training pair of the corpus itself is in an epoch, such as 10 beside a far larger corpus in extra."""
    test: Files = ()
    """A public test set, as source, in place of split.test_size, which is then not set; pairs that share a sentence
    with it are left out."""
    columns: tuple[Columns, Columns] = key((1, 2), unit="column")
    """Columns of source and target, from 1."""
    src_language: Language | None = "en"
    """Language code of the source in the files; null, as in base, has to be set."""
    tgt_language: Language | None = "de"
    """Language code of the target in the files; null, as in base, has to be set."""
    reverse: Flag = False
    """Translate in the opposite direction: swap source and target."""
    first_lines: Count | None = key(None, unit="lines")
    """How much of the corpus, or of its training files, to read; null reads all."""
    licence: Annotated[str, Field(max_length=1000)] | None = None
    """Licence and origin of the corpus in source, for the cards of models trained on it."""
    max_malformed: Share = key(0.01, unit="share")
    """Maximum share of malformed lines to skip: too few columns, not UTF-8, over 1 MB."""
    drop_overlap: Flag = False
    """Ready-made splits: drop training pairs that share a sentence with valid or test."""
    repair_references: Flag = False
    """Ready-made valid and test: repair references as training text is; signatures of their scores say so."""
    directory: str | None = None
    """Where prepared data goes; null means data/prepared/NAME."""
    workers: Processes | None = key(None, unit="processes")
    """Processes that clean and tokenise; null uses every core for large corpora."""
    cleaning: CleaningSection = CleaningSection()
    split: SplitSection = SplitSection()
    augment: AugmentSection = AugmentSection()

    def conflicts(self, above: str) -> Iterator[Conflict]:
        """Columns, languages and files that cannot be those of a corpus with two sides."""
        if self.columns[0] == self.columns[1]:
            yield "columns", f"must be two different columns, found {self.columns[0]} twice"
        for name in ("src_language", "tgt_language"):
            code = getattr(self, name)
            if code is not None and code.isalpha() and len(code) > 3:
                yield name, f"must be a code, such as en for English, found {code!r}"
        if self.source and len(self.source) not in (1, 2, 3, 4, 6):
            yield "source", f"must be 1, 2, 3, 4 or 6 files, found {len(self.source)}"
        if self.test and len(self.source) > 3:
            yield "test", "is for a corpus without ready-made splits; give six files in source"
        # Corpora without splits: the public test set, which may be absent, and further corpora, which may not.
        if len(self.test) > 3:
            yield "test", f"must be 1, 2 or 3 files, found {len(self.test)}"
        for name, corpus in self.extra.items():
            if len(corpus.source) not in (1, 2, 3):
                yield f"extra.{name}.source", f"must be 1, 2 or 3 files, found {len(corpus.source)}"

    @property
    def tags(self) -> list[str]:
        """The tags of further corpora, each of which is the first token of its sources."""
        return sorted({corpus.tag for corpus in self.extra.values() if corpus.tag})

    @property
    def file_languages(self) -> tuple[str, str]:
        """Codes of the languages of the files, which `reverse` does not swap.

        Raises:
            ConfigError: One is not set.
        """
        if self.src_language is None or self.tgt_language is None:
            codes = {"src_language": self.src_language, "tgt_language": self.tgt_language}
            missing = [f"data.{name}" for name, code in codes.items() if code is None]
            raise ConfigError(
                "{missing}: {verb} not set; add {settings}, with codes of languages such as fr",
                missing=" and ".join(missing),
                verb="is" if len(missing) == 1 else "are",
                settings=Parameter("overrides", dict.fromkeys(missing, "CODE")),
            )
        return self.src_language, self.tgt_language

    @property
    def languages(self) -> tuple[str, str]:
        """Codes of the source and the target language.

        Raises:
            ConfigError: One is not set.
        """
        languages = self.file_languages
        return languages[::-1] if self.reverse else languages
