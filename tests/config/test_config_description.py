"""Every key explains itself: descriptions, units, the JSON Schema and the table in docs/reference/config_keys.md."""

import re
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from config_keys import Key, every_key
from config_table import KEY_REFERENCE, markdown_table, with_table

from nmt.config import Config, Section
from nmt.config.description import KeyDescription, describe_keys, json_schema
from nmt.system.files import shipped

SHIPPED = sorted(shipped("configs").glob("*.yaml"))
KEYS: dict[str, list[KeyDescription]] = {}
for _key in describe_keys():
    if _key.values:
        KEYS.setdefault(_key.path, []).append(_key)


def mentions_numbers(annotation: Any) -> bool:
    return annotation in (int, float) or any(mentions_numbers(part) for part in get_args(annotation))


@pytest.mark.parametrize("key", list(every_key()), ids=lambda key: key.path)
def test_every_key_says_what_it_does_and_every_number_its_unit(key: Key) -> None:
    for described in KEYS[key.path]:
        assert described.text
        assert bool(described.unit) == mentions_numbers(key.annotation)


def test_every_section_says_what_it_is_for() -> None:
    sections = [key for key in describe_keys() if not key.values]
    assert len(sections) > 15
    assert all(key.text and key.text != Section.__doc__ for key in sections)


def test_defaults_are_shown_as_yaml() -> None:
    config = Config().model_dump(mode="json")
    for path, (key, *_) in KEYS.items():
        value: Any = config
        for part in path.split("."):
            value = value.get(part, ...)
        if value is not ...:  # else another kind has it
            shown = yaml.safe_load(key.default)
            assert (float(shown) if isinstance(value, float) else shown) == value, path


def test_kinds_share_the_rows_of_the_keys_they_share() -> None:
    described = [(key.text.partition(":")[0], key.default) for key in KEYS["train.optimizer.learning_rate"]]
    assert described == [("adam, adamw, sgd, rmsprop, radam, nadam, muon", "0.001"), ("adadelta", "1.0")]
    (weight_decay,) = KEYS["train.optimizer.weight_decay"]
    assert weight_decay.text.startswith("L2 penalty")
    (name,) = KEYS["train.schedule.name"]
    assert (name.values, name.default) == ("constant, plateau, inverse_sqrt, cosine", "constant")
    assert "plateau: Falls when validation stalls; " in name.text
    (updates,) = (key for key in KEYS["train.teacher_forcing.updates"] if "inverse_sigmoid: " in key.text)
    assert updates.default == ""


@pytest.mark.parametrize(
    ("path", "values", "default", "unit"),
    [
        ("train.batch.size", "auto or integer ≥ 1, ≤ 1000000000", "64", "sentences or tokens"),
        ("train.seed", "integer ≥ 0, ≤ 4294967295", "1", "1"),
        ("train.max_updates", "integer ≥ 1, ≤ 1000000000 or null", "null", "updates"),
        ("model.dropout", "auto or number ≥ 0, < 1", "0.2", "probability"),
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
    (key,) = KEYS[path]
    assert key == KeyDescription(path, values, default, unit, key.text)


def test_the_key_reference_has_the_table_of_the_keys_as_they_are() -> None:
    text = KEY_REFERENCE.read_text(encoding="utf-8")
    assert text == with_table(text), "docs/reference/config_keys.md is out of date; run scripts/config_table.py --write"


def test_the_table_has_a_row_for_every_key() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \|", markdown_table(), flags=re.MULTILINE)
    assert len(rows) == sum(map(len, KEYS.values())) + 1
    assert rows[:3] == ["extends", "name", "run"]


def test_a_text_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="the text lacks"):
        with_table("no table here")


KEYWORDS = re.compile(
    "[$](schema|defs|ref)|title|description|default|unit|const|enum|type|pattern|anyOf|items|prefixItems|required|"
    "properties|additionalProperties|exclusive(Max|Min)imum|maximum|minimum|(max|min)(Items|Length)"
)
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
BOUNDS = {"minimum": ge, "maximum": le, "exclusiveMinimum": gt, "exclusiveMaximum": lt}
WHOLE = json_schema()


def mistakes(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value breaks a schema, for the keywords in use here."""
    assert all(map(KEYWORDS.fullmatch, schema))
    if "$ref" in schema:
        if "required" in schema and not set(schema["required"]) <= value.keys():
            return True
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
        if not set(schema.get("required", [])) <= value.keys():
            return True
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
    return any(bound in schema and not holds(value, schema[bound]) for bound, holds in BOUNDS.items())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_schema_takes_the_shipped_configs(path: Path) -> None:
    assert not mistakes(yaml.safe_load(path.read_text(encoding="utf-8")), WHOLE)


def test_the_schema_takes_a_resolved_config() -> None:
    assert not mistakes(Config().model_dump(mode="json"), WHOLE)


@pytest.mark.parametrize(
    "text",
    [
        "trian: {}",
        "extends: [a, b]",
        "train: {epochs: 0}",
        "train: {epochs: 10000000000}",
        "train: {optimizer: {name: adm}}",
        "train: {optimizer: {momentum: 0.5}}",
        "train: {optimizer: {name: sgd, betas: [0.9, 0.9]}}",
        "train: {teacher_forcing: {schedule: linear}}",
        "train: {optimizer: {betas: [0.9, 1.0]}}",
        "model: {dropout: 1.0}",
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
