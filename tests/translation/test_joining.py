"""Joining the translations of sentences into one of their line."""

import pytest
import torch
from test_translator import processor, random_model

from nmt.config import DecodeSection
from nmt.text.sentences import SentenceSplitter
from nmt.translation import joining
from nmt.translation.joining import join_sentences
from nmt.translation.reader import MAX_SOURCE_LENGTH
from nmt.translation.translation import Translation
from nmt.translation.translator import Translator
from nmt.translation.words import align_words

TWO_WORDS, ONE_WORD = ([[[0.9, 0.1]], [[0.8, 0.2]], [[0.7, 0.3]]], [[[0.1, 0.6, 0.3]], [[0.0, 0.5, 0.5]]])
FIRST = Translation("x y", ["x", "y"], ["a"], -1.0, -0.5, torch.tensor(TWO_WORDS), token_log_probs=[-0.9], unknown=1)
SECOND = Translation("z", ["z"], ["b", "c"], -2.0, -0.25, torch.tensor(ONE_WORD), token_log_probs=[-0.1], unknown=1)
WORSE = Translation("w", ["w"], ["b", "c"], -4.0, -1.0, torch.tensor([[[0.2, 0.2, 0.6]]]))


def splitting(**options: object) -> Translator:
    settings = DecodeSection(**{"beam_size": 3, "max_length": 12, **options})
    return Translator(random_model(), processor(), settings, splitter=SentenceSplitter("tlh"))


def test_scores_are_summed_and_tokens_concatenated_by_rank() -> None:
    best, other = join_sentences([[FIRST], [Translation("")], [SECOND, WORSE]], [" ", " "])
    assert (best.text, best.tokens, best.src_tokens) == ("x y z", ["x", "y", "z"], ["a", "b", "c"])
    assert (best.log_prob, best.score, best.token_log_probs) == (-3.0, -0.75, [-0.9, -0.1])
    assert (best.unknown, other.unknown) == (2, 1)
    assert (other.text, other.log_prob, other.score) == ("x y w", -5.0, -1.5)
    assert join_sentences([[FIRST], [SECOND]], [""])[0].text == "x yz"
    assert join_sentences([[FIRST, WORSE]], []) == [FIRST, WORSE]
    assert join_sentences([[Translation("")]] * 2, [" "]) == [Translation("")]


def test_alignments_are_block_diagonal() -> None:
    best, other = join_sentences([[FIRST], [SECOND, WORSE]], [" "])
    expected = [[0.9, 0, 0, 0.1], [0.8, 0, 0, 0.2], [0, 0.1, 0.6, 0.3], [0, 0.0, 0.5, 0.5]]
    assert best.alignment is not None
    assert torch.equal(best.alignment[:, 0], torch.tensor(expected))
    assert other.alignment is not None
    assert torch.equal(other.alignment[:, 0], torch.tensor([*expected[:2], [0, 0.2, 0.2, 0.6]]))
    assert align_words("a b c", best, processor()) == [(0, 0), (0, 1), (2, 2)]


def test_a_huge_alignment_is_omitted_and_its_links_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "MAX_ALIGNMENT", 4 * 4 - 1)
    (best,) = join_sentences([[FIRST], [SECOND]], [" "])
    assert best.alignment is None
    assert align_words("a b c", best, processor()) == [(0, 0), (0, 1), (2, 2)]


@pytest.mark.parametrize("with_alignment", [False, True])
def test_a_line_is_translated_as_its_sentences_are(with_alignment: bool) -> None:
    ours = splitting(batch_size=2)
    first, second, third = ours.translate(["the cat sat.", "A dog ran!", "The cat ran"], 3, with_alignment)
    counts: list[int] = []
    lines = ["", "the cat sat. A dog ran! The cat ran", "the cat sat.  A dog ran!"]
    empty, joined, two = ours.translate(lines, 3, with_alignment, advance=counts.append)
    assert empty == [Translation("")]
    assert [each.text for each in joined] == [
        " ".join(found.text for found in rank) for rank in zip(first, second, third, strict=True)
    ]
    assert [each.log_prob for each in two] == pytest.approx(
        [one.log_prob + other.log_prob for one, other in zip(first, second, strict=True)]
    )
    assert sum(counts) == len(lines)
    assert two[0].src_tokens == ["the", "cat", "sat.", "A", "dog", "ran!"]
    assert (two[0].alignment is not None) == with_alignment
    if two[0].alignment is not None:
        assert two[0].alignment.shape[1:] == (1, 7)
        assert len(two[0].tokens) <= len(two[0].alignment) <= len(two[0].tokens) + 1
        assert torch.allclose(two[0].alignment.sum(dim=-1), torch.ones(1).double())


@pytest.mark.parametrize("number", [MAX_SOURCE_LENGTH, MAX_SOURCE_LENGTH + 1, 2500])
def test_nothing_of_a_long_sentence_is_lost(number: int) -> None:
    words = ["the", "cat", "sat", "ran", "a"] * (number // 5) + ["dog"] * (number % 5)
    found = splitting(beam_size=1).translate(" ".join(words))
    assert not found.truncated
    assert found.src_tokens == words
    lengths = [len(each.src_tokens) for each in found.sentences]
    assert sum(lengths) == (number if number > MAX_SOURCE_LENGTH else 0)
    assert all(length <= 6 for length in lengths)  # half of max_length, so that the translation fits
