import math
import random
from collections.abc import Sequence
from typing import Any, get_args

import pytest
import sacrebleu
from sacrebleu.metrics import CHRF

from nmt.config import TextSection, ValidationMetric
from nmt.corpus.example import Example
from nmt.evaluation.metrics import (
    METRICS,
    Comparison,
    CorpusScore,
    Metric,
    PairedTestName,
    ScoringRules,
    compare_systems,
    higher_is_better,
    reference_streams,
    score_corpus,
)

CASED = ScoringRules()
HYPOTHESES = ["The cat sat on the mat.", "He doesn't know it, does he?", "A dog", ""]
REFERENCES = [
    ["The cat sat on a mat.", "A cat was sitting on the mat."],
    ["He does not know it, does he?"],
    ["A dog barks.", "The dog is barking.", "A dog is barking."],
    ["Nothing."],
]


def examples_of(references: Sequence[Sequence[str]]) -> list[Example]:
    return [Example(f"source {number}", tuple(refs)) for number, refs in enumerate(references)]


def score(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], rules: ScoringRules, *more: Any
) -> dict[str, CorpusScore]:
    return score_corpus(examples_of(references), hypotheses, rules, *more)


def compare(
    systems: list[tuple[str, list[str]]], references: Sequence[Sequence[str]], rules: ScoringRules, **more: Any
) -> dict[str, list[Comparison]]:
    return compare_systems(systems, examples_of(references), rules, **more)


def bleu_of(precisions: list[float], brevity: float = 1) -> float:
    return 100 * brevity * math.prod(precisions) ** 0.25


@pytest.mark.parametrize(
    ("hypothesis", "reference", "expected"),
    [
        # One of five different words is wrong: 5 of 6 words, 3 of 5, 2 of 4 and 1 of 3 n-grams are right.
        ("the cat sat on the mat", "the cat sat on a mat", bleu_of([5 / 6, 3 / 5, 2 / 4, 1 / 3])),
        # All n-grams are right, but four words stand for six.
        ("the cat sat on", "the cat sat on the mat", bleu_of([1, 1, 1, 1], math.exp(1 - 6 / 4))),
        # `the` counts twice at most, as in the reference; smoothing halves what has no match, and halves it again.
        ("the the the the the", "the cat sat on the mat", bleu_of([2 / 5, 1 / 8, 1 / 12, 1 / 16], math.exp(1 - 6 / 5))),
        ("the cat sat on the mat", "the cat sat on the mat", 100),
    ],
)
def test_bleu_by_hand(hypothesis: str, reference: str, expected: float) -> None:
    assert score([hypothesis], [[reference]], CASED)["bleu"].value == pytest.approx(expected)


def test_scores_are_those_of_sacrebleu() -> None:
    references = [first for first, *_ in REFERENCES]
    found = score(HYPOTHESES, [[reference] for reference in references], CASED)
    assert found["bleu"].value == sacrebleu.corpus_bleu(HYPOTHESES, [references]).score
    assert found["chrf"].value == sacrebleu.corpus_chrf(HYPOTHESES, [references]).score
    assert (found["bleu"].name, found["chrf"].name) == ("BLEU", "chrF")
    assert found["bleu"].signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"
    assert found["chrf"].signature == (f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{sacrebleu.__version__}")


def test_a_translation_may_match_any_of_its_references_but_no_other() -> None:
    references = [["a b c d e f", "g h i j k l"], ["m n o p q r"]]
    assert score(["g h i j k l", "m n o p q r"], references, CASED)["bleu"].value == pytest.approx(100)
    assert score(["m n o p q r", "g h i j k l"], references, CASED)["bleu"].value < 5


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ({"lowercase": True}, "de", ScoringRules(True, "13a")),
        ({"tokenizer": "spacy"}, "de", ScoringRules(False, "13a")),
        ({"lowercase": True, "tokenizer": "whitespace"}, "de", ScoringRules(True, "none")),
        ({"tokenized": True}, "zh", ScoringRules(False, "none")),
        *(({}, language, ScoringRules(False, "13a")) for language in ("de", "ko")),
        *(({}, language, ScoringRules(False, "zh")) for language in ("zh", "zh-Hant", "ZH_tw")),
        *(({}, language, ScoringRules(False, "char")) for language in ("ja", "th")),
    ],
)
def test_the_rules_follow_from_the_text(text: dict[str, Any], language: str, expected: ScoringRules) -> None:
    """Text without spaces is scored by its characters; 13a sees one word of it, and that is wrong."""
    rules = ScoringRules.for_text(TextSection(**text), language)
    assert rules == expected
    found = score(["我喜欢猫和狗。"], [["我喜欢猫和鱼。"]], rules)["bleu"]
    assert {f"case:{'lc' if rules.lowercase else 'mixed'}", f"tok:{rules.tokenize}"} <= {*found.signature.split("|")}
    assert (found.value > 0) == (rules.tokenize in ("zh", "char"))
    small, large = ["the cat sat on the mat"], [["The Cat sat on the MAT"]]
    assert all((one.value == pytest.approx(100)) == rules.lowercase for one in score(small, large, rules).values())


WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "under", "mat", "tree", "old", "new", "red", "green", "big"]


