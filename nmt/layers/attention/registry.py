"""Scores by name: every module of this folder registers its own; a custom class is given by its dotted path."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from nmt.layers.attention.facts import facts_of, register_facts
from nmt.system.errors import ConfigError


class Score(nn.Module, ABC):
    """How well a decoder state and a source position match, before normalisation.

    The constructor of a subclass takes `query_size`, `key_size` and its options as keyword-only arguments.
    """

    needs_equal_sizes: ClassVar[bool] = False
    """True if query and key are multiplied directly."""
    multi_head: ClassVar[bool] = False
    """True if it makes sense on the projections of several heads."""
    local: ClassVar[bool] = True
    """False if all positions of a local window could be beyond its reach."""
    takes_features: ClassVar[bool] = False
    """True if `forward` accepts features of the past; see `add_features`."""
    paper: ClassVar[str] = ""
    """Source of its equation."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Options for tests, if it has required ones."""

    def add_features(self, size: int) -> None:
        """Add weights for `size` features per source position, which `forward` then receives: [B, N, S, size]."""
        raise TypeError(f"{type(self).__name__} does not support features")

    def project_keys(self, encoder_states: Tensor) -> Tensor:
        """The computation that is done once per sentence: [B, S, key_size] -> [B, S, any size]."""
        return encoder_states

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Unnormalised scores.

        Args:
            query: Decoder states, [B, N, query_size]: N target positions or N hypotheses of a sentence.
            keys: Result of `project_keys`, [B, S, ...].

        Returns:
            [B, N, S].
        """


_SCORES: dict[str, type[Score]] = {}


def register_score(*names: str) -> Callable[[type[Score]], type[Score]]:
    """Class decorator that registers a score for configs under each of `names`."""

    def register(score: type[Score]) -> type[Score]:
        for name in names:
            if name in _SCORES and _SCORES[name] is not score:
                raise ValueError(f"attention score {name!r} is registered twice")
            _SCORES[name] = score
        register_facts(facts_of(score, *names))
        return score

    return register


@functools.cache
def _load_all() -> None:
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{__package__}.{module.name}")


def score_names() -> list[str]:
    """Names of all registered scores, sorted, without `none` (fixed context), which is not a score."""
    _load_all()
    return sorted(_SCORES)


def import_score(path: str) -> type[Score]:
    """Import a class by its dotted path.

    Raises:
        ConfigError: It cannot be imported, or is not a concrete subclass of `Score`.
    """
    module_name, _, class_name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{path} cannot be imported ({error})") from None
    if not (isinstance(found, type) and issubclass(found, Score)):
        raise ConfigError(f"{path} is not a subclass of nmt.layers.attention.Score")
    if inspect.isabstract(found):
        raise ConfigError(f"{path} does not implement {' and '.join(sorted(found.__abstractmethods__))}")
    return found


def find_score(name: str) -> type[Score]:
    """The class of a score, by its registered name or its dotted path.

    Raises:
        ConfigError: There is no such score.
    """
    _load_all()
    return _SCORES[name] if name in _SCORES else import_score(name)
