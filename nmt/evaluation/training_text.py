"""The training data of a model as text: its overlap with a test set, how often words occur, pairs to test with."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.corpus.example import Example
from nmt.corpus.identity import count_seen, load_seen
from nmt.corpus.marker_schema import combine_checksums, read_marker
from nmt.corpus.training_pairs import decode, evenly_spaced, load_originals
from nmt.evaluation.metrics import ScoringRules, words_of
from nmt.models.lookup import find_data
from nmt.models.storage import ModelFolder
from nmt.system.errors import CheckpointError, DataError
from nmt.system.progress import progress_bar
from nmt.text.normalization import Normalizer
from nmt.text.processor import SEEN, TextProcessor

log = logging.getLogger(__name__)

OVERLAP_LIMIT = 0.01
"""Share of test sources in training above which scores are marked."""
MAX_PAIRS = 500_000
"""Training pairs whose words are counted, evenly spaced."""


@dataclass(frozen=True)
class TrainingOverlap:
    """How much of a test set a model has seen in training.

    Attributes:
        sentences: Number of sources that are training sources; None if unknown.
        examples: Number of all sources.
    """

    sentences: int | None
    examples: int

    @property
    def marked(self) -> bool:
        """True if it is so much that the scores do not measure unseen text."""
        return self.sentences is not None and self.sentences > OVERLAP_LIMIT * self.examples

    def __str__(self) -> str:
        if self.sentences is None:
            return "overlap: unknown, as the model has no fingerprints of its training sources"
        share = self.sentences / self.examples
        return (
            f"overlap: {self.sentences:,} of {self.examples:,} sources ({share:.1%}) are in the model's training data"
        )


def compare_with_training(
    models: Sequence[ModelFolder], normalizer: Normalizer, examples: Sequence[Example]
) -> TrainingOverlap:
    """Compare a test set with the training sources of models, by letters and digits, ignoring case.

    Args:
        models: The models; the one that has seen most counts.
        normalizer: Normalizer of the training text.
        examples: The test set.
    """
    sources = [normalizer(example.src) for example in examples]
    counts = []
    for saved in models:
        seen = load_seen(saved.text / SEEN)
        if seen is not None:
            counts.append(count_seen(_without_tags(sources, saved.config.data.tags), seen))
    return TrainingOverlap(max(counts) if len(counts) == len(models) else None, len(examples))


def _without_tags(sources: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Sources without the tag that a model reads first: fingerprints are those of the text behind it."""
    marked = tuple(f"{tag} " for tag in tags)
    return [source.split(" ", 1)[1] if source.startswith(marked) else source for source in sources]


def is_other_data(saved: ModelFolder, data: Path) -> bool:
    """True if a data directory is not the one that a model was trained on."""
    trained_on = saved.metadata.get("data")
    identity = trained_on.get("identity") if isinstance(trained_on, dict) else None
    return identity is not None and identity != combine_checksums(read_marker(data).sha256)


def find_training_data(saved: ModelFolder, data: Path | None) -> Path:
    """The data directory that a model was trained on.

    Raises:
        DataError: It is not there, or `data` is another one.
    """
    try:
        directory = data or find_data(saved)
    except CheckpointError:
        raise DataError("the data that the model was trained on is no longer there") from None
    if is_other_data(saved, directory):
        raise DataError(f"{directory} is not the data that the model was trained on")
    return directory


def count_training_words(data: Path, processor: TextProcessor, rules: ScoringRules) -> Counter[str]:
    """Count the target words of training pairs, without augmented copies.

    Args:
        data: Data directory.
        processor: Its tokenizers and vocabularies.
        rules: How text is split into words.

    Raises:
        DataError: The directory is missing, incomplete or damaged.
    """
    encoded, originals = load_originals(data)
    rows = evenly_spaced(originals, MAX_PAIRS)
    counts: Counter[str] = Counter()
    with progress_bar(total=len(rows), unit=" pairs", desc="counting training words", leave=False) as bar:
        lines = decode(encoded.tgt, rows, processor.tgt_vocabulary, processor.tgt_tokenizer, data)
        for words in words_of(lines, rules):
            counts.update(words)
            bar.update()
    return counts
