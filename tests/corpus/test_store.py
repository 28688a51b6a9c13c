import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
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


@given(st.lists(st.lists(st.builds(Pair, TEXT, TEXT), max_size=4), max_size=4), st.randoms(use_true_random=False))
@example([], random.Random(1))
@example([PAIRS[:2], [], PAIRS[2:]], random.Random(1))
def test_pairs_are_added_and_read_in_any_order(chunks: list[list[Pair]], chance: random.Random) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = store_of(Path(directory), *chunks)
        pairs = [pair for chunk in chunks for pair in chunk]
        assert store.pairs(np.arange(len(store))) == pairs
        store.append(Block.encode(PAIRS, 1))  # a store that was read grows
        pairs += PAIRS
        assert len(store) == len(pairs)
        expected = take_fingerprints(pairs, 1)
        for name in FINGERPRINTS.names or ():
            assert store.fingerprints(name).tolist() == expected[name].tolist()
        rows = chance.choices(range(len(pairs)), k=20)
        assert store.pairs(np.array(rows, dtype=np.int64)) == [pairs[row] for row in rows]
        assert store.lines("tgt").raw(np.array(rows)) == "".join(f"{pairs[row].tgt}\n" for row in rows).encode()


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
