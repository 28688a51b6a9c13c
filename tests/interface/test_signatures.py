"""Commands have the defaults of the public functions that they call."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import nmt
from nmt.config import Config, with_search_options
from nmt.interface.app import COMMANDS
from nmt.system.errors import ConfigError
from nmt.translation.probability import score
from nmt.translation.translate import translate

FUNCTIONS: dict[str, tuple[Callable[..., Any], ...]] = {
    "preprocess": (nmt.preprocess,),
    "train": (nmt.train,),
    "check": (nmt.check,),
    "translate": (translate,),
    "evaluate": (nmt.evaluate,),
    "attention": (nmt.measure_attention, nmt.explore),
    "explain": (nmt.explain,),
    "report": (nmt.report,),
    "compare": (nmt.compare,),
    "backtranslate": (nmt.backtranslate,),
    "score": (score,),
    "serve": (nmt.serve,),
    "average": (nmt.average,),
    "export": (nmt.export,),
}
PYTHON_ONLY = {"compare": {"variants"}, "attention": {"title"}}
"""Parameters that no option has."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_command_has_the_parameters_and_defaults_of_its_functions(name: str) -> None:
    options = dict(inspect.signature(COMMANDS[name]).parameters)
    wanted: dict[str, inspect.Parameter] = {}
    for function in FUNCTIONS[name]:
        wanted |= inspect.signature(function).parameters
    assert set(wanted) - set(options) == PYTHON_ONLY.get(name, set())
    assert set(options) - set(wanted) <= {"config_argument", "cell"}
    for key, parameter in wanted.items():
        if key not in options or key == "config":
            continue
        default = options[key].default
        if default is None:  # not given: the command hands on an empty sequence, or None
            assert parameter.default in ((), None), key
        else:
            assert parameter.default == default, key


def test_limits_of_options_are_those_of_the_config() -> None:
    limits = {"beam_size": 1000, "batch_size": 100_000, "n_best": 1000}
    for name, function in COMMANDS.items():
        for key, parameter in inspect.signature(function).parameters.items():
            if key in limits:
                (option,) = parameter.annotation.__metadata__
                assert (option.min, option.max) == (1, limits[key]), f"{name} {key}"
    for key in ("beam_size", "batch_size"):
        assert with_search_options(Config(), {key: limits[key]})
        with pytest.raises(ConfigError, match=f"{limits[key]:,}"):
            with_search_options(Config(), {key: limits[key] + 1})


def test_every_command_that_calls_a_function_is_compared() -> None:
    assert set(COMMANDS) - set(FUNCTIONS) == {"data", "runs", "attentions"}
