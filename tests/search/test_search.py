import itertools
import math
from typing import Any

import pytest
import torch
from covering import covering
from small_models import Variant, random_model
from torch import Tensor, nn

from nmt.config import DecodeSection
from nmt.corpus.batching import pad
from nmt.models.seq2seq import Seq2Seq
from nmt.search.hypothesis import Hypothesis, Lengths, Scoring
from nmt.search.search import SearchSettings, search
from nmt.search.searcher import ModelSearcher
from nmt.search.stepper import Seq2SeqStepper
from nmt.search.strategy import BeamStrategy, GreedyStrategy
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

VARIANTS = [
    Variant("luong", False, "general", "lstm", 1),
    Variant("luong", True, "dot", "lstm", 2, tying="target"),
    Variant("luong", True, "concat", "gru", 1),
    Variant("bahdanau", False, "additive", "gru", 1),
    Variant("bahdanau", False, "general", "lstm", 2),
    Variant("luong", False, "none", "gru", 2),
    Variant("bahdanau", False, "none", "lstm", 1),
    Variant("bahdanau", False, "coverage", "gru", 1),
    Variant("luong", True, "local_m", "lstm", 1),
    Variant("luong", False, "location_features", "gru", 1),
]


WORDS = 9, 12
"""Sizes of the vocabularies."""
GREEDY = 0
"""As a beam size: greedy search, which is not a beam of one."""


def search_with(
    beam_size: int, model: Seq2Seq, src: Tensor, lengths: Tensor, max_length: int, alpha: float = 1.0, **options: Any
) -> list[list[Hypothesis]]:
    """The hypotheses of each source; a beam returns as many as it is wide unless `n_best` says else."""
    settings = SearchSettings(GreedyStrategy(), Lengths(max_length), **options)
    if beam_size != GREEDY:
        options = {"n_best": beam_size, **options}
        settings = SearchSettings(BeamStrategy(beam_size), Lengths(max_length), Scoring(alpha), **options)
    return search(Seq2SeqStepper(model), src, lengths, settings)


EACH_VARIANT = pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: "-".join(map(str, variant)))


def random_sources(number: int, seed: int, longest: int = 9) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, longest + 1, (number,), generator=generator).tolist()
    ids = [torch.randint(4, WORDS[0], (length,), generator=generator).tolist() for length in lengths]
    return pad(ids, suffix=True), torch.tensor(lengths) + 1


