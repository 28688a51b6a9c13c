"""From YAML files and `--set` to a checked `Config`, and back to YAML."""

import functools
import json
import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nmt.config.amount_of_text import automatic_keys
from nmt.config.attention_checks import attention_conflicts
from nmt.config.attention_scores import names_class
from nmt.config.combinations import conflicts, ineffective
from nmt.config.decode_sections import DecodeSection
from nmt.config.fields import AUTO, Section, find_section, kinds_of
from nmt.config.messages import Problem, find_problems, suggest
from nmt.config.parent import CONFIG, MODEL_KEYS, TEXT_KEYS, find_parent, is_inherited
from nmt.config.sections import Config
from nmt.config.train_sections import TrainSection
from nmt.config.tree import NOT_UNICODE, OVERRIDES, SURROGATE, KeyPath, Tree, as_yaml, dotted, in_one_line, parse_yaml
from nmt.system.errors import ConfigError, DataError, shorten
from nmt.system.files import read_bytes, shipped
from nmt.system.limits import MAX_CONFIG
from nmt.system.messages import Message, Parameter

log = logging.getLogger(__name__)

FORMAT = 3
"""Number of the form in which configs are stored: 3 has `parent`; 2 had `text.reuse` and `train.init_from` in its
place; 1 (no number) also had the keys of all kinds of a section instead of those of its own."""
_LATER = ("consistency", "graphs")
"""Keys of the train section that stored configs without a format number lack."""
_GONE = ("text.reuse", "train.init_from", "train.r_drop")
"""Keys of stored configs that are read no more."""
_DATA = (".csv", ".tsv", ".txt", ".tmx", ".gz", ".bz2", ".xz", ".zip")
_SHOWN_PROBLEMS = 50
_OPTION = "--set"
"""The origin of overrides in `nmt config show`, which only the command line has."""
_WIDEST = 60
"""Columns; comments are aligned, except that of a longer line, so that the others stay close to their values."""

Overrides = Mapping[str, Any] | Sequence[str]
"""Values that replace a config's: `section.key=value`, the value as YAML, or a mapping from `section.key`."""


def find_config(name: str, folder: str = "configs", kind: str = "config") -> Path:
    """Find a YAML file by its path, by the name of a shipped one, or by its path without .yaml, in this order.

    Args:
        name: Path or name.
        folder: Where shipped ones are.
        kind: Their kind, for the error.

    Raises:
        ConfigError: There is none.
    """
    path = Path(name)
    by_name = shipped(f"{folder}/{name}.yaml")
    beside = Path(f"{name}.yaml")
    if path.is_file():
        return path
    if re.fullmatch(r"[\w-]+", name) and by_name.is_file():
        if beside.is_file() and not beside.samefile(by_name):
            log.warning(f"{name}: the shipped {kind}, not the file {beside}; to use that, give its whole name")
        return by_name
    if beside.is_file():
        return beside
    known = sorted(file.stem for file in shipped(folder).glob("*.yaml"))
    near = suggest(name, [*map(str, path.parent.glob("*.yaml")), *known])
    raise ConfigError(f"{name}: no such {kind} file; shipped {kind}s: {', '.join(known)}{near}")


def read_yaml(path: Path) -> Tree:
    """The keys and values of a file.

    Raises:
        ConfigError: It cannot be read, or is not valid.
    """
    # Shipped configs have absolute paths, which are shown from the working folder if they are in it.
    within = path.is_absolute() and path.is_relative_to(Path.cwd())
    try:
        text = read_bytes(path, MAX_CONFIG).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except DataError as error:
        raise ConfigError(*error.problems) from None
    return parse_yaml(text, str(path.relative_to(Path.cwd()) if within else path))


