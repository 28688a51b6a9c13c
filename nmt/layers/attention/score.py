"""The interface of scores, and how the class of a score is found: by its name in a config, or by its dotted path.

The names are those of `SCORES` in nmt/config/attention_scores.py, where a score is registered.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nmt.config.attention_scores import SCORES, import_score
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


def find_score(name: str) -> type[Score]:
    """The class of a score, by its name or its dotted path.

    Raises:
        ConfigError: There is no such score.
    """
    score: type[Score] = import_score(SCORES[name].path if name in SCORES else name)
    return score


def check_shape(score: type[Score], path: str, query_size: int, key_size: int, options: Mapping[str, Any]) -> None:
    """Call a user's score once, on a CPU: in training, some wrong shapes fit by chance.

    Args:
        score: The class.
        path: Its dotted path.
        query_size: Size of a query.
        key_size: Size of an encoder state.
        options: Its options.

    Raises:
        ConfigError: It cannot be built, or does not return one score for each query and position.
    """
    expected_shape = [3, 4, 2]  # sentences, queries and positions, which all differ
    with torch.device("cpu"), torch.random.fork_rng(devices=()), torch.no_grad():
        queries = torch.ones(3, 4, query_size)
        states = torch.ones(3, 2, key_size)  # zero would be padding
        try:
            scoring = score(query_size, key_size, **options)
        except Exception as error:
            advice = "its __init__ takes query_size, key_size and the keys of model.attention.options"
            raise ConfigError(f"model.attention.score: {path} cannot be built ({error}); {advice}") from error
        try:
            scores = scoring(queries, scoring.project_keys(states))
            shape = list(scores.shape)
            fault = "" if shape == expected_shape else f"returns {shape}"
        except Exception as error:
            fault = f"fails ({error})"
    if fault:
        inputs = f"queries {list(queries.shape)} and encoder states {list(states.shape)}"
        needed = f"return [B, N, S] = {expected_shape}, a score for each query and position"
        raise ConfigError(f"model.attention.score: {path} {fault} for {inputs}; {needed}")
