"""Comparison files: the configs that `nmt compare` trains."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from nmt.config.fields import Files, Positive, Section, Seed, key
from nmt.config.messages import find_problems
from nmt.config.reading import find_config, read_yaml
from nmt.config.sections import Config
from nmt.config.tree import dotted, parse_yaml
from nmt.system.errors import ConfigError, shorten
from nmt.system.files import shipped
from nmt.system.messages import Message, Parameter

log = logging.getLogger(__name__)

FOLDER = "configs/comparisons"
Values = Annotated[tuple[Any, ...], Field(min_length=1)]


class VariantSection(Section):
    """A config that is compared with others: the common one with settings of its own."""

    name: Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[^|`\r\n\t\x00]*\w[^|`\r\n\t\x00]*$")]
    """Name in tables."""
    settings: dict[str, Any] = Field({})
    """Values by section.key."""


class ComparisonSection(Section):
    """Configs to train and evaluate in the same way: every config with every variant and all values that vary."""

    config: Annotated[Files, Field(min_length=1)]
    """Paths or names of configs."""
    settings: dict[str, Any] = Field({})
    """Values by section.key for all of them."""
    variants: tuple[VariantSection, ...] = ()
    """Configs made of each one above; none is that config itself."""
    vary: dict[str, Values] = Field({})
    """By section.key, the values to compare, in all combinations."""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = (1,)
    """Seeds that each is trained with."""
    source: tuple[str, ...] = ()
    """Corpus instead of the configs' own."""
    budget_minutes: Positive | None = key(None, unit="minutes")
    """Training time of each, without validation; null is as in the config."""


def read_comparison(name: str | None, arguments: Mapping[str, Any]) -> ComparisonSection:
    """Read a comparison file and replace some of its values.

    Args:
        name: Path, or name of a shipped file; None starts from nothing.
        arguments: Values by key; None and empty values keep the file's. `settings` and `vary` are added to the file's.

    Raises:
        ConfigError: One line per problem.
    """
    if name is None and not arguments.get("config"):
        raise ConfigError(
            "give a comparison file, the name of a shipped one, or configs with {config}", config=Parameter("config")
        )
    path = None if name is None else _find(name)
    values = {} if path is None else read_yaml(path).plain()
    if _is_config(values):
        to_vary = Message(" {vary}", vary=Parameter("vary", ["SECTION.KEY=VALUE,VALUE"]))
        raise ConfigError(
            "{path} is a config, not a comparison; to compare it, use {config}{vary}",
            path=path,
            config=Parameter("config", name),
            vary="" if arguments.get("vary") else to_vary,
        )

    given = {key: value for key, value in arguments.items() if value is not None and value not in ((), [], {})}
    for field, value in given.items():
        in_file = values.get(field)
        if isinstance(in_file, dict) and isinstance(value, Mapping):
            values[field] = {**in_file, **value}
        else:
            values[field] = value

    # A number of updates from the command line ends each training in place of the file's minutes.
    updates = given.get("settings", {}).get("train.max_updates")
    if updates is not None and "budget_minutes" in values and "budget_minutes" not in given:
        values["budget_minutes"] = None
        values["settings"] = _to_the_end(updates) | values["settings"]
        log.info(f"{path}: train.max_updates={updates} replaces its budget_minutes")

    try:
        return ComparisonSection.model_validate(values)
    except ValidationError as error:
        lines = []
        for key_path, message in find_problems(error, values, ComparisonSection):
            is_of_file = path is not None and key_path[0] not in given
            origin = f"{path}: " if is_of_file else ""
            lines.append(f"{origin}{dotted(key_path)}: {message}")
        raise ConfigError(*lines) from None


def _to_the_end(updates: Any) -> dict[str, Any]:
    """Settings with which a training makes so many updates, and does not end before them; an epoch has at least one."""
    return {"train.epochs": updates, "train.validation.patience": None}


def names_config(name: str) -> bool:
    """True if a file that is given as a comparison is a config; raises as `read_comparison` does if there is none."""
    return _is_config(read_yaml(_find(name)).plain())


def names_comparison(name: str) -> bool:
    """True if a file or a name is that of a comparison, rather than of a config.

    A file is one if it has keys of a comparison and none of a config; of a name that both have, the config is meant.
    """
    file = Path(name)
    if not file.is_file():
        if shipped(f"configs/{name}.yaml").is_file():
            return False
        if shipped(f"{FOLDER}/{name}.yaml").is_file():
            return True
        file = Path(f"{name}.yaml")
        if not file.is_file():
            return False
    try:
        keys = read_yaml(file).plain().keys()
    except ConfigError:  # the reader of configs explains a file that is no YAML
        return False
    return not keys.isdisjoint(ComparisonSection.model_fields) and keys.isdisjoint(["extends", *Config.model_fields])


def _find(name: str) -> Path:
    """The file of a comparison by its path or name; a shipped config is found too, to be recognised as one."""
    is_shipped_comparison = shipped(f"{FOLDER}/{name}.yaml").is_file()
    is_shipped_config = shipped(f"configs/{name}.yaml").is_file()
    folder = "configs" if is_shipped_config and not is_shipped_comparison else FOLDER
    return find_config(name, folder, "comparison")


def _is_config(values: Mapping[str, Any]) -> bool:
    """True if a file has keys of a config, and none of a comparison."""
    config_keys = {"extends", *Config.model_fields}
    has_config_keys = not config_keys.isdisjoint(values)
    has_comparison_keys = not ComparisonSection.model_fields.keys().isdisjoint(values)
    return has_config_keys and not has_comparison_keys


def parse_varied(settings: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Values to compare from `section.key=VALUE,VALUE,...`, each a value of YAML.

    Raises:
        ConfigError: One cannot be read.
    """
    vary = Parameter("vary")
    varied: dict[str, tuple[Any, ...]] = {}
    for setting in settings:
        before, _, after = setting.partition("=")
        path = before.strip()
        values = after.strip()
        if not path or not values:
            raise ConfigError("{given}: expected section.key=value,value,...", given=Parameter("vary", [setting]))
        if path in varied:
            raise ConfigError("{vary} {path}: is given twice; write all its values into one", vary=vary, path=path)
        try:
            parsed = parse_yaml(f"values: [{values}]", path).plain()
        except ConfigError as error:
            raise ConfigError("{vary} {error}", vary=vary, error=error) from None
        varied[path] = tuple(parsed["values"])
        if len(varied[path]) < 2:
            raise ConfigError(
                "{given}: has a single value; use {overrides} for it",
                given=Parameter("vary", [shorten(setting)]),
                overrides=Parameter("overrides"),
            )
    return varied
