"""Every attention mechanism against its equation, in float64, one sentence, query and position at a time."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from covering import covering
from oracle import ByEquation
from pairs import batch_of, pairs_of
from small_models import Variant, random_model, randomize
from torch import Tensor, nn

from nmt.config import AttentionSection, Config, TrainSection
from nmt.config.attention_checks import attention_conflicts
from nmt.config.attention_scores import SCORES
from nmt.evaluation.loss import mean_loss
from nmt.layers.attention.attention import Attention, build_attention
from nmt.layers.attention.normalizer import make_normalizer
from nmt.layers.attention.score import find_score
from nmt.layers.attention.source_memory import AttentionState
from nmt.models import reference
from nmt.models.seq2seq import Seq2Seq
from nmt.training.loop import train_step
from nmt.training.optimizers import make_optimizer

LENGTHS = torch.tensor([5, 3, 1])
STEPS = 4
QUERY_SIZE = 4
RADIUS = 1
NORMALIZERS = ("softmax", "sparsemax", "entmax15")
Choices = dict[str, Any]


def key_size(choices: Choices) -> int:
    """Another size than the query's, where the score can take that."""
    needs_equal_sizes = find_score(choices["score"]).needs_equal_sizes
    return QUERY_SIZE if needs_equal_sizes and choices["heads"] == 1 else 6


def section_of(choices: Choices) -> AttentionSection:
    return AttentionSection(
        score=choices["score"],
        options=dict(find_score(choices["score"]).example),
        heads=choices["heads"],
        window={"name": choices["window"], **({"radius": RADIUS} if choices["window"].startswith("local") else {})},
        normalizer={"name": choices["normalizer"], "temperature": choices.get("temperature", 1.0)},
        past={"name": choices["past"], **({"filters": 2, "radius": 1} if choices["past"] == "location" else {})},
        dropout=choices.get("dropout", 0.0),
    )


