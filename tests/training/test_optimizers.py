"""One update by each optimiser, compared with numpy in float64."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from nmt.config import OptimizerSection, TrainSection
from nmt.training.optimizers import make_optimizer, update_weights

Array = NDArray[np.float64]
RATE, DECAY, EPSILON, MOMENTUM = 0.05, 0.1, 1e-3, 0.7
BETA1, BETA2 = BETAS = (0.8, 0.95)
UPDATES = 8  # RAdam is rectified from the sixth on


class Means(dict[str, Array]):
    """Running sums by name, which start at 0."""

    def add(self, name: str, decay: float, value: Array, share: float | None = None) -> Array:
        """Multiply a sum by `decay` and add a share of the value; unless it is given, the sum stays a mean."""
        self[name] = decay * self.get(name, 0) + (1 - decay if share is None else share) * value
        return self[name]


def adam(t: int, gradient: Array, means: Means) -> Array:
    """Kingma & Ba (2015), algorithm 1."""
    first, second = means.add("first", BETA1, gradient), means.add("second", BETA2, gradient**2)
    return first / (1 - BETA1**t) / (np.sqrt(second / (1 - BETA2**t)) + EPSILON)


def sgd(t: int, gradient: Array, means: Means) -> Array:
    return means.add("velocity", MOMENTUM, gradient, share=1)


def rmsprop(t: int, gradient: Array, means: Means) -> Array:
    """Hinton (2012), with momentum and centred as Graves (2013), equations 38 to 45."""
    square, mean = means.add("square", 0.9, gradient**2), means.add("mean", 0.9, gradient)
    return means.add("velocity", MOMENTUM, gradient / (np.sqrt(square - mean**2) + EPSILON), share=1)


def radam(t: int, gradient: Array, means: Means) -> Array:
    """Liu et al. (2020), algorithm 2."""
    mean = means.add("first", BETA1, gradient) / (1 - BETA1**t)
    second, longest = means.add("second", BETA2, gradient**2), 2 / (1 - BETA2) - 1
    length = longest - 2 * t * BETA2**t / (1 - BETA2**t)
    if length <= 5:
        return mean
    ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    return math.sqrt(ratio) * mean * math.sqrt(1 - BETA2**t) / (np.sqrt(second) + EPSILON)


def nadam(t: int, gradient: Array, means: Means) -> Array:
    """Dozat (2016), algorithm 2, with its schedule of the momentum."""
    schedule = [BETA1 * (1 - 0.5 * 0.96 ** (step * 0.01)) for step in range(1, t + 2)]
    first, second = means.add("first", BETA1, gradient), means.add("second", BETA2, gradient**2)
    ahead = schedule[t] * first / (1 - math.prod(schedule))
    ahead = ahead + (1 - schedule[t - 1]) * gradient / (1 - math.prod(schedule[:t]))
    return ahead / (np.sqrt(second / (1 - BETA2**t)) + EPSILON)


def adadelta(t: int, gradient: Array, means: Means) -> Array:
    """Zeiler (2012), algorithm 1."""
    square, steps = means.add("square", 0.8, gradient**2), means.get("steps", 0)
    step = np.sqrt(steps + EPSILON) / np.sqrt(square + EPSILON) * gradient
    means.add("steps", 0.8, step**2)
    return step


def muon(t: int, gradient: Array, means: Means) -> Array:
    """Jordan et al. (2024), scaled to the size of AdamW's updates (Liu et al., 2025, equation 4)."""
    ahead = MOMENTUM * means.add("mean", MOMENTUM, gradient) + (1 - MOMENTUM) * gradient
    ahead /= np.linalg.norm(ahead)
    for _ in range(5):
        square = ahead @ ahead.T
        ahead = 3.4445 * ahead + (-4.775 * square + 2.0315 * square @ square) @ ahead
    return 0.2 * math.sqrt(max(gradient.shape)) * ahead


Step = Callable[[int, Array, Means], Array]


def weights_by_hand(weight: Array, gradients: Iterable[Array], step: Step, *, decoupled: bool) -> Iterator[Array]:
    """The weights after each update; decoupled decay is that of Loshchilov & Hutter (2019), algorithm 2."""
    means = Means()
    for t, gradient in enumerate(gradients, 1):
        decay = DECAY * weight
        weight = weight - RATE * (step(t, gradient, means) + decay if decoupled else step(t, gradient + decay, means))
        yield weight


