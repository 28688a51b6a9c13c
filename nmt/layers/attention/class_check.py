"""The check of a reader's own attention class: is it what an equation says, and what does it depend on?"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nmt.layers.attention.signature import count_inputs, count_sizes

SIZE = 8
"""Numbers in a query and in a state."""
LENGTHS = (5, 3, 2, 4)
"""Words of the sentences of the batch."""
TOLERANCE = 1e-6
TIED = "the additive score with tied matrices"
PADDING = 2
"""Further places of padding that should change nothing."""


@dataclass(frozen=True)
class Verdict:
    """What was found of a class.

    Attributes:
        equation: The equation that its scores follow; empty if it could not be called.
        problems: What is wrong with it.
    """

    equation: str
    problems: Sequence[str]


@dataclass(frozen=True)
class Signature:
    """How a class is called.

    Attributes:
        module: The class with random weights, in float64.
        takes_mask: True if `forward` has a third parameter.
        steps: True if a query is [B, 1, D] rather than [B, D].
    """

    module: nn.Module
    takes_mask: bool
    steps: bool

    def __call__(self, query: Tensor, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """Weights [B, S], and contexts [B, D] if the class returns them.

        Raises:
            ValueError: No result has the shape of weights.
        """
        given = (query.unsqueeze(1) if self.steps else query, states)
        result = self.module(*given, mask) if self.takes_mask else self.module(*given)
        parts = result if isinstance(result, tuple | list) else (result,)
        shapes = [list(part.shape) if isinstance(part, Tensor) else type(part).__name__ for part in parts]
        flat = [part.reshape(len(query), -1) for part in parts if isinstance(part, Tensor)]
        weights = [part for part in flat if part.size(1) == states.size(1)]
        contexts = [part for part in flat if part.size(1) == states.size(2)]
        if not weights:
            wanted = f"[B, S] = {[len(query), states.size(1)]}"
            raise ValueError(f"no result has the shape of weights, {wanted}; found {shapes}")
        return weights[0], contexts[0] if contexts else None


def find_classes(names: dict[str, Any], module: str) -> list[type[nn.Module]]:
    """Attention classes of a file: modules whose `forward` takes a query, states and perhaps a mask."""
    classes = [value for value in names.values() if isinstance(value, type) and issubclass(value, nn.Module)]
    return [kind for kind in classes if kind.__module__ == module and count_inputs(kind) in (2, 3)]


def check_class(kind: type[nn.Module], path: Path, describe: Callable[[BaseException, Path], str]) -> Verdict:
    """Compare a class with the equations, and see what its weights depend on.

    Args:
        kind: The class; each parameter of `__init__` without a default is a size.
        path: The file that it stands in.
        describe: An error of that file in one line.
    """
    torch.manual_seed(1)
    try:
        module = kind(*[SIZE] * count_sizes(kind)).double().eval()
    except Exception as error:
        sizes = f"with {SIZE} for each parameter without a default"
        return Verdict("", [f"cannot be built {sizes}; {describe(error, path)}"])
    for weights in module.parameters():
        nn.init.uniform_(weights, -1, 1)
    takes_mask = count_inputs(kind) > 2
    query, states, mask = _draw()
    problem = ""
    for steps in (False, True):
        attention = Signature(module, takes_mask, steps)
        try:
            attention(query, states, mask)
            equation = _find_equation(attention)
            advice = "one matrix for query and states: give each its own (Mistakes of tutorials on attention, 1)"
            problems = [advice] if equation == TIED else []
            return Verdict(equation, [*problems, *_find_problems(attention)])
        except Exception as error:
            problem = problem or describe(error, path)
    shapes = f"query {list(query.shape)}, states {list(states.shape)}" + (
        f" and mask {list(mask.shape)}" if takes_mask else ""
    )
    return Verdict("", [f"fails with {shapes}, True at words; {problem}"])


def _draw() -> tuple[Tensor, Tensor, Tensor]:
    """Queries [B, D], states [B, S, D], 0 on padding, and the mask, True at words, [B, S]."""
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
    states = torch.rand(*mask.shape, SIZE, dtype=torch.float64) * 2 - 1
    query = torch.rand(len(LENGTHS), SIZE, dtype=torch.float64) * 2 - 1
    return query, states * mask.unsqueeze(2), mask


@torch.no_grad()
def _find_problems(attention: Signature) -> Iterator[str]:
    query, states, mask = _draw()
    whole = torch.ones_like(mask)
    full = torch.rand(*states.shape, dtype=torch.float64) * 2 - 1
    weights, contexts = attention(query, full, whole)
    if not _is_one(weights.sum(dim=1)):
        if _is_one(weights.sum(dim=0)):
            yield "the weights of a word sum to 1 over the sentences: the softmax is over the wrong axis"
        else:
            yield f"the weights of a sentence should sum to 1, and sum to {float(weights[0].sum()):.4g}"
    if contexts is not None:
        expected = (weights.unsqueeze(1) @ full).squeeze(1)
        if not torch.allclose(contexts, expected, atol=TOLERANCE):
            yield "the context is not the sum of the states, each times its weight"
    yield from _find_strangers(attention, query, full, whole, weights)
    yield from _find_padding(attention, query, states, mask)
    yield from _find_idle(attention)


def _is_one(sums: Tensor) -> bool:
    return torch.allclose(sums, torch.ones_like(sums), atol=TOLERANCE)


def _find_strangers(
    attention: Signature, query: Tensor, states: Tensor, mask: Tensor, weights: Tensor
) -> Iterator[str]:
    """Report a sentence that has other weights in a batch than by itself."""
    for row in range(len(query)):
        alone, _ = attention(query[[row]], states[[row]], mask[[row]])
        if not torch.allclose(alone[0], weights[row], atol=TOLERANCE):
            yield "depends on the rest of the batch: a sentence by itself has other weights"
            return


def _find_padding(attention: Signature, query: Tensor, states: Tensor, mask: Tensor) -> Iterator[str]:
    """Report padding that has weight, or changes that of words."""
    if not attention.takes_mask:
        yield "no mask: forward(query, states) cannot know where the padding is, which gets weight"
        return
    weights, _ = attention(query, states, mask)
    padded_rows = ~mask.all(dim=1)
    if not weights.isfinite().all():
        yield "the weights of a padded sentence are not finite"
    elif weights[padded_rows][mask[padded_rows]].abs().max() < TOLERANCE:
        yield "the mask hides the words: it is True at words, and `masked_fill(~mask, -torch.inf)` hides the others"
    elif weights[~mask].abs().max() > TOLERANCE:
        yield f"padding has weight, up to {float(weights[~mask].abs().max()):.2g}: mask the scores before the softmax"
    else:
        more = nn.functional.pad(states, (0, 0, 0, PADDING)), nn.functional.pad(mask, (0, PADDING))
        padded, _ = attention(query, *more)
        if not torch.allclose(padded[:, : mask.size(1)], weights, atol=TOLERANCE):
            yield "depends on how much padding follows: more of it changes the weights of words"


@torch.enable_grad()
def _find_idle(attention: Signature) -> Iterator[str]:
    """Weights of the module that the result does not depend on."""
    query, states, mask = _draw()
    weights, contexts = attention(query, states, mask)
    attention.module.zero_grad()
    total = weights.square().sum()
    if contexts is not None:
        total = total + contexts.square().sum()
    if total.requires_grad:
        torch.autograd.backward(total)
    named = attention.module.named_parameters()
    idle = [name for name, weight in named if weight.grad is None]
    if idle:
        yield f"{', '.join(idle)}: has no gradient, so nothing reads it"


@torch.no_grad()
def _find_equation(attention: Signature) -> str:
    """The name of the equation that the scores follow, up to a number that is the same for all words of a sentence."""
    query, _, mask = _draw()
    states = torch.rand(len(query), mask.size(1), SIZE, dtype=torch.float64) * 2 - 1
    weights, _ = attention(query, states, torch.ones_like(mask))
    centred = _centred(weights.clamp(min=1e-300).log())
    for name, scores in _equations(attention.module, query, states):
        if torch.allclose(centred, _centred(scores), atol=TOLERANCE):
            return name
    return "a score of its own"


def _centred(scores: Tensor) -> Tensor:
    return scores - scores.mean(dim=1, keepdim=True)


def _equations(module: nn.Module, query: Tensor, states: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Names of equations, and the scores that they give with the matrices of a module, in each role that fits."""
    product = (states @ query.unsqueeze(2)).squeeze(2)
    yield "the dot score", product
    yield "the scaled dot score", product / SIZE**0.5
    yield "the cosine score", nn.functional.cosine_similarity(states, query.unsqueeze(1), dim=2)
    weights = [weight.detach() for weight in module.parameters()]
    for matrix in (weight for weight in weights if weight.shape == (SIZE, SIZE)):
        for W in (matrix, matrix.T):
            yield "the general score", (states @ (query @ W).unsqueeze(2)).squeeze(2)
    yield from _additive(weights, query, states)


