"""The exercises of docs/learn: each function for one sentence, by the equations, and the check of a reader's own."""

import copy
import runpy
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.layers.attention.class_check import check_class, find_classes
from nmt.models import reference
from nmt.system.errors import shorten

TOLERANCE = 1e-9
"""Largest difference between two float64 results of the same equation."""
SIZES = {"A": 5, "D": 4, "2D": 8, "E": 2, "2D+E": 10, "R": 3, "G": 6}
"""By the letters of docs/learn/exercises.md; `draw` adds those that depend on the case."""
CASES: dict[str, tuple[list[int], dict[str, Any]]] = {
    "sentences of 5, 3 and 2 words": ([5, 3, 2], {"heads": 2, "causal": False, "radius": 2}),
    "a sentence of one word": ([1], {"heads": 1, "causal": False, "radius": 1}),
    "sentences of 1 and 6 words": ([1, 6], {"heads": 3, "causal": True, "radius": 1}),
}
"""Lengths of sentences, and the arguments that are no tensors."""


class Finding(NamedTuple):
    """The verdict on a function or a class.

    Attributes:
        name: Its name; the file if that cannot be run or has neither.
        problem: The fault in the first case that has one; empty if none has.
        equation: Of a class, the equation that it follows.
    """

    name: str
    problem: str
    equation: str = ""

    def __str__(self) -> str:
        verdict = self.problem or "ok"
        return f"{self.name}: {', '.join(filter(None, (self.equation, verdict)))}"


def check_file(path: Path) -> Iterator[Finding]:
    """Check the functions and the attention classes that a reader wrote."""
    sys.path.insert(0, str(path.parent))  # it may import the files of earlier exercises
    try:
        names = runpy.run_path(str(path), run_name=path.stem)
    except (Exception, SystemExit) as error:
        yield Finding(str(path), f"cannot be imported; {describe(error, path)}")
        return
    functions = [name for name in EXERCISES if getattr(names.get(name), "__module__", "") == path.stem]
    classes = find_classes(names, path.stem)
    if not functions and not classes:
        wanted = f"define one of {', '.join(EXERCISES)}, or a torch.nn.Module with forward(query, states, mask)"
        yield Finding(str(path), f"has no function of an exercise, and no attention; {wanted}")
    for name in functions:
        fault = ""
        for case in CASES:
            fault = check(names[name], name, case, path)
            if fault:
                break
        yield Finding(name, fault)
    for kind in classes:
        verdict = check_class(kind, path, describe)
        yield Finding(kind.__name__, "; ".join(verdict.problems), verdict.equation)


def check(function: Callable[..., Any], name: str, case: str, path: Path) -> str:
    """The fault of a function in a case; empty if it has none."""
    torch.manual_seed(1)
    exercise = EXERCISES[name]
    lengths, options = CASES[case]
    shapes = exercise.takes.split(", ")
    arguments = [draw(shape, lengths, options) for shape in shapes]

    # The equation of one sentence after the other; then each result of all sentences.
    by_sentence = []
    for number in range(len(lengths)):
        of_sentence = []
        for shape, value in zip(shapes, arguments, strict=True):
            has_sentences = shape[0] == "B"  # otherwise all sentences share the argument
            of_sentence.append(value[number] if has_sentences else value)
        by_sentence.append(exercise.equation(*of_sentence))
    results = [torch.stack(parts) for parts in zip(*by_sentence, strict=True)]
    expected = dict(zip(exercise.returns.split(", "), results, strict=True))

    given = copy.deepcopy(arguments)
    try:
        fault = compare(function(*given), expected)
    except (Exception, SystemExit) as error:
        fault = describe(error, path)
    for number, (before, after) in enumerate(zip(arguments, given, strict=True), 1):
        if not fault and isinstance(after, Tensor) and not torch.equal(before, after):
            fault = (
                f"changes argument {number}, which others still need: make a new tensor, as x + y does and x += y not"
            )
    if not fault:
        return ""
    settings = [f"{shape} {value}" for shape, value in zip(shapes, arguments, strict=True) if isinstance(value, int)]
    return f"with {', '.join([case, *settings])}: {fault}"


