"""The elements of the sections of a config: keys with limits and units, kinds, and the differences of two sections."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    WithJsonSchema,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from nmt.system.errors import name_differences


@dataclass(frozen=True)
class AtMost:
    """The upper bound of a number, and the reason for it."""

    limit: int
    reason: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check the bound after everything else."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Add the bound for editors."""
        return {**handler(schema), "maximum": self.limit}

    def _check(self, value: int) -> int:
        if value > self.limit:
            context = {"limit": f"{self.limit:,}", "reason": self.reason}
            raise PydanticCustomError("at_most", "should be at most {limit} ({reason})", context)
        return value


AUTO = "auto"


def is_auto(value: object) -> bool:
    """True if the amount of text decides a value in its place."""
    return value == AUTO


class Automatic:
    """Also allows `auto` instead of a number, until `resolve_auto` puts one in its place."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check everything but `auto`."""
        as_it_is = core_schema.plain_serializer_function_ser_schema(lambda value: value)
        return core_schema.no_info_wrap_validator_function(
            lambda value, check: value if is_auto(value) else check(value), handler(source), serialization=as_it_is
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Tell editors of `auto`."""
        return {"anyOf": [{"const": AUTO, "type": "string"}, handler(schema)]}


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


_ANY = 1_000_000_000
MAX_BEAM_SIZE = 1000
MAX_DECODE_BATCH = 100_000
"""Sentences translated at once."""
Count = Annotated[int, Field(strict=True, ge=1), AtMost(_ANY, "more than any corpus or run has")]
NonNegative = Annotated[int, Field(strict=True, ge=0), AtMost(_ANY, "more than any corpus or run has")]
Units = Annotated[Count, AtMost(16_384, "one layer would have over 4 GB of weights")]
Layers = Annotated[Count, AtMost(64, "deeper networks cannot be trained")]
Heads = Annotated[Count, AtMost(1024, "each head needs units of its own")]
Positions = Annotated[Count, AtMost(1_000_000, "no line is longer")]
Columns = Annotated[Count, AtMost(10_000, "no line has more")]
Tokens = Annotated[Count, AtMost(10_000_000, "their embeddings would not fit into memory")]
Processes = Annotated[Count, AtMost(1024, "no machine has more cores to run them on")]
FileCount = Annotated[Count, AtMost(10_000, "each is a file as large as the model")]
Hypotheses = Annotated[Count, AtMost(MAX_BEAM_SIZE, "each hypothesis costs as much as a sentence")]
Placeholders = Annotated[NonNegative, AtMost(99, "no sentence has more spans")]
Watched = Annotated[NonNegative, AtMost(100, "their attention is stored at each validation")]
Flag = Annotated[bool, Field(strict=True)]
Language = Annotated[str, Field(pattern=r"^[\w-]+$", min_length=1, max_length=35)]  # BCP 47 (RFC 5646, section 4.4.1)
Seed = Annotated[int, Field(strict=True, ge=0, le=4_294_967_295)]  # the range of random number generators
Number = Annotated[float, Field(strict=True)]
Probability = Annotated[Number, Field(ge=0, lt=1)]
Share = Annotated[Number, Field(ge=0, le=1)]
Positive = Annotated[Number, Field(gt=0)]
Betas = tuple[Probability, Probability]
Script = Literal[
    "latin", "cyrillic", "greek", "arabic", "hebrew", "devanagari", "thai", "hangul", "japanese", "chinese"
]
Files = Annotated[
    tuple[str, ...],
    BeforeValidator(_as_tuple),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
ValidationMetric = Literal["loss", "bleu", "chrf"]
"""A measure that can choose the best model: the loss, or a key of `METRICS` in nmt/evaluation/metrics.py."""


def key(default: Any, *, unit: str) -> Any:
    """A number of a section.

    Args:
        default: Value if a config does not set it; ... if it has to.
        unit: Its unit, "1" for a pure number.
    """
    return Field(default, json_schema_extra={"unit": unit})


Conflict = tuple[str, str]
"""The key to change, as a path from the section, and the fault."""


class Section(BaseModel):
    """Base class of every section: unknown keys are rejected and values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    def conflicts(self, above: str) -> Iterator[Conflict]:
        """Combinations of this section's own values that cannot work, with keys relative to it."""
        return iter(())


@dataclass(frozen=True)
class Kinds:
    """Tells the kinds of a section apart by the value of one key; a section without that key is of the first kind.

    Every kind is a class in a union; the key is a field of each with its own value as the default. Null is short for
    a first kind called `none`.

    Attributes:
        key: The key.
        description: Purpose of the section.
    """

    key: str
    description: str

    def find(self, kinds: tuple[type[Section], ...], values: Any) -> type[Section] | None:
        """The kind of a section's values; None if there is no such kind."""
        if not isinstance(values, dict) or self.key not in values:
            return kinds[0]
        return next((kind for kind in kinds if self.name(kind) == values[self.key]), None)

    def name(self, kind: type[Section]) -> Any:
        """The name of a kind in a config."""
        return kind.model_fields[self.key].default

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate a section only by the class of its kind, so that places and messages are those of its keys."""
        kinds: tuple[type[Section], ...] = get_args(source) or (source,)

        def validate(values: Any, _: Callable[[Any], Any]) -> Section:
            if isinstance(values, kinds):
                return values
            if values is None and self.name(kinds[0]) == "none":
                return kinds[0]()
            if kind := self.find(kinds, values):
                return kind.model_validate(values)
            *others, last = [repr(self.name(kind)) for kind in kinds]
            expected = f"{', '.join(others)} or {last}" if others else last
            unknown = InitErrorDetails(
                type="literal_error", loc=(self.key,), input=values[self.key], ctx={"expected": expected}
            )
            raise ValidationError.from_exception_data(self.key, [unknown])

        return core_schema.no_info_wrap_validator_function(validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schemas of all kinds, for editors: all but the first must be named."""
        whole = handler(schema)
        first, *others = whole.get("anyOf", [whole])
        named = [{**branch, "required": [self.key]} for branch in others]
        name = handler.resolve_ref_schema(first)["properties"][self.key]["default"]
        null = [{"type": "null"}] if name == "none" else []
        return {"anyOf": [first, *named, *null]}


def kinds_of(field: FieldInfo) -> tuple[Kinds | None, tuple[type[Section], ...]]:
    """The classes of a key that is a section: one, or one for every kind, with the key that tells them apart.

    A key that is a value has none.
    """
    named = get_origin(field.annotation) is dict  # sections by names of the user's own are one value
    parts = () if named else get_args(field.annotation) or (field.annotation,)
    mark = next((mark for mark in field.metadata if isinstance(mark, Kinds)), None)
    return mark, tuple(part for part in parts if isinstance(part, type) and issubclass(part, Section))


def find_section(field: FieldInfo, values: Any) -> type[Section] | None:
    """The class of a section with the given values; None for a key that is a value, or an unknown kind."""
    mark, kinds = kinds_of(field)
    return mark.find(kinds, values) if mark else kinds[0] if kinds else None


def differences(first: Section, second: Section, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Path and both values of the keys in which two sections differ; of different kinds, the keys that both have."""
    for name in type(first).model_fields:
        a = getattr(first, name)
        b = getattr(second, name, getattr(first, name))
        if isinstance(a, Section) and isinstance(b, Section):
            yield from differences(a, b, f"{prefix}{name}.")
        elif a != b:
            yield f"{prefix}{name}", a, b


def differing_keys(first: Section, second: Section, prefix: str = "") -> list[str]:
    """Paths of the keys in which two sections differ, with both values; see `differences`."""
    return name_differences(differences(first, second, prefix))