@torch.no_grad()
def forced(model: Seq2Seq, source: Tensor, beginnings: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Log-probabilities [R, T] of the words of beginnings of one length, and alignments; without `step`."""
    words = torch.tensor(beginnings)
    sources, lengths = source.unsqueeze(0).expand(len(words), -1), torch.full((len(words),), len(source))
    tgt_in = torch.cat([torch.full((len(words), 1), BOS_ID), words[:, :-1]], dim=1)
    output = model.decoder(tgt_in, model.encode(sources, lengths))
    log_probs = model.decoder.output(output.readouts).log_softmax(dim=-1).gather(2, words.unsqueeze(2))
    return log_probs.squeeze(2), output.alignments


def log_probs_of(model: Seq2Seq, source: Tensor, beginnings: list[list[int]]) -> list[float]:
    """Log-probabilities of beginnings, whatever comes after them; EOS may be their last word."""
    groups = itertools.groupby(beginnings, len)
    return [number for _, group in groups for number in forced(model, source, list(group))[0].sum(dim=1).tolist()]


def is_complete(hypothesis: Hypothesis) -> bool:
    assert len(hypothesis.attended) == len(hypothesis.ids) + hypothesis.complete
    return hypothesis.complete


@pytest.mark.parametrize(
    ("length", "alpha", "expected"),
    [(1, 1.0, 1.0), (2, 0.2, 7**0.2 / 6**0.2), (7, 1.0, 2.0), (7, 0.5, math.sqrt(2)), (30, 0.0, 1.0), (1, 3.0, 1.0)],
)
def test_length_norm_closed_form(length: int, alpha: float, expected: float) -> None:
    assert Scoring(alpha).norm(length) == pytest.approx(expected, rel=1e-12)
    assert float(Scoring(alpha).norm(torch.tensor([length]))) == pytest.approx(expected, rel=1e-6)


def test_length_limits() -> None:
    assert Lengths(200).most(torch.tensor([1, 2, 30, 64])).tolist() == [13, 16, 100, 200]
    assert Lengths(15).most(torch.tensor([1, 2, 30])).tolist() == [13, 15, 15]
    assert Lengths(200, max_ratio=1.5, margin=0).most(torch.tensor([2, 3, 200])).tolist() == [3, 4, 200]
    assert Lengths(200).fewest(torch.tensor([1, 30])).tolist() == [0, 0]
    assert Lengths(200, shortest=2, min_ratio=0.5).fewest(torch.tensor([1, 3, 4, 21])).tolist() == [2, 2, 2, 10]
    assert Lengths(5, shortest=9).fewest(torch.tensor([30])).tolist() == [4]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
@EACH_VARIANT
def test_a_beam_of_one_is_greedy(variant: Variant, seed: int) -> None:
    model = random_model(variant, seed, WORDS)
    src, lengths = random_sources(6, seed)
    greedily, by_beam = (
        search_with(size, model, src, lengths, 14, **more, with_alignment=True)
        for size, more in ((GREEDY, {}), (1, {"alpha": 0.7}))
    )
    for (one,), (other,) in zip(greedily, by_beam, strict=True):
        assert (other.ids, other.attended) == (one.ids, one.attended)
        assert other.log_prob == pytest.approx(one.log_prob, abs=1e-12)
        assert one.score == one.log_prob
        assert other.score == pytest.approx(one.log_prob / ((5 + len(one.attended)) / 6) ** 0.7, abs=1e-12)
        torch.testing.assert_close(other.alignment, one.alignment, rtol=0, atol=1e-12)


LONGEST = 4
POSSIBLE = (1, 4, 5)  # all that can be produced from six words but EOS: no PAD, no BOS
COMPLETE = [list(ids) for length in range(LONGEST) for ids in itertools.product(POSSIBLE, repeat=length)]
CUT = [list(ids) for ids in itertools.product(POSSIBLE, repeat=LONGEST)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("variant", [*VARIANTS[:2], VARIANTS[3], *VARIANTS[6:9]], ids=lambda v: v.order + v.attention)
def test_a_beam_as_wide_as_the_space_is_brute_force(variant: Variant, seed: int) -> None:
    model = random_model(variant, seed, (9, 6))
    src, lengths = random_sources(3, seed)
    log_probs = [
        log_probs_of(model, source[:length], [[*ids, EOS_ID] for ids in COMPLETE] + CUT)
        for source, length in zip(src, lengths.tolist(), strict=True)
    ]
    for length_penalty in (0.0, 0.6, 2.5):
        assert_brute_force(model, src, lengths, length_penalty, log_probs)


def assert_brute_force(
    model: Seq2Seq, src: Tensor, lengths: Tensor, length_penalty: float, log_probs: list[list[float]]
) -> None:
    """A beam finds all hypotheses in the order of their scores, which follow from their log-probabilities."""
    found = search_with(130, model, src, lengths, LONGEST, length_penalty)
    fewer = {number: search_with(130, model, src, lengths, LONGEST, length_penalty, n_best=number) for number in (1, 7)}
    for row, hypotheses in enumerate(found):
        scored = [
            (log_prob / ((5 + min(len(ids) + 1, LONGEST)) / 6) ** length_penalty, ids)
            for ids, log_prob in zip(COMPLETE + CUT, log_probs[row], strict=True)
        ]
        scored.sort(key=lambda pair: -pair[0])
        assert [hypothesis.ids for hypothesis in hypotheses] == [ids for _, ids in scored]
        for hypothesis, (score, ids) in zip(hypotheses, scored, strict=True):
            assert is_complete(hypothesis) == (len(ids) < LONGEST)
            assert hypothesis.score == pytest.approx(score, abs=1e-10)
        for n_best, others in fewer.items():
            assert [hypothesis.ids for hypothesis in others[row]] == [ids for _, ids in scored[:n_best]]


def shrinking_beam(model: Seq2Seq, source: Tensor, beam_size: int, limit: int) -> list[tuple[list[int], float]]:
    """Ended hypotheses with their log-probabilities, in the order of ending; a simple reference implementation."""
    beam: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[list[int], float]] = []
    words = [word for word in range(12) if word not in (PAD_ID, BOS_ID)]
    for _ in range(limit):
        grown = []
        for _, ids in beam:
            ways = [[*ids, word] for word in words]
            grown += [(log_prob, way) for log_prob, way in zip(log_probs_of(model, source, ways), ways, strict=True)]
        grown.sort(key=lambda pair: -pair[0])
        beam = grown[: beam_size - len(ended)]  # an ended hypothesis does not free its place
        ended += [(ids[:-1], log_prob) for log_prob, ids in beam if ids[-1] == EOS_ID]
        beam = [(log_prob, ids) for log_prob, ids in beam if ids[-1] != EOS_ID]
        if not beam:
            break
    return ended


@covering("variant, seed, beam_size", [VARIANTS[0], VARIANTS[3]], range(3), [2, 3, 5])
def test_a_complete_hypothesis_reduces_the_beam(variant: Variant, seed: int, beam_size: int) -> None:
    model = random_model(variant, seed, WORDS, eos=1.0)
    src, lengths = random_sources(4, seed)
    found = search_with(beam_size, model, src, lengths, 8, 0.0)
    for row, hypotheses in enumerate(found):
        expected = shrinking_beam(model, src[row, : lengths[row]], beam_size, 8)
        expected.sort(key=lambda pair: -pair[1])
        complete = [hypothesis for hypothesis in hypotheses if is_complete(hypothesis)]
        assert [hypothesis.ids for hypothesis in complete] == [ids for ids, _ in expected]
        assert [h.log_prob for h in complete] == pytest.approx([log_prob for _, log_prob in expected], abs=1e-9)


def same(found: list[Hypothesis], expected: list[Hypothesis], src_length: int, attends: bool) -> None:
    assert [hypothesis.ids for hypothesis in found] == [hypothesis.ids for hypothesis in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-9)
        assert one.score == pytest.approx(other.score, abs=1e-9)
        if attends:
            assert one.attended == other.attended
        else:
            assert min([*one.attended, *other.attended]) >= src_length
        torch.testing.assert_close(one.alignment, other.alignment, rtol=0, atol=1e-9)


def test_these_models_end_their_sentences_at_different_lengths() -> None:
    src, lengths = random_sources(5, 11)
    ended = [
        {len(best.ids) for (best,) in search_with(GREEDY, random_model(variant, seed, WORDS), src, lengths, 14)}
        for variant in VARIANTS
        for seed in (11, 12)
    ]
    assert sum(len(found) > 1 for found in ended) >= len(VARIANTS)


@pytest.mark.parametrize("seed", [11, pytest.param(12, marks=pytest.mark.soak)])
@pytest.mark.parametrize("beam_size", [0, pytest.param(2, marks=pytest.mark.soak), 5])
@EACH_VARIANT
def test_a_translation_depends_on_its_sentence_alone(variant: Variant, beam_size: int, seed: int) -> None:
    model = random_model(variant, seed, WORDS)
    src, lengths = random_sources(5, 11)

    def search(src: Tensor, lengths: Tensor) -> list[list[Hypothesis]]:
        return search_with(beam_size, model, src, lengths, 14, with_alignment=True)

    alone = [search(src[row : row + 1, :length], lengths[row : row + 1]) for row, length in enumerate(lengths.tolist())]
    together = search(src, lengths)
    padded = search(nn.functional.pad(src, (0, 5), value=PAD_ID), lengths)
    order = torch.randperm(5, generator=torch.Generator().manual_seed(0))
    shuffled = search(src[order], lengths[order])
    attends = variant.attention != "none"
    for row, length in enumerate(lengths.tolist()):
        (expected,) = alone[row]
        same(together[row], expected, length, attends)
        same(padded[row], expected, length, attends)
        same(shuffled[order.tolist().index(row)], expected, length, attends)


@pytest.mark.parametrize("beam_size", [GREEDY, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 3)), 8])
@EACH_VARIANT
def test_hypotheses_differ_and_have_the_scores_and_alignments_of_teacher_forcing(
    variant: Variant, beam_size: int
) -> None:
    model = random_model(variant, 2, WORDS, eos=0.5)
    src, lengths = random_sources(3, 2)
    found = search_with(beam_size, model, src, lengths, 12, 0.8, with_alignment=True)
    for source, length, hypotheses in zip(src, lengths.tolist(), found, strict=True):
        assert 1 <= len(hypotheses) <= max(1, beam_size)
        assert len({(tuple(hypothesis.ids), hypothesis.complete) for hypothesis in hypotheses}) == len(hypotheses)
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in hypotheses:
            words = [*hypothesis.ids, *[EOS_ID] * is_complete(hypothesis)]
            log_probs, alignments = forced(model, source[:length], [words])
            assert hypothesis.log_prob == pytest.approx(float(log_probs.sum()), abs=1e-9)
            norm = 1.0 if beam_size == GREEDY else ((5 + len(words)) / 6) ** 0.8
            assert hypothesis.score == pytest.approx(hypothesis.log_prob / norm, abs=1e-12)
            torch.testing.assert_close(hypothesis.alignment, alignments[0], rtol=0, atol=1e-10)
            if variant.attention == "none":
                assert min(hypothesis.attended) >= length
            else:
                assert hypothesis.attended == alignments[0].squeeze(1).argmax(dim=1).tolist()


@pytest.mark.parametrize("beam_size", [0, 1, 4])
def test_padding_and_beginning_are_never_produced(beam_size: int) -> None:
    model = random_model(VARIANTS[0], 0, WORDS)
    with torch.no_grad():
        model.decoder.output.bias[[PAD_ID, BOS_ID]] = 50.0
    src, lengths = random_sources(6, 0)
    for hypothesis in itertools.chain(*search_with(beam_size, model, src, lengths, 12)):
        assert hypothesis.alignment is None  # nobody asked for it
        assert not {PAD_ID, BOS_ID, EOS_ID} & set(hypothesis.ids)
        assert math.isfinite(hypothesis.log_prob)


@pytest.mark.parametrize("max_length", [1, 7, 20, 100])
@pytest.mark.parametrize("beam_size", [0, 1, 4])
def test_limits_are_kept(beam_size: int, max_length: int) -> None:
    model = random_model(VARIANTS[0], 0, WORDS, eos=-60.0)
    src, lengths = random_sources(6, 0)
    found = search_with(beam_size, model, src, lengths, max_length)
    for length, hypotheses in zip(lengths.tolist(), found, strict=True):
        for hypothesis in hypotheses:
            limit = min(3 * length + 10, max_length)
            assert len(hypothesis.attended) <= limit
            if not is_complete(hypothesis):
                assert len(hypothesis.ids) == limit
        assert len(hypotheses[0].ids) == limit or is_complete(hypotheses[0])


def test_a_model_that_ends_at_once_gives_empty_translations() -> None:
    model = random_model(VARIANTS[0], 0, WORDS, eos=60.0)
    src, lengths = random_sources(4, 0)
    for (best,) in search_with(GREEDY, model, src, lengths, 20):
        assert (best.ids, len(best.attended)) == ([], 1)
        assert best.log_prob == pytest.approx(0.0, abs=1e-12)
    for found in search_with(4, model, src, lengths, 20, n_best=1):
        assert [hypothesis.ids for hypothesis in found] == [[]]


def test_nan_probabilities_give_no_hypotheses() -> None:
    model = random_model(VARIANTS[0], 0, WORDS)
    with torch.no_grad():
        model.decoder.output.bias.fill_(torch.nan)
    src, lengths = random_sources(3, 0)
    for beam_size in (GREEDY, 2):
        assert search_with(beam_size, model, src, lengths, 5) == [[], [], []]


def test_no_translation_is_empty_unless_it_may_be() -> None:
    model = random_model(Variant(), 0, WORDS, eos=50.0)  # every hypothesis ends as soon as it can
    sources = [[4, 5, 6], [7]]
    found = {
        fewest: ModelSearcher([model], DecodeSection(beam_size=2, min_length=fewest)).search(sources)
        for fewest in (0, 1, 3)
    }
    default = ModelSearcher([model], DecodeSection(beam_size=2)).search(sources)
    assert {fewest: [len(best.ids) for best, *_ in ranked] for fewest, ranked in found.items()} == {
        0: [0, 0],
        1: [1, 1],
        3: [3, 3],
    }
    assert [best.ids for best, *_ in default] == [best.ids for best, *_ in found[1]]