def draw(shape: str, lengths: list[int], options: dict[str, Any]) -> Any:
    """An argument: random numbers of a shape like "B S D", the lengths for "B", a "cell", or an option by its name."""
    longest = max(lengths)
    heads = options["heads"]
    sizes = {**SIZES, "B": len(lengths), "S": longest, "T": longest - 1, "heads": heads, "d": SIZES["G"] // heads}
    # Drawn for every argument, so that the random numbers of all of them stay the same.
    cell = nn.GRUCell(sizes["E"] + sizes["D"], sizes["D"]).double().requires_grad_(False)
    if shape == "B":
        return torch.tensor(lengths)
    if shape == "cell":
        return cell
    if shape in options:
        return options[shape]
    uniform = torch.rand([sizes[part] for part in shape.split()]).double()
    return 4 * uniform - 2


def compare(result: Any, expected: dict[str, Tensor]) -> str:
    """The first fault of results; empty if they have none."""
    results = result if isinstance(result, tuple | list) else (result,)
    if len(results) != len(expected) or results[0] is None:
        number = 0 if results[0] is None else len(results)
        plural = "" if number == 1 else "s"
        return f"should return {', '.join(expected)}, but returns {number} value{plural}"
    # Alignments first: a wrong alignment is the cause where a context is wrong too.
    given = dict(zip(expected, results, strict=True))
    for name in sorted(expected, key=lambda name: "align" not in name):
        right = expected[name]
        actual = given[name]
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
    text = f"{type(error).__name__}: {shorten(str(error))}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"line {lines[-1]}, {text}" if lines else text


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

    def attention(query: Tensor) -> tuple[Tensor, Tensor]:
        return attend(query, states, length)

    def step(x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor]:
        (s,) = state
        return (cell(x, s),)

    return attention, step


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
    words = zip(states[:length], coverage[:length], strict=True)
    scores = [reference.additive(query, h, W, U, v, V * c) for h, c in words]
    _, alignment = weigh(scores, states)
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
    rows = []
    for position in range(length):
        num_read = position + 1 if causal else length
        output, _ = multi_head(x[position], x, num_read, W_q, W_k, W_v, W_o, heads)
        rows.append(output)
    outputs = torch.stack(rows)  # [length, D]
    return (pad(outputs.mT, x).mT,)


def cached_step(
    x: Tensor, keys: Tensor, values: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Causal self-attention of the next word, from keys and values of those before it."""
    num_heads = len(keys)
    queries = (W_q @ x).view(num_heads, -1)  # [heads, d]
    key = (W_k @ x).view(num_heads, 1, -1)  # [heads, 1, d]
    value = (W_v @ x).view(num_heads, 1, -1)
    keys = torch.cat([keys, key], dim=1)
    values = torch.cat([values, value], dim=1)
    contexts = []
    for head in range(num_heads):
        scores = [reference.scaled_dot(queries[head], k) for k in keys[head]]
        context, _ = weigh(scores, values[head])
        contexts.append(context)
    return W_o @ torch.cat(contexts), keys, values


def weigh(scores: Iterable[Tensor], states: Tensor) -> tuple[Tensor, Tensor]:
    """Context and alignment of the words that have a score, which are the first; other words have 0."""
    e = torch.stack([*scores])
    context, alignment = reference.attend(e, states[: len(e)])
    return context, pad(alignment, states)


def pad(weights: Tensor, states: Tensor) -> Tensor:
    """The values of the first words, and 0 for the others: [..., n] -> [..., S]."""
    return nn.functional.pad(weights, (0, len(states) - weights.size(-1)))


class Exercise(NamedTuple):
    """An exercise.

    Attributes:
        equation: The function for one sentence.
        returns: Names of its results.
        takes: Its arguments; see `draw`.
    """

    equation: Callable[..., tuple[Tensor, ...]]
    returns: str
    takes: str


EXERCISES = {
    "attend": Exercise(attend, "context, alignment", "B D, B S D"),
    "masked_attend": Exercise(attend, "context, alignment", "B D, B S D, B"),
    "additive_scores": Exercise(additive_scores, "scores", "B D, B S D, A D, A D, A"),
    "luong_step": Exercise(luong_step, "vector, alignment, s", "B E, B D, B D, B S D, B, cell, D 2D"),
    "bahdanau_step": Exercise(bahdanau_step, "readout, alignment, s", "B E, B D, B S D, B, cell, R 2D+E, R"),
    "local_p": Exercise(local_p, "alignment", "B D, B S, B, D D, D, radius"),
    "coverage_step": Exercise(coverage_step, "alignment, coverage", "B D, B S D, B, B S, A D, A D, A, A"),
    "multi_head": Exercise(multi_head, "output, alignments", "B D, B S D, B, G D, G D, G D, D G, heads"),
    "self_attention": Exercise(self_attention, "output", "B S D, B, G D, G D, G D, D G, heads, causal"),
    "cached_step": Exercise(cached_step, "output, keys, values", "B D, B heads T d, B heads T d, G D, G D, G D, D G"),
}
"""The exercises by the name of the function to write."""
