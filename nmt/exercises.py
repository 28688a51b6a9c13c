"""The exercises of exercises.md: each function for one sentence, by the equations, and the check of a reader's own."""

import copy
import runpy
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nmt.models import reference
from nmt.system.errors import shorten

TOLERANCE = 1e-9
"""Largest difference between two float64 results of the same equation."""
SIZES = {"A": 5, "D": 4, "2D": 8, "E": 2, "2D+E": 10, "R": 3, "G": 6}
"""By the letters of exercises.md; `draw` adds those that depend on the case."""
CASES: dict[str, tuple[list[int], dict[str, Any]]] = {
    "sentences of 5, 3 and 2 words": ([5, 3, 2], {"heads": 2, "causal": False, "radius": 2}),
    "a sentence of one word": ([1], {"heads": 1, "causal": False, "radius": 1}),
    "sentences of 1 and 6 words": ([1, 6], {"heads": 3, "causal": True, "radius": 1}),
}
"""Lengths of sentences, and the arguments that are no tensors."""


def check_file(path: Path) -> Iterator[tuple[str, str]]:
    """Check the functions that a reader wrote.

    Yields:
        The name of each, and what is wrong in the first case where it is; empty if nothing is. The file in place of a
        name if it cannot be run or has no function of an exercise.
    """
    sys.path.insert(0, str(path.parent))  # it may import the files of earlier exercises
    try:
        names = runpy.run_path(str(path), run_name=path.stem)
    except (Exception, SystemExit) as error:
        yield str(path), f"cannot be imported; {describe(error, path)}"
        return
    functions = [name for name in EXERCISES if getattr(names.get(name), "__module__", "") == path.stem]
    if not functions:
        yield str(path), f"has no function of an exercise; define one of {', '.join(EXERCISES)}"
    for name in functions:
        problems = (check(names[name], name, case, path) for case in CASES)
        yield name, next(filter(None, problems), "")


def check(function: Callable[..., Any], name: str, case: str, path: Path) -> str:
    """What is wrong with a function in a case, if anything."""
    torch.manual_seed(1)
    equation, returns, takes = EXERCISES[name]
    arguments = [(letter, draw(letter, *CASES[case])) for letter in takes.split(", ")]
    rows = (value if letter[0] == "B" else repeat(value) for letter, value in arguments)
    # The equation of one sentence after the other; then each result of all sentences.
    by_sentence = [equation(*arguments_of_one) for arguments_of_one in zip(*rows, strict=False)]
    results = [torch.stack(parts) for parts in zip(*by_sentence, strict=True)]
    expected = dict(zip(returns.split(", "), results, strict=True))
    given = [copy.deepcopy(value) for _, value in arguments]
    try:
        problem = compare(function(*given), expected)
    except (Exception, SystemExit) as error:
        problem = describe(error, path)
    for number, (before, after) in enumerate(zip(arguments, given, strict=True), 1):
        if not problem and isinstance(after, Tensor) and not torch.equal(before[1], after):
            problem = (
                f"changes argument {number}, which others still need: make a new tensor, as x + y does and x += y not"
            )
    options = [f"{letter} {value}" for letter, value in arguments if isinstance(value, int)]
    return problem and f"with {', '.join([case, *options])}: {problem}"


