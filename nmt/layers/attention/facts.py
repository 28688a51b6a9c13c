"""Properties of scores, read from the source files of this folder without importing torch.

Checking a config then takes a fraction of the time that importing torch takes.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import nmt.config
from nmt.config import Option

_FLAGS = {"needs_equal_sizes": False, "multi_head": False, "local": True, "takes_features": False}
"""Class attributes of `Score` and their defaults."""


@dataclass(frozen=True)
class ScoreFacts:
    """What a score can be combined with; see the class attributes of `Score`.

    Attributes:
        names: Names in a config, the most common first.
        needs_equal_sizes: Query and key are multiplied directly.
        multi_head: Supports several heads.
        local: Reaches every local window.
        takes_features: Supports features of past alignments.
        options: Its options.
    """

    names: tuple[str, ...]
    needs_equal_sizes: bool
    multi_head: bool
    local: bool
    takes_features: bool
    options: tuple[Option, ...]


def facts_of(score: type, *names: str) -> ScoreFacts:
    """The facts of an imported class."""
    parameters = inspect.signature(score, eval_str=True).parameters.values()
    options = tuple(
        Option(each.name, each.annotation, each.default is each.empty)
        for each in parameters
        if each.kind is each.KEYWORD_ONLY
    )
    return ScoreFacts(names, **{flag: getattr(score, flag) for flag in _FLAGS}, options=options)


_registered: dict[str, ScoreFacts] = {}
"""Facts of scores registered at run time, by name."""


def register_facts(facts: ScoreFacts) -> None:
    """Add the facts of a score under each of its names."""
    _registered.update(dict.fromkeys(facts.names, facts))


def known_scores() -> Mapping[str, ScoreFacts]:
    """The facts of every score, by name, sorted."""
    return dict(sorted((_registered | _own_scores()).items()))


@functools.cache
def _own_scores() -> dict[str, ScoreFacts]:
    """The facts of the scores in this folder."""
    found: dict[str, ScoreFacts] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and (names := tuple(_registered_names(node))):
                found |= dict.fromkeys(names, _read_class(node, names))
    return found


def names_of(wanted: Callable[[ScoreFacts], bool]) -> str:
    """The names of the wanted scores, as `a, b or c`."""
    *first, last = [name for name, facts in known_scores().items() if wanted(facts)]
    return f"{', '.join(first)} or {last}" if first else last


def _registered_names(node: ast.ClassDef) -> Iterator[str]:
    """The arguments of its `@register_score(...)`."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "register_score":
            yield from (ast.literal_eval(argument) for argument in decorator.args)


def _read_class(node: ast.ClassDef, names: tuple[str, ...]) -> ScoreFacts:
    flags = dict(_FLAGS)
    options: tuple[Option, ...] = ()
    for item in node.body:
        target: ast.expr | None = item.target if isinstance(item, ast.AnnAssign) else None
        if isinstance(item, ast.Assign):
            [target] = item.targets
        if isinstance(target, ast.Name) and target.id in flags:
            assert isinstance(item, ast.AnnAssign | ast.Assign)
            assert item.value is not None
            flags[target.id] = ast.literal_eval(item.value)
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            options = tuple(_read_options(item.args))
    return ScoreFacts(names, **flags, options=options)


def _read_options(arguments: ast.arguments) -> Iterator[Option]:
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        try:
            source = ast.unparse(argument.annotation) if argument.annotation else ""
            annotation = eval(source, vars(nmt.config).copy())  # source code of this package
        except (NameError, SyntaxError):
            annotation = inspect.Parameter.empty
        yield Option(argument.arg, annotation, default is None)
