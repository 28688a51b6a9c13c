"""From YAML files and `--set` to a checked `Config`, and back to YAML."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from nmt.config.checks import Place, Problem, closest_key, conflicts, describe, futile, suggest, unused
from nmt.config.sections import Config, Section
from nmt.errors import ConfigError
from nmt.files import shipped


class _Loader(yaml.SafeLoader):
    """YAML with the scalars of version 1.2: only true/false are booleans, 1e-3 is a number, no dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rsplit(":", 1)[1] not in ("bool", "timestamp", "float")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|True|false|False)$"), list("tTfF"))


class _Dumper(yaml.SafeDumper):
    """Quotes whatever `_Loader` would not read as text."""


_FLOAT = re.compile(r"^[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?$")
for _reader in (_Loader, _Dumper):
    _reader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))

_COMMAND_LINE = 1
"""Layer of `--set`. The file that was asked for is layer 0, what it extends -1, and so on."""


class _Written(NamedTuple):
    """Where a value was written."""

    where: str
    layer: int


@dataclass
class _Source:
    """Raw values of a config and where each was written."""

    values: dict[str, Any]
    places: dict[Place, _Written]

    def place_of(self, path: Place) -> str:
        for end in range(len(path), 0, -1):
            if path[:end] in self.places:
                return f"{self.places[path[:end]].where}: "
        return ""


