"""Options of a search: scoring, lengths, constraints, sampling, and ensembles."""

import itertools
import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import Variant, random_model
from test_search import EACH_VARIANT, VARIANTS, WORDS, forced, log_probs_of, random_sources
from torch import Tensor

from nmt.config import DecodeSection, SamplingSection
from nmt.models.seq2seq import Seq2Seq
from nmt.search.constraint import DemandedWords, ForcedPrefix, MinLength, NoRepeat
from nmt.search.hypothesis import Hypothesis, Lengths, Scoring
from nmt.search.search import SearchSettings, search
from nmt.search.searcher import TOKENS_PER_SENTENCE, ModelSearcher
from nmt.search.stepper import EnsembleStepper, Seq2SeqStepper
from nmt.search.strategy import BeamStrategy, GreedyStrategy, SamplingStrategy
from nmt.search.top_words import top_words
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID

BEAM = BeamStrategy(5)


def rows(src: Tensor, lengths: Tensor) -> list[list[int]]:
    return [ids[: length - 1] for ids, length in zip(src.tolist(), lengths.tolist(), strict=True)]


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_top_words_are_those_of_topk(data: st.DataObject) -> None:
    vocabulary = data.draw(st.integers(1, 3000))
    number = data.draw(st.integers(1, min(vocabulary, 12)))
    scores = torch.randn(3, vocabulary, generator=torch.Generator().manual_seed(data.draw(st.integers(0, 99))))
    scores[:, data.draw(st.integers(0, vocabulary - 1))] = -torch.inf
    best, words = top_words(scores, number)
    assert torch.equal(best, scores.topk(number).values)
    assert torch.equal(scores.gather(1, words), best)


def test_average_norm_and_coverage_penalty_closed_form() -> None:
    scoring = Scoring(1.0, "average", coverage_penalty=0.5)
    assert scoring.norm(4) == 4
    received = torch.tensor([[0.5, 2.0, 0.25, 9.0]])
    mask = torch.tensor([[True, True, True, False]])
    assert float(scoring.coverage(received, mask)) == pytest.approx(0.5 * (math.log(0.5) + math.log(0.25)))


@EACH_VARIANT
def test_scores_follow_from_log_probability_length_and_coverage(variant: Variant) -> None:
    model = random_model(variant, 3, WORDS, eos=0.5)
    src, lengths = random_sources(6, 3)
    scoring = Scoring(0.7, "average", coverage_penalty=0.3)
    settings = SearchSettings(BEAM, Lengths(9), scoring, n_best=5, with_alignment=True)
    found = search(Seq2SeqStepper(model), src, lengths, settings)
    for hypotheses in found:
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        for each in hypotheses:
            assert each.alignment is not None
            covered = each.alignment.mean(dim=1).sum(dim=0).clamp(1e-10, 1).log().sum()
            length = len(each.attended)
            assert each.score == pytest.approx(each.log_prob / length**0.7 + 0.3 * float(covered), abs=1e-9)
            assert sum(each.token_log_probs) == pytest.approx(each.log_prob, abs=1e-12)
            assert len(each.token_log_probs) == length


def test_a_translation_can_end_at_its_minimum_of_words() -> None:
    log_probs, words = torch.zeros(3, 5), torch.full((3, 2), 4)
    MinLength(torch.tensor([2, 3])).apply(log_probs, words, torch.tensor([0, 0, 1]), torch.full((3,), 9))
    assert log_probs[:, EOS_ID].tolist() == [0, 0, -math.inf]
    assert int(log_probs.isinf().sum()) == 1