def make_systems() -> tuple[list[str], list[str], list[str], list[list[str]]]:
    """Good and bad translations of 80 sentences, those of a system as good as the bad one, and references."""
    source = random.Random(3)

    def spoil(sentence: list[str], share: float) -> str:
        return " ".join(source.choice(WORDS) if source.random() < share else word for word in sentence)

    sentences = [source.choices(WORDS, k=12) for _ in range(80)]
    good, bad, other = ([spoil(sentence, share) for sentence in sentences] for share in (0.1, 0.3, 0.3))
    return good, bad, other, [[" ".join(sentence)] for sentence in sentences]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_significance_by_every_metric(metric: str, test: PairedTestName) -> None:
    good, bad, other, references = make_systems()
    systems = [("bad", bad), ("good", good), ("other", other)]
    found = compare(systems, references, CASED, metrics=[metric], test=test, samples=300)[metric]
    assert [(each.name, each.p_value is not None and each.p_value < 0.05) for each in found] == [
        *(("bad", False), ("good", True), ("other", False))
    ]
    assert found[0].p_value is None
    assert ("bs:300" if test == "bootstrap" else "ar:300") in found[1].signature
    for comparison, hypotheses in zip(found, (bad, good, other), strict=True):
        scores = score(hypotheses, references, CASED, [metric], 1000)[metric]
        assert comparison.score == pytest.approx(scores.value)
        assert scores.confidence == pytest.approx(comparison.confidence, rel=0.3)


@pytest.mark.parametrize("metric", METRICS)
def test_an_interval_covers_the_score_and_shrinks_with_the_test_set(metric: str) -> None:
    _, bad, _, references = make_systems()
    few, many = (score(bad * n, references * n, CASED, [metric], 200)[metric] for n in (1, 9))
    for found in (few, many):
        assert found.mean is not None
        assert found.confidence is not None
        assert abs(found.mean - found.value) < found.confidence
        assert "bs:200" in found.signature
    assert many.confidence == pytest.approx(few.confidence / 3, rel=0.4)


def test_translation_edit_rate_by_hand() -> None:
    """One substitution and one shift of a phrase, of six words (Snover et al., 2006)."""
    found = score(["d e f a b x"], [["a b c d e f"]], CASED, ["ter"])["ter"]
    assert found.name == "TER"
    assert found.value == pytest.approx(100 * 2 / 6)


def test_references_of_a_file_score_like_the_given_ones() -> None:
    """What is missing in a line is filled with its first reference, which changes no score."""
    good, bad, _, references = make_systems()
    more = [[*refs, *([bad[0]] if index % 3 == 0 else [])] for index, refs in enumerate(references)]
    filled = list(zip(*reference_streams(examples_of(more)), strict=True))
    assert {len(refs) for refs in filled} == {2}
    for metric in METRICS:
        one, other = (score(good, refs, CASED, [metric])[metric] for refs in (more, filled))
        assert one.value == other.value


def test_systems_are_compared_on_all_references() -> None:
    good, bad, _, references = make_systems()
    more = [[*refs, *([bad[0]] if index == 0 else [])] for index, refs in enumerate(references)]
    found = compare([("a", bad), ("b", good)], more, CASED, samples=100)["bleu"]
    assert found[0].score == score(bad, more, CASED)["bleu"].value
    assert "nrefs:var" in found[0].signature


class Copied(CHRF):  # type: ignore[misc]
    """How much of a source is in its translation."""

    def __init__(self, rules: ScoringRules, sources: Sequence[str]) -> None:
        super().__init__()
        self.sources = sources

    def _extract_corpus_statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Any:
        return super()._extract_corpus_statistics(hypotheses, [self.sources])


def test_a_metric_may_read_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "copied", Metric("copied", Copied, higher_is_better=False))
    sources, hypotheses = ["The house.", "A big dog", "no"] * 10, ["The house!", "Ein Hund", "no"] * 10
    examples = [Example(source, ("x", "y")) for source in sources]
    expected = sacrebleu.corpus_chrf(hypotheses, [sources]).score
    found = score_corpus(examples, hypotheses, CASED, ["copied"])["copied"]
    assert (found.name, found.value) == ("copied", pytest.approx(expected))
    tested = score_corpus(examples, hypotheses, CASED, ["copied"], 200)["copied"]
    assert tested.value == pytest.approx(expected)
    assert tested.mean == pytest.approx(expected, abs=5)
    _, copies = compare_systems([("a", hypotheses), ("b", sources)], examples, CASED, metrics=["copied"])["copied"]
    assert (copies.score, copies.p_value) == (100, pytest.approx(0, abs=0.01))


def test_every_metric_that_may_choose_a_model_is_computed() -> None:
    scores = score_corpus([Example("a", ("b c d e",))], ["b c d e"], ScoringRules.for_text(TextSection(), "de"))
    assert {"loss", *scores} == set(get_args(ValidationMetric))


def test_every_metric_says_which_way_is_better() -> None:
    assert [key for key in ("loss", "perplexity", *METRICS) if higher_is_better(key)] == ["bleu", "chrf", "chrf++"]


@pytest.mark.parametrize(
    ("codes", "tokenize"),
    [
        (("zh", "zh-Hans", "cmn", "zho", "zho_Hant", "yue", "wuu", "lzh"), "zh"),
        (("ja", "jpn", "th", "tha", "km", "khm", "lo", "lao", "my", "mya", "bo", "bod"), "char"),
        (("de", "deu", "ko", "kor", "vi"), "13a"),
    ],
)
def test_a_language_is_scored_alike_by_all_its_codes(codes: tuple[str, ...], tokenize: str) -> None:
    assert {ScoringRules.for_text(TextSection(), code).tokenize for code in codes} == {tokenize}


def test_a_signature_names_repaired_references() -> None:
    rules = ScoringRules(repaired=True)
    plain, marked = (score(["a b c d"], [["a b c d"]], one)["bleu"].signature for one in (CASED, rules))
    assert marked == f"{plain}|refs:repaired"
    systems = [("one", ["a b c d"] * 3), ("two", ["a b c e"] * 3)]
    assert all(one.signature.endswith("|refs:repaired") for one in compare(systems, [["a b c d"]] * 3, rules)["bleu"])
