"""The formats of exported models; the module of a format has its name."""

from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple

from nmt.config import Config
from nmt.config.messages import suggest
from nmt.system.errors import ConfigError
from nmt.training.findings import Finding

FORMATS = ("ctranslate2",)


class Obstacle(NamedTuple):
    """A setting that keeps a model from being exported.

    Attributes:
        key: Its dotted path.
        text: Why, and what to set instead.
    """

    key: str
    text: str


def find_obstacles(config: Config, export_format: str) -> Iterator[Obstacle]:
    """Find what keeps the model of a config from being exported, by `find_obstacles` of the format's module.

    Raises:
        ConfigError: There is no such format.
    """
    if export_format not in FORMATS:
        raise ConfigError(
            f"{export_format}: no such export format; known: {', '.join(FORMATS)}{suggest(export_format, FORMATS)}"
        )
    obstacles: Iterator[Obstacle] = import_module(f"nmt.exporting.{export_format}").find_obstacles(config)
    return obstacles


def check_export(config: Config, export_format: str) -> Iterator[Finding]:
    """Say what keeps the model of a config from being exported: a problem for each obstacle, or that there is none.

    Raises:
        ConfigError: There is no such format.
    """
    problems = [Finding(key, False, text) for key, text in find_obstacles(config, export_format)]
    yield from problems or [Finding(f"export to {export_format}", True, "no setting keeps the model from it")]
