"""YAML as a tree of values, each with the place where it was written; and values as YAML."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any, NamedTuple

import yaml

from nmt.system.errors import ConfigError, printable, shorten
from nmt.system.limits import KIB, MAX_CONFIG, MAX_DIGITS
from nmt.system.messages import Parameter

KeyPath = tuple[str, ...]
"""The keys from the root of a config to a value."""
OVERRIDES = "overrides"
"""The place of values that are not in a file: the parameter, which has no lines."""


class _Loader(yaml.SafeLoader):
    """YAML with the scalars of version 1.2's core schema (YAML 1.2.2, section 10.3) only."""


class _Dumper(yaml.SafeDumper):
    """Quotes strings that YAML 1.1 or 1.2 would not read as text."""


def _read_int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


_CORE: dict[str, tuple[str, Iterable[str], Callable[[str], Any]]] = {
    "null": (r"^(~|null|Null|NULL|)$", ("~", "n", "N", ""), lambda text: None),
    "bool": (r"^(true|True|TRUE|false|False|FALSE)$", "tTfF", lambda text: bool(("false", "true").index(text.lower()))),
    "int": (r"^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789", _read_int),
    "float": (r"^[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?$", "-+.0123456789", float),
    "str": (r"^(?!)", "", str),
}
"""Pattern, first characters and reader of the core schema's scalars; without .inf and .nan, as no key allows them."""
_TAG = "tag:yaml.org,2002:"
_TAGS = {yaml.ScalarNode: set(_CORE), yaml.SequenceNode: {"seq"}, yaml.MappingNode: {"map"}}
_MAX_VALUES = 2_000
"""Maximum number of values of a config, including repetitions by aliases; one with every key has about 150."""
SURROGATE = re.compile("[\ud800-\udfff]")
NOT_UNICODE = "is not valid Unicode text: it contains a surrogate"

_Loader.yaml_implicit_resolvers = {}
for _name, (_pattern, _first, _) in _CORE.items():
    for _reader in (_Loader, _Dumper):
        _reader.add_implicit_resolver(_TAG + _name, re.compile(_pattern), list(_first))
_Dumper.add_multi_representer(PurePath, lambda dumper, path: dumper.represent_str(str(path)))


def dotted(path: KeyPath) -> str:
    """A path of keys, as shown in messages."""
    return shorten(".".join(path))


class Tree(NamedTuple):
    """A value of a config, or a section or list of them, with its place.

    Attributes:
        value: A scalar, a list of trees, or trees by key.
        where: `FILE:LINE`, or `OVERRIDES`; empty if it was not written anywhere.
    """

    value: Any
    where: str = ""

    @classmethod
    def of(cls, value: Any, where: str = "") -> Tree:
        """The tree of plain values, which were not written anywhere, or all in one place."""
        if isinstance(value, dict):
            return cls({key: cls.of(part, where) for key, part in value.items()}, where)
        return cls([cls.of(part, where) for part in value] if isinstance(value, list) else value, where)

    def part(self, keep: Callable[[str, Tree], bool], above: str = "") -> Tree:
        """The values, in their sections, of which `keep` is true; it gets their dotted path and themselves.

        A section that is empty is a value; one that becomes empty is dropped: it may need keys that it lost.
        """
        parts = {}
        for key, part in self.value.items():
            if isinstance(part.value, dict) and part.value:
                kept = part.part(keep, f"{above}{key}.")
                if kept.value:
                    parts[key] = kept
            elif keep(f"{above}{key}", part):
                parts[key] = part
        return Tree(parts, self.where)

    def plain(self) -> Any:
        """Only the values."""
        if isinstance(self.value, dict):
            return {key: part.plain() for key, part in self.value.items()}
        return [part.plain() for part in self.value] if isinstance(self.value, list) else self.value

    def find(self, path: KeyPath) -> Tree | None:
        """The value at a path, if there is one."""
        if not path:
            return self
        value = self.value
        parts = {str(index): part for index, part in enumerate(value)} if isinstance(value, list) else value
        return parts[path[0]].find(path[1:]) if isinstance(parts, dict) and path[0] in parts else None

    def written(self, path: KeyPath) -> str:
        """Where a value was written, or the closest section that it belongs to."""
        trees = (self.find(path[:end]) for end in range(len(path), -1, -1))
        return next((place for tree in trees if tree and (place := tree.place)), "")

    @property
    def place(self) -> str:
        """Where it was written; of a section without a place of its own, where its first value was."""
        parts = self.value.values() if isinstance(self.value, dict) else ()
        return self.where or next((place for part in parts if (place := part.place)), "")