def _read_config_tree(path: Path, children: tuple[Path, ...] = ()) -> Tree:
    """A config file over those that it extends."""
    resolved = path.resolve()
    if resolved in children:
        raise ConfigError(f"{path}: extends itself through {' -> '.join(p.name for p in (*children, resolved))}")
    tree = read_yaml(path)
    parent = tree.value.pop("extends", Tree(None))
    tree = _in_current_form(tree, stored=_is_complete(tree))  # a stored config that is used again
    tree.value.setdefault("name", Tree(path.stem, tree.where.rpartition(":")[0] or str(path)))
    if parent.value is None:
        return tree
    if not isinstance(parent.value, str):
        value = shorten(repr(parent.plain()))
        raise ConfigError(f"{parent.where}: extends: expected one path or name, found {value}")
    relative = path.parent / parent.value
    try:
        file = relative if relative.is_file() else find_config(parent.value)
    except ConfigError as error:
        raise ConfigError("{where}: extends: {error}", where=parent.where, error=error) from None
    return _merge(_read_config_tree(file, (*children, resolved)), tree, Config)


def _is_complete(tree: Tree) -> bool:
    """True if values have every key of the train section, as those of a config that a program wrote."""
    return all(tree.find(("train", name)) for name in TrainSection.model_fields if name not in _LATER)


def _in_current_form(tree: Tree, *, stored: bool) -> Tree:
    """Values without the number of their form and, if they were stored in an older one, with the keys of today.

    Raises:
        ConfigError: The form is newer than this version.
    """
    number = tree.value.pop("format", None)
    if number is None and not stored:
        return _in_full(tree)
    if number is not None and number.value not in (2, FORMAT):
        value = shorten(repr(number.plain()))
        raise ConfigError(
            f"{number.where}: format: this version reads {FORMAT}, found {value}; use the nmt that wrote it"
        )
    if number is None:
        tree = _without_other_kinds(tree, Config)
    run = tree.find(("train", "init_from"))
    tree = _in_full(tree.part(lambda path, _: path not in _GONE))
    parent = Tree({"run": run}) if run else tree.value["parent"]
    # What it decided is in the stored config, and it may be gone by now: it is no longer written anywhere.
    tree = Tree({**tree.value, "parent": Tree.of(parent.plain())}, tree.where)
    train = tree.value.get("train")
    if train is not None and isinstance(train.value, dict):  # updates were not recorded before there was a key for it
        train.value.setdefault("graphs", Tree(False))
    return tree


def _in_full(tree: Tree) -> Tree:
    """Values with a section in place of `parent: RUN`."""
    parent = tree.value.get("parent", Tree({}))
    section = parent if isinstance(parent.value, dict) else Tree({"run": parent}, parent.where)
    return Tree({**tree.value, "parent": section}, tree.where)


def _with_parent(tree: Tree) -> Tree:
    """Values with those of the parent, if one was asked for: they win over shipped configs and `auto`, not over users.

    Raises:
        ConfigError: There is no such parent, or its config is wrong.
    """
    run, pieces = (tree.find(("parent", key)) for key in ("run", "pieces"))
    if run is None or not run.where or not isinstance(run.value, str):
        return tree
    parent = read_config(path := find_parent(run.value) / CONFIG)
    keys = MODEL_KEYS if pieces and pieces.value == "own" else MODEL_KEYS + TEXT_KEYS
    # A class is trusted if the user's own config names it.
    options = ("model.attention.score", "model.attention.options") if names_class(parent.model.attention.score) else ()
    values = Tree.of(parent.model_dump(mode="json"), str(path))
    taken = values.part(lambda key, _: is_inherited(key, keys) and not key.startswith(options))
    given = tree.part(lambda _, value: value.value != AUTO and _is_own(value.where))
    return _merge(_merge(tree, taken, Config), given, Config)


def _is_own(where: str) -> bool:
    """True if the user wrote a value there: in a file that does not ship with the project, or in `overrides`."""
    file = Path(where.rpartition(":")[0])
    return where == OVERRIDES or (bool(where) and not file.resolve().is_relative_to(shipped("configs").resolve()))


def _asks_for_test_size(tree: Tree) -> bool:
    """True if the user wrote the size of the test split; a program writes that of a complete config, asked or not."""
    size = tree.find(("data", "split", "test_size"))
    if size is None or not _is_own(size.where):
        return False
    return size.where == OVERRIDES or not _is_complete(tree)


