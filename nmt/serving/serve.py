"""Serving models over HTTP."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nmt.system.errors import ConfigError, as_nmt_errors
from nmt.system.files import AnyPath, AnyPaths, as_path, as_paths
from nmt.system.limits import MIB
from nmt.system.surroundings import plain_torch
from nmt.translation.input import read_text
from nmt.translation.loading import LoadSettings, open_translator

if TYPE_CHECKING:
    from nmt.serving.directions import Directions, ServedDirection
    from nmt.text.direction import Direction
    from nmt.translation.protection import Protection

LIBRARIES = ("starlette", "uvicorn", "python_multipart", "lxml", "prometheus_client", "py3langid")


@as_nmt_errors()
@plain_torch()
def serve(
    model: AnyPaths = (),
    *,
    host: str = "127.0.0.1",
    port: int = 5000,
    api_keys: Collection[str] = (),
    key_file: AnyPath | None = None,
    max_characters: int = 100_000,
    max_sentences: int = 2000,
    max_queue: int = 5000,
    requests_per_minute: int | None = None,
    max_file_bytes: int = 10 * MIB,
    allowed_hosts: Collection[str] = (),
    allowed_origins: Collection[str] = (),
    trusted_proxies: Collection[str] = (),
    keep: AnyPath | None = None,
    glossaries: Collection[str] = (),
    log_format: Literal["json", "text", "none"] = "json",
    log_probes: bool = True,
    beam_size: int | None = None,
    batch_size: int | None = None,
    device: str = "auto",
    allowed_classes: Collection[str] = (),
) -> None:
    """Serve models over HTTP: LibreTranslate's API, and a page.

    Ctrl-C and SIGTERM stop it when the requests at work are answered, and so does SIGHUP from its terminal. It needs
    more packages:
    pip install starlette uvicorn python-multipart lxml prometheus-client py3langid

    Example: nmt serve --model runs/en-de --model runs/de-en --port 5000

    Args:
        model: Run or model directories; those of the same languages translate together. None is the newest finished
            run under `runs`.
        host: Address to listen on; 0.0.0.0 is all of this machine's.
        port: Port; 0 takes any that is free.
        device: auto, cpu, cuda, cuda:N or mps.
        beam_size: Hypotheses kept at each step. None, here and below, is the value in each model's config.
        batch_size: Sentences translated at once.
        api_keys: Key that clients must give.
        key_file: File with such keys, one per line, hidden from other users; a line that begins with # is a comment.
        max_characters: Characters of a request.
        max_sentences: Sentences of a request.
        max_queue: Sentences that may wait for a model.
        requests_per_minute: Requests of a client or a key, at once or evenly: up to twice as many in its first minute.
            None is no limit.
        max_file_bytes: Bytes of a file to translate.
        allowed_hosts: Name that the server is reached by.
        allowed_origins: Web pages that may use the server, or * for all.
        trusted_proxies: Reverse proxy whose X-Forwarded-For is trusted.
        keep: File with names that stay as they are, one on each line.
        glossaries: Files with terms and the translations that they must have, a term, a tab and its translation on each
            line: `FILE` for all directions, `en-de=FILE` for one, or `en-de/NAME=FILE` for requests that name it.
        log_format: Log of requests, one line each, on standard error.
        log_probes: Log answered requests of /health and /metrics too.
        allowed_classes: Dotted paths of classes that the models' configs may name; their code runs.

    Raises:
        NmtError: A model, the device, the port or a limit cannot be used, or a needed package is not installed.

    Note:
        Only a main thread handles signals.
    """
    if missing := [name.replace("_", "-") for name in LIBRARIES if importlib.util.find_spec(name) is None]:
        raise ConfigError(f"nmt serve: {', '.join(missing)} not installed: pip install {' '.join(missing)}")
    from nmt.serving.access import Keys, Pages
    from nmt.serving.request_limits import Limits
    from nmt.serving.server import Server, bind
    from nmt.serving.service import Service
    from nmt.system.signals import without_hangup

    limits = Limits(max_characters, max_sentences, max_queue, requests_per_minute, max_file_bytes)
    keys = Keys([*api_keys, *([] if key_file is None else read_keys(Path(key_file)))])
    pages = Pages(host, allowed_hosts, allowed_origins)
    search = {"beam_size": beam_size, "batch_size": batch_size}
    settings = LoadSettings(device, allowed_classes, search, split_sentences=True, keep=as_path(keep))
    with without_hangup(), bind(host, port) as listener:
        directions = open_directions(as_paths(model) or [None], settings, read_glossaries(glossaries))
        service = Service(directions, keys, limits)
        Server(listener, host, service, pages, trusted_proxies, log_format, log_probes).run()


def read_keys(path: Path) -> list[str]:
    """Read API keys from a file, one per line; empty lines and those that begin with # are skipped.

    Raises:
        NmtError: It cannot be read, or has no keys.
    """
    keys = [line for line in map(str.strip, read_text(path)) if line and not line.startswith("#")]
    if not keys:
        raise ConfigError(f"{path}: has no API key; write one per line")
    return keys


def read_glossaries(glossaries: Collection[str]) -> dict[str, Path]:
    """Files of glossaries by their name; an empty name is all directions.

    The name is that of a direction, such as `en-de`, or for a glossary that requests name `en-de/legal`.

    Raises:
        ConfigError: Two have the same name.
    """
    files: dict[str, Path] = {}
    for glossary in glossaries:
        name, separator, file = glossary.rpartition("=")
        if separator and not (name and file and all(name.split("/"))):
            raise ConfigError(f"{glossary}: is not a glossary of a direction; write en-de=FILE.tsv")
        if name in files:
            raise ConfigError(f"{glossary}: a second glossary for {name or 'all directions'}; join them in one file")
        files[name] = Path(file)
    return files


def open_directions(
    models: Sequence[Path | None], settings: LoadSettings, glossaries: Mapping[str, Path] | None = None
) -> Directions:
    """Read models; those of the same languages translate together, as with `nmt translate`.

    Args:
        models: As for `nmt.models.lookup.find_model`.
        settings: How they are loaded and used.
        glossaries: Result of `read_glossaries`.

    Raises:
        NmtError: A model cannot be read, a glossary is for a direction that no model has, or two of the same languages
            have different vocabularies.
    """
    from nmt.serving.directions import Directions
    from nmt.translation.protection import read_protection

    unused = dict(glossaries or {})
    for_all = unused.pop("", None)
    directions = []
    for direction, paths in _group_by_direction(models, settings).items():
        glossary = unused.pop(str(direction), for_all)
        prefix = f"{direction}/"
        named = {name: unused.pop(name) for name in list(unused) if name.startswith(prefix)}
        protections = {name.removeprefix(prefix): read_protection(settings.keep, path) for name, path in named.items()}
        settings_of_direction = replace(settings, glossary=glossary)
        directions.append(_open_direction(direction, paths, settings_of_direction, protections))
    if unused:
        names = ", ".join(str(served) for served in directions)
        raise ConfigError(f"{next(iter(unused))}: a glossary for a direction that is not served; served are {names}")
    return Directions(directions)


def _group_by_direction(
    models: Sequence[Path | None], settings: LoadSettings
) -> dict[Direction, list[tuple[Path, Path]]]:
    """Models by their direction, in order: the path that was given for each, and that of its directory."""
    from nmt.config import read_config
    from nmt.models.lookup import find_model
    from nmt.models.storage import CONFIG, check_model
    from nmt.runtimes.folder import find_runtime
    from nmt.text.direction import Direction

    groups: dict[object, tuple[Direction, list[tuple[Path, Path]]]] = {}
    for model in models:
        path = find_model(model)
        folder = path if find_runtime(path) else check_model(path)
        config = read_config(folder / CONFIG, settings.allowed_classes)
        direction = Direction.of(config.data)
        _, paths = groups.setdefault(direction.key, (direction, []))
        paths.append((model or path, path))
    return dict(groups.values())


def _open_direction(
    direction: Direction,
    paths: Sequence[tuple[Path, Path]],
    settings: LoadSettings,
    glossaries: Mapping[str, Protection],
) -> ServedDirection:
    """The models of a direction, which translate together and can be asked one by one.

    Args:
        direction: Their languages.
        paths: The path that was given for each, and that of its directory.
        settings: How they are loaded and used.
        glossaries: Those that a request may name.
    """
    from nmt.inspection.explorer_data import name_models
    from nmt.serving.directions import ServedDirection, ServedModel
    from nmt.system.errors import printable
    from nmt.translation.translator import Translator

    saved, translator = open_translator([path for _, path in paths], settings)
    translator.repairs = True
    if len(saved) == 1:
        singles = [translator]
    else:  # each has prepared weights of its own
        models = translator.searcher.models
        singles = [Translator(model, translator.processor, translator.options, frozen=True) for model in models]
    models_alone = {}
    for name, (member, single) in name_models(list(zip(saved, singles, strict=True))).items():
        models_alone[name] = (member.config, single)

    served = []
    for (given, _), member in zip(paths, saved, strict=True):
        update = member.metadata.get("update")
        known_update = update if type(update) is int else None
        model = ServedModel(printable(str(direction)), printable(str(given)), known_update, member.identity)
        served.append(model)
    return ServedDirection(direction, translator, models_alone, tuple(served), glossaries)


def exit_if_busy() -> None:
    """End the process at once if a model still computes: torch aborts one that ends in the usual way meanwhile."""
    from nmt.serving.batches import THREAD

    if any(thread.name.startswith(THREAD) for thread in threading.enumerate()):
        sys.stderr.flush()
        os._exit(0)