@pytest.mark.parametrize("strategy", [GreedyStrategy(), BEAM])
@EACH_VARIANT
def test_a_translation_has_the_requested_length(variant: Variant, strategy: GreedyStrategy | BeamStrategy) -> None:
    model = random_model(variant, 5, WORDS, eos=3.0)
    src, lengths = random_sources(8, 5)
    bounds = Lengths(20, max_ratio=1.0, margin=4, shortest=2, min_ratio=0.5)
    found = search(Seq2SeqStepper(model), src, lengths, SearchSettings(strategy, bounds, n_best=5))
    for length, hypotheses in zip(lengths.tolist(), found, strict=True):
        for each in hypotheses:
            assert max(2, (length - 1) // 2) <= len(each.ids) <= min(20, length + 4)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_sequence_of_words_occurs_twice(size: int) -> None:
    model = random_model(VARIANTS[0], 0, WORDS, eos=-60.0)
    src, lengths = random_sources(6, 0)

    def repeated(ids: list[int]) -> bool:
        parts = [tuple(ids[at : at + size]) for at in range(len(ids) - size + 1)]
        return len(parts) != len(set(parts))

    for strategy in (GreedyStrategy(), BEAM):
        stepper, limits = Seq2SeqStepper(model), Lengths(8)
        free = search(stepper, src, lengths, SearchSettings(strategy, limits))
        found = search(stepper, src, lengths, SearchSettings(strategy, limits, constraints=[NoRepeat(size)]))
        assert any(repeated(each.ids) for (each,) in free)
        assert not any(repeated(each.ids) for (each,) in found)
        for one, other in zip(free, found, strict=True):
            assert repeated(one[0].ids) or one[0].ids == other[0].ids or strategy is BEAM


@EACH_VARIANT
def test_forced_words_have_their_teacher_forced_probabilities(variant: Variant) -> None:
    model = random_model(variant, 2, WORDS)
    src, lengths = random_sources(6, 2)
    targets = [[4, 5, 4], [], [11], [6, 6, 6, 6], [8], [1, 9]]
    constraints = [ForcedPrefix([[*target, EOS_ID] for target in targets])]
    settings = SearchSettings(GreedyStrategy(), Lengths(9), constraints=constraints)
    found = search(Seq2SeqStepper(model), src, lengths, settings)
    for row, (target, (each,)) in enumerate(zip(targets, found, strict=True)):
        words = [*target, EOS_ID]
        expected, _ = forced(model, src[row, : lengths[row]], [words])
        assert (each.ids, each.complete) == (target, True)
        assert each.log_prob == pytest.approx(float(expected.sum()), abs=1e-9)
        assert each.token_log_probs == pytest.approx(expected[0].tolist(), abs=1e-9)


@pytest.mark.parametrize("strategy", [GreedyStrategy(), BEAM])
def test_the_best_translation_is_that_forced_to_begin_like_itself(strategy: GreedyStrategy | BeamStrategy) -> None:
    model = random_model(VARIANTS[0], 4, WORDS, eos=0.5)
    src, lengths = random_sources(8, 4)
    stepper, limits = Seq2SeqStepper(model), Lengths(12)
    found = search(stepper, src, lengths, SearchSettings(GreedyStrategy(), limits))
    prefixes = [each.ids[: row % 3] for row, (each,) in enumerate(found)]
    again = search(stepper, src, lengths, SearchSettings(strategy, limits, constraints=[ForcedPrefix(prefixes)]))
    for prefix, (one,), (other,) in zip(prefixes, found, again, strict=True):
        assert other.ids[: len(prefix)] == prefix
        assert strategy is BEAM or one == other


DEMANDED = [[4], [5, 6], [7, 7], [], [8, 4, 4], [9]]


@pytest.mark.parametrize("strategy", [GreedyStrategy(), BEAM])
@EACH_VARIANT
def test_demanded_words_stand_exactly_as_often_as_they_are_demanded(
    variant: Variant, strategy: GreedyStrategy | BeamStrategy
) -> None:
    """Also where the longest translation has room for nothing else, and where the end is far more probable."""
    reserved = [4, 5, 6, 7, 8, 9]
    for seed, (eos, most) in enumerate(((-60.0, 3), (60.0, 9), (0.0, 9))):
        model = random_model(variant, seed, WORDS, eos=eos)
        src, lengths = random_sources(6, seed)
        settings = SearchSettings(strategy, Lengths(most), constraints=[DemandedWords(DEMANDED, reserved)], n_best=2)
        for words, hypotheses in zip(DEMANDED, search(Seq2SeqStepper(model), src, lengths, settings), strict=True):
            assert hypotheses
            for each in hypotheses:
                assert sorted(word for word in each.ids if word in reserved) == sorted(words)


def test_a_wide_beam_finds_the_best_of_all_translations_with_the_demanded_words() -> None:
    model = random_model(VARIANTS[0], 1, (WORDS[0], 8))
    src, lengths = random_sources(1, 1)
    number = model.decoder.output.out_features
    demand = [4, 5]
    settings = SearchSettings(BeamStrategy(number**3), Lengths(4), constraints=[DemandedWords([demand])])
    ((best,),) = search(Seq2SeqStepper(model), src, lengths, settings)
    candidates = [
        [*words, *end]
        for length, end in ((2, [EOS_ID]), (3, [EOS_ID]), (4, []))
        for words in itertools.product([UNK_ID, *range(4, number)], repeat=length)
        if sorted(word for word in words if word in demand) == demand
    ]
    totals = log_probs_of(model, src[0], candidates)
    scores = [total / settings.scoring.norm(len(words)) for words, total in zip(candidates, totals, strict=True)]
    expected = candidates[scores.index(max(scores))]
    assert [*best.ids, *([EOS_ID] if best.complete else [])] == expected
    assert best.score == pytest.approx(max(scores), abs=1e-9)


def test_demands_of_some_sentences_keep_their_order() -> None:
    demands = DemandedWords(DEMANDED, [10])
    chosen = demands.select([4, 0])
    assert (chosen.demanded, chosen.reserved) == ([[8, 4, 4], [4]], demands.reserved)
    assert chosen.counts.tolist() == [demands.counts[4].tolist(), demands.counts[0].tolist()]


def sample(model: Seq2Seq, src: Tensor, lengths: Tensor, number: int, **options: object) -> list[list[Hypothesis]]:
    strategy = SamplingStrategy(number, list(range(len(src))), 9, SamplingSection(**options))
    return search(Seq2SeqStepper(model), src, lengths, SearchSettings(strategy, Lengths(9), n_best=number))


def test_samples_have_the_models_distribution() -> None:
    model = random_model(VARIANTS[0], 1, (9, 6), spread=0.7)
    src, lengths = random_sources(3, 1)
    (found, *_) = sample(model, src, lengths, 4000)
    first = Counter(tuple(each.ids[:1]) for each in found)
    source = src[0, : lengths[0]]
    words = [1, 4, 5, EOS_ID]  # all but PAD and BOS, which never follow
    probabilities = [math.exp(each) for each in log_probs_of(model, source, [[word] for word in words])]
    for word, probability in zip(words[:3], probabilities, strict=False):
        share = probability / sum(probabilities)
        deviation = math.sqrt(share * (1 - share) / 4000)
        assert abs(first[(word,)] / 4000 - share) < 4 * deviation
    for each in found[:20]:
        if each.complete:
            (expected,) = log_probs_of(model, source, [[*each.ids, EOS_ID]])
            assert each.log_prob == pytest.approx(expected, abs=1e-9)


def test_sampling_with_top_k_top_p_and_temperature() -> None:
    model = random_model(VARIANTS[0], 6, WORDS)
    src, lengths = random_sources(5, 6)
    ((_greedy,), *_) = best = search(Seq2SeqStepper(model), src, lengths, SearchSettings(GreedyStrategy(), Lengths(9)))
    for options in ({"top_k": 1}, {"top_p": 1e-9}):
        found = sample(model, src, lengths, 3, **options)
        assert [[each.ids for each in hypotheses] for hypotheses in found] == [[each.ids] * 3 for (each,) in best]
    wide, narrow = (sample(model, src, lengths, 30, temperature=each)[0] for each in (3.0, 0.3))
    assert len({tuple(each.ids) for each in wide}) > 5
    assert sum(each.log_prob for each in narrow) > sum(each.log_prob for each in wide)
    kept = sample(model, src, lengths, 200, top_k=2)[0]
    assert len({each.ids[0] if each.ids else EOS_ID for each in kept}) <= 2


SAMPLING = DecodeSection(max_length=9, batch_size=3, sampling=SamplingSection(temperature=1.5))


@pytest.mark.parametrize("options", [DecodeSection(max_length=9, batch_size=3), SAMPLING])
def test_searching_does_not_depend_on_batch_and_order(options: DecodeSection) -> None:
    model = random_model(VARIANTS[3], 11, WORDS)
    sources = [ids for ids in rows(*random_sources(12, 11)) if ids]
    together = ModelSearcher([model], options).search(sources, n_best=2)
    alone = [ModelSearcher([model], options).search([ids], n_best=2)[0] for ids in sources]
    order = list(range(len(sources)))[::-1]
    backwards = ModelSearcher([model], options.model_copy(update={"batch_size": 50})).search(
        [sources[n] for n in order], n_best=2
    )
    for n in order:
        expected = [(each.ids, pytest.approx(each.log_prob, abs=1e-9)) for each in alone[n]]
        assert [(each.ids, each.log_prob) for each in together[n]] == expected
        assert [(each.ids, each.log_prob) for each in backwards[order.index(n)]] == expected


def test_another_seed_draws_other_samples() -> None:
    model = random_model(VARIANTS[0], 7, WORDS)
    sources = [[4, 5, 6], [7], [8, 4]]
    other = SAMPLING.model_copy(update={"sampling": SamplingSection(temperature=1.5, seed=2)})
    found = [[each.ids for each in hyps] for hyps in ModelSearcher([model], SAMPLING).search(sources, n_best=5)]
    again = [[each.ids for each in hyps] for hyps in ModelSearcher([model], SAMPLING).search(sources, n_best=5)]
    others = [[each.ids for each in hyps] for hyps in ModelSearcher([model], other).search(sources, n_best=5)]
    assert found == again
    assert found != others


@EACH_VARIANT
def test_an_ensemble_predicts_the_mean_of_probabilities(variant: Variant) -> None:
    models = [random_model(variant, seed, WORDS, eos=0.5) for seed in (1, 2, 3)]
    src, lengths = random_sources(3, 9)
    stepper = EnsembleStepper([Seq2SeqStepper(model) for model in models])
    found = search(stepper, src, lengths, SearchSettings(BEAM, Lengths(7), n_best=2, with_alignment=True))
    for row, hypotheses in enumerate(found):
        source = src[row, : lengths[row]]
        for each in hypotheses:
            words = [*each.ids, *([EOS_ID] if each.complete else [])]
            log_probs = torch.cat([forced(model, source, [words])[0] for model in models])  # [3, T]
            expected = float(log_probs.exp().mean(dim=0).log().sum())
            assert each.log_prob == pytest.approx(expected, abs=1e-9)


@EACH_VARIANT
def test_an_ensemble_of_one_model_is_the_model_and_a_folded_one_too(variant: Variant) -> None:
    model = random_model(variant, 4, WORDS, eos=0.5)
    src, lengths = random_sources(8, 4)
    plain, folded = Seq2SeqStepper(model), Seq2SeqStepper(model, num_words=WORDS[1])
    found = [
        search(stepper, src, lengths, SearchSettings(BEAM, Lengths(9), n_best=5))
        for stepper in (plain, EnsembleStepper([plain, plain]), folded)
    ]
    for one, *others in zip(*found, strict=True):
        for other in others:
            assert [each.ids for each in one] == [each.ids for each in other]
            assert [each.log_prob for each in one] == pytest.approx([each.log_prob for each in other], abs=1e-9)


def test_weights_are_folded_for_large_searches_and_kept_if_they_are_frozen() -> None:
    model = random_model(VARIANTS[0], 0, WORDS)
    options = DecodeSection(beam_size=2, max_length=5)
    frozen, free = (ModelSearcher([model], options, frozen=frozen) for frozen in (True, False))
    small = frozen._stepper(3)
    assert frozen._stepper(3) is small
    large = frozen._stepper(500)
    assert isinstance(small, Seq2SeqStepper)
    assert isinstance(large, Seq2SeqStepper)
    assert small.weights.table is None
    assert large.weights.table is not None
    assert frozen._stepper(3) is large
    assert free._stepper(3) is not free._stepper(3)


def test_batches_are_bounded_in_sentences_and_tokens() -> None:
    searcher = ModelSearcher([random_model(VARIANTS[0], 0, WORDS)], DecodeSection(batch_size=4))
    sources = [[4] * length for length in (1, 900, 3, 3, 200, 3, 2, 3, 1, 3, 3)]
    batches = list(searcher._batches(sources))
    assert sorted(itertools.chain(*batches)) == list(range(len(sources)))
    for batch in batches:
        longest = max(len(sources[n]) + 1 for n in batch)
        assert len(batch) <= 4
        assert len(batch) == 1 or len(batch) * longest <= 4 * TOKENS_PER_SENTENCE


def test_bfloat16_is_near_float32() -> None:
    model = random_model(VARIANTS[0], 0, WORDS, spread=0.3).float()
    sources = rows(*random_sources(8, 0))
    exact = ModelSearcher([model], DecodeSection(max_length=6)).search(sources)
    coarse = ModelSearcher([model], DecodeSection(max_length=6, precision="bfloat16")).search(sources)
    for (one,), (other,) in zip(exact, coarse, strict=True):
        assert one.score == pytest.approx(other.score, rel=0.05)
    assert {PAD_ID, BOS_ID}.isdisjoint(itertools.chain(*(each.ids for (each,) in coarse)))
