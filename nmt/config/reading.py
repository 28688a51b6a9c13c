"""From YAML files and `--set` to a checked `Config`, and back to YAML."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from nmt.config.checks import (
    Check,
    Place,
    Problem,
    closest_key,
    conflicts,
    describe,
    dotted,
    ineffective,
    suggest,
    unused,
)
from nmt.config.sections import Config, DecodeSection, Section
from nmt.system.errors import ConfigError, DataError, printable, shorten
from nmt.system.files import check_file, read_bytes, shipped
from nmt.system.limits import KIB, MAX_CONFIG, MAX_DIGITS


class _Loader(yaml.SafeLoader):
    """YAML with the scalars of version 1.2's core schema (YAML 1.2.2, section 10.3) only."""


class _Dumper(yaml.SafeDumper):
    """Quotes strings that YAML 1.1 or 1.2 would not read as text."""


_CORE = {
    "null": (r"^(~|null|Null|NULL|)$", ("~", "n", "N", "")),
    "bool": (r"^(true|True|TRUE|false|False|FALSE)$", "tTfF"),
    "int": (r"^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
    "float": (r"^[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?$", "-+.0123456789"),
}
"""The core schema's scalars and their first characters; without .inf and .nan, as no key allows them."""
_TAG = "tag:yaml.org,2002:"
_TAGS = {
    yaml.ScalarNode: {_TAG + name for name in (*_CORE, "str")},
    yaml.SequenceNode: {_TAG + "seq"},
    yaml.MappingNode: {_TAG + "map"},
}
_MAX_VALUES = 2_000
"""Maximum number of values of a config, including repetitions by aliases; one with every key has about 150."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_UNICODE = "is not valid Unicode text: it contains a surrogate"

_Loader.yaml_implicit_resolvers = {}
for _name, (_pattern, _first) in _CORE.items():
    for _reader in (_Loader, _Dumper):
        _reader.add_implicit_resolver(_TAG + _name, re.compile(_pattern), list(_first))


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = str(node.value)
    if len(text) > MAX_DIGITS:
        raise ValueError
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


_Loader.add_constructor(_TAG + "int", _construct_int)

_SET = "--set"
_COMMAND_LINE = 1
"""Layer of `--set`. The config file is layer 0, the file that it extends -1, and so on."""


class _Written(NamedTuple):
    """Where a value was set."""

    where: str
    layer: int


@dataclass
class _Source:
    """Raw values of a config, and where each was set."""

    values: dict[str, Any]
    places: dict[Place, _Written]

    def place_of(self, path: Place) -> str:
        for end in range(len(path), 0, -1):
            if path[:end] in self.places:
                where = self.places[path[:end]].where
                return "--set " if where == _SET else f"{where}: "
        return ""


@dataclass
class _Builder:
    """Builds plain values from YAML nodes, and records where each was set.

    Attributes:
        loader: Reads the scalars.
        origin: The file; empty for the command line.
        layer: Layer of the file.
        places: Where each value was set.
    """

    loader: _Loader
    origin: str
    layer: int
    places: dict[Place, _Written]

    def build(self, node: yaml.Node, path: Place = ()) -> Any:
        """Build the value of a node and of all nodes below it."""
        if len(self.places) == _MAX_VALUES:
            raise self._refusal(node, (), f"more than {_MAX_VALUES:,} values, including those of aliases; remove some")
        if node.tag not in _TAGS[type(node)]:
            tag = printable(str(node.tag).removeprefix(_TAG))
            raise self._refusal(node, path, f"is tagged {tag}, which does not fit here in YAML 1.2's core schema")
        self._check_unicode(node, path)
        self.places[path] = _Written(self._where(node), self.layer)
        if isinstance(node, yaml.MappingNode):
            return self._build_mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, str(index))) for index, item in enumerate(node.value)]
        try:
            return self.loader.construct_object(node)
        except (ValueError, LookupError, AttributeError):  # a number that is too large, or PyYAML on `!!float x`
            raise self._refusal(node, path, f"cannot be read as {str(node.tag).removeprefix(_TAG)}") from None

    def _build_mapping(self, node: yaml.MappingNode, path: Place) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._refusal(key_node, path, "has a key that is a list or a section; write text")
            key = str(key_node.value)
            if key in result:
                raise self._refusal(key_node, (*path, key), "occurs twice; remove one")
            self._check_unicode(key_node, (*path, key))
            result[key] = self.build(value_node, (*path, key))
        return result

    def _check_unicode(self, node: yaml.Node, path: Place) -> None:
        if isinstance(node, yaml.ScalarNode) and _SURROGATE.search(node.value):
            raise self._refusal(node, path, _NOT_UNICODE)

    def _where(self, node: yaml.Node) -> str:
        return f"{self.origin}:{node.start_mark.line + 1}" if self.origin else "--set"

    def _refusal(self, node: yaml.Node, path: Place, fault: str) -> ConfigError:
        key = f"{dotted(path)}: " if path else ""
        return ConfigError(f"{self._where(node)}: {key}{fault}")


def _load_yaml(text: str, origin: str, layer: int = 0) -> _Source:
    name = origin or "--set"
    places: dict[Place, _Written] = {}
    loader: _Loader | None = None
    try:
        if len(text) > MAX_CONFIG:
            raise ConfigError(f"{name}: longer than {MAX_CONFIG // KIB} KiB; shorten it")
        loader = _Loader(text)
        node = loader.get_single_node()
        values = {} if node is None else _Builder(loader, origin, layer, places).build(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise ConfigError(f"{where}: not valid YAML: {shorten(str(error.problem or error.context))}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: not valid YAML: {shorten(' '.join(str(error).split()))}") from None
    finally:
        if loader:
            loader.dispose()
    if not isinstance(values, dict):
        raise ConfigError(f"{name}: expected keys and values, found {shorten(repr(values))}")
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
    """Find a config by its path or by the name of a shipped config.

    Raises:
        ConfigError: There is no such file or shipped config.
    """
    return find_shipped(name, "configs", "config")


def find_shipped(name: str, folder: str, kind: str) -> Path:
    """Find a YAML file by its path or by the name of a shipped one.

    Args:
        name: Path or name.
        folder: Where shipped ones are.
        kind: What they are, for the error.

    Raises:
        ConfigError: There is none.
    """
    path = Path(name)
    if path.is_file():
        return path
    by_name = shipped(f"{folder}/{name}.yaml")
    if re.fullmatch(r"[\w-]+", name) and by_name.is_file():
        return by_name
    known = sorted(file.stem for file in shipped(folder).glob("*.yaml"))
    raise ConfigError(f"{name}: no such {kind} file; shipped {kind}s: {', '.join(known)}{suggest(name, known)}")


def _shown(path: Path) -> str:
    """A path relative to the working folder if possible: shipped configs have absolute paths."""
    return str(path.relative_to(Path.cwd()) if path.is_absolute() and path.is_relative_to(Path.cwd()) else path)


def _read(path: Path, seen: tuple[Path, ...] = ()) -> _Source:
    resolved = path.resolve()
    if resolved in seen:
        raise ConfigError(f"{path}: extends itself through {' -> '.join(p.name for p in (*seen, resolved))}")
    where, layer = _shown(path), -len(seen)
    source = _load_yaml(_read_text(path), where, layer)
    parent = source.values.pop("extends", None)
    if "name" not in source.values:
        source.values["name"] = path.stem
        source.places[("name",)] = _Written(where, layer)
    if parent is None:
        return source
    if not isinstance(parent, str):
        raise ConfigError(
            f"{source.place_of(('extends',))}extends: expected one path or name, found {shorten(repr(parent))}"
        )
    beside = path.parent / parent
    parent_path = beside if beside.is_file() else find_config(parent)
    return _merge(_read(parent_path, (*seen, resolved)), source)


def _read_text(path: Path) -> str:
    try:
        return read_bytes(path, MAX_CONFIG).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except DataError as error:
        raise ConfigError(str(error)) from None


def load_yaml_file(path: Path) -> dict[str, Any]:
    """The plain values of a YAML file of keys and values.

    Raises:
        ConfigError: It cannot be read, or is not valid.
    """
    return _load_yaml(_read_text(path), _shown(path)).values


def as_yaml_list(text: str, origin: str) -> list[Any]:
    """Values of YAML that are separated by commas.

    Raises:
        ConfigError: They are not valid YAML.
    """
    found = _load_yaml(f"values: [{text}]", origin).values.get("values")
    if not isinstance(found, list):
        raise ConfigError(f"{origin}: expected values separated by commas, found {shorten(repr(text))}")
    return found


def _value_problems(error: ValidationError) -> tuple[list[Problem], set[Place]]:
    """The problems with single values, and the keys whose values are unknown because of them."""
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
    """The values except those at, or above, one of the places."""
    kept: dict[str, Any] = {}
    for key, value in values.items():
        path = (*above, key)
        if isinstance(value, dict) and path not in places:
            kept[key] = _without(value, places, path)
        elif not any(_within(place, path) for place in places):
            kept[key] = value
    return kept


def _validate(source: _Source, *, new: bool, checks: Sequence[Check], unread: Sequence[Problem] = ()) -> Config:
    """Check values and combinations.

    Combinations are checked even if single values are wrong, unless those are part of the combination.

    Args:
        source: The raw values.
        new: Whether this config is for new work rather than that of saved data or a saved model: it is then also
            checked for settings without effect.
        checks: Further checks for combinations that cannot work.
        unread: Keys whose overrides could not be read, and why, in whole lines.

    Raises:
        ConfigError: One line per problem.
    """
    problems: list[Problem] = []
    unknown: set[Place] = set()
    try:
        config = Config.model_validate(source.values)
    except ValidationError as error:
        problems, unknown = _value_problems(error)
        config = Config.model_validate(_without(source.values, unknown))
    unknown |= {path for path, _ in unread}
    found = chain(*(check(config) for check in (conflicts, *checks)))
    if new:
        layers = {path: written.layer for path, written in source.places.items()}
        found = chain(found, ineffective(config), unused(config, layers))
    for places, message in found:
        if not any(_within(place, other) or _within(other, place) for place in places for other in unknown):
            problems.append((places[0], message))
    if problems or unread:
        lines = [line for _, line in unread]
        lines += [f"{source.place_of(path)}{dotted(path)}: {message}" for path, message in problems]
        raise ConfigError(*_first_of(list(dict.fromkeys(lines))))
    return config


def _first_of(lines: list[str]) -> list[str]:
    """The first problems, and the number of further ones."""
    more = len(lines) - _SHOWN_PROBLEMS
    return lines if more <= 0 else [*lines[:_SHOWN_PROBLEMS], f"and {more:,} more problems"]


_SHOWN_PROBLEMS = 50


Overrides = Mapping[str, Any] | Sequence[str]
"""Values that replace a config's: `section.key=value`, the value as YAML, or a mapping from `section.key`."""


def as_settings(overrides: Overrides) -> list[str]:
    """Overrides as `section.key=value`, the value as YAML.

    Raises:
        ConfigError: A value cannot be written as YAML.
    """
    if not isinstance(overrides, Mapping):
        return [overrides] if isinstance(overrides, str) else list(overrides)
    return [f"{key}={_as_yaml(key, value)}" for key, value in overrides.items()]


def _as_yaml(key: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        value = [os.fspath(each) if isinstance(each, os.PathLike) else each for each in value]
    elif isinstance(value, os.PathLike):
        value = os.fspath(value)
    try:
        return in_one_line(value)
    except yaml.YAMLError:
        raise ConfigError(f"{key}: {shorten(repr(value))} cannot be a value of a config") from None


def as_values(overrides: Overrides) -> dict[str, Any]:
    """Overrides as values by `section.key`.

    Raises:
        ConfigError: One is not `section.key=value`, or its value is not valid YAML.
    """
    if isinstance(overrides, Mapping):
        return dict(overrides)
    result = {}
    for setting, source in _readable(overrides).items():
        keys = setting.partition("=")[0].strip()
        value = source.values
        for key in keys.split("."):
            value = value[key]
        result[keys] = value
    return result


def _parse_setting(setting: str) -> _Source:
    path, separator, value = setting.partition("=")
    keys = tuple(path.strip().split("."))
    if not separator or not all(keys):
        raise ConfigError(f"--set {setting}: expected section.key=value")
    if _SURROGATE.search(path):
        raise ConfigError(f"--set {path}: {_NOT_UNICODE}")
    loaded = _load_yaml(f"value: {value}", "")
    parsed: Any = loaded.values.get("value")
    places = {(*keys, *place[1:]): _Written(_SET, _COMMAND_LINE) for place in loaded.places if place}
    for key in reversed(keys):
        parsed = {key: parsed}
    return _Source(parsed, places)


def _parse_settings(overrides: Overrides) -> tuple[dict[str, _Source], list[Problem]]:
    """The values of each setting; and of those that cannot be read the keys, and why, in whole lines."""
    values: dict[str, _Source] = {}
    problems: list[Problem] = []
    for setting in as_settings(overrides):
        values.pop(setting, None)  # a repeated setting counts where it is last
        try:
            values[setting] = _parse_setting(setting)
        except ConfigError as error:
            keys = tuple(setting.partition("=")[0].strip().split("."))
            problems += [(keys, line) for line in error.args]
    return values, problems


def _readable(overrides: Overrides) -> dict[str, _Source]:
    """The values of each setting.

    Raises:
        ConfigError: Some cannot be read, one line each.
    """
    values, problems = _parse_settings(overrides)
    if problems:
        raise ConfigError(*(line for _, line in problems))
    return values


def overridden(overrides: Overrides) -> dict[str, str]:
    """The dotted path of each value set by overrides, with the `section.key=value` that sets it."""

    def paths(value: Any, path: str) -> Iterator[str]:
        if isinstance(value, dict):
            for key, part in value.items():
                yield from paths(part, f"{path}.{key}".removeprefix("."))
        else:
            yield path

    return {path: setting for setting, source in _readable(overrides).items() for path in paths(source.values, "")}


def _load(config: str | Path | Config, overrides: Overrides) -> tuple[_Source, list[Problem]]:
    """The raw values of a config with overrides, and the problems of those that cannot be read."""
    settings, problems = _parse_settings(overrides)
    if isinstance(config, Config):
        source = _Source(config.model_dump(mode="json"), {})
    else:
        try:
            source = _read(find_config(str(config)))
        except ConfigError as error:
            raise ConfigError(*error.args, *(line for _, line in problems)) from None
    for setting in settings.values():
        source = _merge(source, setting)
    return source, problems


def load_config(config: str | Path | Config, overrides: Overrides = (), checks: Sequence[Check] = ()) -> Config:
    """Read a config file or a shipped config, with overrides.

    Args:
        config: Path of a YAML file, the name of a shipped config, or a config that was read earlier.
        overrides: `section.key=value`, the value parsed as YAML, or a mapping; later ones win.
        checks: Further checks for combinations that cannot work.

    Raises:
        ConfigError: One line per problem: file and line, key, what was found, what is allowed.
    """
    source, unread = _load(config, overrides)
    return _validate(source, new=True, checks=checks, unread=unread)


def with_search_options(config: Config, given: Mapping[str, Any], overrides: Overrides = ()) -> DecodeSection:
    """The search options of a model, some of them replaced.

    Args:
        config: The model's config.
        given: Values by key of the decode section; None keeps the config's.
        overrides: As for `load_config`; `given` takes precedence.

    Raises:
        ConfigError: A value is not allowed, or an override is not about the search; one line per problem.
    """
    keys = {setting: setting.partition("=")[0].strip() for setting in as_settings(overrides)}
    allowed = [setting for setting, path in keys.items() if path.split(".")[0] in ("decode", "")]
    lines = [
        f"{path}: cannot be changed after training; only keys of decode can be set here"
        for setting, path in keys.items()
        if setting not in allowed
    ]
    options = config.decode
    try:
        if allowed:
            source, unread = _load(config, allowed)
            options = _validate(source, new=False, checks=(), unread=unread).decode
    except ConfigError as error:
        lines += error.args
    if lines:
        raise ConfigError(*lines)
    values = {key: value for key, value in given.items() if value is not None}
    try:
        return DecodeSection.model_validate({**options.model_dump(), **values})
    except ValidationError as error:
        problems, _ = _value_problems(error)
        raise ConfigError(*(f"decode.{dotted(path)}: {message}" for path, message in problems)) from None


def parse_config(text: str, origin: str, checks: Sequence[Check] = ()) -> Config:
    """Parse a resolved config, as `dump_config` wrote it into a data or model directory.

    Args:
        text: YAML.
        origin: File name for errors.
        checks: As in `load_config`.

    Raises:
        ConfigError: One line per problem.
    """
    return _validate(_load_yaml(text, origin), new=False, checks=checks)


def read_config(path: Path, checks: Sequence[Check] = ()) -> Config:
    """Read the resolved config in a data or model directory; see `parse_config`.

    Raises:
        ConfigError: One line per problem.
        DataError: The file is missing, unreadable, or not a regular file in its folder.
    """
    try:
        text = read_bytes(check_file(path, path.parent), MAX_CONFIG).decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text; the directory is damaged") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); the directory is incomplete") from None
    return parse_config(text, str(path), checks)


def dump_config(config: Config) -> str:
    """The complete config as YAML, including defaults."""
    return yaml.dump(config.model_dump(mode="json"), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def show_config(name: str, overrides: Overrides = (), checks: Sequence[Check] = ()) -> str:
    """The complete config as YAML that can be loaded again, each value with a comment on its origin.

    Args:
        name: As in `load_config`.
        overrides: As in `load_config`.
        checks: As in `load_config`.

    Raises:
        ConfigError: As in `load_config`.
    """
    source, unread = _load(name, overrides)
    rows = list(_rows(_validate(source, new=True, checks=checks, unread=unread), source.places))
    width = max(len(line) for line, origin in rows if origin and len(line) <= _WIDEST)
    return "".join(f"{line:{width}}  # {origin}\n" if origin else f"{line}\n" for line, origin in rows)


_WIDEST = 60
"""Columns; comments are aligned, except that of a longer line, so that the others stay close to their values."""


def _rows(section: Section, places: Mapping[Place, _Written], above: Place = ()) -> Iterator[tuple[str, str]]:
    """Yield each line of a section without its comment, and the comment."""
    indent = "  " * len(above)
    for key, value in section.model_dump(mode="json").items():
        path, part = (*above, key), getattr(section, key)
        if isinstance(part, Section):
            yield f"{indent}{key}:", ""
            yield from _rows(part, places, path)
        else:
            written = places.get(path)
            yield f"{indent}{key}: {in_one_line(value)}", written.where if written else "default"


def in_one_line(value: Any) -> str:
    """A value as YAML without line breaks."""

    def dump(style: str | None) -> str:
        # In a list, because PyYAML ends a lone scalar with a document marker.
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
