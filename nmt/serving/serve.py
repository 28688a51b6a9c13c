"""Serving models over HTTP."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.system.errors import ConfigError
from nmt.system.limits import MAX_KEYS, MIB
from nmt.translation.loading import open_translator

if TYPE_CHECKING:
    from nmt.serving.directions import Directions

LIBRARIES = ("starlette", "uvicorn", "python_multipart", "lxml")


def require_libraries() -> None:
    """Check that the libraries of the server are installed.

    Raises:
        ConfigError: Some are missing.
    """
    missing = [name.replace("_", "-") for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"nmt serve: {', '.join(missing)} not installed: pip install {' '.join(missing)}")


def read_keys(path: Path) -> list[str]:
    """Read API keys from a file, one per line; empty lines are skipped.

    Raises:
        ConfigError: It cannot be read, is too large, or has no keys.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_KEYS + 1)
        if len(content) > MAX_KEYS:
            raise ConfigError(f"{path}: has more than {MAX_KEYS // MIB} MiB; write one API key per line")
        keys = list(filter(None, map(str.strip, content.decode("utf-8-sig").splitlines())))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text; write one API key per line") from None
    if not keys:
        raise ConfigError(f"{path}: has no API key; write one per line")
    return keys


def open_directions(
    models: Sequence[Path | None], device: str, options: Mapping[str, Any], allowed_classes: Collection[str]
) -> Directions:
    """Read models, each with the languages of its config.

    Args:
        models: As for `nmt.models.runs.find_model`.
        device: As in a config.
        options: Search options that override those of a model's config; None keeps the config's.
        allowed_classes: As for `nmt.models.storage.load_model`.

    Raises:
        NmtError: A model cannot be read, or two translate the same direction.
    """
    from nmt.serving.directions import Direction, Directions

    found = []
    for path in models:
        [saved], translator = open_translator(
            [path] if path else [], device, options, allowed_classes, split_sentences=True
        )
        found.append(Direction(*saved.config.data.languages, translator, saved.path, saved.config))
    return Directions(found)


def exit_if_busy() -> None:
    """End the process at once if a model still computes: torch aborts one that ends in the usual way meanwhile."""
    from nmt.serving.batches import THREAD

    if any(thread.name.startswith(THREAD) for thread in threading.enumerate()):
        sys.stderr.flush()
        os._exit(0)
