"""nmt.attention: every mechanism by itself, against its equation."""

from typing import Any

import pytest
import torch
from oracle import ByEquation
from small_models import randomize
from test_mechanisms import LENGTHS, QUERY_SIZE, Choices, every_mechanism, key_size, normalized, queries, sources
from torch import Tensor, nn

import nmt
from nmt.layers.attention.attention import FixedContext
from nmt.layers.attention.catalog import list_mechanisms
from nmt.layers.attention.score import find_score


def build(choices: Choices) -> nmt.AttentionModule:
    """A module with random weights in evaluation mode, built as a user does: names alone where that is enough."""
    rest = {key: value for key, value in choices.items() if key not in ("score", "window", "past")}
    rest["window"] = {"name": "local_m", "radius": 1} if choices["window"] == "local_m" else choices["window"]
    rest["past"] = {"name": "location", "filters": 2} if choices["past"] == "location" else choices["past"]
    if options := dict(find_score(choices["score"]).example):
        rest["options"] = options
    return randomize(nmt.attention(choices["score"], query_size=QUERY_SIZE, key_size=key_size(choices), **rest)).eval()


@every_mechanism
def test_contexts_and_weights_follow_the_equations(choices: Choices) -> None:
    module = build(choices)
    states, mask = sources(key_size(choices))
    contexts, weights = module(queries(), states, mask)

    def normalize(scores: Tensor) -> Tensor:
        return torch.from_numpy(normalized(scores.detach().numpy(), choices["normalizer"]))

    for row, length in enumerate(LENGTHS.tolist()):
        expected = ByEquation(module.mechanism, states[row, :length], states[row, length - 1], normalize)
        for step, query in enumerate(queries()[row]):
            context, alignment = expected(query)
            alignment = alignment if choices["heads"] > 1 else alignment[0]
            torch.testing.assert_close(contexts[row, step], context, rtol=0, atol=1e-10)
            torch.testing.assert_close(weights[row, step, ..., :length], alignment, rtol=0, atol=1e-10)
            assert (weights[row, step, ..., length:] == 0).all()


@every_mechanism
def test_a_step_alone_is_the_first_of_several(choices: Choices) -> None:
    module = build(choices)
    states, mask = sources(key_size(choices))
    first, several = module(queries()[:, 0], states, mask), module(queries(), states, mask)
    for alone, among_others in zip(first, several, strict=True):
        torch.testing.assert_close(alone, among_others[:, 0], rtol=0, atol=1e-12)


def test_every_choice_of_the_catalogue_is_built() -> None:
    """With what its limits ask for: one of the scores that it takes, and the options that a score needs."""
    for mechanism in list_mechanisms():
        key = mechanism.key.removesuffix(".name")
        for name in mechanism.names:
            choice: Any = 3 if name == "..." else int(name) if key == "heads" else name
            options = {"options": dict(find_score(name).example)} if key == "score" and name != "none" else {}
            choices = {"score": "additive", key: choice, **options}
            module = nmt.attention(query_size=6, key_size=6, **choices)
            assert isinstance(module, nn.Module)
            assert module(torch.randn(2, 6), torch.randn(2, 4, 6))[0].shape == (2, 6)


def test_the_fixed_context_is_the_last_word() -> None:
    module = nmt.attention("none", query_size=QUERY_SIZE, key_size=6)
    assert isinstance(module.mechanism, FixedContext)
    states, mask = sources(6)
    contexts, weights = module(queries(), states, mask)
    for row, length in enumerate(LENGTHS.tolist()):
        assert torch.equal(contexts[row], states[row, length - 1].expand(4, 6))
    assert (weights == 0).all()


def test_padding_may_hold_anything_and_gradients_reach_queries_and_states() -> None:
    module = nmt.attention("additive", query_size=QUERY_SIZE, key_size=6, past="coverage").double()
    states, mask = sources(6)
    expected = module(queries(), states, mask)
    query, dirty = queries().requires_grad_(), states.masked_fill(~mask.unsqueeze(2), torch.nan).requires_grad_()
    found = module(query, dirty, mask)
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))
    found[0].sum().backward()
    assert query.grad is not None
    assert dirty.grad is not None
    assert query.grad.abs().amax(dim=2)[:2].all()
    assert torch.equal(dirty.grad.abs().amax(dim=2) > 0, mask)
    whole, masked = (module(queries()[:1], states[:1], given) for given in (None, mask[:1]))
    assert all(torch.equal(*pair) for pair in zip(whole, masked, strict=True))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"score": "dott"}, "model.attention.score: unknown score 'dott'; known: none, additive, concat, cosine"),
        ({"score": "bahdanau"}, "its score is additive; for a model, set what it is: `overrides={'model.attention"),
        ({"score": "bahdanau"}, "set what it is: `overrides={'model.attention.score': 'additive'"),
        ({"score": "dot"}, "dot needs equal sizes, found queries (decoder states) of 8 and keys (encoder states) of 6"),
        ({"window": "local-p"}, "model.attention.window.name: should be 'global', 'local_m', 'local_p' or 'hard'"),
        ({"window": 3}, "model.attention.window: should be a section with keys, found 3"),
        ({"windw": "hard"}, "model.attention.windw: unknown key; did you mean window?"),
        ({"past": "coverage"}, "the score general does not support coverage"),
        ({"score": "location"}, "model.attention.options.max_length: is required"),
        ({"heads": 4}, "4 do not divide the encoder states' 6 units"),
        ({"query_size": 0}, "hidden_size: should be greater than or equal to 1, found 0"),
        ({"key_size": "6"}, "hidden_size: should be a valid integer, found '6'"),
    ],
)
def test_choices_are_answered_as_in_configs(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(nmt.ConfigError) as caught:
        nmt.attention(**{"score": "general", "query_size": 8, "key_size": 6, **choices})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


WORDS = torch.ones(2, 5, dtype=torch.bool)
HOLES = torch.tensor([[True, False, True, False, False], [True, True, True, True, True]])


@pytest.mark.parametrize(
    ("queries", "states", "mask", "message"),
    [
        ((2, 3, 7), (2, 5, 6), None, "expected queries [B, N, 8], states [B, S, 6] and a mask [B, S] of booleans"),
        ((2, 3, 8), (2, 5, 5), None, "found [2, 3, 8], [2, 5, 5] and no mask"),
        ((1, 3, 8), (2, 5, 6), None, "found [1, 3, 8], [2, 5, 6]"),
        ((8,), (2, 5, 6), None, "found [8], [2, 5, 6]"),
        ((2, 1, 3, 8), (2, 5, 6), None, "found [2, 1, 3, 8], [2, 5, 6]"),
        ((2, 8), (5, 6), None, "found [2, 8], [5, 6]"),
        ((2, 8), (2, 5, 6), WORDS[:, :4], "and [2, 4] of torch.bool"),
        ((2, 8), (2, 5, 6), WORDS[0], "and [5] of torch.bool"),
        ((2, 8), (2, 5, 6), WORDS.float(), "and [2, 5] of torch.float32"),
        *(((2, 8), (2, 5, 6), mask, "mask: expected True at the words of each row") for mask in (HOLES, ~WORDS)),
        ((2, 8), (2, 0, 6), None, "mask: expected True at the words of each row"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    queries: tuple[int, ...], states: tuple[int, ...], mask: Tensor | None, message: str
) -> None:
    module = nmt.attention("general", query_size=8, key_size=6)
    with pytest.raises(nmt.DataError) as caught:
        module(torch.zeros(queries), torch.zeros(states), mask)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