def draw(letter: str, lengths: list[int], options: dict[str, Any]) -> Any:
    """An argument: random numbers of a shape like "B S D", the lengths for "B", a "cell", or an option by its name."""
    size = max(lengths)
    heads = options["heads"]
    sizes = {**SIZES, "B": len(lengths), "S": size, "T": size - 1, "heads": heads, "d": SIZES["G"] // heads}
    cell = nn.GRUCell(sizes["E"] + sizes["D"], sizes["D"]).double().requires_grad_(False)
    others = {**options, "B": torch.tensor(lengths), "cell": cell}
    return others[letter] if letter in others else 4 * torch.rand([sizes[part] for part in letter.split()]).double() - 2


def compare(result: Any, expected: dict[str, Tensor]) -> str:
    """What is wrong with results, if anything."""
    result = result if isinstance(result, tuple | list) else (result,)
    if len(result) != len(expected) or result[0] is None:
        number = 0 if result[0] is None else len(result)
        return f"should return {', '.join(expected)}, but returns {number} value{'s' * (number != 1)}"
    # A wrong alignment is the cause where a context is wrong too.
    for (name, right), actual in sorted(
        zip(expected.items(), result, strict=True), key=lambda pair: "align" not in pair[0][0]
    ):
        shape = list(actual.shape) if isinstance(actual, Tensor) else type(actual).__name__
        if shape != list(right.shape):
            return f"{name} should have shape {list(right.shape)}, not {shape}"
        if actual.dtype != right.dtype:
            return f"{name} should be {right.dtype}, as the arguments are, not {actual.dtype}"
        difference = (actual - right).abs().nan_to_num(torch.inf)
        place = tuple(map(int, torch.unravel_index(difference.argmax(), right.shape)))
        if difference[place] > TOLERANCE:
            numbers = f"{actual[place]:.7g} in place of {right[place]:.7g}"
            return f"{name} off by up to {difference[place]:.2g}, at {list(place)}: {numbers}"
    return ""


def describe(error: BaseException, path: Path) -> str:
    """The error in one line, with the last line of the reader's file that took part in it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return ", ".join([*(f"line {line}" for line in lines[-1:]), f"{type(error).__name__}: {shorten(str(error))}"])


def attend(query: Tensor, states: Tensor, length: int | None = None) -> tuple[Tensor, Tensor]:
    """Softmax of dot products (Luong et al., 2015, eq. 7) of all words, or of the first ones."""
    return weigh((reference.dot(query, h) for h in states[:length]), states)


def additive_scores(query: Tensor, states: Tensor, W: Tensor, U: Tensor, v: Tensor) -> tuple[Tensor]:
    """Bahdanau's score (Bahdanau et al., 2015, A.1.2)."""
    return (torch.stack([reference.additive(query, h, W, U, v) for h in states]),)


def luong_step(
    y: Tensor, s: Tensor, feedback: Tensor, states: Tensor, length: int, cell: nn.GRUCell, W_c: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Update, then attend, with input feeding (Luong et al., 2015, section 3)."""
    attention, step = use(states, length, cell)
    vector, alignment, (s,) = reference.luong_step(y, (s,), attention, step, W_c, feedback)
    return vector, alignment, s


def bahdanau_step(
    y: Tensor, s: Tensor, states: Tensor, length: int, cell: nn.GRUCell, W: Tensor, b: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Attend, then update (Bahdanau et al., 2015, section 3.1)."""
    s, context, alignment, _ = reference.bahdanau_step(y, (s,), *use(states, length, cell))
    return reference.bahdanau_readout(s, context, y, W, b), alignment, s


def use(states: Tensor, length: int, cell: nn.GRUCell) -> tuple[reference.Attend, reference.Step]:
    """Attention to a sentence, and a cell, as the equations of a step call them."""
    return lambda query: attend(query, states, length), lambda x, state: (cell(x, *state),)


def local_p(query: Tensor, scores: Tensor, length: int, W_p: Tensor, v_p: Tensor, radius: int) -> tuple[Tensor]:
    """A window around a predicted centre (Luong et al., 2015, eq. 9-10)."""
    centre = reference.predicted_centre(query, length, W_p, v_p)
    inside = torch.tensor(reference.window(length, float(centre), radius))
    alignment = reference.gaussian(scores[inside].softmax(0), inside, centre, radius)
    return (torch.zeros_like(scores).index_put((inside,), alignment),)


def coverage_step(
    query: Tensor, states: Tensor, length: int, coverage: Tensor, W: Tensor, U: Tensor, v: Tensor, V: Tensor
) -> tuple[Tensor, Tensor]:
    """Scores read how much attention each word has had (Tu et al., 2016, eq. 7; See et al., 2017, eq. 10-11)."""
    words = zip(states[:length], coverage, strict=False)
    _, alignment = weigh((reference.additive(query, h, W, U, v, V * c) for h, c in words), states)
    return alignment, coverage + alignment


def multi_head(
    query: Tensor, states: Tensor, length: int, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, heads: int
) -> tuple[Tensor, Tensor]:
    """Several heads (Vaswani et al., 2017, section 3.2.2)."""
    output, alignments = reference.multi_head(query, [*states[:length]], W_q, W_k, W_v, W_o, heads)
    return output, pad(torch.stack(alignments), states)


def self_attention(
    x: Tensor, length: int, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, heads: int, causal: bool
) -> tuple[Tensor]:
    """Every word reads the others, or those up to its own (Vaswani et al., 2017, section 3.2.3)."""
    reads = [p + 1 if causal else length for p in range(length)]
    rows = [multi_head(x[p], x, n, W_q, W_k, W_v, W_o, heads)[0] for p, n in enumerate(reads)]
    return (pad(torch.stack(rows).mT, x).mT,)


def cached_step(
    x: Tensor, keys: Tensor, values: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Causal self-attention of the next word, from keys and values of those before it."""
    query, key, value = ((W @ x).view(len(keys), 1, -1) for W in (W_q, W_k, W_v))  # [heads, 1, d]
    keys = torch.cat([keys, key], dim=1)
    values = torch.cat([values, value], dim=1)
    scores = ([reference.scaled_dot(q, k) for k in head] for (q,), head in zip(query, keys, strict=True))
    contexts = [weigh(*head)[0] for head in zip(scores, values, strict=True)]
    return W_o @ torch.cat(contexts), keys, values


def weigh(scores: Iterable[Tensor], states: Tensor) -> tuple[Tensor, Tensor]:
    """Context and alignment of the words that have a score, which are the first; other words have 0."""
    e = torch.stack([*scores])
    context, alignment = reference.attend(e, states[: len(e)])
    return context, pad(alignment, states)


def pad(weights: Tensor, states: Tensor) -> Tensor:
    """What the first words have, and 0 for the others: [..., n] -> [..., S]."""
    return nn.functional.pad(weights, (0, len(states) - weights.size(-1)))


EXERCISES: dict[str, tuple[Callable[..., tuple[Tensor, ...]], str, str]] = {
    "attend": (attend, "context, alignment", "B D, B S D"),
    "masked_attend": (attend, "context, alignment", "B D, B S D, B"),
    "additive_scores": (additive_scores, "scores", "B D, B S D, A D, A D, A"),
    "luong_step": (luong_step, "vector, alignment, s", "B E, B D, B D, B S D, B, cell, D 2D"),
    "bahdanau_step": (bahdanau_step, "readout, alignment, s", "B E, B D, B S D, B, cell, R 2D+E, R"),
    "local_p": (local_p, "alignment", "B D, B S, B, D D, D, radius"),
    "coverage_step": (coverage_step, "alignment, coverage", "B D, B S D, B, B S, A D, A D, A, A"),
    "multi_head": (multi_head, "output, alignments", "B D, B S D, B, G D, G D, G D, D G, heads"),
    "self_attention": (self_attention, "output", "B S D, B, G D, G D, G D, D G, heads, causal"),
    "cached_step": (cached_step, "output, keys, values", "B D, B heads T d, B heads T d, G D, G D, G D, D G"),
}
"""By name: the equation of one sentence, what it returns, and what it takes (see `draw`)."""
