"""Documentation of the keys of a config: a JSON Schema for editors, descriptions for people."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from nmt.config.fields import Section, kinds_of
from nmt.config.sections import Config
from nmt.config.tree import in_one_line

EXTENDS = "config to build on: a path relative to this file, or the name of a shipped config"


class KeyDescription(NamedTuple):
    """One key, or one section.

    Attributes:
        path: Dotted path, such as `train.batch.size`.
        values: Allowed values, in words; empty for a section.
        default: Default as YAML; empty for a section.
        unit: Unit of a number; empty if the value is not a number.
        text: Description.
    """

    path: str
    values: str
    default: str
    unit: str
    text: str


def describe_keys(section: type[Section] = Config, above: str = "") -> Iterator[KeyDescription]:
    """Every section and key below a section, in order; each section before its keys."""
    properties = section.model_json_schema()["properties"]
    for name, field in section.model_fields.items():
        path = f"{above}{name}"
        (mark, kinds) = kinds_of(field)
        if mark:
            yield KeyDescription(path, "", "", "", mark.description)
            named = {str(mark.name(kind)): kind for kind in kinds}
            text = "; ".join(f"{name}: {_summary(kind)}" for name, kind in named.items())
            yield KeyDescription(f"{path}.{mark.key}", ", ".join(named), next(iter(named)), "", text)
            yield from _describe_kinds(named, path, mark.key)
        elif kinds:
            yield KeyDescription(path, "", "", "", f"{_summary(kinds[0])}.")
            yield from describe_keys(kinds[0], f"{path}.")
        else:
            schema = properties[name]
            values = _values_in_words(schema)
            default = in_one_line(schema["default"]) if "default" in schema else ""
            text = " ".join(schema.get("description", "").split()).removesuffix(".")
            yield KeyDescription(path, values, default, schema.get("unit", ""), text)


def _describe_kinds(kinds: Mapping[str, type[Section]], above: str, key: str) -> Iterator[KeyDescription]:
    """The keys of the kinds of a section; those that some kinds lack, or that differ, say whose they are."""
    users: dict[KeyDescription, list[str]] = {}
    for name, kind in kinds.items():
        for described in describe_keys(kind, f"{above}."):
            users.setdefault(described, []).append(name)
    for described, names in users.items():
        if described.path != f"{above}.{key}":
            whose = "" if len(names) == len(kinds) else f"{', '.join(names)}: "
            yield described._replace(text=f"{whose}{described.text}")


def _summary(section: type[Section]) -> str:
    return (inspect.getdoc(section) or "").split("\n")[0].removesuffix(".")


def _values_in_words(schema: Mapping[str, Any]) -> str:
    """Describe the allowed values of a key, from its JSON Schema."""
    if "anyOf" in schema:
        return " or ".join(_values_in_words(choice) for choice in schema["anyOf"])
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return ", ".join(schema["enum"])
    if "prefixItems" in schema:
        return f"list of {len(schema['prefixItems'])}: {_values_in_words(schema['prefixItems'][0])}"
    if schema["type"] == "array":
        return f"list of {_values_in_words(schema['items'])}"
    names = {"boolean": "true, false", "string": "text", "object": "keys and values"}
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = ", ".join(f"{sign} {schema[bound]}" for bound, sign in bounds.items() if bound in schema)
    return f"{names.get(schema['type'], schema['type'])} {limits}".rstrip()


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a config file, for editors."""
    schema = Config.model_json_schema()
    properties = {"extends": {"type": "string", "description": EXTENDS}, **schema["properties"]}
    properties["parent"] = {"anyOf": [{"type": "string"}, properties["parent"]]}  # short for parent.run
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "properties": properties}
