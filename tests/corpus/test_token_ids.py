from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.corpus.lines import encode_lines
from nmt.corpus.token_ids import NumberedText, tokenize_block
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import UNK_ID, Vocabulary

LINES = st.lists(st.lists(st.text("abü", min_size=1, max_size=2), max_size=6).map(" ".join), max_size=12)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tokenizer of each case."""
    path = tmp_path_factory.mktemp("text")
    WhitespaceTokenizer(lowercase=True).save(path, "src")
    WhitespaceTokenizer().save(path, "tgt")
    return path


def number(folder: Path, *chunks: list[str]) -> tuple[NumberedText, list[int]]:
    """A text that is numbered chunk by chunk, and its numbers."""
    path = folder / "numbers"
    path.unlink(missing_ok=True)
    text = NumberedText(path)
    for chunk in chunks:
        text.append(tokenize_block(folder, "tgt", encode_lines(chunk)))
    return text, np.fromfile(path, dtype=np.int32).tolist()


def test_a_block_is_tokenised_by_the_saved_tokenizer(folder: Path) -> None:
    block = "B a B\n\nb\u2028a\n".encode()
    assert tokenize_block(folder, "src", block).tokens == ["b", "a"]
    lines = tokenize_block(folder, "tgt", block)
    expected = ["B", "a", "b"], [0, 1, 0, 2, 1], [3, 0, 2]
    assert (lines.tokens, lines.numbers.tolist(), lines.lengths.tolist()) == expected
    assert len(tokenize_block(folder, "tgt", b"").lengths) == 0


@given(st.lists(LINES, min_size=1, max_size=5))
def test_any_chunks_are_numbered_by_first_appearance_and_counted(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[str]]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "numbered"
    folder.mkdir(exist_ok=True)
    WhitespaceTokenizer().save(folder, "tgt")
    text, numbers = number(folder, *chunks)
    tokens = [token for chunk in chunks for line in chunk for token in line.split()]
    distinct = list(dict.fromkeys(tokens))
    assert [distinct[place] for place in numbers] == tokens
    assert text.counter() == Counter(tokens)
    assert text.lengths.tolist() == [len(line.split()) for chunk in chunks for line in chunk]


def test_coverage_by_hand(folder: Path) -> None:
    text, _ = number(folder, ["a a a a", "b b b c c d"])
    assert text.coverage([1, 2, 3, 4, 10]) == {1: 0.4, 2: 0.7, 3: 0.9, 4: 1.0}
    assert text.coverage([]) == {4: 1.0}


def test_numbers_become_the_ids_of_a_vocabulary(folder: Path) -> None:
    text, _ = number(folder, ["x <s> a", "b x", "a"])
    [ids] = text.encode(Vocabulary(["b", "x"]), np.array([True, False, True]))
    assert ids.dtype == np.int32
    assert ids.tolist() == [5, UNK_ID, UNK_ID, UNK_ID]  # the name of a special token is plain text