def goes_together(choices: Choices) -> bool:
    sizes = {"encoder": {"hidden_size": key_size(choices) // 2}, "decoder": {"hidden_size": QUERY_SIZE}}
    config = Config(model={"attention": section_of(choices), **sizes})
    return not list(attention_conflicts(config, None))


KEYS = ("score", "heads", "window", "normalizer", "past")
VALUES = (
    [name for name in SCORES if name != "concat"],  # which is additive
    (1, 2),
    ("global", "local_m", "local_p", "hard"),
    NORMALIZERS,
    ("none", "coverage", "location"),
)
ALL = [
    choices for values in itertools.product(*VALUES) if goes_together(choices := dict(zip(KEYS, values, strict=True)))
]


def names(choices: Choices) -> str:
    return "-".join(map(str, choices.values()))


EVERY_MECHANISM = covering(
    "score, heads, window, normalizer, past", *VALUES, valid=lambda row: dict(zip(KEYS, row, strict=True)) in ALL
)


def every_mechanism(check: Callable[[Choices], None]) -> Callable[..., None]:
    """A test of a pairwise covering set of mechanisms."""

    def test(score: str, heads: int, window: str, normalizer: str, past: str) -> None:
        check(dict(zip(KEYS, (score, heads, window, normalizer, past), strict=True)))

    return EVERY_MECHANISM(test)


def build(choices: Choices) -> Attention:
    """A mechanism in evaluation mode whose every weight is drawn from U(-1, 1)."""
    return randomize(build_attention(section_of(choices), QUERY_SIZE, key_size(choices))).eval()


def sources(size: int, width: int = 5) -> tuple[Tensor, Tensor]:
    """Encoder states that are 0 on padding, and the mask."""
    torch.manual_seed(1)
    mask = torch.arange(width) < LENGTHS.unsqueeze(1)
    states = torch.randn(len(LENGTHS), int(LENGTHS.max()), size, dtype=torch.float64)
    return nn.functional.pad(states, (0, 0, 0, width - states.size(1))) * mask.unsqueeze(2), mask


def queries() -> Tensor:
    torch.manual_seed(2)
    return torch.randn(len(LENGTHS), STEPS, QUERY_SIZE, dtype=torch.float64)


def attend(
    attention: Attention, states: Tensor, mask: Tensor, lengths: Tensor, query: Tensor
) -> tuple[Tensor, Tensor, AttentionState]:
    """One step after another: contexts [B, T, V], alignments [B, T, H, S] and the last state."""
    memory = attention.memorize(states, states[:, 0], mask, lengths)
    state = attention.initial_state(memory)
    contexts, alignments = [], []
    for step in query.unbind(1):
        context, alignment, state = attention.attend(step.unsqueeze(1), memory, state)
        contexts.append(context)
        alignments.append(alignment)
    return torch.cat(contexts, dim=1), torch.cat(alignments, dim=1), state


def threshold(scores: np.ndarray, power: int) -> np.ndarray:
    """max(z - tau, 0) ** power with the tau, found by bisection, for which the sum is 1."""
    low, high = scores.max() - 1, scores.max()
    for _ in range(100):
        tau = (low + high) / 2
        low, high = (tau, high) if (np.maximum(scores - tau, 0) ** power).sum() > 1 else (low, tau)
    return np.maximum(scores - low, 0) ** power


def normalized(scores: np.ndarray, name: str) -> np.ndarray:
    if name == "sparsemax":  # Martins and Astudillo, 2016, proposition 1
        return threshold(scores, 1)
    if name == "entmax15":  # Peters et al., 2019, eq. 12 with alpha = 1.5
        return threshold(scores / 2, 2)
    return np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()


def follows_the_equations(choices: Choices) -> None:
    attention = build(choices)
    states, mask = sources(key_size(choices))
    contexts, alignments, state = attend(attention, states, mask, LENGTHS, queries())

    def normalize(scores: Tensor) -> Tensor:
        scores = scores.detach() / choices.get("temperature", 1.0)
        return torch.from_numpy(normalized(scores.numpy(), choices["normalizer"]))

    for row, length in enumerate(LENGTHS.tolist()):
        expected = ByEquation(attention, states[row, :length], states[row, 0], normalize)
        for step, query in enumerate(queries()[row]):
            context, alignment = expected(query)
            torch.testing.assert_close(contexts[row, step], context, rtol=0, atol=1e-10)
            torch.testing.assert_close(alignments[row, step, :, :length], alignment, rtol=0, atol=1e-10)
        if choices["past"] == "coverage":  # See et al., 2017, eq. 10
            coverage = sum(expected.alignments)
            torch.testing.assert_close(state["coverage"][row, 0, :length], coverage, rtol=0, atol=1e-10)


@every_mechanism
def test_alignment_and_context_follow_the_equations(choices: Choices) -> None:
    follows_the_equations(choices)


@pytest.mark.parametrize("temperature", [0.1, 0.5, 3.0])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_the_temperature_divides_the_scores(normalizer: str, temperature: float) -> None:
    choices = {"score": "general", "heads": 1, "window": "local_m", "normalizer": normalizer, "past": "none"}
    follows_the_equations({**choices, "temperature": temperature})


@every_mechanism
def test_padding_and_neighbours_change_nothing(choices: Choices) -> None:
    attention = build(choices)
    states, mask = sources(key_size(choices))
    contexts, alignments, _ = attend(attention, states, mask, LENGTHS, queries())
    padded, padded_alignments, _ = attend(attention, *sources(key_size(choices), width=9), LENGTHS, queries())
    torch.testing.assert_close(padded, contexts, rtol=0, atol=1e-12)
    torch.testing.assert_close(padded_alignments[..., :5], alignments, rtol=0, atol=1e-12)
    assert (padded_alignments[..., 5:] == 0).all()
    for row, length in enumerate(LENGTHS.tolist()):
        alone = slice(row, row + 1)
        context, alignment, _ = attend(
            attention, states[alone, :length], mask[alone, :length], LENGTHS[alone], queries()[alone]
        )
        torch.testing.assert_close(context, contexts[alone], rtol=0, atol=1e-12)
        torch.testing.assert_close(alignment, alignments[alone, ..., :length], rtol=0, atol=1e-12)


@every_mechanism
def test_weights_are_a_distribution_over_real_tokens_however_large_the_scores(choices: Choices) -> None:
    attention = build(choices).float().train()  # where hard attention draws
    with torch.no_grad():
        for parameter in attention.score.parameters():
            parameter.mul_(1 if choices["score"] == "cosine" else 1e4)
    states, mask = sources(key_size(choices))
    query = (queries().float() * 1e4).requires_grad_()
    contexts, alignments, _ = attend(attention, states.float(), mask, LENGTHS, query)
    assert contexts.isfinite().all()
    assert (alignments >= 0).all()
    assert (alignments[~mask[:, None, None].expand_as(alignments)] == 0).all()
    sums = alignments.sum(dim=-1)
    if choices["window"] == "local_p":
        assert (sums <= 1 + 1e-6).all()
    else:
        torch.testing.assert_close(sums, torch.ones_like(sums))
    if choices["window"] == "hard":
        assert ((alignments == 0) | (alignments == 1)).all()
    contexts.sum().backward()
    assert query.grad is not None
    assert query.grad.isfinite().all()
    for parameter in attention.parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()


@every_mechanism
def test_all_positions_at_once_equal_repeated_steps(choices: Choices) -> None:
    attention = build(choices)
    states, mask = sources(key_size(choices))
    contexts, alignments, _ = attend(attention, states, mask, LENGTHS, queries())
    memory = attention.memorize(states, states[:, 0], mask, LENGTHS)
    together = attention.attend_all(queries(), memory, attention.initial_state(memory))
    torch.testing.assert_close(together[0], contexts, rtol=0, atol=1e-12)
    torch.testing.assert_close(together[1], alignments, rtol=0, atol=1e-12)
    assert attention.reads_own_past == (choices["past"] != "none")


@pytest.mark.parametrize(
    "choices",
    [
        *(c for c in ALL if c["window"] == "global" and c["normalizer"] == "softmax"),
        *(c for c in ALL if c["window"] in ("local_m", "local_p") and c["past"] == "none" and c["score"] == "additive"),
        *(c for c in ALL if c["window"] == "global" and c["normalizer"] != "softmax" and c["score"] == "general"),
    ],
    ids=names,
)
def test_gradients(choices: Choices) -> None:
    attention = build(choices)
    states, mask = sources(key_size(choices))
    lengths = LENGTHS[1:]

    def run(query: Tensor, states: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        return attend(attention, states, mask[1:, :3], lengths, query)[:2]

    inputs = (queries()[1:, :2].requires_grad_(), states[1:, :3].requires_grad_(), *attention.parameters())
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)


@pytest.mark.parametrize("normalizer", ["sparsemax", "entmax15"])
def test_sparse_weights_are_exact_in_half_precision(normalizer: str) -> None:
    torch.manual_seed(0)
    scores = 3 * torch.randn(50, 30).bfloat16()
    found = make_normalizer(normalizer)(scores)
    for row, weights in zip(scores.double().numpy(), found.double().numpy(), strict=True):
        np.testing.assert_allclose(weights, normalized(row, normalizer), rtol=0, atol=1e-6)


def test_sparsemax_in_closed_form() -> None:
    """Martins and Astudillo, 2016, section 2.4: of two scores, (1 + d) / 2 where their difference d is within 1."""
    choices = {"score": "location", "heads": 1, "window": "global", "normalizer": "sparsemax", "past": "none"}
    attention = build(choices)
    states, mask = torch.ones(1, 2, 6, dtype=torch.float64), torch.ones(1, 2, dtype=torch.bool)
    for difference in (-2.0, -1.0, -0.3, 0.0, 0.6, 1.0, 5.0):
        with torch.no_grad():
            attention.score.position.weight.zero_()
            attention.score.position.weight[0, 0] = difference
        query = torch.eye(QUERY_SIZE, dtype=torch.float64)[:1].unsqueeze(0)
        _, alignments, _ = attend(attention, states, mask, torch.tensor([2]), query)
        first = min(1.0, max(0.0, (1 + difference) / 2))
        assert alignments[0, 0, 0].tolist() == pytest.approx([first, 1 - first], abs=1e-12)


def test_dropout_drops_weights_from_the_context_in_training_only() -> None:
    choices = {"score": "general", "heads": 1, "window": "global", "normalizer": "softmax", "past": "none"}
    attention = build({**choices, "dropout": 0.5})
    states, mask = sources(key_size(choices))
    plain = attend(build(choices), states, mask, LENGTHS, queries())
    found = attend(attention, states, mask, LENGTHS, queries())
    assert torch.equal(found[0], plain[0])
    contexts, alignments, _ = attend(attention.train(), states, mask, LENGTHS, queries())
    assert torch.equal(alignments, plain[1])  # what is shown and remembered is whole
    subsets = torch.tensor(list(itertools.product([0.0, 2.0], repeat=5)), dtype=torch.float64)  # 1 / (1 - 0.5)
    kept = []
    for row, step in itertools.product(range(3), range(STEPS)):
        possible = (subsets * alignments[row, step, 0].detach()) @ states[row]  # [32, V]
        distance = (possible - contexts[row, step].detach()).abs().amax(dim=1)
        assert distance.min() < 1e-12
        kept.append(int(distance.argmin()))
    assert len(set(kept)) > 3


PAIRS = ([[4, 5, 6, 7], [5], [8, 4, 6]], [[6, 5, 4], [7, 7, 7, 7, 5], []])


def coverage_model(loss_weight: float) -> Seq2Seq:
    section = AttentionSection(score="additive", past={"name": "coverage", "loss_weight": loss_weight})
    return random_model(Variant(attention=section))


def test_the_coverage_loss_is_trained_on_and_not_reported() -> None:
    """See et al., 2017, eq. 10, 12 and 13: lambda * sum_t sum_j min(a_tj, c_tj), over real target tokens alone."""
    pairs, batch = pairs_of(*PAIRS), batch_of(*PAIRS)
    with torch.no_grad():
        model = coverage_model(0.0)
        alignments = model.decoder(batch.tgt_in, model.encode(batch.src, batch.src_lengths)).alignments
    expected = sum(
        float(reference.coverage_loss(alignments[row, : len(target) + 1, 0])) for row, target in enumerate(PAIRS[1])
    )
    options = TrainSection(optimizer={"name": "sgd", "learning_rate": 0.5, "clip_norm": None})
    losses, norms, reported = [], [], []
    for weight in (0.0, 1.0, 3.0):
        model = coverage_model(weight)
        reported.append(mean_loss(model, pairs))
        step = train_step(model.train(), [batch], make_optimizer(options.optimizer, model), options, 0)
        losses.append(float(step.loss))
        norms.append(float(step.norm))
    assert expected > 0.1
    assert losses[1] - losses[0] == pytest.approx(expected, rel=1e-5)
    assert losses[2] - losses[0] == pytest.approx(3 * expected, rel=1e-5)
    assert len(set(norms)) == 3
    assert len(set(reported)) == 1
    assert reported[0] == pytest.approx(losses[0] / batch.num_tokens, rel=1e-6)
