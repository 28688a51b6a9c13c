"""Word alignments made by people."""

import re
from pathlib import Path

import pytest

from nmt.corpus.sources import open_corpus, read_pairs
from nmt.evaluation.gold_links import GoldLinks, alignment_error_rate, read_alignments
from nmt.system.errors import DataError
from nmt.system.files import shipped
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WordTokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.translation.alignment import Links


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        ([{(0, 0), (1, 2)}, {(3, 1)}], [{(0, 0), (1, 2)}, {(3, 1)}], 0.0),
        ([{(0, 0), (1, 2)}], [{(0, 1), (2, 1)}], 1.0),
        # |A| = 3, |S| = 4, two in common: 1 - (2 + 2) / (3 + 4).
        ([{(0, 0), (1, 1), (2, 2)}], [{(0, 0), (1, 1), (1, 2), (2, 3)}], 3 / 7),
        # Counted over the corpus, not averaged over pairs: 1 - 2 * (1 + 0) / (1 + 3 + 1 + 1).
        ([{(0, 0)}, {(0, 0), (1, 1), (2, 2)}], [{(0, 0)}, {(0, 1)}], 2 / 3),
        ([set()], [{(0, 0)}], 1.0),
        ([set(), set()], [set(), set()], 0.0),
        ([], [], 0.0),
    ],
)
def test_alignment_error_rate_by_hand(predicted: list[Links], gold: list[Links], expected: float) -> None:
    assert alignment_error_rate(predicted, all_sure(gold)) == pytest.approx(expected)
    assert alignment_error_rate(gold, all_sure(predicted)) == pytest.approx(expected)  # with S = P it is 1 - F1


def all_sure(links: list[Links]) -> list[GoldLinks]:
    return [GoldLinks(pair, pair) for pair in links]


def test_possible_links_are_right_but_not_missed() -> None:
    gold = [GoldLinks({(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 2), (3, 3)})]
    # |A & S| = 1, |A & P| = 2, |A| = 3, |S| = 2.
    assert alignment_error_rate([{(0, 0), (2, 2), (4, 4)}], gold) == pytest.approx(1 - 3 / 5)
    assert alignment_error_rate([{(0, 0), (1, 1)}], gold) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-0 1-2 2-1\n\n10-11\n", all_sure([{(0, 0), (1, 2), (2, 1)}, set(), {(10, 11)}])),
        ("0-0\r\n1-1", all_sure([{(0, 0)}, {(1, 1)}])),
        ("\ufeff 0-0\t0-0 ", all_sure([{(0, 0)}])),
        ("0-0 1?2\n", [GoldLinks({(0, 0)}, {(0, 0), (1, 2)})]),
        ("\n", all_sure([set()])),
        ("", []),
    ],
)
def test_alignments_are_read(tmp_path: Path, text: str, expected: list[GoldLinks]) -> None:
    path = tmp_path / "links.txt"
    path.write_bytes(text.encode())
    assert read_alignments(path) == expected


@pytest.mark.parametrize("item", ["1", "1-", "-1-2", "1-2-3", "1?2?3", "1~2", "a-b", "1,2", "1-²", "1234567890-0"])
def test_what_is_not_a_link_is_reported_with_its_line(tmp_path: Path, item: str) -> None:
    path = tmp_path / "links.txt"
    path.write_text(f"0-0\n1-1 {item} 2-2\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_alignments(path)
    assert str(caught.value) == f"{path}, line 2: {item!r} is not a link; write i-j, counted from 0, as in 0-0"


def test_unreadable_alignments_are_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"missing\.txt: cannot be read \(No such file"):
        read_alignments(tmp_path / "missing.txt")
    (tmp_path / "binary.txt").write_bytes(b"0-0 \xff\n")
    with pytest.raises(DataError, match=r"binary\.txt: line 1: not UTF-8; convert it"):
        read_alignments(tmp_path / "binary.txt")


def test_sample_alignments_are_of_spacy_tokens() -> None:
    every = slice(None, None, 10)
    pairs = read_pairs(open_corpus([shipped("data/sample/deu.txt")])["train"])[every]
    gold = read_alignments(shipped("data/sample/alignments.txt"))[every]
    words = TextProcessor(WordTokenizer("en"), WordTokenizer("de"), Vocabulary(()), Vocabulary(()))
    sources, targets = ([re.findall(r"\w+|[,.?!]", text) for text in column] for column in zip(*pairs, strict=True))
    assert words.tokenize_source([pair.src for pair in pairs]) == sources
    assert list(words.tgt_tokenizer.tokenize([pair.tgt for pair in pairs])) == targets
    for links, src, tgt in zip(gold, sources, targets, strict=True):
        assert all(i < len(src) and j < len(tgt) for i, j in links.possible)
        assert (len(src) - 1, len(tgt) - 1) in links.sure  # the final marks
