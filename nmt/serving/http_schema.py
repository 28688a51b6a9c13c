"""Requests and replies of the HTTP API, and the OpenAPI document that describes them."""

import inspect
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    NonNegativeInt,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from nmt.inspection.html_page import Page
from nmt.serving.body import FORM, JSON, MULTIPART
from nmt.serving.detection import Detection
from nmt.serving.directions import ServedModel
from nmt.system.errors import shorten
from nmt.system.version import __version__

MAX_WARNINGS = 10
"""How many unknown fields of a request are named."""


def _refuse_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("bool", "Input should be a valid integer")
    return value


Code = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Number = Annotated[NonNegativeInt, BeforeValidator(_refuse_truth)]


class Fields(BaseModel):
    """The fields of a request. Other fields have no effect, as clients of other servers send fields of their own."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="allow")

    def warn_of_others(self) -> list[str]:
        """A line for each field that a request does not have, which may be misspelled, at most `MAX_WARNINGS`."""
        known = ", ".join(type(self).model_fields)
        others = itertools.islice(self.model_extra or {}, MAX_WARNINGS)
        return [f"{shorten(name)}: unknown field, which has no effect; fields are {known}" for name in others]


class AnyRequest(Fields):
    """A request with a text, or a list of texts."""

    q: str | list[str]
    """The text, or a list of texts."""
    api_key: str = ""
    """A key, if the server requires one; a header Authorization: Bearer KEY does as well."""

    @property
    def texts(self) -> list[str]:
        """Everything that counts towards the limits."""
        return [self.q] if isinstance(self.q, str) else self.q


class TranslateRequest(AnyRequest):
    """A text or several to translate; `source` may be `auto`."""

    source: Code
    """Code of the language of the text; auto detects it."""
    target: Code
    """Code of the language of the translation."""
    format: Literal["text", "html"] = "text"
    """text (the default), or html, whose tags are kept."""
    alternatives: Number = 0
    """Number of further translations; 0 is the default."""
    glossary: str = ""
    """Name of a glossary of the direction, in place of the direction's own one."""


class TextRequest(AnyRequest):
    """A request with one text."""

    q: str
    """The text."""


class ExploreRequest(TextRequest):
    """A sentence to look into, and a translation to read, which may be empty."""

    source: Code
    """Code of the language of the sentence."""
    target: Code
    """Code of the language of the translation."""
    given: str = ""
    """A translation for the model to read, if any."""

    @property
    def texts(self) -> list[str]:
        """Everything that counts towards the limits."""
        return [self.q, self.given]


class FileRequest(Fields):
    """A file to translate; `source` may be `auto`."""

    source: Code
    """Code of the language of the file; auto detects it."""
    target: Code
    """Code of the language of the translation."""
    file: Annotated[str, WithJsonSchema({"type": "string", "format": "binary"})]
    """The file, whose suffix shows its format."""
    glossary: str = ""
    """Name of a glossary of the direction, in place of the direction's own one."""
    api_key: str = ""
    """A key, if the server requires one; a header Authorization: Bearer KEY does as well."""


class FileReply(BaseModel, use_attribute_docstrings=True):
    """Where the translation of a file is."""

    translatedFileUrl: str
    """The address of the translation, which can be fetched for an hour."""
    unreadSentences: int | None = None
    """If there are any: number of the sentences that stay as they are, as the model knows none of their words."""
    loopedSentences: int | None = None
    """If there are any: number of the sentences that stay as they are, as the model only repeats words."""
    warnings: list[str] | None = None
    """If there are any: fields of the request that are unknown."""


class FileContent(bytes):
    """The bytes of a file."""


class TranslateReply(BaseModel, use_attribute_docstrings=True):
    """Translations; lists if the request has a list."""

    translatedText: str | list[str]
    """The translation."""
    unreadSentences: int | list[int] | None = None
    """If there are any: number of the sentences that stay as they are, as the model knows none of their words."""
    loopedSentences: int | list[int] | None = None
    """If there are any: number of the sentences that stay as they are, as the model only repeats words."""
    detectedLanguage: Detection | list[Detection] | None = None
    """If the source is auto: the language, and the confidence in percent."""
    alternatives: list[str] | list[list[str]] | None = None
    """Further translations, if there are any and they are asked for."""
    warnings: list[str] | None = None
    """If there are any: fields of the request that are unknown."""


BINARY = "application/octet-stream"
TEXTS = {Page: "text/html", bytes: "text/plain", FileContent: BINARY}
"""Media types of replies that are not JSON."""
Operation = tuple[str, type[AnyRequest] | type[FileRequest] | None, Any, Callable[..., Any]]
"""A path, the types of its request, None for GET, and of its reply, and the function that does the work."""


class Language(BaseModel, use_attribute_docstrings=True):
    """A language, and those it can be translated into."""

    code: str
    """Code of the language."""
    name: str
    """Name of the language."""
    targets: list[str]
    """Codes of the languages that it can be translated into."""


class Health(BaseModel, use_attribute_docstrings=True):
    """That a server answers, and with which models."""

    status: str
    """ok"""
    models: list[ServedModel]
    """The models, and where they are from."""


class Error(BaseModel):
    """What is wrong with a request."""

    error: str


KEYS = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key; it may be the field api_key of a body too."},
    "api_key": {"type": "apiKey", "in": "query", "name": "api_key"},
}
"""How a request gives a key."""


def describe_routes(operations: Sequence[Operation], needs_key: bool = False) -> dict[str, Any]:
    """The OpenAPI document of a server.

    Args:
        operations: The functions of the routes.
        needs_key: True if requests with a text, and /metrics, need a key.
    """
    types = dict.fromkeys(kind for _, *kinds, _ in operations for kind in (*kinds, Error) if kind not in (None, *TEXTS))
    schemas, definitions = TypeAdapter.json_schemas(
        [(kind, "validation", TypeAdapter(kind)) for kind in types], ref_template="#/components/schemas/{model}"
    )

    for schema in definitions["$defs"].values():
        for name, field in schema["properties"].items():
            if field.get("default") is not None:  # null is like leaving the field out
                about = {key: field.pop(key) for key in ("default", "description", "title")}
                schema["properties"][name] = {"anyOf": [field, {"type": "null"}], **about}

    def content(kind: Any, *encodings: str) -> dict[str, Any]:
        return {name: {"schema": schemas.get((kind, "validation"), {"type": "string"})} for name in encodings}

    paths: dict[str, dict[str, Any]] = {}
    for path, request, reply, work in operations:
        responses = {
            "200": {"description": "The reply.", "content": content(reply, TEXTS.get(reply, JSON))},
            "default": {"description": "What is wrong.", "content": content(Error, JSON)},
        }
        method = "get" if request is None else "post"
        words = re.findall("[a-z]+", path) or ["page"]
        operation: dict[str, Any] = {
            "operationId": method + "".join(map(str.capitalize, words)),
            "summary": inspect.getdoc(work),
            "responses": responses,
        }
        if request is not None:
            encodings = (MULTIPART,) if request is FileRequest else (JSON, FORM, MULTIPART)
            operation["requestBody"] = {"required": True, "content": content(request, *encodings)}
        if names := re.findall(r"\{(\w+)\}", path):
            operation["parameters"] = [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
            ]
        if needs_key and (request is not None or reply is bytes):
            operation["security"] = [{name: []} for name in KEYS]
        paths.setdefault(path, {})[method] = operation
    information = {"title": "nmt serve", "version": __version__}
    components = {"schemas": definitions["$defs"], **({"securitySchemes": KEYS} if needs_key else {})}
    return {"openapi": "3.1.0", "info": information, "paths": paths, "components": components}
