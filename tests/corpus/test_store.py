import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.corpus import Pair
from nmt.corpus.identity import FINGERPRINTS, take_fingerprints
from nmt.corpus.store import Block, PairStore, in_chunks, most_frequent

PAIRS = [Pair("Hi.", "Hallo!"), Pair("", ""), Pair("👩‍👧 ü\u2028x", "日本"), Pair("", "y"), Pair("\r", "")]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=5)


def store_of(directory: Path, *chunks: list[Pair]) -> PairStore:
    store = PairStore(directory / "store")
    for pairs in chunks:
        store.append(Block.encode(pairs, 1))
    return store


def test_written_pairs_are_read(tmp_path: Path) -> None:
    store = store_of(tmp_path, PAIRS[:2], [], PAIRS[2:])
    assert len(store) == len(store.lines("src")) == len(store.lines("tgt")) == 5
    assert store.pairs(range(5)) == PAIRS
    assert store.pairs([4, 0, 2, 0]) == [PAIRS[4], PAIRS[0], PAIRS[2], PAIRS[0]]
    assert store.pairs([]) == []
    expected = take_fingerprints(PAIRS, 1)
    for name in FINGERPRINTS.names or ():
        assert store.fingerprints(name).tolist() == expected[name].tolist()
    assert store.lines("tgt").raw(np.array([2, 1, 0])) == "日本\n\nHallo!\n".encode()


@settings(deadline=None)
@given(st.lists(st.lists(st.builds(Pair, TEXT, TEXT), max_size=4), max_size=4), st.randoms(use_true_random=False))
@example([], random.Random(1))
@example([[]], random.Random(1))
def test_pairs_are_added_and_read_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[Pair]], chance: random.Random
) -> None:
    store = store_of(tmp_path_factory.mktemp("store"), *chunks)
    pairs = [pair for chunk in chunks for pair in chunk]
    assert store.pairs(range(len(store))) == pairs
    store.append(Block.encode(PAIRS, 1))  # a store that was read grows
    pairs += PAIRS
    assert len(store) == len(store.lines("src")) == len(pairs)
    assert store.fingerprints("tgt_text").tolist() == take_fingerprints(pairs, 1)["tgt_text"].tolist()
    rows = list(range(len(pairs)))
    chance.shuffle(rows)
    assert store.pairs(rows) == [pairs[row] for row in rows]


def test_the_most_frequent_texts_by_hand(tmp_path: Path) -> None:
    store = store_of(tmp_path, [Pair(src, "x") for src in ("b", "a", "c", "a", "b", "a", "d")])
    texts = store.fingerprints("src_text")
    rows = np.arange(7)
    assert most_frequent(store.lines("src"), texts, rows, 3) == [("a", 3), ("b", 2), ("c", 1)]  # c came before d
    assert most_frequent(store.lines("src"), texts, rows[:3], 9) == [("b", 1), ("a", 1), ("c", 1)]
    assert most_frequent(store.lines("src"), texts, rows[[6, 2, 6]], 1) == [("d", 2)]
    assert most_frequent(store.lines("src"), texts, rows[:0], 2) == []
    assert most_frequent(store.lines("tgt"), store.fingerprints("tgt_text"), rows, 2) == [("x", 7)]


@pytest.mark.parametrize(
    ("number", "size", "sizes"), [(0, 3, []), (2, 3, [2]), (3, 3, [3]), (7, 3, [3, 3, 1]), (4, 1, [1] * 4)]
)
def test_rows_are_cut_into_chunks(number: int, size: int, sizes: list[int]) -> None:
    rows = np.arange(number)[::-1]
    chunks = list(in_chunks(rows, size))
    assert [len(chunk) for chunk in chunks] == sizes
    assert [row for chunk in chunks for row in chunk.tolist()] == rows.tolist()
