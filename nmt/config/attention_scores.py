"""The scores by name, with the properties that decide with which settings each can be combined.

Torch is not imported: checking a config takes a fraction of the time that importing torch takes.
"""

import importlib
import inspect
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import Parameter
from pathlib import Path

from nmt.config.fields import Count
from nmt.system.errors import ConfigError
from nmt.system.files import read_bytes
from nmt.system.limits import MAX_JSON


@dataclass(frozen=True)
class ScoreProperties:
    """A score; see the class attributes of `Score`.

    Attributes:
        name: Its name in a config, or the dotted path of a custom class.
        path: Dotted path of its class.
        needs_equal_sizes: Query and key are multiplied directly.
        multi_head: Supports several heads.
        local: Reaches every local window.
        takes_features: Supports features of past alignments.
        options: Its keyword-only arguments, set in a config's `options`.
    """

    name: str
    path: str
    needs_equal_sizes: bool = False
    multi_head: bool = False
    local: bool = True
    takes_features: bool = False
    options: tuple[Parameter, ...] = ()


_HOME = "nmt.layers.attention"
_MAX_LENGTH = (Parameter("max_length", Parameter.KEYWORD_ONLY, annotation=Count),)
_ADDITIVE = ScoreProperties(
    "additive",
    f"{_HOME}.additive.AdditiveScore",
    multi_head=True,
    takes_features=True,
    options=(Parameter("size", Parameter.KEYWORD_ONLY, default=None, annotation=Count | None),),
)
SCORES = {
    score.name: score
    for score in (
        _ADDITIVE,
        replace(_ADDITIVE, name="concat"),
        ScoreProperties("cosine", f"{_HOME}.cosine.CosineScore", needs_equal_sizes=True),
        ScoreProperties("dot", f"{_HOME}.dot.DotScore", needs_equal_sizes=True, multi_head=True),
        ScoreProperties("general", f"{_HOME}.general.GeneralScore", multi_head=True),
        ScoreProperties("location", f"{_HOME}.location.LocationScore", local=False, options=_MAX_LENGTH),
        ScoreProperties("scaled_dot", f"{_HOME}.scaled_dot.ScaledDotScore", needs_equal_sizes=True, multi_head=True),
    )
}
"""All scores, by name, sorted; `none` (fixed context) is not a score."""


def names_class(score: str) -> bool:
    """True if a score is the dotted path of a class rather than a registered name."""
    return "." in score


def import_score(path: str) -> type:
    """Import the class of a score by its dotted path.

    Raises:
        ConfigError: It cannot be imported, or is not a concrete subclass of `nmt.Score`.
    """
    module_name, _, class_name = path.rpartition(".")
    file = Path(f"{module_name}.py")
    if class_name == "py":
        raise ConfigError(f"{path} is a file, not a class; {_name_classes(file)}")
    try:
        score = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        # A file of this name in the current folder is not on Python's path.
        is_module_missing = isinstance(error, ModuleNotFoundError) and error.name == module_name
        advice = f"; {_name_classes(file)}" if is_module_missing and file.is_file() else ""
        raise ConfigError(f"{path} cannot be imported ({error}){advice}") from None
    # Compared by name, as importing `Score` here would import torch.
    bases = score.__mro__ if isinstance(score, type) else ()
    base_paths = [f"{base.__module__}.{base.__qualname__}" for base in bases]
    if f"{_HOME}.score.Score" not in base_paths:
        raise ConfigError(f"{path} is not a subclass of nmt.Score")
    if inspect.isabstract(score):
        raise ConfigError(f"{path} does not implement {' and '.join(sorted(score.__abstractmethods__))}")
    return score  # type: ignore[no-any-return]


def _name_classes(file: Path) -> str:
    """Advice to set one of the scores in a file, which is read and not run."""
    text = read_bytes(file, MAX_JSON).decode("utf-8", "replace") if file.is_file() else ""
    classes = re.findall(r"^class (\w+)\(.*\bScore\b", text, re.MULTILINE) or ["CLASS"]
    scores = " or ".join(f"score={file.stem}.{name}" for name in classes)
    return f"start the command with PYTHONPATH={shlex.quote(str(file.parent))} and set {scores}"


def properties_of(score: type, name: str) -> ScoreProperties:
    """The properties of a class, from its attributes and its constructor, under its name in a config."""
    path = f"{score.__module__}.{score.__qualname__}"
    names = ("needs_equal_sizes", "multi_head", "local", "takes_features")
    flags = {flag: getattr(score, flag) for flag in names}
    parameters = inspect.signature(score, eval_str=True).parameters.values()
    options = tuple(parameter for parameter in parameters if parameter.kind is Parameter.KEYWORD_ONLY)
    return ScoreProperties(name, path, **flags, options=options)


def names_of(is_wanted: Callable[[ScoreProperties], bool]) -> str:
    """The names of the wanted scores, as `a, b or c`."""
    names = [name for name, score in SCORES.items() if is_wanted(score)]
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} or {names[-1]}"