def _without_other_kinds(tree: Tree, section: type[Section]) -> Tree:
    """Values without the keys that belong to other kinds of their sections: those never had an effect."""
    parts: dict[str, Tree] = {}
    for key, part in tree.value.items():
        field = section.model_fields.get(key)
        kind = find_section(field, part.plain()) if field else None
        if field and kind and isinstance(part.value, dict):
            others = {name for branch in kinds_of(field)[1] for name in branch.model_fields} - kind.model_fields.keys()
            used = {name: value for name, value in part.value.items() if name not in others}
            part = _without_other_kinds(Tree(used, part.where), kind)
        parts[key] = part
    return Tree(parts, tree.where)


def _merge(below: Tree, above: Tree, section: type[Section] | None = None) -> Tree:
    """One tree over another.

    Args:
        below: Values that are replaced or added to.
        above: Values that win.
        section: The class of their section: if a section within it changes its kind, the keys that the old kind has
            and the new one lacks are dropped below; {} in place of keys of the user's own drops all of them. None
            keeps all.
    """
    parts = dict(below.value)
    for key, part in above.value.items():
        old = parts.get(key)
        if old and isinstance(old.value, dict) and isinstance(part.value, dict):
            field = section.model_fields.get(key) if section else None
            kind = find_section(field, {**old.plain(), **part.plain()}) if field else None
            if field and kind is None and not part.value:  # {} in place of keys of the user's own: none of them
                parts[key] = part
                continue
            before = find_section(field, old.plain()) if field else None
            dropped = before.model_fields.keys() - kind.model_fields.keys() if before and kind else set()
            old = Tree({name: value for name, value in old.value.items() if name not in dropped}, old.where)
            part = _merge(old, part, kind)
        parts[key] = part
    return Tree(parts, above.where or below.where)


def _take_allowed(values: dict[str, Any]) -> tuple[Config, list[Problem]]:
    """The config of the values that are allowed, with defaults in place of the others, and the faults of those."""
    try:
        return Config.model_validate(values), []
    except ValidationError as error:
        problems = list(find_problems(error, values))
        wrong = [_find_place(values, item["loc"]) for item in error.errors()]
    for section, key in wrong:
        section.pop(key, None)  # there may be several errors in one place
    return _take_allowed(values)[0], problems


def _find_place(values: Any, path: Sequence[str | int]) -> tuple[dict[str | int, Any], str | int]:
    """The section and the key of the last value on a path that is there: of a missing value, its section."""
    for name in path:
        if not isinstance(values, dict) or name not in values:
            break
        place = values, name
        values = values[name]
    return place


def _validate(tree: Tree, *, new: bool, allowed_classes: Collection[str] | None = ()) -> Config:
    """Check values, and the combinations in sections whose values are all allowed.

    Args:
        tree: The values.
        new: True if this config is for new work rather than that of saved data or a saved model: it is then also
            checked for settings without effect.
        allowed_classes: Dotted paths of classes that may be imported to check their options; None allows all.

    Raises:
        ConfigError: One line per problem.
    """
    config, problems = _take_allowed(tree.plain())
    wrong = [".".join(path) for path, _ in problems]
    values = chain(
        conflicts(config, wrong),
        () if any(path.startswith("model") for path in wrong) else attention_conflicts(config, allowed_classes),
        ineffective(config, asks_for_test_size=_asks_for_test_size(tree)) if new and not wrong else (),
    )
    problems += [Problem(tuple(key.split(".")), message) for key, message in values]
    if not problems:
        return config
    lines: dict[str, Message] = {}
    for path, message in problems:
        where = tree.written(path)
        problem = Message("{path}: {message}", path=dotted(path), message=message)
        if where == OVERRIDES:
            line = Message("{where} {problem}", where=Parameter(OVERRIDES), problem=problem)
        else:
            line = Message("{where}{problem}", where=f"{where}: " if where else "", problem=problem)
        lines[str(line)] = line
    more_lines = [f"and {len(lines) - _SHOWN_PROBLEMS:,} more problems"] if len(lines) > _SHOWN_PROBLEMS else []
    raise ConfigError(*list(lines.values())[:_SHOWN_PROBLEMS], *more_lines)