def parse_yaml(text: str, origin: str) -> Tree:
    """Parse keys and values.

    Args:
        text: YAML.
        origin: The file, for places; or `OVERRIDES`, which has no lines.

    Raises:
        ConfigError: It is not valid, not keys and values, or too large.
    """
    parser = _Parser(origin)
    if len(text) > MAX_CONFIG:
        raise parser.error(f": longer than {MAX_CONFIG // KIB} KiB; shorten it")
    try:
        node = _compose(text)
        tree = Tree({}) if node is None else parser.build(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise parser.error(f"{where}: not valid YAML: {shorten(str(error.problem or error.context))}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise parser.error(f": not valid YAML: {shorten(' '.join(str(error).split()))}") from None
    if not isinstance(tree.value, dict):
        raise parser.error(f": expected keys and values, found {shorten(repr(tree.plain()))}")
    return tree


class _Parser:
    """Makes a tree of values out of YAML's tree of nodes.

    Args:
        origin: The file, for places; or `OVERRIDES`, which has no lines.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.num_values = 0

    def build(self, node: yaml.Node, path: KeyPath = ()) -> Tree:
        """The value of a node at a path.

        Raises:
            ConfigError: It is not in YAML 1.2's core schema, or there are too many values.
        """
        self.num_values += 1  # aliases count as often as they are used
        if self.num_values > _MAX_VALUES:
            raise self.refuse(node, (), f"more than {_MAX_VALUES:,} values, including those of aliases; remove some")
        tag = str(node.tag).removeprefix(_TAG)
        if tag not in _TAGS[type(node)]:
            fault = f"is tagged {printable(tag)}, which does not fit here in YAML 1.2's core schema"
            raise self.refuse(node, path, fault)
        if isinstance(node, yaml.MappingNode):
            return Tree(self._build_section(node, path), self.place(node))
        if isinstance(node, yaml.SequenceNode):
            items = [self.build(item, (*path, str(index))) for index, item in enumerate(node.value)]
            return Tree(items, self.place(node))
        return Tree(self._read_scalar(node, tag, path), self.place(node))

    def _build_section(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Tree]:
        parts: dict[str, Tree] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.refuse(key_node, path, "has a key that is a list or a section; write text")
            key = str(key_node.value)
            if key in parts:
                raise self.refuse(key_node, (*path, key), "occurs twice; remove one")
            if SURROGATE.search(key):
                raise self.refuse(key_node, (*path, key), NOT_UNICODE)
            parts[key] = self.build(value_node, (*path, key))
        return parts

    def _read_scalar(self, node: yaml.Node, tag: str, path: KeyPath) -> Any:
        if SURROGATE.search(node.value):
            raise self.refuse(node, path, NOT_UNICODE)
        read = _CORE[tag][2]
        try:
            return read(node.value)
        except (ValueError, LookupError):
            raise self.refuse(node, path, f"cannot be read as {tag}") from None

    def place(self, node: yaml.Node) -> str:
        """Where a node was written: `FILE:LINE`, or `OVERRIDES`."""
        return f"{self.origin}{self._line(node)}"

    def _line(self, node: yaml.Node) -> str:
        return "" if self.origin == OVERRIDES else f":{node.start_mark.line + 1}"

    def refuse(self, node: yaml.Node, path: KeyPath, fault: str) -> ConfigError:
        """The error of a node: its line, its key and its fault."""
        key = f"{dotted(path)}: " if path else ""
        return self.error(f"{self._line(node)}: {key}{fault}")

    def error(self, rest: str) -> ConfigError:
        """The error that begins with the origin."""
        origin = Parameter(self.origin) if self.origin == OVERRIDES else self.origin
        return ConfigError("{origin}{rest}", origin=origin, rest=rest)


@functools.lru_cache(maxsize=16)
def _compose(text: str) -> yaml.Node | None:
    """The nodes of a text; a command reads the same config in a data directory, a run and its models."""
    return yaml.compose(text, _Loader)


def as_yaml(values: Any, **style: Any) -> str:
    """Values as YAML; paths are text."""
    return str(yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, **style))


def in_one_line(value: Any) -> str:
    """A value as YAML without line breaks.

    Raises:
        ConfigError: It is of a type that YAML does not have.
    """

    def dump(style: str | None) -> str:
        # In a list, because PyYAML ends a lone scalar with a document marker.
        text = as_yaml([value], default_flow_style=True, default_style=style, width=float("inf"))
        return text.strip()[1:-1]

    try:
        plain = dump(None)
    except yaml.YAMLError:
        raise ConfigError(f"{shorten(repr(value))} cannot be a value of a config") from None
    return plain if len(plain.splitlines()) == 1 else dump('"')
