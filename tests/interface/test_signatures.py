"""Commands have the defaults of the public functions that they call."""

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

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
OTHER_FUNCTIONS = (nmt.load, nmt.load_config, nmt.Translator.translate, nmt.self_attention)
"""Further functions whose parameters messages name."""
ROOT = Path(__file__).parents[2]
PYTHON_ONLY = {"compare": {"variants"}, "attention": {"title"}}
"""Parameters that no option has."""


def parameters_of(function: Callable[..., Any]) -> set[str]:
    """The names of a function's parameters."""
    return set(inspect.signature(function).parameters)


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
    without_function = {"data", "runs", "attentions"}
    missing = set(COMMANDS) - set(FUNCTIONS) - without_function
    assert not missing, f"add the public function of {missing} to FUNCTIONS"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_in_the_lists_of_commands(name: str) -> None:
    contributing = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
    table = "".join(line for line in contributing.splitlines() if line.startswith("| `nmt "))
    assert f"`nmt {name}`" in table or f"`{name}`" in table, "add it to the table of .github/CONTRIBUTING.md"
    listed = (ROOT / "nmt/interface/README.md").read_text(encoding="utf-8")
    assert f"`nmt {name}`" in listed or f"`{name}`" in listed, "add it to nmt/interface/README.md"


def test_no_line_of_the_list_of_commands_is_cut(cli: Cli) -> None:
    _, _, listed = cli("--help").out.partition("Commands:")
    assert [line for line in listed.splitlines() if line.endswith("...")] == []


def test_parameters_in_messages_are_those_of_public_functions() -> None:
    known = {name for functions in FUNCTIONS.values() for function in functions for name in parameters_of(function)}
    known |= {name for function in OTHER_FUNCTIONS for name in parameters_of(function)}
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "nmt").rglob("*.py"))}
    unknown = {
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.args[0].value}"
        for path, text in texts.items()
        if "from inspect import Parameter" not in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in ("Parameter", "check_at_least")
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value not in known
    }
    assert unknown == set()
