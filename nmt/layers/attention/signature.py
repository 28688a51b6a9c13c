"""What a reader's own attention class takes."""

import inspect
from collections.abc import Callable
from typing import Any

from torch import nn


def count_inputs(attention: type[nn.Module]) -> int:
    """Number of the inputs of `forward`: a query and states, and a mask if there are three."""
    return len(_positional(attention.forward))


def count_sizes(attention: type[nn.Module]) -> int:
    """Number of the parameters of `__init__` that have no default: sizes."""
    return sum(parameter.default is parameter.empty for parameter in _positional(attention.__init__))


def _positional(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Parameters that can be given by place, without `self`."""
    _, *parameters = inspect.signature(function).parameters.values()
    return [parameter for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