def _load_yaml(text: str, origin: str, layer: int = 0) -> _Source:
    places: dict[Place, _Written] = {}

    def build(loader: _Loader, node: yaml.Node, path: Place) -> Any:
        places[path] = _Written(f"{origin}:{node.start_mark.line + 1}" if origin else "--set", layer)
        if isinstance(node, yaml.MappingNode):
            result: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = str(key_node.value)
                if key in result:
                    raise ConfigError(
                        f"{origin}:{key_node.start_mark.line + 1}: {'.'.join((*path, key))}: written twice; keep one"
                    )
                result[key] = build(loader, value_node, (*path, key))
            return result
        if isinstance(node, yaml.SequenceNode):
            return [build(loader, item, (*path, str(index))) for index, item in enumerate(node.value)]
        try:
            return loader.construct_object(node)
        except (ValueError, LookupError, AttributeError):  # a number beyond all bounds, or PyYAML on `!!float x`
            raise ConfigError(
                f"{places[path].where}: {'.'.join(path)}: cannot be read as {node.tag.rsplit(':', 1)[-1]}"
            ) from None

    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        values = {} if node is None else build(loader, node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{origin or '--set'}:{mark.line + 1}:{mark.column + 1}" if mark else (origin or "--set")
        raise ConfigError(f"{where}: not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{origin or '--set'}: not valid YAML: {' '.join(str(error).split())}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{origin or '--set'}: not valid YAML: {error}") from None
    finally:
        if loader:
            loader.dispose()
    if not isinstance(values, dict):
        raise ConfigError(f"{origin or '--set'}: expected keys and values, found {values!r}")
    return _Source(values, places)


def _merge(base: _Source, top: _Source) -> _Source:
    def merge(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
        result = dict(below)
        for key, value in above.items():
            old = result.get(key)
            result[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        return result

    def replaces(path: Place) -> bool:
        value: Any = top.values
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return not isinstance(value, dict)

    replaced = [path for path in top.places if replaces(path)]
    kept = {p: v for p, v in base.places.items() if not any(_within(p, r) for r in replaced)}
    return _Source(merge(base.values, top.values), {**kept, **top.places})


def find_config(name: str) -> Path:
    """Path of a config given as a path or as the name of a shipped config.

    Raises:
        ConfigError: There is neither such a file nor such a shipped config.
    """
    path = Path(name)
    if path.is_file():
        return path
    by_name = shipped(f"configs/{name}.yaml")
    if re.fullmatch(r"[\w-]+", name) and by_name.is_file():
        return by_name
    known = sorted(file.stem for file in shipped("configs").glob("*.yaml"))
    raise ConfigError(f"{name}: no such config file; shipped configs: {', '.join(known)}{suggest(name, known)}")


def _shown(path: Path) -> str:
    """A path as short as it can be: configs that ship with a checkout are found by their whole path."""
    return str(path.relative_to(Path.cwd()) if path.is_absolute() and path.is_relative_to(Path.cwd()) else path)


def _read(path: Path, seen: tuple[Path, ...] = ()) -> _Source:
    resolved = path.resolve()
    if resolved in seen:
        raise ConfigError(f"{path}: extends itself through {' -> '.join(p.name for p in (*seen, resolved))}")
    where, layer = _shown(path), -len(seen)
    try:
        source = _load_yaml(path.read_text(encoding="utf-8-sig"), where, layer)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    parent = source.values.pop("extends", None)
    if "name" not in source.values:
        source.values["name"] = path.stem
        source.places[("name",)] = _Written(where, layer)
    if parent is None:
        return source
    if not isinstance(parent, str):
        raise ConfigError(f"{source.place_of(('extends',))}extends: expected one path or name, found {parent!r}")
    beside = path.parent / parent
    parent_path = beside if beside.is_file() else find_config(parent)
    return _merge(_read(parent_path, (*seen, resolved)), source)


def _spoilt(error: ValidationError) -> tuple[list[Problem], set[Place]]:
    """The problems with single values, and every key whose value is thereby not known."""
    problems: list[Problem] = []
    unknown: set[Place] = set()
    for item in error.errors():
        path = tuple(str(part) for part in item["loc"])
        problems.append((path, describe(item, path)))
        unknown |= {path, closest_key(path)} if item["type"] == "extra_forbidden" else {path}
    return problems, unknown


def _within(path: Place, outer: Place) -> bool:
    return path[: len(outer)] == outer


def _without(values: Mapping[str, Any], places: Collection[Place], above: Place = ()) -> dict[str, Any]:
    """The values but for those in which one of the places lies."""
    kept: dict[str, Any] = {}
    for key, value in values.items():
        path = (*above, key)
        if isinstance(value, dict) and path not in places:
            kept[key] = _without(value, places, path)
        elif not any(_within(place, path) for place in places):
            kept[key] = value
    return kept


def _validate(source: _Source, *, new: bool) -> Config:
    """Check values and combinations.

    Combinations are checked even where single values are wrong, as long as those are no part of them.

    Args:
        source: What was written.
        new: Whether this is a config to work with, not that of finished work: it must make sense too.

    Raises:
        ConfigError: One line for each problem.
    """
    problems: list[Problem] = []
    unknown: set[Place] = set()
    try:
        config = Config.model_validate(source.values)
    except ValidationError as error:
        problems, unknown = _spoilt(error)
        config = Config.model_validate(_without(source.values, unknown))
    found = conflicts(config)
    if new:
        layers = {path: written.layer for path, written in source.places.items()}
        found = chain(found, futile(config), unused(config, layers))
    for places, message in found:
        if not any(_within(place, other) or _within(other, place) for place in places for other in unknown):
            problems.append((places[0], message))
    if problems:
        lines = [f"{source.place_of(path)}{'.'.join(path)}: {message}" for path, message in problems]
        raise ConfigError("\n".join(dict.fromkeys(lines)))
    return config


def _load(name: str, overrides: Sequence[str]) -> _Source:
    source = _read(find_config(name))
    for override in overrides:
        path, separator, value = override.partition("=")
        keys = tuple(path.strip().split("."))
        if not separator or not all(keys):
            raise ConfigError(f"--set {override}: expected section.key=value")
        loaded = _load_yaml(f"value: {value}", "")
        parsed: Any = loaded.values.get("value")
        written = _Written(f"--set {path.strip()}", _COMMAND_LINE)
        places = {(*keys, *place[1:]): written for place in loaded.places if place}
        for key in reversed(keys):
            parsed = {key: parsed}
        source = _merge(source, _Source(parsed, places))
    return source


def load_config(name: str, overrides: Sequence[str] = ()) -> Config:
    """Read a config file or a shipped config, with `section.key=value` overrides.

    Args:
        name: Path of a YAML file, or the name of a shipped config.
        overrides: `section.key=value`, the value parsed as YAML; later ones win.

    Raises:
        ConfigError: One line for each problem: file and line, key, what was found, what is allowed.
    """
    return _validate(_load(name, overrides), new=True)


def parse_config(text: str, origin: str) -> Config:
    """Read a resolved config, as `dump_config` wrote it into a data or model directory."""
    return _validate(_load_yaml(text, origin), new=False)


def dump_config(config: Config) -> str:
    """The whole config as YAML, every default written out."""
    return yaml.dump(config.model_dump(mode="json"), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def show_config(name: str, overrides: Sequence[str] = ()) -> str:
    """The whole config as YAML that can be loaded again, each value with a comment that says where it comes from.

    Args:
        name: As in `load_config`.
        overrides: As in `load_config`.

    Raises:
        ConfigError: As in `load_config`.
    """
    source = _load(name, overrides)
    rows = list(_rows(_validate(source, new=True), source.places))
    width = max(len(line) for line, origin in rows if origin and len(line) <= _WIDEST)
    return "".join(f"{line:{width}}  # {origin}\n" if origin else f"{line}\n" for line, origin in rows)


_WIDEST = 60
"""Columns; the comment of a longer line follows it at once, so that all others stand near their values."""


def _rows(section: Section, places: Mapping[Place, _Written], above: Place = ()) -> Iterator[tuple[str, str]]:
    """Each line of a section without its comment, and the comment."""
    indent = "  " * len(above)
    for key, value in section.model_dump(mode="json").items():
        path, part = (*above, key), getattr(section, key)
        if isinstance(part, Section):
            yield f"{indent}{key}:", ""
            yield from _rows(part, places, path)
        else:
            yield f"{indent}{key}: {in_one_line(value)}", _origin(places.get(path))


def _origin(written: _Written | None) -> str:
    if written is None:
        return "default"
    return "--set" if written.layer == _COMMAND_LINE else written.where


def in_one_line(value: Any) -> str:
    """A value as YAML without line breaks."""

    def dump(style: str | None) -> str:
        # The brackets of a list keep PyYAML from ending a lone word with a document mark.
        return yaml.dump(
            [value],
            Dumper=_Dumper,
            default_flow_style=True,
            default_style=style,
            sort_keys=False,
            allow_unicode=True,
            width=float("inf"),
        ).strip()[1:-1]

    plain = dump(None)
    return plain if len(plain.splitlines()) == 1 else dump('"')
