"""Writing a model as another program reads it."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Collection
from pathlib import Path

from nmt.config.outputs import check_files, check_output
from nmt.models.storage import EXPORT_MARKER
from nmt.system.errors import ConfigError, DataError, as_nmt_errors
from nmt.system.files import (
    AnyPath,
    AnyPaths,
    as_path,
    as_paths,
    atomic_file,
    read_json,
    set_default_permissions,
    write_json,
)
from nmt.system.messages import Parameter
from nmt.system.replacement import atomic_directory, locked
from nmt.system.surroundings import plain_torch

log = logging.getLogger(__name__)

DISTIL = (
    "a config for one: guide to exporting, Argos Translate and LibreTranslate; this model's translations can teach it: "
    "guide to configs, One model in place of several"
)


def _known(to: str) -> str:
    from nmt.exporting.formats import find_format

    find_format(to)
    return to


@as_nmt_errors()
@plain_torch()
def export(
    model: AnyPath | None = None,
    *,
    to: str,
    output: AnyPath,
    against: AnyPaths = (),
    quantization: str | None = None,
    keep: AnyPath | None = None,
    glossary: AnyPath | None = None,
    overwrite: bool = False,
    allowed_classes: Collection[str] = (),
) -> Path:
    """Write a model as another program reads it.

    Example: nmt export --model runs/mine --to ctranslate2 --output mine-ctranslate2

    Args:
        model: Run or model directory; None is the newest finished run under `runs`.
        against: Another model of the same languages, shown beside it; for html.
        to: Format: ctranslate2, onnx, argos, hub or html.
        output: Folder, or file for argos and html, to write.
        quantization: Number format of weights; None is the format's own choice.
        keep: Names that stay as they are, one on each line; for html.
        glossary: Terms and the translations that they must have: term, tab, translation on each line; for html.
        overwrite: Replace an earlier export.
        allowed_classes: Dotted paths of classes that the model's config may use; their code runs.

    Returns:
        The written.

    Raises:
        ConfigError: There is no such format or number format, a package is missing, or the format cannot hold the
            model.
        NmtError: The model cannot be used, or the output contains something else.
    """
    from nmt.exporting.formats import find_format
    from nmt.inspection.explore_command import check_directions
    from nmt.models.lookup import find_model
    from nmt.models.storage import load_model
    from nmt.translation.protection import read_protection

    form = find_format(to)
    path = Path(output)
    sources = [find_model(as_path(model)), *map(find_model, as_paths(against))]
    quantization = form.quantizations[0] if quantization is None else quantization
    if quantization not in form.quantizations:
        raise ConfigError(
            "{quantization}: {to} has {known}",
            quantization=Parameter("quantization", quantization),
            to=to,
            known=", ".join(form.quantizations),
        )
    if missing := [name for name in form.packages if importlib.util.find_spec(name) is None]:
        raise ConfigError(f"{to} needs {', '.join(missing)}: pip install {' '.join(missing)}")
    if against and not form.several:
        raise ConfigError("{against}: {to} holds one model; leave it out", against=Parameter("against"), to=to)
    files = {"keep": as_path(keep), "glossary": as_path(glossary)}
    for name, file in files.items():
        if file is not None and not form.protects:
            raise ConfigError("{file}: {to} has no protected text; leave it out", file=Parameter(name, file), to=to)
    options = {"protection": read_protection(**files)} if form.protects else {}
    if path.suffix != (form.suffix or path.suffix):
        raise DataError(
            "{output}: give a file that ends in {suffix}", output=Parameter("output", path), suffix=form.suffix
        )
    with locked(path):
        if form.suffix:
            _check_file(path, overwrite)
        else:
            _check_folder(path, overwrite)
        models = [load_model(source, allowed_classes=allowed_classes) for source in sources]
        check_directions(models)
        obstacles = [(saved.path, obstacle) for saved in models for obstacle in form.find_obstacles(saved.config)]
        if obstacles:
            problems = [f"{source}: {obstacle.key}: {obstacle.text}" for source, obstacle in obstacles]
            _, first = obstacles[0]
            if first.key.endswith(".kind"):  # another kind of model is needed
                problems.append(DISTIL)
            raise ConfigError(*problems)
        writing = atomic_file(path) if form.suffix else atomic_directory(path)
        with writing as temporary:
            remarks = list(form.write(models[0], temporary, quantization, *models[1:], **options))
            if not form.suffix:
                _list_files(to, temporary)
    for remark in remarks:
        log.info(f"note: {remark}")
    log.info(f"{to}: {path}")
    return path


def _check_file(path: Path, overwrite: bool) -> None:
    check_files({"output": path}, (), overwrite=overwrite)


def _check_folder(path: Path, overwrite: bool) -> None:
    check_output(path, EXPORT_MARKER, overwrite=overwrite)
    if path.exists() and any(path.iterdir()):
        ours = {EXPORT_MARKER, *read_json(path / EXPORT_MARKER)["files"]}
        others = sorted({str(file.relative_to(path)) for file in path.rglob("*") if not file.is_dir()} - ours)
        if others:
            raise DataError(
                "{path}: contains {other}, which is not part of an export; choose another {output}",
                path=path,
                other=others[0],
                output=Parameter("output"),
            )


def _list_files(to: str, folder: Path) -> None:
    """Write the list of the files of an exported folder, and give the files the usual permissions."""
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    write_json(folder / EXPORT_MARKER, {"format": to, "files": files})
    for file in files:
        set_default_permissions(folder / file)
