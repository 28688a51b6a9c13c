"""Sentences that outlast most of their batch wait for those of other batches, and are translated as before."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from covering import covering
from small_models import Variant, random_model, randomize

from nmt.config import DecodeSection, ModelSection, SamplingSection
from nmt.layers.layout import Layout, join_padded
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.search import search as searching
from nmt.search import waiting
from nmt.search.constraint import ForcedPrefix
from nmt.search.hypothesis import Hypothesis
from nmt.search.searcher import ModelSearcher
from nmt.search.stepper import Stepper

WORDS = 30
RECURRENT = Variant("luong", True, "general", "gru")
TRANSFORMER = {"kind": "transformer", "hidden_size": 8, "num_layers": 2, "num_heads": 2}
MODELS: dict[str, dict[str, Any]] = {
    "recurrent": {"variant": RECURRENT},
    "coverage": {"variant": Variant("bahdanau", False, "coverage", "lstm", 2)},
    "location": {"variant": Variant("luong", False, "location_features", "gru")},
    "transformer": {"decoder": TRANSFORMER},
    "ssru": {"decoder": {**TRANSFORMER, "kind": "ssru"}},
}
OPTIONS = {
    "greedy": DecodeSection(beam_size=1),
    "beam": DecodeSection(beam_size=4, min_length=3),
    "coverage penalty": DecodeSection(beam_size=3, coverage_penalty=0.5),
    "no repeats": DecodeSection(beam_size=2, no_repeat_ngram_size=2),
    "sampling": DecodeSection(sampling=SamplingSection(temperature=1.0, top_k=10)),
}
BATCH = 16


class CountingSearcher(ModelSearcher):
    """A searcher that keeps the sizes of the searches that were joined, in sentences."""

    def __init__(self, models: Sequence[Seq2Seq], options: DecodeSection) -> None:
        super().__init__(models, options)
        self.joined: list[list[int]] = []

    def _stepper(self, num_words: int) -> Stepper[Any]:
        stepper = super()._stepper(num_words)
        join = stepper.join

        def keep(states: Sequence[Any], layout: Layout) -> Any:
            joined = join(states, layout)
            self.joined.append([layout.num_sentences, len(states)])
            return joined

        stepper.join = keep  # type: ignore[method-assign]
        return stepper


def make_model(name: str, seed: int = 0) -> Seq2Seq:
    options = MODELS[name]
    if "variant" in options:
        return random_model(options["variant"], seed, (WORDS, WORDS), spread=0.8)
    encoder = {"kind": "self_attention", "hidden_size": 8, "num_layers": 1, "num_heads": 2}
    section = ModelSection(embedding_size=8, dropout=0.0, encoder=encoder, **options)
    return randomize(build_model(section, WORDS, WORDS), seed, 0.8).eval()


def make_sources(number: int) -> list[list[int]]:
    chance = random.Random(5)
    return [[chance.randrange(4, WORDS) for _ in range(chance.randint(0, 12))] for _ in range(number)]


def find(
    models: Sequence[Seq2Seq],
    options: DecodeSection,
    monkeypatch: pytest.MonkeyPatch,
    few: float,
    pause: int,
    **how: Any,
) -> tuple[list[list[Hypothesis]], list[list[int]]]:
    """The hypotheses of 100 sources, and the sizes of joined searches."""
    monkeypatch.setattr(waiting, "FEW", few)
    monkeypatch.setattr(waiting, "PAUSE", pause)
    searcher = CountingSearcher(models, options.model_copy(update={"batch_size": BATCH, "max_length": 30}))
    torch.manual_seed(1)
    return searcher.search(make_sources(100), **how), searcher.joined


def assert_same(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    assert [[each.ids for each in those] for those in found] == [[each.ids for each in those] for those in expected]
    for those, others in zip(found, expected, strict=True):
        for one, other in zip(those, others, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-9)
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-9)
            assert (one.alignment is None) == (other.alignment is None)
            if one.alignment is not None and other.alignment is not None:
                torch.testing.assert_close(one.alignment, other.alignment, atol=1e-9, rtol=0)


@covering("name, search, with_alignment, pause", [*MODELS], [*OPTIONS], [False, True], [1, 8])
def test_sentences_that_wait_are_translated_as_in_their_own_batch(
    name: str, search: str, with_alignment: bool, pause: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [make_model(name)]
    how = {"n_best": 3, "with_alignment": with_alignment}
    expected, never = find(models, OPTIONS[search], monkeypatch, 0.0, pause, **how)
    found, joined = find(models, OPTIONS[search], monkeypatch, 0.5, pause, **how)
    assert never == []
    assert joined
    assert_same(found, expected)


def test_models_together_and_an_accelerator_that_looks_every_few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [make_model("transformer"), make_model("coverage", seed=1)]
    expected, _ = find(models, OPTIONS["beam"], monkeypatch, 0.0, 8, n_best=2)
    monkeypatch.setitem(searching.STEPS_PER_WAIT, "cpu", 4)
    found, joined = find(models, OPTIONS["beam"], monkeypatch, 0.5, 8, n_best=2)
    assert joined
    assert_same(found, expected)


def test_each_sentence_keeps_its_own_constraint(monkeypatch: pytest.MonkeyPatch) -> None:
    prefixes = [[4 + n % 20, 4 + n % 7, 5 + n % 11] for n in range(100)]
    found, joined = find(
        [make_model("recurrent")], OPTIONS["beam"], monkeypatch, 0.5, 2, constraints=[ForcedPrefix(prefixes)]
    )
    assert joined
    assert [best.ids[:3] for best, *_ in found] == prefixes


def test_each_source_is_reported_once_when_it_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[int] = []
    find([make_model("recurrent")], OPTIONS["greedy"], monkeypatch, 0.5, 1, advance=reports.extend)
    assert sorted(reports) == list(range(100))
    find([make_model("recurrent")], OPTIONS["greedy"], monkeypatch, 0.5, 8, advance=reports.extend)
    assert sorted(reports) == sorted([*range(100), *range(100)])


def test_joined_searches_are_at_most_half_as_large_again_as_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    _, joined = find([make_model("recurrent")], OPTIONS["beam"], monkeypatch, 0.5, 1)
    assert all(2 <= sentences <= 1.5 * BATCH for sentences, _ in joined)
    assert all(2 <= searches <= BATCH for _, searches in joined)


def test_rows_of_two_searches_keep_their_sentences() -> None:
    device = torch.device("cpu")
    first = Layout(2, 3, torch.tensor([0, 2, 4]))  # two hypotheses of sentence 0, one of sentence 1
    second = Layout(1, 2)  # both of its sentence
    joined = Layout.join([first, second], device)
    assert (joined.num_sentences, joined.width) == (3, 3)
    assert joined.sentences(device).tolist() == [0, 0, 1, 2, 2]
    assert joined.slots is not None
    assert joined.slots.tolist() == [0, 2, 4, 6, 7]
    assert Layout.join([Layout(2), Layout(3)], device) == Layout(5)


def test_tensors_one_after_another_are_filled_up_to_the_longest() -> None:
    parts = [torch.tensor([[1, 2, 3]]), torch.tensor([[4], [5]])]
    assert join_padded(parts, fill=9).tolist() == [[1, 2, 3], [4, 9, 9], [5, 9, 9]]
    assert join_padded(parts).tolist() == [[1, 2, 3], [4, 0, 0], [5, 0, 0]]
