"""Approximate randomisation over seeds against sacreBLEU's test and against all exchanges by hand."""

import itertools

import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from nmt.corpus.example import Example
from nmt.evaluation.metrics import ScoringRules
from nmt.evaluation.several_seeds import compare_over_seeds

REFERENCES = [f"the cat number {n} sat on the mat today and then slept" for n in range(40)]
EXAMPLES = [Example("", (line,)) for line in REFERENCES]
RULES = ScoringRules()


def worsened(every: int, word: str) -> list[str]:
    """Translations of which every n-th has another word."""
    return [line.replace(word, "dog") if n % every == 0 else line for n, line in enumerate(REFERENCES)]


GOOD, FAIR, POOR = worsened(9, "cat"), worsened(4, "mat"), worsened(2, "sat")


def bleu(hypotheses: list[str], references: list[str] = REFERENCES) -> float:
    return sacrebleu.BLEU(force=True).corpus_score(hypotheses, [references]).score


def test_the_difference_is_the_mean_over_seeds() -> None:
    found = compare_over_seeds([(GOOD, FAIR), (FAIR, POOR), (GOOD, POOR)], EXAMPLES, RULES, trials=10)
    expected = (2 * bleu(GOOD) - 2 * bleu(POOR)) / 3
    assert found.difference == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("system", "baseline"), [(GOOD, FAIR), (FAIR, POOR), (POOR, GOOD)])
def test_with_one_seed_it_is_the_test_of_sacrebleu(system: list[str], baseline: list[str]) -> None:
    systems = [("baseline", baseline), ("system", system)]
    test = PairedTest(systems, {"bleu": sacrebleu.BLEU(force=True)}, [REFERENCES], test_type="ar", n_samples=4000)
    _, scores = test()
    found = compare_over_seeds([(system, baseline)], EXAMPLES, RULES, trials=4000)
    assert found.p_value == pytest.approx(scores["BLEU"][1].p_value, abs=0.03)
    assert found.difference == pytest.approx(bleu(system) - bleu(baseline), abs=1e-9)


def test_the_probability_is_the_share_of_all_exchanges() -> None:
    """Four sentences and two seeds: sixteen exchanges, each of a sentence with both seeds."""
    references = REFERENCES[:4]
    first = [references[0], references[1], references[2].replace("cat", "dog"), references[3]]
    second = [references[0].replace("sat", "lay"), references[1].replace("mat", "hat"), references[2], references[3]]
    third = [line.replace("today", "now") for line in references]
    seeds = [(first, second), (first, third)]
    differences = []
    for kept in itertools.product((True, False), repeat=4):
        exchanged = [
            [[pair[0 if keep else 1][n] for n, keep in enumerate(kept)] for pair in (seed, seed[::-1])]
            for seed in seeds
        ]
        differences.append(sum(bleu(one, references) - bleu(other, references) for one, other in exchanged) / 2)
    observed = abs(differences[0])  # nothing is exchanged
    expected = sum(abs(difference) >= observed - 1e-9 for difference in differences) / 16
    assert 0 < expected < 1
    found = compare_over_seeds(seeds, [Example("", (line,)) for line in references], RULES)
    assert found.p_value == pytest.approx(expected, abs=0.02)


def test_a_run_that_is_counted_three_times_is_no_more_evidence() -> None:
    """Exchanges of a sentence with one seed only would make p smaller."""
    once = compare_over_seeds([(GOOD, FAIR)], EXAMPLES, RULES, trials=1000)
    thrice = compare_over_seeds([(GOOD, FAIR)] * 3, EXAMPLES, RULES, trials=1000)
    assert thrice == pytest.approx(once)
    assert 0.01 < once.p_value < 0.99


def test_seeds_that_disagree_are_no_difference() -> None:
    found = compare_over_seeds([(GOOD, POOR), (POOR, GOOD)], EXAMPLES, RULES, trials=100)
    assert found == pytest.approx((0.0, 1.0), abs=1e-9)


def test_seeds_that_agree_are_one() -> None:
    found = compare_over_seeds([(GOOD, POOR), (REFERENCES, POOR)], EXAMPLES, RULES, trials=999)
    assert found.difference > 5
    assert found.p_value == pytest.approx(1 / 1000)  # no trial in 999


def test_several_references_are_read() -> None:
    examples = [
        Example("", (line, *([line.replace("cat", "dog")] if n % 3 else []))) for n, line in enumerate(REFERENCES)
    ]
    found = compare_over_seeds([(worsened(1, "cat"), REFERENCES)], examples, RULES, trials=10)
    assert -60 < found.difference < 0
