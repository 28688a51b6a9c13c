"""The catalogue of mechanisms with their papers and limits, taken from the classes themselves."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from nmt.config import ModelSection
from nmt.config.attention_checks import LOCAL_WINDOWS, SPARSE_LIBRARY
from nmt.config.attention_scores import SCORES, names_of
from nmt.layers.attention.attention import PASTS, WINDOWS, FixedContext
from nmt.layers.attention.heads import MultiHead, SingleHead
from nmt.layers.attention.normalizer import SUMMARIES
from nmt.layers.attention.score import find_score
from nmt.system.terminal import LINE

WORK_CLASSES = (
    "Keys are those of model.attention. Work, with teacher forcing:\n"
    "  (a) in Luong order without input feeding, one call for all target positions;\n"
    "  (b) depends on its own past: one call for the recurrence, then step by step.\n"
    "Bahdanau order, input feeding and teacher forcing below 1 always run step by\n"
    "step (c). Equal sizes are those of decoder and encoder states; without a limit,\n"
    "all combinations work.\n"
)


@dataclass(frozen=True)
class Mechanism:
    """One choice in a config's `model.attention`.

    Attributes:
        key: Config key, relative to `model.attention`.
        names: Values of the key.
        summary: Description in one line.
        paper: Source of its equation; may be empty.
        limits: Settings that it needs or excludes; may be empty.
        work: Class of work: a, or b if it depends on its own past.
    """

    key: str
    names: tuple[str, ...]
    summary: str
    paper: str = ""
    limits: tuple[str, ...] = ()
    work: str = "a"


def list_mechanisms() -> list[Mechanism]:
    """All scores, heads, windows, normalisers and memories of the past."""
    several = names_of(lambda score: score.multi_head)
    takers = names_of(lambda score: score.takes_features)
    near = (f"not with score {names_of(lambda score: not score.local)}",)
    own_past = (f"score {takers}", "one head only"), "b"
    mechanisms = [*_list_scores(), Mechanism("heads", ("1",), _summary(SingleHead))]
    mechanisms += [Mechanism("heads", ("2", "3", "..."), _summary(MultiHead), MultiHead.paper, (f"score {several}",))]
    for name, window in WINDOWS.items():
        limits = near if name in LOCAL_WINDOWS else ()
        mechanisms.append(Mechanism("window.name", (name,), _summary(window), window.paper, limits))
    for name, (summary, paper) in SUMMARIES.items():
        limits = () if name == "softmax" else (f"package {SPARSE_LIBRARY}",)
        mechanisms.append(Mechanism("normalizer.name", (name,), summary, paper, limits))
    for name, past in PASTS.items():
        rest = own_past if past.state_name else ()
        mechanisms.append(Mechanism("past.name", (name,), _summary(past), past.paper, *rest))
    return mechanisms


def describe_mechanisms() -> str:
    """The mechanisms for a person to read: a block of each, then the classes of work."""
    blocks = []
    for mechanism in list_mechanisms():
        notes = {"work": f"({mechanism.work})", "limits": "; ".join(mechanism.limits), "paper": mechanism.paper}
        lines = [mechanism.summary, *(f"{name}: {note}" for name, note in notes.items() if note)]
        indented = (textwrap.fill(line, LINE, initial_indent="  ", subsequent_indent="    ") for line in lines)
        blocks.append("\n".join([f"{mechanism.key}: {', '.join(mechanism.names)}", *indented]))
    return "\n\n".join([*blocks, WORK_CLASSES])


def _list_scores() -> Iterator[Mechanism]:
    names: dict[str, list[str]] = {}
    for properties in SCORES.values():
        names.setdefault(properties.path, []).append(properties.name)
    for known in names.values():
        score = find_score(known[0])
        options = SCORES[known[0]].options
        limits = ["equal sizes, or heads" if score.multi_head else "equal sizes"] if score.needs_equal_sizes else []
        limits += [] if score.multi_head else ["one head only"]
        limits += [] if score.local else ["no local window"]
        limits += [f"needs options.{option.name}" for option in options if option.default is option.empty]
        yield Mechanism("score", tuple(known), _summary(score), score.paper, tuple(limits))
    yield Mechanism("score", ("none",), _summary(FixedContext), FixedContext.paper, ("excludes all choices below",))


def _summary(kind: type) -> str:
    """The first line of a docstring, without its citation, which is in another column."""
    first = (kind.__doc__ or "").strip().partition("\n")[0]
    return re.sub(r" \([^()]*\b(19|20)\d\d\b[^()]*\)", "", first).rstrip(".")


def describe_mechanism(section: ModelSection) -> tuple[str, str]:
    """The attention of a model, in a few words, and the equation of its score with its source."""
    attention = section.mechanism
    score = next((score for score in _list_scores() if attention.score in score.names), None)
    order, feedback = section.decoder.traits
    parts = [attention.score, order]
    parts += [f"{attention.heads} heads"] if attention.heads > 1 else []
    others = attention.window.name.replace("_", "-"), attention.normalizer.name, attention.past.name
    parts += [name for name in others if name not in ("global", "softmax", "none")]
    equation = "" if score is None else f"{score.summary} ({score.paper})" if score.paper else score.summary
    return ", ".join(filter(None, [*parts, feedback])), equation