def as_settings(overrides: Overrides) -> list[str]:
    """Overrides as `section.key=value`, the value as YAML.

    Raises:
        ConfigError: A value cannot be written as YAML.
    """
    if not isinstance(overrides, Mapping):
        return [overrides] if isinstance(overrides, str) else list(overrides)
    settings = []
    for key, value in overrides.items():
        try:
            settings.append(f"{key}={in_one_line(value)}")
        except ConfigError as error:
            raise ConfigError("{key}: {error}", key=key, error=error) from None
    return settings


def _parse_settings(overrides: Overrides) -> list[tuple[KeyPath, Tree]]:
    """The path and value of every override.

    Raises:
        ConfigError: Some cannot be read, one line for every one.
    """
    read: list[tuple[KeyPath, Tree]] = []
    problems: list[Message] = []
    for setting in as_settings(overrides):
        path, separator, value = setting.partition("=")
        keys = tuple(path.strip().split("."))
        try:
            if not separator or not all(keys):
                problem = f"{setting}: expected section.key=value"
                raise ConfigError("{where} {problem}", where=Parameter(OVERRIDES), problem=problem)
            if SURROGATE.search(path):
                problem = f"{path}: {NOT_UNICODE}"
                raise ConfigError("{where} {problem}", where=Parameter(OVERRIDES), problem=problem)
            read.append((keys, parse_yaml(f"value: {value}", OVERRIDES).value["value"]))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(*problems)
    return read


def as_values(overrides: Overrides) -> dict[str, Any]:
    """Overrides as values by `section.key`.

    Raises:
        ConfigError: One is not `section.key=value`, or its value is not valid YAML.
    """
    if isinstance(overrides, Mapping):
        return dict(overrides)
    return {".".join(keys): tree.plain() for keys, tree in _parse_settings(overrides)}


def overridden(overrides: Overrides) -> list[str]:
    """The dotted path of every value set by overrides."""

    def paths(tree: Tree, path: str) -> Iterator[str]:
        if not isinstance(tree.value, dict):
            yield path
            return
        for key, part in tree.value.items():
            yield from paths(part, f"{path}.{key}")

    return [path for keys, tree in _parse_settings(overrides) for path in paths(tree, ".".join(keys))]


def _load(config: str | Path | Config, overrides: Overrides) -> Tree:
    """The values of a config with overrides."""
    above = Tree({})
    for keys, value in _parse_settings(overrides):
        for key in reversed(keys):
            value = Tree({key: value})
        above = _merge(above, _in_full(value))
    if isinstance(config, Config):
        values = config.model_dump(mode="json")
        if "run" not in config.parent.model_fields_set:
            values["parent"].pop("run")  # null is a decision for new weights
        return _with_parent(_merge(Tree.of(values), above, Config))
    path = Path(config)
    try:
        tree = _merge(_read_config_tree(find_config(str(config))), above, Config)
    except ConfigError:
        if path.suffix.lower() not in _DATA or not path.is_file():
            raise
        raise ConfigError(
            "{path}: looks like data, not a config; nmt preprocess takes it by {source}, a config as data.source",
            path=path,
            source=Parameter("source", path),
        ) from None
    return _with_parent(tree)


def load_config(config: str | Path | Config, overrides: Overrides = ()) -> Config:
    """Read a config file or a shipped config, with overrides.

    Args:
        config: Path of a YAML file, the name of a shipped config, or a config that was read earlier.
        overrides: Values that replace its own: `{"train.epochs": 3}` or `["train.epochs=3"]`; later ones win.

    Raises:
        ConfigError: One line per problem: file and line, key, what was found, what is allowed.
    """
    return _validate(_load(config, overrides), new=True, allowed_classes=None)


def check_values(values: Mapping[str, Any]) -> Config:
    """The config of some values, with defaults for the others; any class that they name may be imported.

    Raises:
        ConfigError: One line per problem.
    """
    return _validate(Tree.of(values), new=False, allowed_classes=None)