def _additive(weights: Sequence[Tensor], query: Tensor, states: Tensor) -> Iterator[tuple[str, Tensor]]:
    """v^T tanh(W q + U k), with and without biases, with W and U apart, in one matrix, or the same."""
    for v in (weight.flatten() for weight in weights if weight.dim() == 1 or 1 in weight.shape):
        if v.numel() == 1:
            continue
        biases = [weight for weight in weights if weight.shape == v.shape and weight is not v and weight.dim() == 1]
        matrices = [weight for weight in weights if weight.shape == (len(v), SIZE)]
        wide = [weight for weight in weights if weight.shape == (len(v), 2 * SIZE)]
        pairs = [("the additive score", W, U) for W, U in permutations(matrices, 2)]
        for matrix in wide:
            left, right = matrix.chunk(2, dim=1)
            pairs += [("the concat score", left, right), ("the concat score", right, left)]
        pairs += [(TIED, W, W) for W in matrices]
        sums = [torch.zeros(len(v), dtype=v.dtype), *biases]
        sums += [torch.stack(biases).sum(dim=0)] if biases else []
        for name, W, U in pairs:
            hidden = (query @ W.T).unsqueeze(1) + states @ U.T
            for bias in sums:
                yield name, torch.tanh(hidden + bias) @ v
            if biases and W is U:  # the same layer is called twice, and adds its bias twice
                yield name, torch.tanh(hidden + 2 * biases[0]) @ v
