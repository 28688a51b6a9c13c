import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.text.indexing import IndexedLines, TokenIndex, index_block, index_lines
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import UNK_ID, Vocabulary

LINES = st.lists(st.lists(st.text("abü", min_size=1, max_size=2), max_size=6).map(" ".join), max_size=12)


def test_lines_are_indexed_by_first_appearance() -> None:
    lines = index_lines(WhitespaceTokenizer(), ["b a b", "", "c a"])
    assert lines.tokens == ["b", "a", "c"]
    assert lines.numbers.tolist() == [0, 1, 0, 2, 1]
    assert lines.lengths.tolist() == [3, 0, 2]
    assert (lines.numbers.dtype, lines.lengths.dtype) == (np.int32, np.int32)


def test_a_block_is_tokenised_by_the_saved_tokenizer(tmp_path: Path) -> None:
    WhitespaceTokenizer(lowercase=True).save(tmp_path, "src")
    WhitespaceTokenizer().save(tmp_path, "tgt")
    block = "Ä b\n\nb\u2028Ä\n".encode()
    assert index_block(tmp_path, "src", block).tokens == ["ä", "b"]
    found = index_block(tmp_path, "tgt", block)
    assert found.tokens == ["Ä", "b"]
    assert found.lengths.tolist() == [2, 0, 2]
    assert len(index_block(tmp_path, "tgt", b"").lengths) == 0


def test_a_tokenizer_saved_again_is_read_again(tmp_path: Path) -> None:
    WhitespaceTokenizer().save(tmp_path, "src")
    assert index_block(tmp_path, "src", b"A\n").tokens == ["A"]
    WhitespaceTokenizer(lowercase=True).save(tmp_path, "src")
    os.utime(tmp_path / "src.tokenizer.json", ns=(0, 0))  # surely another time
    assert index_block(tmp_path, "src", b"A\n").tokens == ["a"]


def index_of(*chunks: list[str]) -> tuple[TokenIndex, list[int]]:
    index, numbers = TokenIndex(), []
    for chunk in chunks:
        numbers += index.renumber(index_lines(WhitespaceTokenizer(), chunk)).tolist()
    return index, numbers


def test_a_corpus_is_numbered_by_first_appearance() -> None:
    index, numbers = index_of(["b a b"], [], ["", ""], ["c b", "a d"])
    assert numbers == [0, 1, 0, 2, 0, 1, 3]
    assert len(index) == 4
    assert index.counter() == {"b": 3, "a": 2, "c": 1, "d": 1}


@settings(deadline=None)
@given(st.lists(LINES, max_size=5))
def test_any_chunks_give_the_numbers_and_counts_of_the_whole(chunks: list[list[str]]) -> None:
    index, numbers = index_of(*chunks)
    tokens = [token for chunk in chunks for line in chunk for token in line.split()]
    distinct = list(dict.fromkeys(tokens))
    assert [distinct[number] for number in numbers] == tokens
    assert index.counter() == Counter(tokens)
    assert len(index) == len(distinct)


def test_many_tokens_are_counted() -> None:
    rng = np.random.default_rng(1)
    chunks = [[" ".join(f"t{number}" for number in rng.integers(0, limit, 2000))] for limit in (500, 3000, 9000, 100)]
    index, _ = index_of(*chunks)
    assert index.counter() == Counter(token for [line] in chunks for token in line.split())


def test_coverage_by_hand() -> None:
    index, _ = index_of(["a a a a", "b b b c c d"])
    assert index.coverage([1, 2, 3, 4, 10]) == {1: 0.4, 2: 0.7, 3: 0.9, 4: 1.0}
    assert index.coverage([]) == {4: 1.0}
    one, _ = index_of(["a"])
    assert one.coverage([1, 2]) == {1: 1.0}


def test_numbers_become_the_ids_of_a_vocabulary() -> None:
    index, numbers = index_of(["x <s> a", "b x"])
    ids = index.ids(Vocabulary(["b", "x"]))
    assert ids.dtype == np.int32
    assert ids[numbers].tolist() == [5, UNK_ID, UNK_ID, 4, 5]  # the name of a special token is plain text


@pytest.mark.parametrize("lines", [[], ["", ""]])
def test_lines_without_tokens_have_no_numbers(lines: list[str]) -> None:
    found = index_lines(WhitespaceTokenizer(), lines)
    assert found.tokens == []
    assert found.lengths.tolist() == [0] * len(lines)
    assert TokenIndex().renumber(found).tolist() == []
    assert isinstance(found, IndexedLines)
