"""What is recorded of a sentence agrees with what the translator says in other ways."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.config import Config, DecodeSection
from nmt.corpus.example import Example
from nmt.drawing.heatmap import EOS_LABEL
from nmt.evaluation.metrics import ScoringRules
from nmt.inspection.record import rank_correlation, record
from nmt.layers.attention.catalog import describe_mechanism
from nmt.models.build import build_model
from nmt.text.processor import TextProcessor
from nmt.text.tokenizers import WhitespaceTokenizer
from nmt.text.vocabulary import EOS_ID, Vocabulary
from nmt.translation.translator import Translator

WORDS = ["a", "b", "c", "d", "e", "f", "g"]


def make_translator(order: str = "luong", model: dict[str, Any] | None = None, **attention: Any) -> Translator:
    """A model with random weights: recurrent, or what `model` says."""
    torch.manual_seed(2)
    sizes = {"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 16, "order": order}}
    section = Config.model_validate({"model": model or {"attention": attention, **sizes}}).model
    vocabulary = Vocabulary(WORDS)
    model = build_model(section, len(vocabulary), len(vocabulary)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.8, 0.8)
        model.decoder.output.bias[EOS_ID] -= 1.5
    tokenizer = WhitespaceTokenizer()
    processor = TextProcessor(tokenizer, tokenizer, vocabulary, vocabulary)
    return Translator(model, processor, DecodeSection(beam_size=4, max_length=9))


MECHANISMS: list[dict[str, Any]] = [
    {"score": "general"},
    {"score": "additive", "order": "bahdanau"},
    {"score": "dot", "heads": 2},
    {"score": "additive", "past": {"name": "coverage"}},
    {"score": "general", "window": {"name": "local_p", "radius": 2}},
]
RULES = ScoringRules(tokenize="none")
SIX = "a b c d e f"


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_record_agrees_with_the_translator(mechanism: dict[str, Any]) -> None:
    translator = make_translator(**mechanism)
    found = record(translator, Example("a b c d", ("d e",)), RULES)
    best = translator.translate("a b c d", with_alignment=True)
    assert found.src_tokens == ["a", "b", "c", "d", EOS_LABEL]
    assert found.best.text == best.text == found.texts[found.tree.best[0]]
    torch.testing.assert_close(found.best.alignment, best.alignment, atol=1e-5, rtol=0)
    assert sum(found.best.log_probs) == pytest.approx(best.log_prob, abs=1e-4)
    (forced,) = translator.score(["a b c d"], ["d e"], with_alignment=True)
    assert found.reference.tokens == ["d", "e", EOS_LABEL]
    assert found.reference.log_probs == pytest.approx(forced.token_log_probs, abs=1e-4)
    for step, token in enumerate(found.best.tokens):
        shares = dict(found.best.top[step])
        assert list(shares.values()) == sorted(shares.values(), reverse=True)
        if token in shares:
            assert math.log(shares[token]) == pytest.approx(found.best.log_probs[step], abs=1e-4)


@pytest.mark.parametrize("mechanism", MECHANISMS[:3], ids=str)
def test_scores_are_those_of_the_weights(mechanism: dict[str, Any]) -> None:
    found = record(make_translator(**mechanism), Example("a b c d e", ()), RULES)
    torch.testing.assert_close(found.best.details.scores.softmax(dim=-1), found.best.alignment, atol=1e-5, rtol=0)
    assert found.best.details.centres is None
    assert found.best.details.chances is None


def test_the_window_of_local_attention_is_where_the_weights_are() -> None:
    """Local-p: a weight outside the window is 0, and inside it is at most its Gaussian (Luong et al., 2015, eq. 10)."""
    found = record(make_translator(score="general", window={"name": "local_p", "radius": 2}), Example(SIX, ()), RULES)
    assert found.best.details.radius == 2
    assert found.best.details.centres.shape == (len(found.best.tokens),)
    distance = torch.arange(7) - found.best.details.centres.unsqueeze(1)
    weights = found.best.alignment[:, 0]
    assert (weights[distance.abs() > 2] == 0).all()
    assert (weights <= torch.exp(-2 * (distance / 2) ** 2) + 1e-6).all()
    assert weights.sum() > 0


def test_the_window_of_monotonic_attention_moves_with_the_step() -> None:
    found = record(make_translator(score="general", window={"name": "local_m", "radius": 1}), Example("a b", ()), RULES)
    steps = len(found.best.tokens)
    assert found.best.details.centres.tolist() == [min(step, 2) for step in range(steps)]


def test_hard_attention_chooses_the_largest_chance() -> None:
    found = record(make_translator(score="general", window={"name": "hard"}), Example(SIX, ()), RULES)
    torch.testing.assert_close(found.best.details.chances, found.best.details.scores.softmax(dim=-1), atol=1e-5, rtol=0)
    assert (found.best.details.chances.argmax(dim=-1) == found.best.alignment.argmax(dim=-1)).all()
    assert sorted(found.best.alignment.unique().tolist()) == [0, 1]


def test_occlusion_is_the_loss_without_a_token() -> None:
    translator = make_translator(score="general")
    found = record(translator, Example("a b c", ("d e",)), RULES).reference
    whole, *without = translator.score(["a b c", "b c", "a c", "a b"], ["d e"] * 4)
    for place, each in enumerate(without):
        expected = np.subtract(whole.token_log_probs, each.token_log_probs)
        assert found.occlusion[:, place].tolist() == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_model_without_attention_has_no_scores() -> None:
    found = record(make_translator(score="none"), Example("a b c", ()), RULES)
    assert found.best.details.scores is None
    assert not found.best.alignment.any()
    assert "entropy" not in found.measures


@given(st.lists(st.integers(0, 4), min_size=3, max_size=9), st.lists(st.integers(0, 4), min_size=3, max_size=9))
def test_rank_correlation(one: list[int], other: list[int]) -> None:
    """Pearson's correlation of ranks that are counted one by one."""
    size = min(len(one), len(other))
    columns = [np.array(values[:size], dtype=float) for values in (one, other)]
    ranks = [[sum(v < x for v in each) + (sum(v == x for v in each) - 1) / 2 for x in each] for each in columns]
    found = rank_correlation(*columns)
    if any(len(set(each)) == 1 for each in ranks):
        assert found is None
    else:
        assert found == pytest.approx(np.corrcoef(ranks[0], ranks[1])[0, 1])


def test_mechanisms_are_described() -> None:
    attention = {"score": "general", "window": {"name": "local_p"}}
    config = Config.model_validate({"model": {"decoder": {"input_feeding": True}, "attention": attention}})
    name, equation = describe_mechanism(config.model)
    assert name == "general, Luong's order, local-p, input feeding"
    assert equation.startswith("General score: q^T W k")
    assert "Luong et al., 2015" in equation
