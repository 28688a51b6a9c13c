import itertools
import random
from collections import Counter

import pytest

from nmt.corpus.example import Example
from nmt.evaluation.breakdown import (
    NgramDifference,
    accuracy_by_frequency,
    bin_by_length,
    bleu_by_length,
    break_down,
    compare_ngrams,
    count_by_score,
    largest_gaps,
)
from nmt.evaluation.metrics import ScoringRules, score_corpus, sentence_scores, words_of

RULES = ScoringRules()


def test_words_are_those_of_bleu() -> None:
    assert list(words_of(["Ja, Tom's da."], RULES)) == [["Ja", ",", "Tom's", "da", "."]]
    assert list(words_of(["Ja, da."], ScoringRules(lowercase=True))) == [["ja", ",", "da", "."]]
    assert list(words_of(["Ja, da."], ScoringRules(tokenize="none"))) == [["Ja,", "da."]]


def test_accuracy_by_frequency_by_hand() -> None:
    frequency = {"the": 500, "cat": 3, "sat": 2, "mat": 1, "on": 99}
    hypotheses = ["the the cat sat", "a mat on the dog"]
    examples = [Example("", ("the cat sat sat",)), Example("", ("a dog on the mat", "ignored"))]
    found = {words.name: words for words in accuracy_by_frequency(examples, hypotheses, frequency, RULES)}
    # a, dog are unknown; mat; cat, sat; on; the. In references, in translations, in both.
    assert {name: (words.in_references, words.in_translations, words.common) for name, words in found.items()} == {
        **{"0": (2, 2, 2), "1": (1, 1, 1), "2-4": (3, 2, 2), "5-9": (0, 0, 0), "10-99": (1, 1, 1)},
        **{"100-999": (2, 3, 2), "1000+": (0, 0, 0)},
    }
    assert found["2-4"].f1 == pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert found["100-999"].f1 == pytest.approx(0.8)
    assert found["5-9"].f1 is None


def test_bleu_by_length_has_bins_of_equal_numbers() -> None:
    examples = [Example("w " * length + "w", (f"a b c d e {n}",)) for length in range(5) for n in range(40)]
    hypotheses = [
        example.references[0] if len(example.src.split()) < 3 else "a b c d e x" if row % 2 else "y"
        for row, example in enumerate(examples)
    ]
    found = bleu_by_length(examples, hypotheses, RULES)
    assert [(each.name, each.sentences) for each in found] == [(f"{n}", 40) for n in range(1, 6)]
    assert [found[0].bleu, found[1].bleu] == pytest.approx([100, 100])
    expected = score_corpus(examples[80:120], hypotheses[80:120], RULES)["bleu"].value
    assert found[2].bleu == expected < 100


def test_bins_of_few_sentences_have_no_score() -> None:
    examples = [Example("w " * n + "w", ("a b c d",)) for n in range(20)]
    found = bleu_by_length(examples, ["a b c d"] * 20, RULES)
    assert sum(each.sentences for each in found) == 20
    assert all(each.bleu is None for each in found)
    same = bleu_by_length([Example("a b", ("a b c d",))] * 40, ["a b c d"] * 40, RULES)
    assert [(each.name, each.sentences) for each in same] == [("2", 40)]


def test_bins_do_not_overlap_and_have_every_sentence() -> None:
    lengths = random.Random(1).choices(range(1, 20), k=300)
    bins = bin_by_length([Example("w " * n, ("a",)) for n in lengths])
    assert sorted(row for rows in bins.values() for row in rows) == list(range(300))
    ends = [(int(name.split("-")[0]), int(name.split("-")[-1])) for name in bins]
    assert ends == [(min(lengths[row] for row in rows), max(lengths[row] for row in rows)) for rows in bins.values()]
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ends))


def test_sentences_are_counted_by_score() -> None:
    assert count_by_score([0, 5, 10, 99.9, 100, 100.00001]) == [2, 1, 0, 0, 0, 0, 0, 0, 0, 3]
    assert sum(count_by_score([])) == 0


def test_scores_of_sentences_use_the_ngrams_that_they_have() -> None:
    examples = [Example("", references) for references in (("Ja .",), ("a b c e", "a b c d"), ("x",))]
    found = sentence_scores(examples, ["Ja .", "a b c d", ""], RULES)
    assert found == pytest.approx([100, 100, 0])


def test_ngrams_that_one_system_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.evaluation.breakdown.SHOWN", 3)
    references = (("the cat sat on the mat",), ("the cat ran", "ignored"), ("dogs bark",))
    examples = [Example("", each) for each in references]
    one = ["the cat sat on a mat", "the cat ran", "dogs"]
    other = ["a dog sat on the mat", "the dog ran", "dogs bark"]
    first, second = compare_ngrams(examples, one, other, RULES)
    assert first[0] == NgramDifference("cat", 2, 0, 2)
    assert first[1] == NgramDifference("the cat", 2, 0, 2)
    assert len(first) == 3
    endings = {"the mat", "on the", "on the mat", "sat on the", "sat on the mat"}
    assert {each.text for each in second} <= {"bark", "dogs bark", *endings}
    assert all(each.second > each.first for each in second)
    assert compare_ngrams(examples, one, one, RULES) == ([], [])


def test_a_repeated_ngram_counts_as_often_as_the_reference_has_it() -> None:
    assert compare_ngrams([Example("", ("a b",))], ["a a a b"], ["a b"], RULES) == ([], [])


def test_the_largest_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [Example(f"source {n}", ("one two three four five",)) for n in range(4)]
    good, medium, bad = "one two three four five", "one two three four six", "nothing"
    first, second = [good, bad, medium, medium], [bad, good, medium, bad]
    scores = (sentence_scores(examples, first, RULES), sentence_scores(examples, second, RULES))
    better, worse = largest_gaps(examples, first, second, scores)
    assert [each.source for each in better] == ["source 0", "source 3"]
    assert [each.source for each in worse] == ["source 1"]
    assert better[0].gap == pytest.approx(100)
    assert worse[0].gap == pytest.approx(-100)
    assert (better[0].first, better[0].second, better[0].reference) == (good, bad, good)
    monkeypatch.setattr("nmt.evaluation.breakdown.SHOWN", 1)
    assert largest_gaps(examples, first, second, scores) == (better[:1], worse)


def test_a_group_with_nothing_in_it_has_a_dash() -> None:
    examples = [Example("a b", ("the cat",)), Example("a b", ("the dog",))]
    breakdown = break_down(examples, [("one", ["the cat", "the rare"])], RULES, Counter(the=20, cat=3, dog=3, rare=1))
    words, lengths, scores = (section.blocks[0].rows for section in breakdown.sections())
    assert {row[0]: (*row[1:],) for row in words} == {
        **{"0": ("–", "–"), "1": ("–", "–"), "2-4": ("2", "0.667"), "5-9": ("–", "–"), "10-99": ("2", "1.000")},
        **{"100-999": ("–", "–"), "1000+": ("–", "–")},
    }
    assert [[*row] for row in lengths] == [["2", "2", "– (under 30)"]]
    assert sorted(count for _, count in scores) == ["1", "1", *["–"] * 8]
