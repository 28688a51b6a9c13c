"""The training data of a model as text."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nmt.config import Config
from nmt.corpus import Pair
from nmt.corpus.dataset import EncodedPairs, Sequences
from nmt.corpus.example import Example
from nmt.corpus.identity import identities, save_seen
from nmt.corpus.training_pairs import read_training_pairs
from nmt.evaluation.metrics import ScoringRules
from nmt.evaluation.training_text import compare_with_training, count_training_words
from nmt.system.errors import DataError
from nmt.system.files import write_json
from nmt.text.normalization import Normalizer
from nmt.text.processor import SEEN, TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import Vocabulary


def write_data(folder: Path, *, ids: int = 5, **metadata: object) -> TextProcessor:
    """A data directory with 5 training pairs, of which pair n is the token n."""
    tokenizer, vocabulary = WhitespaceTokenizer(), Vocabulary(map(str, range(ids)))
    write_json(folder / "data.json", {"format_version": 1, **metadata})
    rows = Sequences.pack([[index] for index in range(4, 9)])
    EncodedPairs(rows, rows).save(folder, "train")
    return TextProcessor(tokenizer, tokenizer, vocabulary, vocabulary)


def test_sources_with_a_tag_are_those_that_training_had(tmp_path: Path) -> None:
    """Fingerprints are those of the text behind the tag."""
    (tmp_path / "text").mkdir()
    sentences = ["She sleeps.", "I am old."]
    save_seen(tmp_path / "text" / SEEN, identities(sentences))
    config = Config.model_validate({"data": {"extra": {"web": {"source": "web.tsv", "tag": "<web>"}}}})
    saved = SimpleNamespace(text=tmp_path / "text", config=config)
    sources = ["<web> She sleeps.", "I am old.", "<xyz> I am old.", "<web> You go."]
    examples = [Example(source, ("x",)) for source in sources]
    found = compare_with_training([saved], Normalizer(), examples)  # type: ignore[list-item]
    assert (found.sentences, found.examples) == (2, 4)


def test_training_pairs_are_read_without_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_training_pairs(tmp_path, write_data(tmp_path)) == [Pair(n, n) for n in "01234"]
    assert read_training_pairs(tmp_path, write_data(tmp_path, copies=2)) == [Pair(n, n) for n in "012"]
    assert count_training_words(tmp_path, write_data(tmp_path, copies=2), ScoringRules()) == Counter("012")
    monkeypatch.setattr("nmt.evaluation.training_text.MAX_PAIRS", 2)
    assert read_training_pairs(tmp_path, write_data(tmp_path), most=2) == [Pair("0", "0"), Pair("4", "4")]
    assert count_training_words(tmp_path, write_data(tmp_path), ScoringRules()) == Counter("04")


@pytest.mark.parametrize("copies", [-1, True, "2", None, 6])
def test_a_damaged_number_of_copies_is_refused(tmp_path: Path, copies: object) -> None:
    processor = write_data(tmp_path, copies=copies)
    with pytest.raises(DataError, match="copies"):
        read_training_pairs(tmp_path, processor)


def test_ids_beyond_the_vocabulary_are_refused(tmp_path: Path) -> None:
    processor = write_data(tmp_path, ids=4)
    with pytest.raises(DataError, match="beyond"):
        read_training_pairs(tmp_path, processor)
    negative = Sequences(np.array([-1], dtype=np.int32), np.array([0, 1]))
    EncodedPairs(negative, negative).save(tmp_path, "train")
    with pytest.raises(DataError, match="beyond"):
        read_training_pairs(tmp_path, processor)
