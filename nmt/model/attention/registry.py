"""Scores by name: every module of this folder registers its own; a user's class comes by dotted path."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.model.attention.facts import facts_of, register_facts


class Score(nn.Module, ABC):
    """How well a decoder state and a source position go together, before any normalisation.

    A subclass takes `query_size` and `key_size` and, as keyword-only arguments, the options of its own.
    """

    needs_equal_sizes: ClassVar[bool] = False
    """True where query and key are multiplied with nothing in between."""
    multi_head: ClassVar[bool] = False
    """True where it makes sense on the projections of several heads."""
    local: ClassVar[bool] = True
    """False where the positions of a local window could all be beyond its reach."""
    takes_features: ClassVar[bool] = False
    """True where `forward` takes in features of the past; see `add_features`."""
    paper: ClassVar[str] = ""
    """Where its equation stands."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Options to try it with, where it cannot do without."""

    def add_features(self, size: int) -> None:
        """Make room for `size` features of each source position, which `forward` then takes: [B, N, S, size]."""
        raise TypeError(f"{type(self).__name__} takes no features")

    def project_keys(self, encoder_states: Tensor) -> Tensor:
        """What can be computed once a sentence: [B, S, key_size] -> [B, S, any size]."""
        return encoder_states

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Unnormalised scores.

        Args:
            query: Decoder states, [B, N, query_size]: N target positions or N hypotheses of one sentence.
            keys: What `project_keys` returned, [B, S, ...].

        Returns:
            [B, N, S].
        """


_SCORES: dict[str, type[Score]] = {}


def register_score(*names: str) -> Callable[[type[Score]], type[Score]]:
    """Class decorator that makes a score known to configs under each of `names`."""

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
    """Names of all registered scores, sorted; `none` (fixed context) is not a score and not among them."""
    _load_all()
    return sorted(_SCORES)


def import_score(path: str) -> type[Score]:
    """The class with a dotted path.

    Raises:
        ConfigError: It cannot be imported, or is no score that can be used.
    """
    module_name, _, class_name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{path} cannot be imported ({error})") from None
    if not (isinstance(found, type) and issubclass(found, Score)):
        raise ConfigError(f"{path} is not a subclass of nmt.model.attention.Score")
    if inspect.isabstract(found):
        raise ConfigError(f"{path} lacks {' and '.join(sorted(found.__abstractmethods__))}")
    return found


def find_score(name: str) -> type[Score]:
    """The class of a score, by a name that is registered or by its dotted path.

    Raises:
        ConfigError: There is no such score.
    """
    _load_all()
    return _SCORES[name] if name in _SCORES else import_score(name)
