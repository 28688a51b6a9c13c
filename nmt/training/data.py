"""The data directory of a config: making it, and finding it for a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from nmt.system import options
from nmt.system.errors import ConfigError, DataError, as_nmt_errors
from nmt.system.files import AnyPath, as_names

if TYPE_CHECKING:
    from nmt.config import Config, Overrides


@dataclass(frozen=True)
class PreparedData:
    """A data directory written by `preprocess`.

    Attributes:
        path: The folder.
        report: Content of `report.json`: pairs, overlap, vocabularies, what cleaning did.
    """

    path: Path
    report: Mapping[str, Any]


@as_nmt_errors()
def preprocess(
    config: Annotated[str | Path | Config, options.CONFIG] = "tatoeba",
    *,
    source: options.Sources = (),
    output: options.OutputFolder = None,
    drop_overlap: options.Flag = False,
    overrides: Annotated[Overrides, options.SETTINGS] = (),
    overwrite: options.Overwrite = False,
) -> PreparedData:
    """Clean, split, tokenise and encode a corpus.

    Without arguments, English-German Tatoeba is downloaded into data/raw.

    Example: nmt preprocess --config tatoeba_small --source deu-eng.zip

    Args:
        config: Name of a shipped config, path of a YAML file, or a config.
        source: Corpus to use instead of the config's: one tab-separated file (.txt, .zip, .gz, .xz, .bz2) or URL.
            Repeat it for 2, 4 or 6 parallel files (source and target of train, valid, test), or for the 3 files of a
            Tatoeba export (source sentences, target sentences, links).
        output: Data directory to write; None is data/prepared/NAME.
        drop_overlap: With ready-made splits, drop training pairs that overlap valid or test.
        overrides: Values in place of the config's: `{"train.epochs": 3}` or `["train.epochs=3"]`.
        overwrite: Replace an earlier data directory.

    Raises:
        ConfigError: The config is wrong, or names no source.
        DataError: The corpus or the output folder cannot be used.
        OutOfMemory: Memory ran out.
    """
    from nmt.config import as_settings, overridden
    from nmt.corpus.licence import with_sources
    from nmt.corpus.prepare import write_data
    from nmt.models.configs import load_config

    settings = load_config(config, [*as_settings(overrides), *(["data.drop_overlap=true"] if drop_overlap else [])])
    sources = as_names(source)
    if sources:
        stated = "data.licence" in overridden(overrides)
        settings = with_sources(settings, sources, keep_licence=stated)
    directory = settings.data_directory if output is None else Path(output)
    return PreparedData(directory, write_data(settings, directory, overwrite=overwrite).as_json())


def find_training_data(config: str | Path | Config, overrides: Overrides, data: AnyPath | None) -> tuple[Config, Path]:
    """The config, and the data directory to use.

    Raises:
        ConfigError: The config is wrong, or overrides do not match the data.
        DataError: The data does not exist.
    """
    from nmt.config import overridden, read_config
    from nmt.corpus.dataset import CONFIG, MARKER
    from nmt.models.configs import load_config

    settings = load_config(config, overrides)
    directory = settings.data_directory if data is None else Path(data)
    if not (directory / MARKER).is_file():
        what = "is not a data directory" if directory.exists() else "does not exist"
        output = None if directory == settings.data_directory else directory
        command = _command_to_prepare(config, overrides, settings, output)
        raise DataError(f"{directory}: {what} (no {MARKER}); create it with: {command}")
    asked = [key for key in overridden(overrides) if key.startswith(("data.", "text.")) and key != "data.directory"]
    made = read_config(directory / CONFIG) if asked else settings
    values = {key: [reduce(getattr, key.split("."), each) for each in (made, settings)] for key in asked}
    other = [f"{key} ({there!r} there, {here!r} here)" for key, (there, here) in values.items() if there != here]
    if other:
        command = _command_to_prepare(config, overrides, settings, Path("DIR"))
        raise ConfigError(
            f"{directory}: was preprocessed with other settings: {', '.join(other)}; "
            f"preprocess again with: {command}, and use --data DIR"
        )
    return settings, directory


def _command_to_prepare(
    config: str | Path | Config, overrides: Overrides, settings: Config, output: Path | None
) -> str:
    """The command that creates the data of a config."""
    from nmt.config import as_settings

    if not isinstance(config, str | Path):
        return "nmt.preprocess, with the same config"
    words = ["nmt", "preprocess", "--config", str(config)]
    for setting in as_settings(overrides):
        if re.match(r"\s*(name|data|text)\b", setting):
            words += ["--set", setting]
    if not settings.data.source:
        words += ["--source", "FILE"]
    return shlex.join([*words, *(["--output", str(output)] if output else [])])
