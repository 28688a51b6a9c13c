"""Starting from a trained model: the settings that a config takes over from it, its parent."""

from pathlib import Path

from nmt.config.fields import differing_keys
from nmt.config.model_sections import DROPOUT
from nmt.config.sections import Config, ParentSection
from nmt.system.errors import ConfigError

CONFIG = "config.yaml"
WEIGHTS = "model.safetensors"
MODEL_KEYS = ("model.",)
"""Beginnings of the keys that decide which weights there are."""
_REPAIRS = ("unicode", "control_characters", "html_entities", "quotes", "dashes")
TEXT_KEYS = ("text.", *(f"data.cleaning.{name}" for name in _REPAIRS))
"""Beginnings of the keys that decide how text is read and written."""
_TRAINING = ("initialization", "attention.dropout", "attention.past.loss_weight", *DROPOUT)
_OTHER_KEYS = ("text.max_length", *(f"model.{name}" for name in _TRAINING))
"""Beginnings of keys among them that may differ: those of a model are only for training."""


def is_inherited(key: str, of: tuple[str, ...]) -> bool:
    """True if a key, which is one of `MODEL_KEYS` or `TEXT_KEYS`, must have the value that it has for the parent."""
    return key.startswith(of) and not key.startswith(_OTHER_KEYS)


def find_parent(run: str) -> Path:
    """The folder with the config of a run, model or data directory, or of the run of this name under `runs`.

    Raises:
        ConfigError: There is none.
    """
    path = Path(run)
    folder = next((folder for folder in (path, path / "best", "runs" / path) if (folder / CONFIG).is_file()), None)
    if folder is None:
        problem = "is not a run, model or data directory" if path.exists() else "does not exist"
        raise ConfigError(f"parent: {path}: {problem}")
    return folder


def find_weights(run: str) -> Path | None:
    """The weights of a parent; None if it has none, as a data directory has not, or is gone."""
    try:
        folder = find_parent(run)
    except ConfigError:
        return None
    paths = (folder / "best" / WEIGHTS, folder / WEIGHTS)
    return next(filter(Path.is_file, paths), None)


def check_parent(config: Config, parent: Config, of: tuple[str, ...]) -> None:
    """Refuse a config with other values than its parent.

    Args:
        config: The config.
        parent: That of the model that it starts from.
        of: `MODEL_KEYS` or `TEXT_KEYS`.

    Raises:
        ConfigError: They differ.
    """
    if differing := [key for key in differing_keys(parent, config) if is_inherited(key, of)]:
        problem = f"{config.parent.run} has other settings: {', '.join(differing)}"
        raise ConfigError(f"parent: {problem}; set the same, or leave them out")


def settings_of_recorded(recorded: ParentSection, wanted: ParentSection) -> dict[str, str]:
    """The settings with which a config has the parent that its data was prepared for.

    Args:
        recorded: Parent in the config of the data.
        wanted: That of the config.

    Returns:
        Values by key; empty if the config has them, or if the data has no parent or one whose weights are gone.
    """
    if recorded.run is None or find_weights(recorded.run) is None:
        return {}
    settings = {}
    if wanted.run is None or Path(wanted.run) != Path(recorded.run):
        settings["parent.run"] = recorded.run
    if wanted.pieces != recorded.pieces:
        settings["parent.pieces"] = recorded.pieces
    return settings
