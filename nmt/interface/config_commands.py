"""Commands about configs and what they choose from: nmt config show, check and schema, and nmt attentions."""

from collections.abc import Sequence

import nmt
from nmt.interface import options
from nmt.interface.command import choose_config, import_libraries, show


def show_attentions() -> None:
    """List attention mechanisms: equation, work, limits, paper.

    Example: nmt attentions
    """
    import_libraries("nmt.layers.attention.catalog")
    from nmt.layers.attention.catalog import describe_mechanisms

    show(describe_mechanisms())


def show_config(
    config_argument: options.ConfigArgument = None,
    config: options.ConfigOption = "",
    overrides: options.Overrides = None,
) -> None:
    """Print the whole config as YAML, each value with its origin.

    Example: nmt config show tatoeba_small --set train.epochs=3
    """
    import_libraries("nmt.config")
    from nmt.config import show_config as describe_config

    show(describe_config(choose_config(config_argument, config, overrides), overrides or ()))


def check_config(
    config_argument: options.ConfigArgument = None,
    config: options.ConfigOption = "",
    overrides: options.Overrides = None,
) -> None:
    """Report every problem of a config, or of a comparison file. It reads no data; nmt check does.

    Example: nmt config check mine.yaml
    """
    import_libraries("nmt.config")
    from nmt.config.comparison import names_comparison

    name = choose_config(config_argument, config, overrides)
    if names_comparison(name):
        _check_comparison(name, overrides or ())
        return
    settings = nmt.load_config(name, overrides or ())
    if name != "base":  # which has no languages, as others extend it
        _ = settings.data.languages  # raises an error if one is missing
    show(f"{name}: no problems\n")


def _check_comparison(name: str, overrides: Sequence[str]) -> None:
    """Report the problems of a comparison file and of the configs of its cells."""
    from nmt.comparison.plan import make_trials
    from nmt.config import as_values
    from nmt.config.comparison import read_comparison

    trials = make_trials(read_comparison(name, {"settings": as_values(overrides)}))
    for trial in trials:
        _ = trial.config.data.languages  # raises an error if one is missing
    show(f"{name}: no problems in {len(trials)} cells\n")


def show_schema() -> None:
    """Print a JSON Schema (draft 2020-12) of configs, for editors.

    Example: nmt config schema > nmt.schema.json
    """
    import_libraries("nmt.config")
    import json

    from nmt.config.description import json_schema

    show(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