def with_search_options(config: Config, search_options: Mapping[str, Any], overrides: Overrides = ()) -> DecodeSection:
    """The search options of a model, some of them replaced.

    Args:
        config: The model's config.
        search_options: Values by key of the decode section; None keeps the config's.
        overrides: As for `load_config`; `search_options` takes precedence.

    Raises:
        ConfigError: A value is not allowed, or an override is not about the search; one line per problem.
    """
    paths = overridden(overrides)
    if outside := [path for path in paths if path.split(".")[0] != "decode"]:
        refused = "cannot be changed after training; only keys of decode can be set here"
        meant = {key: f"; did you mean decode.{key}?" for key in DecodeSection.model_fields}
        raise ConfigError(*(f"{path}: {refused}{meant.get(path, '')}" for path in outside))
    options = Tree.of({"decode": {key: value for key, value in search_options.items() if value is not None}})
    decode = _validate(_merge(_load(config, overrides), options, Config), new=False).decode
    positions = getattr(config.model.decoder, "learned_positions", None)
    if positions and decode.max_length > positions and "decode.max_length" in paths:
        limit = f"is above the {positions:,} positions of the model"
        raise ConfigError(f"decode.max_length: {decode.max_length:,} {limit}")
    return decode


def parse_config(text: str, origin: str, allowed_classes: Collection[str] | None = ()) -> Config:
    """Parse a resolved config, as `dump_config` wrote it into a data or model directory.

    Args:
        text: YAML.
        origin: File name for errors.
        allowed_classes: Dotted paths of classes that may be imported to check their options; None allows all.

    Raises:
        ConfigError: One line per problem.
    """
    tree = _in_current_form(parse_yaml(text, origin), stored=True)
    config = _validate(tree, new=False, allowed_classes=allowed_classes)
    if keys := automatic_keys(config):
        raise ConfigError(f"{origin}: {', '.join(keys)}: auto, where a stored config has a value; it is damaged")
    return config


def read_config(path: Path, allowed_classes: Collection[str] | None = ()) -> Config:
    """Read the resolved config in a data or model directory; see `parse_config`.

    Raises:
        ConfigError: One line per problem.
        DataError: The file is missing, unreadable, or not a regular file in its folder.
    """
    try:
        text = read_bytes(path, MAX_CONFIG, path.parent).decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text; the directory is damaged") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); the directory is incomplete") from None
    return parse_config(text, str(path), allowed_classes)


def dump_config(config: Config) -> str:
    """The complete config as YAML, including defaults."""
    return _as_yaml(json.dumps(config.model_dump(mode="json")))


@functools.lru_cache(maxsize=16)
def _as_yaml(values: str) -> str:
    """The YAML of a config given as JSON; a run writes the same config with each of its models."""
    return as_yaml({"format": FORMAT, **json.loads(values)})


def show_config(name: str, overrides: Overrides = ()) -> str:
    """The complete config as YAML that can be loaded again, each value with a comment on its origin.

    Args:
        name: As in `load_config`.
        overrides: As in `load_config`.

    Raises:
        ConfigError: As in `load_config`.
    """
    tree = _load(name, overrides)
    rows = list(_rows(_validate(tree, new=True, allowed_classes=None), tree))
    width = max(len(line) for line, origin in rows if origin and len(line) <= _WIDEST)
    return "".join(f"{line:{width}}  # {origin}\n" if origin else f"{line}\n" for line, origin in rows)


def _rows(section: Section, tree: Tree, above: KeyPath = ()) -> Iterator[tuple[str, str]]:
    """Yield each line of a section without its comment, and the comment."""
    indent = "  " * len(above)
    for key, value in section.model_dump(mode="json").items():
        path = (*above, key)
        part = getattr(section, key)
        if isinstance(part, Section):
            yield f"{indent}{key}:", ""
            yield from _rows(part, tree, path)
        else:
            written = tree.find(path)
            origin = written.where if written else "default"
            yield f"{indent}{key}: {in_one_line(value)}", _OPTION if origin == OVERRIDES else origin
