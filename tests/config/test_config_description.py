"""Every key explains itself: descriptions, units, the JSON Schema and the table in configs/README.md."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from nmt.config import Config, Section
from nmt.config.description import KeyDescription, describe_keys, json_schema, markdown_table, with_table
from nmt.system.files import shipped

KEY_REFERENCE = Path(__file__).resolve().parents[2] / "configs/README.md"
SHIPPED = sorted(shipped("configs").glob("*.yaml"))
KEYS = {key.path: key for key in describe_keys() if key.values}


def annotated_keys(section: type[Section] = Config, above: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from annotated_keys(field.annotation, f"{above}{name}.")
        else:
            yield f"{above}{name}", field.annotation


def mentions_numbers(annotation: Any) -> bool:
    return annotation in (int, float) or any(mentions_numbers(part) for part in get_args(annotation))


@pytest.mark.parametrize(("path", "annotation"), list(annotated_keys()))
def test_every_key_says_what_it_does_and_every_number_its_unit(path: str, annotation: Any) -> None:
    key = KEYS[path]
    assert key.text
    assert bool(key.unit) == mentions_numbers(annotation)


def test_every_section_says_what_it_is_for() -> None:
    sections = [key for key in describe_keys() if not key.values]
    assert len(sections) > 15
    assert all(key.text and key.text != Section.__doc__ for key in sections)


def test_defaults_are_shown_as_yaml() -> None:
    config = Config().model_dump(mode="json")
    for path, key in KEYS.items():
        value: Any = config
        for part in path.split("."):
            value = value[part]
        shown = yaml.safe_load(key.default)
        assert (float(shown) if isinstance(value, float) else shown) == value, path


@pytest.mark.parametrize(
    ("path", "values", "default", "unit"),
    [
        ("train.batch.size", "integer ≥ 1, ≤ 1000000000", "64", "sentences or tokens"),
        ("train.seed", "integer ≥ 0, ≤ 4294967295", "1", "1"),
        ("train.max_updates", "integer ≥ 1, ≤ 1000000000 or null", "null", "updates"),
        ("model.dropout", "number ≥ 0, < 1", "0.2", "probability"),
        ("train.optimizer.clip_norm", "number > 0 or null", "1.0", "1"),
        ("text.tokenizer", "spacy, subword, whitespace", "subword", ""),
        ("text.lowercase", "true, false", "false", ""),
        ("data.columns", "list of 2: integer ≥ 1, ≤ 10000", "[1, 2]", "column"),
        ("data.source", "text or list of text", "[]", ""),
        ("model.attention.options", "keys and values", "{}", ""),
        ("name", "text", "experiment", ""),
    ],
)
def test_keys_are_described_in_words(path: str, values: str, default: str, unit: str) -> None:
    assert KEYS[path] == KeyDescription(path, values, default, unit, KEYS[path].text)


def test_the_key_reference_has_the_table_of_the_keys_as_they_are() -> None:
    text = KEY_REFERENCE.read_text(encoding="utf-8")
    assert text == with_table(text), "configs/README.md: the table is out of date; run scripts/config_table.py --write"


def test_the_table_has_a_row_for_every_key() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \|", markdown_table(), flags=re.MULTILINE)
    assert len(rows) == len(KEYS) + 1
    assert rows[:3] == ["extends", "name", "source"]


def test_a_text_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="the text lacks"):
        with_table("no table here")


# Keywords of JSON Schema that only tell, and those that `mistakes` holds values against.
TELLING = {"$schema", "$defs", "title", "description", "default", "unit"}
CHECKING = {
    "const",
    "$ref",
    "additionalProperties",
    "anyOf",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maximum",
    "maxItems",
    "minimum",
    "minItems",
    "maxLength",
    "minLength",
    "pattern",
    "prefixItems",
    "properties",
    "type",
}
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
WHOLE = json_schema()


def mistakes(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value breaks a schema, for the keywords in use here."""
    assert schema.keys() <= TELLING | CHECKING
    if "$ref" in schema:
        return mistakes(value, WHOLE["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    if "anyOf" in schema:
        return all(mistakes(value, choice) for choice in schema["anyOf"])
    kind = schema["type"]
    if kind == "null":
        return value is not None
    if not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return True
    if kind == "object":
        known = schema.get("properties", {})
        if not schema["additionalProperties"] and not value.keys() <= known.keys():
            return True
        return any(mistakes(value[key], known[key]) for key in value.keys() & known.keys())
    if kind == "array":
        each = schema["prefixItems"] if "prefixItems" in schema else [schema["items"]] * len(value)
        return len(value) != len(each) or any(mistakes(item, part) for item, part in zip(value, each, strict=True))
    if kind == "string":
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            return True
        allowed = [schema["const"]] if "const" in schema else schema.get("enum", [value])
        return value not in allowed or not re.search(schema.get("pattern", ""), value)
    return kind != "boolean" and not (
        value >= schema.get("minimum", value)
        and value <= schema.get("maximum", value)
        and value > schema.get("exclusiveMinimum", value - 1)
        and value < schema.get("exclusiveMaximum", value + 1)
    )


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_schema_takes_the_shipped_configs(path: Path) -> None:
    assert not mistakes(yaml.safe_load(path.read_text(encoding="utf-8")), WHOLE)


def test_the_schema_takes_a_resolved_config() -> None:
    assert not mistakes(Config().model_dump(mode="json"), WHOLE)


@pytest.mark.parametrize(
    "text",
    [
        "trian: {}",
        "train: {epohcs: 3}",
        "train: 3",
        "extends: [a, b]",
        "train: {epochs: 0}",
        "train: {epochs: true}",
        "train: {epochs: 10000000000}",
        "train: {optimizer: {name: adm}}",
        "train: {optimizer: {learning_rate: 0}}",
        "train: {optimizer: {betas: [0.9, 1.0]}}",
        "train: {device: gpu}",
        "model: {dropout: 1.0}",
        "data: {source: 3}",
        "data: {columns: [1]}",
        "data: {max_malformed: 1.5}",
        "data: {src_language: ''}",
        "text: {lowercase: 7}",
    ],
)
def test_the_schema_refuses_what_is_wrong(text: str) -> None:
    assert mistakes(yaml.safe_load(text), WHOLE)


def test_the_schema_has_its_draft_and_units() -> None:
    assert WHOLE["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    batch = WHOLE["$defs"]["BatchSection"]["properties"]["accumulate"]
    assert (batch["unit"], batch["default"], batch["minimum"]) == ("batches", 1, 1)
