"""The content of the JSON files of a text folder."""

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, Field, StrictBool, StrictStr, TypeAdapter, ValidationError

from nmt.system.errors import DataError, shorten
from nmt.system.files import read_json
from nmt.system.limits import MAX_TEXT_FILE
from nmt.text.casing import Casing


class TokenizerSettings(BaseModel):
    """Any tokenizer; further settings are ignored."""

    kind: Literal["whitespace", "spacy", "subword"]
    lowercase: StrictBool
    casing: Casing = ""


class WordSettings(TokenizerSettings):
    """A word tokenizer: its language, tokens that are attached to others, and words that are one token."""

    language: StrictStr
    glue_left: list[StrictStr]
    glue_right: list[StrictStr]
    glue_pairs: list[tuple[StrictStr, StrictStr]] = []
    symbols: list[Annotated[str, Field(pattern="^(?:<[a-z0-9]+>|⟦[0-9]+⟧)$")]] = []


Settings = TypeVar("Settings")


def read_settings(path: Path, kind: type[Settings]) -> Settings:
    """Read settings of a class.

    Raises:
        DataError: The file is missing, damaged, or of another version.
    """
    try:
        return TypeAdapter(kind).validate_python(read_json(path, MAX_TEXT_FILE))
    except ValidationError as error:
        fault = error.errors()[0]
        key = shorten(".".join(map(str, fault["loc"])) or "content")
        reason = f"{key}: found {shorten(repr(fault['input']))}; {fault['msg']}"
        raise DataError(f"{path}: damaged, or written by another version ({reason})") from None
