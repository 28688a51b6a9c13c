from pathlib import Path

import numpy as np
import pytest
from conftest import Cli

import nmt
from nmt.corpus import Pair
from nmt.corpus.known_words import FEWEST, find_known_words
from nmt.corpus.store import Block, PairStore
from nmt.text.processor import WORDS, load_processor

NAMES = [
    f"{first}{last}" for first in ("Bra", "Cro", "Dri", "Flu", "Gre") for last in ("nda", "mik", "sol", "tev", "wyn")
]
"""25 names."""


def store_of(pairs: list[tuple[str, str]], folder: Path) -> PairStore:
    store = PairStore(folder / "store")
    store.append(Block.encode([Pair(*pair) for pair in pairs], seed=1))
    return store


def translated(name: str, number: int) -> str:
    """What stands in the target for a name: itself for the first ones, a word in small letters for the others."""
    return name if NAMES.index(name) < number else f"{name.lower()}en"


@pytest.mark.parametrize("number", [12, 13])
def test_targets_decide_whether_unknown_names_are_taken_over(number: int, tmp_path: Path) -> None:
    """13 of 25 are more than half, 12 are less. Of two targets of a source the first is looked at."""
    pairs = [(f"We saw {name} there.", f"Wir sahen {translated(name, number)} dort.") for name in NAMES]
    pairs += [("Berlin and Rome are big.", "Berlin ist gro\u00df."), ("Paris, Rome!", "Paris, Rom!")]
    words, report = find_known_words(store_of(pairs, tmp_path), np.arange(len(pairs)))
    # Rome is in two sources; Berlin and Paris begin theirs, and We is no name inside a sentence.
    assert (report.rare, report.kept, report.are_taken_over) == (25, number, number == 13)
    expected = {"we", "saw", "there", "berlin", "and", "rome", "are", "big", "paris", *map(str.lower, NAMES)}
    assert report.words == len(expected)
    assert words == (expected if number == 13 else set())


def test_only_training_rows_count_and_repetitions_once(tmp_path: Path) -> None:
    pairs = [(f"We saw {name}.", f"Wir sahen {name}.") for name in NAMES]
    store = store_of([*pairs, *pairs, ("We saw Zelvandra.", "Wir sahen Zelvandra.")], tmp_path)
    words, report = find_known_words(store, np.arange(2 * len(pairs)))
    assert (report.rare, report.kept) == (25, 25)
    assert "zelvandra" not in words
    few, report = find_known_words(store, np.arange(FEWEST - 1))
    assert (report.rare, few) == (FEWEST - 1, frozenset())


def test_preprocess_writes_the_words_and_says_so(cli: Cli, tmp_path: Path) -> None:
    lines = [f"We saw {name}.\tWir sahen {name}.\n" for name in NAMES]
    corpus = tmp_path / "corpus.tsv"
    corpus.write_text("".join(lines), encoding="utf-8")
    settings = [
        "text={tokenizer: whitespace, placeholders: 2}",
        "data={src_language: en, tgt_language: de, split: {valid_size: 1, test_size: 1}, augment: {placeholders: 1}}",
    ]
    options = [part for setting in settings for part in ("--set", setting)]
    outcome = cli("preprocess", "base", "--source", corpus, "--output", tmp_path / "data", *options)
    assert "names: of 23 words with a capital that one training source has, 23 are in its target too" in outcome.err
    known = load_processor(tmp_path / "data/text").known_words
    assert {"we", "saw"} < known
    assert len(known) == 25
    plain = [
        "text.tokenizer=whitespace",
        "data={src_language: en, tgt_language: de}",
        settings[1].replace("1}}", "0}}"),
    ]
    nmt.preprocess("base", source=corpus, output=tmp_path / "plain", overrides=plain)
    assert not (tmp_path / "plain/text" / WORDS).exists()
