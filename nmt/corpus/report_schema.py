"""The report of a data directory on its text."""

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import Field

from nmt.corpus.cleaning import CleaningReport
from nmt.corpus.sources import LineReport
from nmt.corpus.traces import TraceReport


@dataclass(frozen=True)
class Overlap:
    """How much of an evaluation set was seen in training.

    Attributes:
        sources: Examples whose source is a training source.
        targets: Examples with a reference that is a training target.
        examples: All examples.
    """

    sources: int
    targets: int
    examples: int


@dataclass(frozen=True)
class ExtraReport:
    """The pairs of a further corpus.

    Attributes:
        read: Pairs before cleaning.
        clean: Distinct clean pairs.
        overlap: Clean pairs that were left out because valid or test share a sentence with them.
        pairs: Pairs in training, each once.
        repetitions: Repetitions of them in training.
    """

    read: int
    clean: int
    overlap: int
    pairs: int
    repetitions: int

    def __str__(self) -> str:
        again = f", and {self.repetitions:,} repetitions of them" if self.repetitions else ""
        return (
            f"{self.read:,} pairs read, {self.clean:,} distinct and clean, {self.overlap:,} left out because valid or "
            f"test share them; {self.pairs:,} in training{again}"
        )


@dataclass(frozen=True)
class SplitFileReport:
    """The pairs of a validation or test split with files of its own.

    Attributes:
        read: Pairs in the files.
        without_reference: Pairs that were left out, as their target is empty.
        dropped_training: Training pairs dropped because they share a sentence with this split; a pair counts for each
            split that shares one. None if such pairs were kept.
    """

    read: int
    without_reference: int
    dropped_training: int | None = None

    def __str__(self) -> str:
        left_out = f"; left out {self.without_reference:,} without a reference" if self.without_reference else ""
        text = f"{self.read:,} pairs read, {self.read - self.without_reference:,} kept{left_out}"
        if self.dropped_training is not None:
            text += f"; {self.dropped_training:,} training pairs dropped that share a sentence with it"
        return text


@dataclass(frozen=True)
class NameReport:
    """Words with a capital in training, which tell whether a translation takes over unknown names.

    Attributes:
        rare: Those of one distinct source.
        kept: Those of them that the target has too.
        words: Distinct words of the training sources.
        are_taken_over: True if a model takes over words with a capital that training does not have.
    """

    rare: int
    kept: int
    words: int
    are_taken_over: bool

    def __str__(self) -> str:
        unknown = "stay as they are" if self.are_taken_over else "are translated"
        return (
            f"of {self.rare:,} words with a capital that one training source has, {self.kept:,} are in its target too: "
            f"unknown names {unknown}"
        )


@dataclass(frozen=True, kw_only=True)
class SplitReport:
    """The splits, and how they overlap.

    Attributes:
        ready_made_splits: True if the corpus has ready-made splits.
        pairs: Pairs of each split.
        sources: Sources of each split; in training, distinct ones.
        components: Number of groups of pairs that share sentences; 0 for ready-made splits.
        largest_component: Pairs of the largest one.
        references: For each split, number of sources with one reference, with two, and so on.
        frequent: For each side (`src`, `tgt`), the most frequent training sentences with their counts.
        overlap: Overlap of each evaluation split with training.
        valid_in_test: Overlap of the validation split with the test split; None unless both are ready-made.
        dropped_overlap: Training pairs dropped because evaluation splits share them; None without `data.drop_overlap`.
        naive_overlap: Overlap that a plain random split would have; None without a test split, or if it is ready-made.
        split_files: Reports on the validation and test splits that have files of their own, by name; None without any.
    """

    ready_made_splits: Annotated[bool, Field(alias="given_splits")]
    pairs: dict[str, int]
    sources: dict[str, int]
    components: int
    largest_component: int
    references: dict[str, list[int]]
    frequent: dict[str, list[tuple[str, int]]]
    overlap: dict[str, Overlap]
    valid_in_test: Overlap | None = None
    dropped_overlap: int | None = None
    naive_overlap: Overlap | None = None
    split_files: dict[str, SplitFileReport] | None = None


@dataclass(frozen=True, kw_only=True)
class EncodingReport:
    """The vocabularies and the tokens of the splits; lists of two are about source and target.

    Attributes:
        reused: True if tokenizers and vocabularies are those of another directory.
        tokenizer: Kind of tokenizer.
        too_many_tokens: Training pairs dropped because of their number of tokens.
        copies: Training pairs that are copies of others, in another form or repeated by `weight`.
        vocabulary: Size of the vocabulary of each side (`src`, `tgt`).
        distinct_tokens: Distinct tokens in training of each side.
        coverage: For each side, share of the training tokens that the N most frequent ones make up, by N.
        lengths: For each split, two lists: number of sentences with no token, with one token, and so on.
        tokens: For each split, two numbers of tokens.
        unknown_share: For each split, two shares of unknown tokens.
        warnings: Faults that make scores of a model meaningless, or the text other than intended, with their remedies.
        unseen_characters: Two shares of subwords in validation with a character that training text lacks; None without
            subwords.
        character_pieces: Minimum number of subwords, one for each character in training; None without subwords.
    """

    reused: bool = False
    tokenizer: str = ""
    too_many_tokens: int
    copies: int = 0
    vocabulary: dict[str, int]
    distinct_tokens: dict[str, int]
    coverage: dict[str, dict[int, float]]
    lengths: dict[str, list[list[int]]]
    tokens: dict[str, list[int]]
    unknown_share: dict[str, list[float]]
    warnings: list[str] = field(default_factory=list)
    unseen_characters: list[float] | None = None
    character_pieces: int | None = None


@dataclass(frozen=True, kw_only=True)
class DataReport(EncodingReport, SplitReport):
    """The report on preprocessing, from the lines of the files to token ids.

    Attributes:
        corpus: Where the pairs come from.
        languages: Codes of source and target language.
        lines: The lines that were read, and the malformed ones among them.
        cleaning: The pairs that cleaning kept, changed and dropped.
        augmented: Number of copies of training pairs, by form; None without any.
        extra: Reports on further corpora, by name; None without any.
        traces: Traces of other tools in the text; None without any.
        names: The words that tell if unknown names are taken over; None without placeholders.
    """

    corpus: str
    languages: list[str]
    lines: LineReport
    cleaning: CleaningReport
    augmented: dict[str, int] | None = None
    extra: dict[str, ExtraReport] | None = None
    traces: list[TraceReport] | None = None
    names: NameReport | None = None

    def as_json(self) -> dict[str, Any]:
        """The content of `report.json`, in which values that are None are absent."""
        content = asdict(self)
        content = {"given_splits": content.pop("ready_made_splits"), **content}
        if not self.lines.doubtful:
            del content["lines"]["doubtful"]
        del content["cleaning"]["changed_targets"]
        return {name: value for name, value in content.items() if value is not None}