class Net(nn.Module):
    """An embedding, a matrix and a vector, in a graph of no importance."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.embedding = nn.Embedding(4, 3, dtype=torch.float64)
        self.linear = nn.Linear(5, 3, dtype=torch.float64)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, generator=generator)


def gradients_of(parameter: int, number: int = UPDATES) -> list[Array]:
    """Gradients of a sum over tokens, for each update."""
    shape = [tuple(each.shape) for each in Net().parameters()][parameter]
    rng = np.random.default_rng(parameter)
    return [rng.normal(size=shape) * 10 for _ in range(number)]


def trained(options: dict[str, Any], tokens: float = 10.0, clip_norm: float | None = None) -> list[list[Array]]:
    """The weights after each update."""
    net = Net()
    optimizer = make_optimizer(section(**options), net)
    after = []
    for update in range(UPDATES):
        give_gradients(net, update)
        update_weights(optimizer, torch.tensor(tokens), clip_norm, torch.zeros(()))
        assert all(parameter.grad is None for parameter in net.parameters())
        after.append([parameter.detach().numpy().copy() for parameter in net.parameters()])
    return after


def section(**options: Any) -> OptimizerSection:
    return TrainSection(optimizer=options).optimizer


COMMON = {"learning_rate": RATE, "weight_decay": DECAY}
ADAM = {**COMMON, "betas": BETAS, "epsilon": EPSILON}
TABLE: dict[str, tuple[dict[str, Any], Step]] = {
    "adam": (ADAM, adam),
    "adamw": (ADAM, adam),
    "sgd": ({**COMMON, "momentum": MOMENTUM}, sgd),
    "rmsprop": ({**COMMON, "alpha": 0.9, "epsilon": EPSILON, "momentum": MOMENTUM, "centered": True}, rmsprop),
    "radam": (ADAM, radam),
    "nadam": ({**ADAM, "momentum_decay": 0.01}, nadam),
    "adadelta": ({**COMMON, "rho": 0.8, "epsilon": EPSILON}, adadelta),
    "muon": ({**ADAM, "momentum": MOMENTUM}, muon),
}
"""Settings of every optimiser, and its step by hand."""


def test_every_optimiser_has_a_step_by_hand() -> None:
    (kinds, *_) = get_args(OptimizerSection)
    assert {kind.model_fields["name"].default for kind in get_args(kinds)} == set(TABLE)


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("clip_norm", [None, 2.0])
def test_an_update_is_that_of_the_mean_clipped(name: str, clip_norm: float | None) -> None:
    options, step = TABLE[name]
    found = trained({"name": name, **options}, 10.0, clip_norm)
    means = [[gradient / 10 for gradient in gradients_of(number)] for number in range(3)]
    norms = [math.sqrt(sum(float((mean[update] ** 2).sum()) for mean in means)) for update in range(UPDATES)]
    scales = [min(1.0, clip_norm / norm) if clip_norm else 1.0 for norm in norms]
    assert clip_norm is None or max(scales) < 1
    for number, parameter in enumerate(Net().parameters()):
        own = adam if name == "muon" and number != 1 else step  # AdamW for an embedding and a vector
        gradients = (mean * scale for mean, scale in zip(means[number], scales, strict=True))
        decoupled = name in ("adamw", "muon")
        by_hand = weights_by_hand(parameter.detach().numpy(), gradients, own, decoupled=decoupled)
        for update, expected in enumerate(by_hand):
            atol = 4e-3 if own is muon else 1e-6  # torch iterates in bfloat16
            np.testing.assert_allclose(found[update][number], expected, rtol=0, atol=atol)


def test_muon_optimises_matrices_alone_and_an_orthogonal_gradient_stays_so() -> None:
    """All singular values of the gradient become about 1; the sign of each is kept."""
    net = Net()
    optimizer = make_optimizer(section(name="muon", learning_rate=1.0, adjust_lr_fn="original"), net)
    assert [len(group["params"]) for group in optimizer.param_groups] == [1, 2]
    before = net.linear.weight.detach().clone()
    for parameter in net.parameters():
        parameter.grad = torch.randn(parameter.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    gradient = net.linear.weight.grad
    update_weights(optimizer, torch.tensor(1.0), None, torch.zeros(()))
    u, _, v = torch.linalg.svd(gradient, full_matrices=False)
    stretched = torch.diag(u.T @ (before - net.linear.weight.detach()) @ v.T)
    assert 0.6 < float(stretched.min()) <= float(stretched.max()) < 1.3


def give_gradients(net: Net, update: int) -> None:
    for number, parameter in enumerate(net.parameters()):
        parameter.grad = torch.tensor(gradients_of(number)[update])


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("bad", ["loss", "gradient"])
def test_an_update_that_is_not_finite_changes_nothing(name: str, bad: str) -> None:
    """Neither weights nor the optimiser's state, as the next update shows; the first one too."""
    results = []
    for updates in (range(5), (1, 3, 4)):
        net = Net()
        optimizer = make_optimizer(section(name=name, **TABLE[name][0]), net)
        for update in updates:
            spoilt = update in (0, 2)
            give_gradients(net, update)
            if spoilt and bad == "gradient":
                net.linear.weight.grad.view(-1)[2] = math.nan
            bad_losses = torch.tensor(float(spoilt and bad == "loss"))
            _, skipped = update_weights(optimizer, torch.tensor(3.0), 1.0, bad_losses)
            assert float(skipped) == spoilt
        results.append([parameter.detach() for parameter in net.parameters()])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", TABLE)
def test_several_groups_of_parameters_are_all_updated(name: str) -> None:
    """With the norm of all, and each group by its own rate."""
    net, options = Net(), {"name": name, **TABLE[name][0]}
    optimizer = make_optimizer(section(**options), net)
    extra = nn.Parameter(torch.ones(2, dtype=torch.float64))
    if name != "muon":  # which has two groups of its own
        optimizer.add_param_group({"params": [extra], "lr": 0.0, "weight_decay": 0.0})
        extra.grad = torch.full((2,), 30.0, dtype=torch.float64)
    give_gradients(net, 0)
    squares = sum(float((gradients_of(number)[0] ** 2).sum()) for number in range(3))
    before = [parameter.detach().clone() for parameter in net.parameters()]
    norm, _ = update_weights(optimizer, torch.tensor(10.0), 1.0, torch.zeros(()))
    assert float(norm) == pytest.approx(math.sqrt(squares + (1800 if name != "muon" else 0)) / 10, rel=1e-6)
    assert all(not torch.equal(old, new) for old, new in zip(before, net.parameters(), strict=True))
    assert torch.equal(extra.detach(), torch.ones(2, dtype=torch.float64))
    assert extra.grad is None
